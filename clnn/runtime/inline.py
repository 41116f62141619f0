"""Short launches in the calling thread.

Waking a CPU driver's threads takes 5-30 microseconds, and a host that waits for their result sleeps and wakes as long. Work that is shorter
than that is done at once by the thread that asks for it, where the driver can: Intel's CPU runtime has queues of that kind, PoCL has a second
device in its platform. A launch goes there only when nothing enqueued before it is still running, so the order of all work stays what
it was, and only while launches of its kind take less time there than the threads' wake-up is worth.

Where kernels can be called (``direct.py``) that queue only moves data: each kernel is launched once by the driver's threads. PoCL builds for the first device
alone then.
"""
from __future__ import annotations

import os
from time import perf_counter as clock

import numpy as np

from ..core import native
from ..core.config import config
from . import direct

__all__ = ["Inline", "clock", "open_for"]

BYTES = 320 << 10           # of all buffers of a launch together: more is never tried; of a recorded list, in the mean
_TOGETHER = 16 << 20         # the same where several threads share the work of one that is called directly
_MOST = 4 * BYTES           # of one launch of such a list
_MORE = 4                   # times as much, of recorded lists, where kernels are called
_LIMIT = {"intel-cpu": 14e-6, "pocl": 17e-6}     # seconds that a launch may take, by flavour
_LOCAL_THREAD = 1 << 31     # CL_QUEUE_THREAD_LOCAL_EXEC_ENABLE_INTEL of cl_intel_exec_by_local_thread
_WAKE = 60e-6               # seconds that PoCL's threads take to wake up
_MOMENT = 40e-6             # seconds that a short launch waits for other short ones to end
_PAUSE, _LONG_PAUSE = 8, 512    # short launches that follow others elsewhere until one waits again
BUILD = 0.006               # seconds lost from where on a kernel is built for the other queue: it takes longer, but is kept on disk
_TRIES = 16                 # short launches of a kernel that may report an error that are waited for where they did not run here
_BUSY = 64                  # launches between two tries, at most, of what was short before
_CALM = 7                   # launches between two that are timed, once they are known to be short
_PATIENCE = 1000            # times that a recorded list waits for the device rather than be built for its queue, too
_LIST = 512                 # launches of a recorded list that may run here
_SCALARS = frozenset((int, float, bytes, str, type(None), np.ndarray))


@native.know
class Cost:
    """What launches of one kernel and size take in the calling thread.

    ``limit`` is how many seconds one may take, ``seconds`` a running mean, ``least`` the shortest of all; ``skip`` launches go to the threads before the
    next try, ``penalty`` after the next failure; ``slow`` runs in a row took far too long; ``calm`` launches are not timed before the next that is.
    """

    __slots__ = ("limit", "seconds", "least", "skip", "penalty", "slow", "waits", "calm")

    def __init__(self, limit):
        self.limit, self.seconds, self.least, self.skip, self.penalty, self.slow, self.waits, self.calm = limit, -1.0, 1.0, 0, 4, 0, 0, 0


@native.know
class Inline:
    """The way of short launches of one device.

    Args:
        device: the :class:`~clnn.runtime.device.Device`.
        queue: runs each command in the calling thread before the call returns.
        twin: the device that builds for this queue, or None where it takes the kernels of ``device``.

    ``calls``: the queue is for transfers only, as kernels are called without the driver once it has launched them (see ``direct.py``); ``helpers`` threads
    take part then. ``limit`` and ``most``: seconds and bytes of a launch, at most.

    ``short``: whether all that still runs elsewhere is short. A launch in the threads takes several times as long as one here, so that the next one would
    follow it there, and so on: it waits for them instead, once. Where something else runs, or they came late, it waits again after ``patience`` launches, each
    time in vain after twice as many (``pause``).
    """

    __slots__ = ("device", "queue", "twin", "short", "_pause", "limit", "done", "handle", "calls", "helpers", "most", "patience", "pause", "__dict__")

    def __init__(self, device, queue, twin=None):
        self.device, self.queue, self.twin, self.short = device, queue, twin, True
        self._pause = getattr(os, "sched_yield", lambda: None)
        self.patience = self.pause = _PAUSE
        self.limit, self.done, self.handle = _LIMIT[device.flavour], None, queue.int_ptr
        self.calls = device.calls_kernels
        self.helpers = direct.helpers(device) if self.calls else 0
        if self.calls:
            self.limit = direct.LIMIT
        self.most = _TOGETHER if self.calls else BYTES

    def idle(self) -> bool:
        """Nothing that was enqueued before is still running."""
        last = self.device.last
        if last is self.done:
            return True
        if last.command_execution_status != 0:
            return False
        self.done, self.short = last, True      # asking the driver again costs as much as a third of a launch
        self.patience = self.pause = _PAUSE
        return True

    def ready(self) -> bool:
        """Nothing that was enqueued before is still running, or nothing any more after a moment."""
        if self.idle():
            return True
        if not self.short:
            self.patience -= 1
            if self.patience > 0:
                return False
        return self._soon()

    def _soon(self):
        last, end = self.device.last, clock() + _MOMENT
        while last.command_execution_status != 0:
            if clock() > end:
                self.short = False
                self.patience = self.pause = min(2 * self.pause, _LONG_PAUSE)
                return False
            self._pause()                       # a worker may need this core
        self.done, self.short = last, True
        return True

    def cost_of(self, kernel, key, args):
        """A new Cost, or None where the launch works on too much for a try."""
        return Cost(self.limit) if self.small(kernel, key, args, self.most) else None

    def cost_of_all(self, lists):
        """A new Cost of a recorded list of launches, given the arguments of each; None where one of them or all together are too much."""
        if not 0 < len(lists) <= _LIST:
            return None
        sizes = [sum([getattr(a, "size", 0) for a in args if type(a) not in _SCALARS]) for args in lists]
        more = _MORE if self.calls else 1
        return Cost(self.limit) if max(sizes) <= more * _MOST and sum(sizes) <= more * BYTES * len(sizes) else None

    def takes_list(self, cost, built_for_threads) -> bool:
        """Whether a recorded list runs here now. ``built_for_threads``: its kernels are not built for this queue."""
        if cost is None:
            return False
        if cost.skip:
            cost.skip -= 1
            return False
        if self.ready():
            return True
        if self.twin is None or built_for_threads or cost.waits > _PATIENCE:
            return False
        cost.waits += 1
        self.device.last.wait()
        return True

    @staticmethod
    def small(kernel, key, args, most=BYTES) -> bool:
        """Whether a launch of ``kernel`` with sizes ``key`` works on few bytes: of its buffers, if nothing else is known."""
        if kernel.touched and kernel.touched.get(key, most + 1) <= most:
            return True
        nbytes = 0
        for a in args:
            if type(a) not in _SCALARS:
                nbytes += getattr(a, "size", 0)      # what is no buffer is refused by the launch
                if nbytes > most:
                    return False
        return True

    def takes(self, kernel, key, args):
        """The Cost of a launch of ``kernel`` with sizes ``key`` if it shall run here now, else None."""
        cost = kernel.costs.get(key)
        if cost is None:
            if len(kernel.costs) > 4096:
                kernel.costs.clear()
            cost = kernel.costs[key] = Cost(self.limit)
        if cost.skip:
            cost.skip -= 1
        elif self.small(kernel, key, args, self.most):
            return cost if self.free(kernel) else None
        self.short = False
        return None

    def free(self, kernel) -> bool:
        """Whether a short launch of ``kernel`` runs here now."""
        if self.twin is None or self.calls:
            return self.ready()
        here, there = self.kernel(kernel).last_args is not None, kernel.last_args is not None
        if there and not here and kernel.lost <= BUILD:     # it would have to be built for this queue: only where that is worth it
            if self.short or self.idle():
                kernel.lost += _WAKE
            return False
        if self.ready():
            return True
        if there or not here or kernel.lost > BUILD:
            return False
        start = clock()
        self.device.last.wait()
        kernel.lost += clock() - start
        return True

    def settle(self, kernel):
        """Wait for a short launch that did not run here, and raise what it reported as if it had: the first few times, after which it is built for here."""
        kernel.lost += BUILD / _TRIES
        if self.device.word is not None:
            self.device.settle()

    def kernel(self, kernel):
        """The kernel that this queue takes in place of ``kernel``."""
        return kernel if self.twin is None or self.calls else kernel.twin or kernel.twin_for(self.twin)

    def took(self, cost, seconds):
        """Learn from a run."""
        limit = cost.limit
        if cost.seconds < 0.0:          # the first run may have waited for the driver's compiler, or for memory
            cost.seconds = 0.0
            return
        # a single long run may be another process's fault: it counts as twice the limit at most
        mean = cost.seconds = 0.75 * cost.seconds + 0.25 * min(seconds, 2 * limit)
        cost.slow = cost.slow + 1 if seconds > 4 * limit else 0
        cost.least = min(cost.least, seconds)
        short = cost.least < 0.5 * limit        # it was once: what makes it long now is the machine's fault, and passes
        if mean > limit or cost.slow > 1:
            cost.skip, cost.seconds = cost.penalty * (64 if cost.slow > 1 and not short else 1), limit
            cost.penalty = min(2 * cost.penalty, _BUSY if short else 4096)
        else:
            if cost.penalty > 4:
                cost.penalty = max(4, cost.penalty // 2) if short else cost.penalty - 1
            if mean < 0.75 * limit:
                cost.calm = _CALM


class Twin:
    """A second device of the same context, as programs see it: all else is that of the first."""

    def __init__(self, device, cl_device):
        self.main, self.cl_device, self.name = device, cl_device, cl_device.name.strip()
        self.declares_builtins, self.marks_kernels = device.declares_builtins, False

    def __getattr__(self, key):
        return getattr(self.main, key)


def open_for(device):
    """The inline way of an opened device, or None where its driver has none."""
    import pyopencl as cl
    if not config.inline:
        return None
    if device.record.companion is not None:
        return Inline(device, cl.CommandQueue(device.context, device.record.companion), Twin(device, device.record.companion))
    if device.flavour == "intel-cpu" and "cl_intel_exec_by_local_thread" in device.extensions:
        try:
            return Inline(device, cl.CommandQueue(device.context, device.cl_device, properties=_LOCAL_THREAD))
        except cl.Error:
            return None
    return None
