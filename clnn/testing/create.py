"""``make_tensor``: random tensors of any dtype for tests."""
from __future__ import annotations

import math

from .._tensor.device import resolve
from ..core import dtype as dt
from ..core.limits import finfo, iinfo
from ..ops.complexes import view_as_complex
from ..ops.creation import empty
from ..ops.random import randint


def make_tensor(*shape, dtype, device=None, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False,
                memory_format=None):
    """A tensor of random values drawn evenly from ``[low, high)``, those that PyTorch draws after the same seed.

    Args:
        shape: sizes, or one tuple.
        dtype: any; the default span is [-9, 9) for floats and both parts of complex numbers, [-9, 10) for integers, [0, 10) for uint8.
        noncontiguous: leave gaps between the elements.
        exclude_zero: no element is zero.

    Example:
        >>> clnn.testing.make_tensor(2, 3, dtype=clnn.int32, low=1, high=5).shape
        clnn.Size([2, 3])
    """
    shape = tuple(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
    row = dt.as_dtype(dtype)
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and {memory_format=}")
    if requires_grad and not row.differentiable:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    noncontiguous = noncontiguous and math.prod(shape) > 1
    t = _drawn((*shape[:-1], 2 * shape[-1]) if noncontiguous else shape, row, resolve(device), low, high)
    if noncontiguous:
        t = t[..., 1::2]
    elif memory_format is not None:
        t = t.clone(memory_format=memory_format)
    if exclude_zero:
        t[t == 0] = finfo(row).tiny if row.differentiable else 1
    return t.requires_grad_(requires_grad)


def _drawn(shape, row, device, low, high):
    """Values of the dtype ``row``, evenly from the part of the span that it holds."""
    if not row.differentiable:
        limits = (0, 2) if row is dt.bool_ else (iinfo(row).min, iinfo(row).max + (row is not dt.int64))
        low, high = _span(row, low, high, limits, limits if row is dt.bool_ else (-9, 10))
        return randint(math.ceil(low), math.ceil(high), shape, dtype=row, device=device)
    low, high = _span(row, low, high, (finfo(row).min, finfo(row).max), (-9, 9))
    halved = high - low >= finfo(row).max                   # a span that the dtype does not hold
    t = empty((*shape, 2) if row.is_complex else shape, dtype=row.to_real() if row.is_complex else row, device=device)
    t = t.uniform_(low / 2, high / 2).mul_(2) if halved else t.uniform_(low, high)
    return view_as_complex(t) if row.is_complex else t


def _span(row, low, high, limits, default):
    """``low`` and ``high``, or the default ones, within ``limits``."""
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or low == high and not row.differentiable:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < limits[0] or low >= limits[1] and low != high:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {row} only supports [{limits[0]}, {limits[1]})")
    return tuple(min(max(value, limits[0]), limits[1]) for value in (low, high))
