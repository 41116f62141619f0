"""Python's ``multiprocessing`` under PyTorch's name, with ``spawn``.

Tensors travel between processes as copies, but those in shared memory (``Tensor.share_memory_``, ``Module.share_memory``), which a process that gets them
sees: several can train one model's parameters together, as on one processor. Start them with ``spawn``, as drivers do not survive a fork.
"""
from __future__ import annotations

import multiprocessing as _python
import sys as _sys
import types as _types
from multiprocessing import pool as _pool, queues as _queues
from multiprocessing import *  # noqa: F401,F403
from multiprocessing.connection import wait as _wait

__all__ = [*_python.__all__, "spawn", "start_processes", "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
           "set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies"]


class ProcessException(Exception):
    """A process that :func:`spawn` started has failed."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


class ProcessRaisedException(ProcessException):
    """It raised an exception, whose traceback is the message."""


class ProcessExitedException(ProcessException):
    """It ended with another exit code than 0."""

    def __init__(self, msg, error_index, error_pid, exit_code):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def _run(fn, index, args, failures):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:                                       # sys.exit() ends it with that code
        import traceback
        failures.put(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """The processes that :func:`spawn` started."""

    def __init__(self, processes, failures):
        self.processes, self._failures = processes, failures

    def pids(self):
        """Their numbers."""
        return [p.pid for p in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait for all of them; True when all have ended, an exception when one failed (the others are ended then)."""
        running = {p.sentinel: i for i, p in enumerate(self.processes) if p.exitcode is None}
        for sentinel in _wait(list(running), timeout) if running else ():
            self.processes[running[sentinel]].join()
        for i, p in enumerate(self.processes):
            if p.exitcode:
                for other in self.processes:
                    if other.is_alive():
                        other.terminate()
                    other.join()
                if not self._failures[i].empty():
                    raise ProcessRaisedException(f"\n\n-- Process {i} terminated with the following error:\n{self._failures[i].get()}", i, p.pid)
                raise ProcessExitedException(f"process {i} terminated with exit code {p.exitcode}", i, p.pid, p.exitcode)
        return all(p.exitcode is not None for p in self.processes)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Call ``fn(i, *args)`` in ``nprocs`` processes; see :func:`spawn`."""
    context, processes, failures = _python.get_context(start_method), [], []
    for i in range(nprocs):
        failures.append(context.SimpleQueue())
        processes.append(context.Process(target=_run, args=(fn, i, args, failures[-1]), daemon=daemon))
        processes[-1].start()
    running = ProcessContext(processes, failures)
    while join and not running.join():
        pass
    return None if join else running


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Call ``fn(i, *args)`` for i = 0 .. nprocs - 1, each in a new process.

    Args:
        fn: a function that a new interpreter can import.
        join: wait for all of them; otherwise a :class:`ProcessContext` is returned.

    Raises:
        ProcessRaisedException: one of them raised; the message holds its traceback.
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def _reduce_tensor(tensor):
    """What a pickle of a tensor holds: a function, and its arguments."""
    return tensor.__reduce_ex__(2)[:2]


def _modules():
    """Modules below PyTorch's package of this name."""
    reductions = _types.ModuleType(f"{__name__}.reductions", "How tensors are pickled for other processes.")
    reductions.ForkingPickler, reductions.reduce_tensor, reductions.init_reductions = _python.reduction.ForkingPickler, _reduce_tensor, lambda: None
    for name, module in dict(spawn=_sys.modules[__name__], pool=_pool, queue=_queues, reductions=reductions).items():
        _sys.modules[f"{__name__}.{name}"] = module


_modules()


def set_sharing_strategy(new_strategy):
    """Accepted: tensors travel as copies."""


def get_sharing_strategy():
    """``"file_system"``."""
    return "file_system"


def get_all_sharing_strategies():
    """The strategies that are accepted."""
    return {"file_descriptor", "file_system"}
