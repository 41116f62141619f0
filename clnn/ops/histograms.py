"""Counts of values: by number, in bins, and sums of weights in them."""
from __future__ import annotations

import functools
import math

import numpy as np

from .._tensor.declare import composite
from .._tensor.inplace import type_name
from .._tensor.interop import from_array, read
from .._tensor.repeat import repeated
from .._tensor.return_types import named
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import Size, whole
from . import _scatter
from .creation import filled, linspace
from .indexing import _deliver, _values
from .searching import _found, _host_sized, bounds, searchsorted
from .selection import cast, where

_BINS = 4096            # counted before the greatest element is known


def bin_range(ends, dim=0):
    """The two ends of a range of bins, as numbers that make sense."""
    low, high = ends
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}")
    return low, high


@composite("bincount", samples=lambda: [((np.array([0, 1, 1, 3]),), {}), ((np.array([0, 1, 1, 3]),), dict(minlength=6))], numpy=np.bincount)
def bincount(input, weights=None, minlength=0):
    """How often each value 0, 1, 2, ... occurs in a vector of non-negative integers, or the sum of its weights. Waits for the device."""
    if input.dtype.category != dt.INT:
        raise NotImplementedError(f'"bincount_cpu" not implemented for \'{type_name(input.dtype)}\'')
    if len(input.shape) != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    size, negative = whole(minlength), "bincount only supports 1-d non-negative integral inputs."

    def count(array):
        if array.min() < 0:
            raise RuntimeError(negative)
        return np.bincount(array.astype(np.int64), minlength=size)
    found = _found(input, count) if weights is None else None
    if found is not None:
        return found[0]
    got = _scatter.counts(input.detach().contiguous(), max(size, _BINS)) if weights is None else None
    if got is not None:                                    # mostly all are below _BINS: then they were counted in the pass that finds the greatest
        ends = read(got[1])
        if ends.min() < 0:
            raise RuntimeError(negative)
        if ends.max() < max(size, _BINS):
            return got[0][:max(size, int(ends.max()) + 1)]
    return _bincount(input, weights, size, negative, (0, int(ends.max())) if got is not None else bounds(input) if input._numel else (0, -1))


def _bincount(input, weights, size, negative, ends):
    """The counts or sums where the smallest and the greatest element are known."""
    device, size = input._storage.device, max(size, ends[1] + 1)
    if ends[0] < 0:
        raise RuntimeError(negative)
    if weights is None:
        return _tally(input.detach().contiguous(), size, "bincount")
    kind = dt.float32 if weights.dtype is dt.float32 else dt.float64
    index, err = cast(input, dt.int64).contiguous(), _scatter.code(device, "bincount", 0, size)
    return _scatter.write_rows(filled(Size((size,)), 0, kind, device), index, cast(weights.detach(), kind), 1, size, 1, "add", False, err)


def _tally(index, size, name):
    """How often each of 0 .. size - 1 occurs in a contiguous vector of them, int64."""
    device, got = index._storage.device, _scatter.counts(index, size)
    if got is not None:
        return got[0]
    one = filled(Size(()), 1, dt.int64, device).expand(index.shape)
    return _scatter.write_rows(filled(Size((size,)), 0, dt.int64, device), cast(index, dt.int64), one, 1, size, 1, "add", False,
                               _scatter.code(device, name, 0, size))


@composite("histc", samples=lambda: [((_values(40), 5, -1, 1), {}), ((_values(40),), dict(bins=4))])
def histc(input, bins=100, min=0, max=0, *, out=None):
    """Counts in ``bins`` equal bins from ``min`` to ``max`` inclusive (both 0: from the smallest to the greatest element); others are not
    counted."""
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"histogram_cpu" not implemented for \'{type_name(input.dtype)}\'')
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high, x, count = float(min), float(max), input.detach().reshape(-1), _histogram
    if low == high and x._numel:
        few = _host_sized(x)
        (low, high), count = bounds(x), _few_counted if few else _histogram.__wrapped__     # what is read differs from call to call
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return _deliver(count(x, low, high, bins), out)


def _few_counted(input, low, high, bins):
    """The counts of ``histc`` where the elements were read anyway, in the same steps."""
    kind = np.float64 if input.dtype is dt.float64 else np.float32
    x, low, high = read(input).astype(kind), kind(low), kind(high)
    with np.errstate(all="ignore"):
        place = np.floor((x - low) * kind(bins) / (high - low))
    inside = (x >= low) & (x <= high)
    counts = np.bincount(np.clip(place[inside], 0, bins - 1).astype(np.int64), minlength=bins)
    return from_array(counts, input._storage.device, input.dtype)


@functools.partial(repeated, mode="whole")
def _histogram(input, low, high, bins):
    """The counts of ``histc``."""
    work = dt.float64 if input.dtype is dt.float64 else dt.float32
    x = cast(input, work)
    span = float(work.np.type(high) - work.np.type(low))
    place = ((x - low) * float(bins) / span).floor().clamp(0, bins - 1)                   # rounded step by step as PyTorch does
    place = cast(where((x >= low) & (x <= high), place, float(bins)), dt.int32)            # one bin more, for what lies outside
    return cast(_tally(place.contiguous(), bins + 1, "histc")[:bins], input.dtype)


@composite("histogram", samples=lambda: [((_values(40), 5), {}), ((_values(40), 4), dict(range=(-1.0, 1.0), density=True)), ((_values(40),), {})],
           numpy=lambda x, bins=100, *, range=None, weight=None, density=False: np.histogram(x, bins, range, density, weight))
def histogram(input, bins=100, *, range=None, weight=None, density=False, out=None):
    """Counts (or sums of ``weight``) in bins, and the bins' edges: ``(hist, bin_edges)``.

    Args:
        bins: how many of equal width over ``range`` (default: from the smallest to the greatest element), or a vector of sorted edges.
        density: divide so that the histogram integrates to 1.
    """
    x, device = input.detach().reshape(-1), input._storage.device
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"histogramdd" not implemented for \'{type_name(x.dtype)}\'')
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
                           f"dimension, but got input with shape {[x._numel, 1]} and weight with shape {[weight._numel]}")
    if isinstance(bins, Tensor):
        if len(bins.shape) != 1:
            raise RuntimeError("torch.histogramdd: bins tensor should have one dimension, but got "
                               f"{len(bins.shape)} dimensions in the bins tensor for dimension 0")
        if bins._numel < 2:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins._numel - 1} for dimension 0")
        edges = bins.clone()                                    # they are part of the result
    else:
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
        low, high = bin_range(range if range is not None else bounds(x) if x._numel else (0.0, 1.0))
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        edges = linspace(low, high, bins + 1, dtype=x.dtype, device=input.device)
    count = edges._numel - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    place = (searchsorted(edges, x, right=True) - 1).clamp(0, count - 1)
    values = cast(inside, x.dtype) if weight is None else cast(inside, x.dtype) * weight.detach().reshape(-1)
    hist = filled(Size((count,)), 0, x.dtype, device)
    _scatter.write_rows(hist, place, values, 1, count, 1, "add", False, _scatter.code(device, "histogram", 0, count))
    if density:
        hist = hist / (hist.sum() * (edges[1:] - edges[:-1]))
    return _deliver(named("histogram", "hist", "bin_edges")(hist, edges), out)
