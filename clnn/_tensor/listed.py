"""Lists of whole numbers as indices, in few steps."""
from __future__ import annotations

from array import array

from ..core import dtype as dt
from ..core import symbols
from ..core.shape import Size
from ..runtime.device import Device
from . import foreign, repeat
from .interop import from_bytes

_INT, _MOST = frozenset((int,)), 4096


def whole_numbers(index, x):
    """``index``, as a tensor where it is a list of ints that are all within the first dimension of ``x``, unless somebody is told of operators."""
    if not 0 < len(index) <= _MOST or not _INT.issuperset(map(type, index)) or foreign.early is not None or symbols.tracing is not None or not repeat.on:
        return index
    low, high, device = min(index), max(index), x._storage.device
    if low < -x.shape[0] or high >= x.shape[0] or device.__class__ is not Device or device.records():
        return index
    t = from_bytes(array("q", index).tobytes(), Size((len(index),)), dt.int64, device)
    t._bounds = low, high                                       # lets a bad index raise at once, with its line
    return t
