"""``make_tensor``: random tensors of any dtype for tests."""
from __future__ import annotations

import numpy as np

from .._tensor.device import resolve
from .._tensor.interop import from_array
from ..core import dtype as dt

_SPANS = {"bool": (0, 2), "uint8": (0, 10)}
_generator = np.random.default_rng(0)


def make_tensor(*shape, dtype, device=None, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False,
                memory_format=None):
    """A tensor of random values drawn evenly from ``[low, high)``.

    Args:
        shape: sizes, or one tuple.
        dtype: any; the default span is [-9, 9] for floats, [-9, 10) for integers, [0, 10) for uint8.
        noncontiguous: leave gaps between the elements.
        exclude_zero: no element is zero.

    Example:
        >>> clnn.testing.make_tensor(2, 3, dtype=clnn.int32, low=1, high=5).shape
        clnn.Size([2, 3])
    """
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    row = dt.as_dtype(dtype)
    span = _SPANS.get(row.name, (-9, 9) if row.is_floating_point else (-9, 10))
    low, high = span[0] if low is None else low, span[1] if high is None else high
    if low > high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if low == high and not row.is_floating_point:
        raise ValueError(f"make_tensor: low == high leaves no value for {row}")
    full = (*shape[:-1], shape[-1] * 2) if noncontiguous and shape else shape
    if row.is_floating_point:
        values = _generator.uniform(low, high, full)
    else:
        values = _generator.integers(int(np.ceil(low)), int(np.ceil(high)), full)
    if exclude_zero:
        values = np.where(values == 0, 1 if high > 1 else np.asarray(low or 1), values)
    t = from_array(np.asarray(values), resolve(device), row)
    if noncontiguous and shape:
        t = t[..., ::2]
    return t.requires_grad_(requires_grad) if requires_grad else t
