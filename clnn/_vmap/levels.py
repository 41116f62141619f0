"""The maps that are under way, the innermost last, and what becomes of random numbers in them."""
from __future__ import annotations

import contextlib
import itertools

from .._tensor import foreign
from ..core import rng
from ..core.shape import Size
from .batched import wrap

active = foreign.maps
_numbers = itertools.count(1)
_drawn, _words = [0], [0]
RANDOM = ("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or "
          "perform the randomness operation out of vmap")


@contextlib.contextmanager
def entered(size, randomness="same"):
    """A level of ``size`` samples for the block; gives its number."""
    if foreign.fresh is None:
        from .forms import ready
        ready()
        foreign.fresh = fresh
    number = next(_numbers)
    active.append((number, size, randomness))
    try:
        yield number
    finally:
        active.pop()


def fresh(draw, shape):
    """Random numbers of ``shape``, by ``draw(shape)``: each sample's own in levels that want them different."""
    if any(how == "error" for _, _, how in active):
        raise RuntimeError(RANDOM)
    levels, stream = [(number, size) for number, size, how in active if how == "different"], rng.current()
    under_way, start = active[:], (stream.offset, stream.sequence.count)
    active.clear()                                              # the draw is one of plain numbers
    try:
        r = draw(Size((*[size for _, size in levels], *shape)))
    finally:
        active[:] = under_way
    _drawn[0] += stream.offset - start[0]
    _words[0] += stream.sequence.count - start[1]
    for number, _ in levels:
        r = wrap(r, number)
    return r


def drawn():
    """How far the stream and its sequence went by operators that gave each sample its due."""
    return _drawn[0], _words[0]


def position():
    """Where the stream of random numbers stands."""
    return rng.current().position()


def handled(samples):
    """The numbers of the samples, with the random stream kept as the level's ``randomness`` says."""
    stream = rng.current()
    start = stream.offset, stream.sequence.count
    for i in range(samples.size):
        before = stream.mark()
        yield i
        if samples.randomness == "same" and i < samples.size - 1:
            stream.back(before)
    _drawn[0] += stream.offset - start[0]
    _words[0] += stream.sequence.count - start[1]
