"""The maps that are under way, the innermost last, and what becomes of random numbers in them."""
from __future__ import annotations

import contextlib
import itertools

from .._tensor import foreign
from ..core import rng

active: list = []                       # (number, samples, randomness)
_numbers = itertools.count(1)
_drawn = [0]


@contextlib.contextmanager
def entered(size, randomness="different"):
    """A level of ``size`` samples for the block; gives its number."""
    if foreign.early is None:
        from .forms import ready
        ready()
    number = next(_numbers)
    active.append((number, size, randomness))
    try:
        yield number
    finally:
        active.pop()


def drawn():
    """How far the stream went by operators that gave each sample its due."""
    return _drawn[0]


def position():
    """Where the stream of random numbers stands."""
    stream = rng.default
    return stream.key, stream.offset


def handled(samples):
    """The numbers of the samples, with the random stream kept as the level's ``randomness`` says."""
    stream, start = rng.default, rng.default.offset
    for i in range(samples.size):
        before = position()
        yield i
        if samples.randomness == "same" and i < samples.size - 1:
            stream.key, stream.offset = before
    _drawn[0] += stream.offset - start
