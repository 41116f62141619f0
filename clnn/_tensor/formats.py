"""Memory formats: which strides a format means for a shape, and tensors with these strides.

Kernels read and write row-major order; a tensor in another format is one whose dimensions lie in another order, like a transposed one.
"""
from __future__ import annotations

import functools

from ..core.layout import channels_last, channels_last_3d, contiguous_format, preserve_format
from ..core.shape import Size, contiguous_strides, is_contiguous
from . import later
from .writing import copy

_LINES = "lines"                                                # of channels: no format of PyTorch's, but what its pooling keeps
_ORDERS = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1), _LINES: (0, 2, 1)}          # dimensions from the outermost to the innermost


def strides_of(format, shape):
    """The strides that ``shape`` has in a format; RuntimeError where there are none."""
    order = _ORDERS.get(format)
    if order is None:
        if format is preserve_format:
            raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
        if format is not contiguous_format:
            raise TypeError(f"memory_format must be clnn.memory_format, not {type(format).__name__}")
        return contiguous_strides(shape)
    if len(shape) != len(order):
        raise RuntimeError(f"required rank {len(order)} tensor to use {format.rpartition('.')[2]} format")
    strides, step = [0] * len(order), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(1, shape[d])
    return tuple(strides)


def follows(t, format) -> bool:
    """Whether the elements of ``t`` lie densely in the order of a format."""
    order = _ORDERS.get(format)
    if order is None:
        return t._dense or is_contiguous(t.shape, t._strides)
    if len(t.shape) != len(order):
        return False
    step = 1
    for d in reversed(order):
        if t.shape[d] != 1:
            if t._strides[d] != step:
                return False
            step *= t.shape[d]
    return True


def preserved(t):
    """The strides of a copy of ``t`` that keeps its order of dimensions; None where these are row-major."""
    strides, shape = t._strides, t.shape
    if t._dense or len(shape) < 2 or not t._numel:
        return None
    order = later.memory_order(t) or range(len(shape))           # that of elementwise results, also where steps are equal
    inner = contiguous_strides(tuple([shape[d] for d in order]))
    found = [0] * len(order)
    for i, d in enumerate(order):
        found[d] = inner[i]
    if all(n == 1 or a == b for n, a, b in zip(shape, found, strides)):
        return strides                                           # without gaps: as they are, also where a size of 1 makes them arbitrary
    return None if tuple(found) == contiguous_strides(shape) else tuple(found)


def like(t, format):
    """The strides of another tensor like ``t`` in a format, ``preserve_format`` where none is given; None: row-major."""
    if format is None or format is preserve_format:
        return None if t._dense else preserved(t)
    strides = strides_of(format, t.shape)
    return None if strides == contiguous_strides(t.shape) else strides


def by_stride(shape, strides):
    """The dimensions from the outermost in memory to the innermost."""
    return sorted(range(len(strides)), key=lambda d: (-strides[d], shape[d] == 1, d))


def suggested(t):
    """The channels-last format whose strides ``t`` has, be it a part of a larger tensor; None for row-major ones and what could be either."""
    strides, rank = t._strides, len(t.shape)
    if not 3 < rank < 6 or strides[1] > strides[-1] or not strides[1] or not t._numel:            # nor with one channel for all
        return None
    least, shape = 0, t.shape
    for d in (1, *range(rank - 1, 1, -1), 0):
        if strides[d] < least or d == 0 and least == strides[1]:
            return None
        least = strides[d] * max(1, shape[d])
    return channels_last if rank == 4 else channels_last_3d


def _by_lines(t):
    strides, shape = t._strides, t.shape
    return bool(t._numel) and strides[1] * shape[1] <= strides[2] and strides[2] * shape[2] <= strides[0] and strides[1] < strides[2]


def keeps_format(count, rank=None):
    """A decorator of bodies that work in row-major order: results of full rank lie in the channels-last format of one of the first ``count`` operands.
    ``rank`` tells from the operands which rank has one; lines of channels are looked for where that is 3."""
    def wrap(body):
        @functools.wraps(body)
        def call(*values):
            result = body(*values)
            full = rank and rank(*values)
            for t in values[:count]:
                if full and len(t.shape) != full:
                    continue
                format = suggested(t) if full != 3 else _LINES if _by_lines(t) else None
                if format is not None:
                    return _in_format(result, format, len(t.shape))
            return result
        return call
    return wrap


def _in_format(result, format, rank):
    if isinstance(result, tuple):
        return tuple([_in_format(r, format, rank) for r in result])
    return reordered(result, strides_of(format, result.shape)) if result is not None and len(result.shape) == rank else result


def inside(format, tensors, dim, fn):
    """``fn(tensors, dim)`` of tensors that lie in ``format``, worked out along the dimensions as they lie; without history."""
    order = _ORDERS[format]
    r = fn([later.permuted(t, t.shape, order) for t in tensors], order.index(dim))
    shape, strides = [0] * len(order), [0] * len(order)
    for i, d in enumerate(order):
        shape[d], strides[d] = r.shape[i], r._strides[i]
    r._shape = Size(shape)
    return with_strides(r, tuple(strides))


def as_it_lies(t, dim, fn):
    """``fn(t, dim)``, fresh dense tensors in the shape of ``t``, which lie in memory as a copy of ``t`` would; without history."""
    strides = None if t._dense else preserved(t)
    if strides is None:
        return fn(t, dim)
    order = by_stride(t.shape, strides)
    results = fn(later.permuted(t, t.shape, order), order.index(dim))
    for r in results:
        r._shape = Size(t.shape)
        with_strides(r, strides)
    return results


def with_strides(t, strides):
    """The fresh dense tensor ``t``, whose order of elements in memory does not matter, with other dense strides (None: as it is)."""
    if strides is not None:
        t._strides, t._dense = strides, is_contiguous(t.shape, strides)
    return t


def reordered(t, strides, fn=copy):
    """A copy of ``t``, made by ``fn``, in the order of dense ``strides``; without history."""
    order = by_stride(t.shape, strides)
    r = fn(later.permuted(t, t.shape, order))
    r._shape = Size(t.shape)
    return with_strides(r, strides)
