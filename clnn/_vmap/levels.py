"""The maps that are under way, the innermost last, and what becomes of random numbers in them."""
from __future__ import annotations

import contextlib
import itertools

from .._tensor import foreign
from ..core import rng
from ..core.shape import Size
from ..core.twister import drawn
from .batched import wrap

here = foreign.here
_numbers = itertools.count(1)
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
    before = here.maps
    here.maps = (*before, (number, size, randomness))
    try:
        yield number
    finally:
        here.maps = before


def fresh(draw, shape):
    """Random numbers of ``shape``, by ``draw(shape)``: each sample's own in levels that want them different."""
    if any(how == "error" for _, _, how in here.maps):
        raise RuntimeError(RANDOM)
    levels = [(number, size) for number, size, how in here.maps if how == "different"]
    under_way, start = here.maps, position()
    here.maps = ()                                              # the draw is one of plain numbers
    try:
        r = draw(Size((*[size for _, size in levels], *shape)))
    finally:
        here.maps = under_way
    _note_due(start)
    for number, _ in levels:
        r = wrap(r, number)
    return r


def position():
    """How many numbers this thread has drawn: other threads may draw from the same stream."""
    return drawn.blocks, drawn.words


def mark():
    """What :func:`back` takes to draw the numbers from here on once more."""
    return rng.current().mark(), *position()


def back(mark):
    stream, drawn.blocks, drawn.words = mark
    rng.current().back(stream)


def _note_due(start):
    blocks, words = position()
    here.due = here.due[0] + blocks - start[0], here.due[1] + words - start[1]


def handled(samples):
    """The numbers of the samples, with the random stream kept as the level's ``randomness`` says."""
    start = position()
    for i in range(samples.size):
        before = mark()
        yield i
        if samples.randomness == "same" and i < samples.size - 1:
            back(before)
    _note_due(start)
