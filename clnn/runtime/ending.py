"""The end of the process while something still works. Python ends daemon threads where they would go on, which in the midst of a call of a driver aborts the
process: so they are held up before such calls, as nobody waits for them any more. And a driver's threads that compile a kernel for what was launched last
crash when the compiler's own tables go: so that is waited for."""
from __future__ import annotations

import atexit
import contextlib
import functools
import multiprocessing.util
import sys
import threading
import time

from ..core import native
from . import drivers

_PATIENCE = 5.0         # seconds that calls under way may take


def _hold_up():
    if drivers.forked:
        return
    end = time.monotonic() + _PATIENCE
    for device in drivers.opened:
        with contextlib.suppress(Exception):                    # of a driver that is gone
            while device.last is not None and device.last.command_execution_status > 0 and time.monotonic() < end:
                time.sleep(1e-3)
    if threading.active_count() == 1:
        return
    for device in drivers.opened:
        device.lock.acquire(timeout=max(0.0, end - time.monotonic()))      # never released; this thread itself goes on
        for name in ("alloc", "alloc_all", "_call", "_watch"):              # which others use without it
            setattr(device, name, _locked(device, getattr(device, name)))
    while _calling() and time.monotonic() < end:
        time.sleep(1e-3)


def _locked(device, function):
    def call(*args, **kwargs):
        with device.lock:
            return function(*args, **kwargs)
    return call


def _calling() -> bool:
    """Whether another thread is in a call of a driver that needs no lock: a read, or waiting."""
    from .device import Device
    from .memory import Memory
    functions = Device._call, Device._watch, native.definitions["Memory.alloc"], Memory.alloc_all, Memory._alloc_large       # the C form has no frame
    inside = {f.__code__ for f in functions}
    return any([frame.f_code in inside for thread, frame in sys._current_frames().items() if thread != threading.get_ident()])


@functools.cache
def prepare() -> None:
    """Have it done. What is registered first runs last: threads that multiprocessing waits for at the end may still compute."""
    atexit.unregister(multiprocessing.util._exit_function)
    atexit.register(_hold_up)
    atexit.register(multiprocessing.util._exit_function)
