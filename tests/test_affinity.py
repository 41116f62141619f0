"""Worker threads of CPU drivers have a core each; all other threads of the process stay free."""
import ctypes
import json
import os
import subprocess
import sys

import pytest

from clnn.runtime.affinity import Caller
from clnn.runtime.device import default_device

_PROGRAM = """
import json, os
import clnn
assert clnn.ones(5).sum().item() == 5
cores = [os.sched_getaffinity(int(t)) for t in os.listdir("/proc/self/task")]
batch = [os.sched_getscheduler(int(t)) == os.SCHED_BATCH for t in os.listdir("/proc/self/task")]
print(json.dumps([sorted(min(c) for c in cores if len(c) == 1), len(os.sched_getaffinity(0)), sum(batch), os.sched_getscheduler(0)]))
"""


def pinned(**settings):
    """(cores of the threads that have one to themselves, how many the program's own thread may use, how many threads do not take a core from others when
    they wake up, the program's own policy) in a new process."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env={**os.environ, **settings}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores")
@pytest.mark.skipif(default_device().flavour not in ("pocl", "intel-cpu"), reason="drivers of CPUs")
def test_workers_have_a_core_each():
    all_cores = sorted(os.sched_getaffinity(0))
    if default_device().compute_units != len(all_cores):
        pytest.skip("the driver does not use all cores of this process, or more")
    cores, own, patient, policy = pinned()
    own_threads = all_cores if default_device().flavour == "pocl" else all_cores[1:]      # Intel's calling thread works, too
    assert own == len(all_cores) and set(own_threads) <= set(cores) and patient >= len(own_threads) and policy == os.SCHED_OTHER
    if default_device().flavour == "pocl":      # Intel's runtime may do the same of its own accord
        assert pinned(CLNN_AFFINITY="0") == [[], len(all_cores), 0, os.SCHED_OTHER]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores")
def test_a_calling_thread_steps_aside():
    core = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    if core is None:
        pytest.skip("this libc does not tell the core")
    allowed = os.sched_getaffinity(0)
    worker = max(allowed)
    caller = Caller([worker])
    moved = 0
    for _ in range(20):
        os.sched_setaffinity(0, {worker})
        os.sched_setaffinity(0, allowed)
        caller.step_aside()
        moved += core() != worker
        assert os.sched_getaffinity(0) == allowed
    assert moved > 10                           # where it went is only where it begins
    os.sched_setaffinity(0, {worker})
    try:
        caller.step_aside()
        assert os.sched_getaffinity(0) == {worker}      # there is no other core
    finally:
        os.sched_setaffinity(0, allowed)
