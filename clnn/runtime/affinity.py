"""A core for each worker thread of a CPU driver, and the policy by which it gets it.

Linux wakes a thread near the one that wakes it. On a machine of few cores two workers that slept between launches then often share a core for tens of
milliseconds while the other idles, and products take twice their time. PoCL starts its threads when platforms are listed, Intel's runtime, whose
calling thread works as well, all but one with the context. The program's own threads stay free.

A worker that wakes up also takes the core from the thread that woke it, at every launch, so that the program could not go on while the device works.
Threads of the batch policy wait for their turn instead; the others have begun meanwhile.

A program's thread that comes to run on a worker's core stays there, as it never sleeps for long, and the two share that core while another idles: it
steps aside when it finds itself there.
"""
from __future__ import annotations

import contextlib
import ctypes
import os

from ..core.config import config

_OWN = {"pocl": ("POCL_AFFINITY",), "intel-cpu": ("DPCPP_CPU_CU_AFFINITY", "SYCL_CPU_CU_AFFINITY")}     # the driver's settings of that kind


def _threads():
    """Numbers of this process's threads that have its name: others have a purpose of their own."""
    found = set()
    with contextlib.suppress(OSError):
        own = _name(os.getpid())
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):
                if _name(thread) == own:
                    found.add(int(thread))
    return found


def _name(thread):
    with open(f"/proc/self/task/{thread}/comm", "rb") as file:
        return file.read()


class Watch:
    """The threads that a driver starts after this was made."""

    def __init__(self):
        self.before = _threads() if config.affinity and hasattr(os, "sched_setaffinity") else None

    def place(self, flavour, units):
        """Give each new thread a core; nothing is done unless a driver of ``flavour`` has one for each core that this process may use.

        Returns:
            the :class:`Caller` of these workers, or None where none were placed, or where they have all cores.
        """
        if self.before is None or any(name in os.environ for name in _OWN.get(flavour, ())):
            return None
        cores = sorted(os.sched_getaffinity(0))
        callers = 1 if flavour == "intel-cpu" else 0
        started = sorted(_threads() - self.before)
        if flavour not in _OWN or not units == len(cores) == len(started) + callers:
            return None
        with contextlib.suppress(OSError):      # a thread that ended, or a sandbox that refuses
            for thread, core in zip(started, cores[callers:]):
                os.sched_setaffinity(thread, {core})
                os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
            return Caller(cores[callers:]) if callers else None
        return None


class Caller:
    """Keeps the calling thread, which takes part in the work, off the cores of the workers."""

    def __init__(self, cores):
        self.cores = frozenset(cores)
        self._core = getattr(ctypes.CDLL(None), "sched_getcpu", lambda: -1)

    def step_aside(self) -> None:
        """Move the calling thread to a core without a worker; it may go anywhere afterwards."""
        if self._core() in self.cores:
            allowed = os.sched_getaffinity(0)
            free = allowed - self.cores
            if free:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(0, free)
                    os.sched_setaffinity(0, allowed)
