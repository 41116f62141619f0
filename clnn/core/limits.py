"""Limits of dtypes: ``finfo`` and ``iinfo``."""
from __future__ import annotations

import functools
import math

import ml_dtypes
import numpy as np

from . import dtype as dt
from .config import config


class _Info:
    """Limits of a dtype as attributes."""

    def __init__(self, type=None):
        row = (dt.as_dtype(type) or dt._default_float).to_real()
        if row is dt.bool_:
            raise TypeError(f"{row} is not supported by {config.spoken}.{self.__class__.__name__}")
        if row.category != self._category:
            raise TypeError(self._wrong.format(config.spoken) + f" (got {row})")
        self.bits, self.dtype = row.itemsize * 8, row.name
        self._fill(row)

    def __repr__(self):
        values = ((n, getattr(self, n)) for n in self._shown)
        return f"{type(self).__name__}({', '.join(f'{n}={v:g}' if n != 'dtype' else f'{n}={v}' for n, v in values)})"

    def __eq__(self, other):
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self):
        return hash((type(self), self.dtype))


class finfo(_Info):
    """Limits of a float dtype: ``bits, eps, max, min, tiny, smallest_normal, resolution``.

    Example:
        >>> clnn.finfo(clnn.float16).max
        65504.0
    """

    _category, _wrong = dt.FLOAT, "{0}.finfo() requires a floating point input type. Use {0}.iinfo to handle '{0}.finfo'"
    _shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny", "dtype")

    def _fill(self, row):
        f = ml_dtypes.finfo(row.np)
        self.eps, self.max, self.min, self.tiny = float(f.eps), float(f.max), float(f.min), float(f.tiny)
        self.smallest_normal, self.resolution = self.tiny, 10.0 ** -f.precision


class iinfo(_Info):
    """Limits of an integer dtype: ``bits, max, min``.

    Example:
        >>> clnn.iinfo(clnn.int8).max
        127
    """

    _category, _wrong = dt.INT, "{0}.iinfo() requires an integer input type. Use {0}.finfo to handle '{0}.iinfo'"
    _shown = ("min", "max", "dtype")

    def _fill(self, row):
        i = np.iinfo(row.np)
        self.max, self.min = int(i.max), int(i.min)


@functools.cache
def ends(row):
    """The smallest and the largest number of dtype ``row``."""
    if row is dt.bool_:
        return 0, 1
    limits = iinfo(row) if row.category == dt.INT else finfo(row)
    return limits.min, limits.max


def within(row, name, bound):
    """Raise where numbers of dtype ``row`` do not reach the ``bound`` of a range that ``name`` names."""
    if not ends(row)[0] <= bound <= ends(row)[1]:
        raise RuntimeError(f"{name} is out of bounds for {dt.IN_C.get(row.name, row.name)}")


def reached(row, low, high):
    """Raise where numbers of dtype ``row`` do not reach both ends of ``[low, high)``."""
    within(row, "from", low)
    within(row, "to - 1", high - 1)


def whole_to(row):
    """Up to here floats of dtype ``row`` hold all whole numbers."""
    return round(2 / finfo(row).eps)


def check_fits(value, row):
    """Raise where the number ``value`` is beyond dtype ``row``; small ones, which most are, need no look at it."""
    if value.__class__ is int or value.__class__ is float:
        if not -128 <= value <= 127:
            _fitting(value, row)
    elif value.__class__ is complex and not row.is_complex and row is not dt.bool_:
        if value.imag:
            raise no_room(row)
        _fitting(value.real, row)


def check_written(value, row):
    """:func:`check_fits` for what is written into elements of a tensor, where those of 16-bit floats become infinite."""
    check_fits(value, dt.float64 if row.round_trip else row)


def check_operand(value, row):
    """:func:`check_fits` for an operand beside a tensor of dtype ``row``; a float beside integers makes floats of these, and so on."""
    if value.__class__ is int or value.__class__ is float and row.category >= dt.FLOAT:
        check_fits(value, row)


@functools.lru_cache(maxsize=256)
def _fitting(value, row):
    """Raise where the number ``value`` is beyond dtype ``row``. As in PyTorch, unsigned ones take negative numbers of their size, too."""
    if row is dt.bool_ or row.category != dt.INT and not math.isfinite(value):
        return
    limits = iinfo(row) if row.category == dt.INT else finfo(row)
    if not (limits.min or -limits.max) <= value <= limits.max:
        raise no_room(row)


def no_room(row):
    """The error of a number that is beyond dtype ``row``."""
    name = dt.IN_C[row.name] if row.category != dt.INT or row is dt.int32 else f"{row.name}_t"
    return RuntimeError(f"value cannot be converted to type {name} without overflow")
