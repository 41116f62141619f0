"""Random orders."""
from __future__ import annotations

import numpy as np

from .._tensor.dispatch import run
from .._tensor.repeat import repeated
from ..graph.op import REGISTRY


def by_host(bits, n):
    """A random order of ``n`` numbers, int64. Random high bits over each number, then sorted as a whole: cheaper than sorting the places, and no ties."""
    low = np.uint64(n.bit_length())
    keys = bits.random_raw(n)                                   # in place: fresh pages cost as much as a step
    keys <<= low
    keys |= np.arange(n, dtype=np.uint64)
    keys.sort()
    keys &= (np.uint64(1) << low) - np.uint64(1)
    return keys.view(np.int64)


def order_of(draws):
    """The order that sorts the random numbers ``draws``, int32, on their device; those of equal ones in random order."""
    ordered, order = REGISTRY["sort"].fn(draws)
    _untie(ordered, order, draws)
    return order


@repeated
def _untie(ordered, order, draws):
    run(draws._storage.device, "random/untie", {}, (draws._numel,), (64,), ordered, order, draws, draws._numel)
