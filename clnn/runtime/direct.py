"""Short launches without the driver. PoCL makes a shared library of each kernel and work-group size, with a function that runs one group; to call it takes a
tenth of the time that a launch through its queue takes. A kernel that PoCL has launched is called so from then on, by threads that share its groups where
that is worth it (``_native/crew.c``): they take work within a microsecond, and PoCL's own up to sixty.

What this relies on is PoCL's own affair, so a process apart tries it once for each version (``probe``), and where that fails all goes through the driver.
Kernels of such programs have a mark in their names that tells the program (``assemble.combine``), by which the right library is found.
"""
from __future__ import annotations

import ctypes
import functools
import os
import re
import struct

import numpy as np

from ..core import native
from ..core.config import config

LIMIT = 500e-6              # seconds that a launch may take which several threads share
_SMALL = 65535              # work-items along a dimension, below which PoCL may have taken them to be few
_MOST_ARGS = 64             # of a kernel, and what follows them: arrays in local memory, which a source may spell in many ways, so room is kept for all that fit
_POINTER = struct.Struct("=Q").pack
_LOADED = re.compile(r"(/.*)/(\w+)/[\d-]+-goffs0[^/]*/\2\.so")
_folders = {}               # a program's mark -> the folder of its libraries
_functions = {}             # path -> address, or None; the libraries stay in the process


@functools.cache
def helpers(device) -> int:
    """How many threads there are, beside the calling one, that share what is called directly: one on each of the device's cores, which look out for work for
    a moment after the last and sleep then."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return native.built.hire(min(device.compute_units, cores) - 1, config.affinity) if native.built is not None else 0


def opened(way, device, cost):
    """How to call the kernel of ``way``, a Prepared launch; False where it goes through the driver. ``cost``: its Cost, which may be more from then on."""
    found = _opened(way, device)
    if found and found.groups > 1 and device.inline.helpers:
        cost.limit, cost.skip, cost.penalty, cost.slow, cost.seconds = LIMIT, 0, 4, 0, -1.0
    return found


def _opened(way, device):
    args = [None] * way.kernel.cl.num_args
    for i, packed in zip(way.fixed[::2], way.fixed[1::2]):
        args[i] = packed
    for i, constant in way.constants:
        address = 0 if constant is None else address_of(device, constant)
        if constant is not None and not address:
            return False
        args[i] = _POINTER(address)
    return called(device, way.kernel, way.kernel.cl, way.sizes, args)


def called(device, kernel, cl, sizes, args):
    """How to call ``cl``, an object of ``kernel``, for the calling thread; False where it goes through the driver.

    Args:
        sizes: (global, local) as they are enqueued. args: bytes of what never changes, None for what is given.
    """
    global_size, local_size = sizes
    side = device.inline
    if not (config.direct and device.record.direct and side is not None and side.twin is not None) or local_size is None or "printf" in kernel.source:
        return False
    address = _function(cl.function_name, kernel.program.mark, local_size, max(global_size) < _SMALL)
    if not address:
        return False
    try:
        return native.built.Direct(device, address, tuple([g // n for g, n in zip(global_size, local_size)]), tuple(local_size), tuple(args),
                                   _MOST_ARGS - len(args) if kernel.local_mem else 0, kernel.local_mem)
    except ValueError:                      # more arguments than it takes
        return False


def _function(name, mark, local_size, few):
    """The address of the function for groups of ``local_size`` of the kernel ``name``, or None."""
    if not mark or not name.endswith(mark):
        return None
    folder = _folders.get(mark)
    if folder is None:
        for loaded in filter(None, map(_LOADED.fullmatch, native.built.libraries("-goffs0"))):
            _folders[loaded[2][-len(mark):]] = loaded[1]
        folder = _folders.get(mark, "")
    sizes = "-".join(map(str, (*local_size, 1, 1)[:3]))
    for kind in ("goffs0-smallgrid", "goffs0") if few else ("goffs0",):
        path = os.path.join(folder, name, f"{sizes}-{kind}", f"{name}.so")
        if path not in _functions and os.path.exists(path):
            try:
                _functions[path] = ctypes.cast(ctypes.CDLL(path)[f"_pocl_kernel_{name}_workgroup"], ctypes.c_void_p).value
            except (OSError, AttributeError):
                _functions[path] = None
        if _functions.get(path):
            return _functions[path]
    return None


@functools.cache
def driver(name):
    """The loader's function of that name, or None: pyopencl is linked to it."""
    import pyopencl as cl
    try:
        return getattr(ctypes.CDLL(cl._cl.__file__), name)
    except (OSError, AttributeError):
        return None


def address_of_function(name) -> int:
    """Where it is; 0 where it cannot be found."""
    return ctypes.cast(driver(name), ctypes.c_void_p).value if driver(name) else 0


def address_of(device, buf) -> int:
    """Where a buffer lies in this process; 0 where that cannot be known."""
    import pyopencl as cl
    watch = driver("clSetMemObjectDestructorCallback")
    if watch is None or device.inline is None:
        return 0
    watch.argtypes, queue = (ctypes.c_void_p,) * 3, device.inline.queue
    try:
        with device.lock:
            if watch(buf.int_ptr, native.built.FORGET, None) != 0:
                return 0
            memory, _ = cl.enqueue_map_buffer(queue, buf, cl.map_flags.READ, 0, (1,), np.uint8, is_blocking=True)
            address = memory.ctypes.data
            memory.base.release(queue).wait()
            return address
    except (AttributeError, cl.Error):
        return 0


address = native.form("address", address_of)
