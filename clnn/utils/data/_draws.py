"""The modules ``random`` and ``numpy.random`` for worker threads: each draws from generators of its own, as a process would.

While there are such threads, the functions of both modules ask which thread calls them; the program's own thread keeps the generators that it had.
"""
import functools
import random
import threading

import numpy as np

_shared = np.random.mtrand._rand
_ALIKE = {"seed": "seed", "sample": "random_sample", "ranf": "random_sample"}       # functions of numpy.random that are not methods of its generator
_lock, _threads, _replaced = threading.Lock(), set(), []


class _Own(threading.local):
    python = numpy = None


_own = _Own()


def _asking(given, place, name):
    """``given``, or the method ``name`` of the generator that the calling thread has."""
    @functools.wraps(given)
    def function(*args, **kwargs):
        own = getattr(_own, place)
        return (given if own is None else getattr(own, name))(*args, **kwargs)
    return function


def _install():
    for module, place, shared, others in ((random, "python", random._inst, {}), (np.random, "numpy", _shared, _ALIKE)):
        for name, given in list(vars(module).items()):
            if getattr(given, "__self__", None) is shared or name in others:
                function = _asking(given, place, others.get(name, given.__name__))
                setattr(module, name, function)
                _replaced.append((module, name, given, function))


def begin(base, worker_id):
    """Give the calling thread generators with the seeds that PyTorch gives worker ``worker_id``."""
    with _lock:
        if not _threads:
            _install()
        _threads.add(threading.get_ident())
    _own.python, _own.numpy = random.Random(base + worker_id), np.random.RandomState(seed_of(base, worker_id))


def end():
    """The calling thread has finished; with the last one, the modules are what they were."""
    _own.python = _own.numpy = None
    with _lock:
        _threads.discard(threading.get_ident())
        while not _threads and _replaced:
            module, name, given, function = _replaced.pop()
            if getattr(module, name) is function:
                setattr(module, name, given)


def seed_of(base, worker_id):
    """Four numbers that seed NumPy in a worker: those of NumPy's own ``SeedSequence``, as in PyTorch."""
    return np.random.SeedSequence([worker_id, base & 0xFFFFFFFF, base >> 32, 0]).generate_state(4)
