"""Sums, means, extremes and norms over any dimensions."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import config
from .._tensor.tensor import Tensor, make
from ..core import dtype as dt
from ..core.shape import Size, wrap_dims
from ..graph import fuse
from ..graph.node import Node, Storage, record
from ..graph.reduce import Call, Reduction

_NAN_MAX = ("(a > b ? a : b)", "((a > b || isnan(a)) ? a : b)")
_NAN_MIN = ("(a < b ? a : b)", "((a < b || isnan(a)) ? a : b)")
SUM = Reduction("sum", "(a + b)", lambda d: d.zero)
MEAN = Reduction("mean", "(a + b)", lambda d: d.zero, "a / c")
PROD = Reduction("prod", "(a * b)", lambda d: d.one)
MAX = Reduction("max", _NAN_MAX, lambda d: d.lowest)
MIN = Reduction("min", _NAN_MIN, lambda d: d.highest)
ANY = Reduction("any", "(a | b)", lambda d: "0")
ALL = Reduction("all", "(a & b)", lambda d: "1")


def reduced_shape(shape, dims, keepdim):
    if keepdim:
        return Size(1 if i in dims else s for i, s in enumerate(shape))
    return Size(s for i, s in enumerate(shape) if i not in dims)


def fold(spec, input, dims, keepdim, acc, out_dtype, constant=0.0) -> Tensor:
    """Record the reduction of ``input`` over normalised ``dims``."""
    shape = reduced_shape(input.shape, dims, keepdim)
    numel = shape.numel()
    st = input._storage
    device = st.device
    node = st.node
    if node is not None and node.buf is None and input._dense and input._numel == node.numel and input.dtype is node.dtype \
            and node.reduce is None and (node.shape == input.shape or node.linear):
        ref = (node, input.dtype, 0, input._strides)
    else:
        ref = (st.buffer(), input.dtype, input._offset, input._strides)
    storage = record(None, (ref,), acc, out_dtype, shape, numel, device, 1, 1, True)
    storage.node.reduce = Call(spec, input.shape, dims, acc, constant)
    out = make(storage, shape, out_dtype, numel)
    if config.eager:
        fuse.realize(storage)
    return out


def _restore(g, input_shape, dims, keepdim):
    """A reduced gradient as a view that broadcasts over ``input_shape``."""
    if not keepdim and dims:
        g = g.reshape(tuple(1 if i in dims else s for i, s in enumerate(input_shape)))
    return g.expand(input_shape)


def _sum_dtype(input, dtype):
    if dtype is not None:
        return dt.as_dtype(dtype)
    return input.dtype if input.dtype.is_floating_point else dt.int64


@kernel("_sum", method=False, vjp=dict(input=lambda g, shape, dims, keepdim: _restore(g, shape, dims, keepdim)))
def _sum(input, dims, keepdim, shape):
    if 0 in input.shape:
        from .creation import filled
        return filled(reduced_shape(shape, dims, keepdim), 0, input.dtype, input._storage.device)
    return fold(SUM, input, dims, keepdim, input.dtype.acc_dtype, input.dtype)


@composite("sum", numpy=np.sum)
def sum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None):
    """Sum over ``dim`` (an int, several, or all). Integers are summed as int64; 16-bit floats accumulate in float32.

    Example:
        >>> clnn.ones(2, 3).sum(1)
        tensor([3., 3.])
    """
    dim = axis if axis is not None else dim
    dims = wrap_dims(dim if not isinstance(dim, (list, tuple)) or dim else None, len(input.shape))
    return _sum(input.to(_sum_dtype(input, dtype)), dims, keepdim, input.shape)


_sum.op.grad_name = "SumBackward0"


@kernel("_mean", method=False, vjp=dict(input=lambda g, shape, dims, keepdim, count: _restore(g / count, shape, dims, keepdim)))
def _mean(input, dims, keepdim, shape, count):
    if 0 in input.shape:
        from .creation import filled
        return filled(reduced_shape(shape, dims, keepdim), math.nan, input.dtype, input._storage.device)
    return fold(MEAN, input, dims, keepdim, input.dtype.acc_dtype, input.dtype, float(count))


@composite("mean", numpy=np.mean)
def mean(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None):
    """Mean over ``dim`` (an int, several, or all)."""
    dim = axis if axis is not None else dim
    if dtype is not None:
        input = input.to(dtype)
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
                           f"{input.dtype.name.capitalize() if input.dtype is dt.bool_ else {'int64': 'Long', 'int32': 'Int'}.get(input.dtype.name, input.dtype.name)}")
    dims = wrap_dims(dim if not isinstance(dim, (list, tuple)) or dim else None, len(input.shape))
    count = 1
    for d in dims:
        count *= input.shape[d] if input.shape else 1
    return _mean(input, dims, keepdim, input.shape, count)


_mean.op.grad_name = "MeanBackward0"


@composite("sum_to_size")
def sum_to_size(input, *size):
    """Sum over whatever broadcasting to this shape from ``size`` repeated."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    if tuple(size) == tuple(input.shape):
        return input
    lead = len(input.shape) - len(size)
    if lead < 0:
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    dims = tuple(range(lead)) + tuple(lead + i for i, s in enumerate(size) if s == 1 and input.shape[lead + i] != 1)
    for i, s in enumerate(size):
        if s != 1 and s != input.shape[lead + i]:
            raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    r = _sum(input, dims, True, input.shape) if dims else input
    return r.reshape(tuple(size)) if lead else r


__all__ = ["Node", "Storage"]
