"""A core for each worker thread of a CPU driver, and the policy by which it gets it.

Linux wakes a thread near the one that wakes it. On a machine of few cores two workers that slept between launches then often share a core for tens of
milliseconds while the other idles, and products take twice their time. PoCL starts its threads when platforms are listed, Intel's runtime, whose
calling thread works as well, all but one with the context. The program's own threads stay free.

A worker that wakes up also takes the core from the thread that woke it, at every launch, so that the program could not go on while the device works.
Threads of the batch policy wait for their turn instead; the others have begun meanwhile.
"""
from __future__ import annotations

import contextlib
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

    def place(self, flavour, units) -> bool:
        """Give each new thread a core; False, and nothing is done, unless a driver of ``flavour`` has one for each core that this process may use."""
        if self.before is None or any(name in os.environ for name in _OWN.get(flavour, ())):
            return False
        cores = sorted(os.sched_getaffinity(0))
        callers = 1 if flavour == "intel-cpu" else 0
        started = sorted(_threads() - self.before)
        if flavour not in _OWN or not units == len(cores) == len(started) + callers:
            return False
        with contextlib.suppress(OSError):      # a thread that ended, or a sandbox that refuses
            for thread, core in zip(started, cores[callers:]):
                os.sched_setaffinity(thread, {core})
                os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
            return True
        return False
