"""Largest and smallest elements, and where they are."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.inplace import refuse_overlap, set_out
from .._tensor.refusals import same_dtype
from .._tensor.return_types import named
from .._tensor.repeat import repeated, repeated_rule
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.shape import extents, wrap_dim
from ..graph import reduce_groups as groups
from ..graph.op import REGISTRY
from ._columns import part_of, span_of
from .arithmetic import maximum, minimum
from .reductions import MAX, MIN, dims_of, fold, reduced_shape, reference, samples_of, widen
from .selection import where

PART = 1 << 15              # elements of a row per first-stage part
FEW = 3, 1024               # shortest and longest rows that are taken as many at a time as a vector has lanes (CPUs)

_ALL = type("all", (), {})      # the dim of a call without any: None is refused
_Max, _Min, _MinMax = named("max", "values", "indices"), named("min", "values", "indices"), named("aminmax", "min", "max")


def _no_identity(name, input, dims, all_dims):
    """The errors of a reduction over nothing."""
    if all_dims and input._numel == 0:
        raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
                           "'dim' argument.")
    for d in dims:
        if input.shape and input.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


# -- values only ----------------------------------------------------------------------------------------------------------------------
@repeated_rule
def _share(g, input, dims, keepdim, result):
    """Equal extremes share the gradient; where one is NaN nothing equals it, and as in PyTorch the gradient is NaN."""
    mask = (input == widen(result, input.shape, dims, keepdim)).to(input.dtype)
    count = mask.sum(dims, True) if dims else mask              # samples that are numbers have no dimensions
    return widen(g, input.shape, dims, keepdim) * mask / count


@repeated_rule
def _share_evenly(g, input, dims, keepdim, result):
    """Equal extremes share the gradient, and so do NaNs."""
    value = widen(result, input.shape, dims, keepdim)
    mask = where(value.isnan(), input.isnan(), input == value)
    count = mask.to(input.dtype)
    count = count.sum(dims, True) if dims else count            # samples that are numbers have no dimensions
    return where(mask, widen(g, input.shape, dims, keepdim) / count, 0.0)


def _fold_extreme(spec, input, dims, keepdim):
    if 0 in input.shape:
        return empty(reduced_shape(input.shape, dims, keepdim), input.dtype, input._storage.device)
    return fold(spec, input, dims, keepdim, input.dtype.acc_dtype, input.dtype)


@kernel("_amax", method=False, repeat="ready alone whole", vjp=dict(input=_share))
def _amax(input, dims, keepdim):
    return _fold_extreme(MAX, input, dims, keepdim)


@kernel("_amin", method=False, repeat="ready alone whole", vjp=dict(input=_share))
def _amin(input, dims, keepdim):
    return _fold_extreme(MIN, input, dims, keepdim)


_amax.op.grad_name, _amin.op.grad_name = "AmaxBackward0", "AminBackward0"
_EMPTY = np.zeros((2, 0))


def _errors(name):
    return [((np.zeros(0),), {}, RuntimeError, f"{name}(): Expected reduction dim to be specified"),
            ((_EMPTY, 1), {}, IndexError, f"{name}(): Expected reduction dim 1 to have non-zero size")]


@composite("amax", repeat="ready alone whole", numpy=reference(np.max), samples=samples_of(), errors=_errors("amax"))
def amax(input, dim=(), keepdim=False):
    """Largest value over ``dim`` (one, several, all). NaN wins; equal maxima share the gradient evenly."""
    dims = dims_of(dim, len(input.shape))
    _no_identity("amax", input, dims, dim is None or isinstance(dim, (tuple, list)) and not dim)
    return _amax(input, dims, keepdim)


@composite("amin", repeat="ready alone whole", numpy=reference(np.min), samples=samples_of(), errors=_errors("amin"))
def amin(input, dim=(), keepdim=False):
    """Smallest value over ``dim`` (one, several, all). NaN wins; equal minima share the gradient evenly."""
    dims = dims_of(dim, len(input.shape))
    _no_identity("amin", input, dims, dim is None or isinstance(dim, (tuple, list)) and not dim)
    return _amin(input, dims, keepdim)


def _share_both(g, input, dims, keepdim, min, max):
    parts = [_share(h, input, dims, keepdim, r) for h, r in zip(g, (min, max)) if h is not None]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@kernel("_aminmax", method=False, repeat="ready whole", outputs=("min", "max"), vjp=dict(input=_share_both))
def _aminmax(input, dims, keepdim):
    return _amin(input, dims, keepdim), _amax(input, dims, keepdim)


_aminmax.op.grad_name = "AminmaxBackward0"


@composite("aminmax", repeat="ready whole")
def aminmax(input, *, dim=None, keepdim=False):
    """Smallest and largest value, as ``(min, max)``."""
    if dim is None and input._numel == 0:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    dims = dims_of(dim, len(input.shape))
    _no_identity("aminmax", input, dims, False)
    return _MinMax(*_aminmax(input, dims, keepdim))


# -- values and positions -----------------------------------------------------------------------------------------------------------
def _part(device, outer, n, inner, dtype):
    """Elements of a row, or of a column, that are looked at together in the first stage."""
    if device.is_cpu:
        return part_of(device, outer, n, inner, dtype) if inner >= 16 else PART if n > 2 * PART else n
    if inner == 1:
        return groups.cut(outer, 1, n)[1]
    return groups.cut_columns(outer * inner, inner, n, groups.columns(device, outer * inner, inner, n, dtype.itemsize))[0]


@repeated
def positions(input, dim, largest):
    """(values, first positions) of the extremes along ``dim``, both with that dimension removed."""
    outer, n, inner = extents(input.shape, dim)
    x, j, device = input.contiguous(), None, input._storage.device
    while True:
        part = _part(device, outer, n, inner, input.dtype)
        parts = -(-n // part)
        values = empty((outer, parts, inner), input.dtype, device)
        at = empty((outer, parts, inner), dt.int64, device)
        _launch_arg(device, x, j, values, at, outer, n, inner, part, parts, largest)
        if parts == 1:
            rest = reduced_shape(input.shape, (dim,), False)
            return values.reshape(rest), at.reshape(rest)
        x, j, n = values, at, parts


def _launch_arg(device, x, j, values, at, outer, n, inner, part, parts, largest):
    if not device.is_cpu:
        params, gsize, lsize = _group_plan(device, outer, part, inner, parts, x.dtype.itemsize)
        run(device, "reduction/arg_group", dict(params, T=x.dtype, SIGN=">" if largest else "<", POSITIONS=j is not None), gsize, lsize,
            x, at if j is None else j, values, at, outer, n, inner, part, parts)
        return
    if inner == parts == 1 and FEW[0] <= n <= FEW[1] and j is None and outer >= 64 * device.compute_units:
        rows = 1 << sorted((16, 16384 // n, outer // (8 * device.compute_units)))[1].bit_length() - 1
        run(device, "reduction/arg_few", dict(T=x.dtype, SIGN=">" if largest else "<", ROWS=rows), (-(-outer // rows),), (1,), x, values, at, outer, n)
        return
    if 1 < inner < 16 <= part and outer * n * inner >= 4096:      # a kernel per number of columns pays for large ones only
        run(device, "reduction/arg_slim", dict(T=x.dtype, SIGN=">" if largest else "<", COLUMNS=inner, POSITIONS=j is not None), (1, outer, parts), (1, 1, 1),
            x, at if j is None else j, values, at, outer, n, part, parts)
        return
    span = span_of(x.dtype, inner, outer * n)
    style, rows, gsize, lsize = _arg_plan(device, outer, n, inner, part, parts, span)
    params = dict(T=x.dtype, SIGN=">" if largest else "<", STYLE=style, CHUNK=span_of(x.dtype), ROWS=rows, POSITIONS=j is not None,
                  FLAT=style == "serial" and inner == 1)
    run(device, "reduction/arg", params, gsize, lsize, x, at if j is None else j, values, at, outer, n, inner, part, parts, span)


def _group_plan(device, outer, part, inner, parts, itemsize):
    """(parameters, global size, local size) of kernels/reduction/arg_group.cl.mako: work-items share rows and columns as those of other reductions do."""
    if inner == 1:
        deep, _, size, ahead, _ = groups.lanes(device, 1, part, itemsize <= 2, outer * parts)
        return dict(WIDE=0, DEEP=deep, SIZE=size, AHEAD=ahead), (-(-outer // (size // deep)) * size, parts), (size, 1)
    wide, deep = groups.columns(device, outer * inner, inner, part, itemsize)
    ahead = groups.trips(-(-part // deep), itemsize <= 2)[0]
    return dict(WIDE=wide, DEEP=deep, SIZE=wide * deep, AHEAD=ahead), (-(-inner // wide) * wide, outer * deep, parts), (wide, deep, 1)


def _arg_plan(device, outer, n, inner, part, parts, span):
    """(STYLE, ROWS, global size, local size) of kernels/reduction/arg.cl.mako, for CPUs."""
    if inner == 1 and n >= 8:
        rows = sorted((1, 8192 // part, outer * parts // (8 * device.compute_units)))[1] if part <= 8192 else 1
        rows = 1 << rows.bit_length() - 1                                # few distinct kernels
        return "vector", rows, (-(-outer // rows), parts), (1, 1)
    if inner >= 8:
        return "block", 1, (-(-inner // span), outer, parts), (1, 1, 1)
    if inner == 1:
        return "serial", 1, (outer, 1, parts), (1 if device.loops else 64, 1, 1)
    return "serial", 1, (inner, outer, parts), (1, 1 if device.loops else 16, 1)


def _placed(g, shape, dim, keepdim, indices):
    from .creation import arange
    g = g[0] if isinstance(g, tuple) else g
    if not shape:
        return g
    if not keepdim:
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    row = [1] * len(shape)
    row[dim] = shape[dim]
    return where(indices == arange(shape[dim], device=indices._home).reshape(row), g, 0.0)


_placed_again = repeated_rule(_placed)
_SMALL = 1 << 12        # elements; the gradient of more is worth fusing into what reads it


def _to_position(g, input_shape, dim, keepdim, indices):
    """The gradient at the chosen positions, as a comparison with the position number: no scatter, fuses. The operand itself may be overwritten."""
    return (_placed_again if input_shape.numel() <= _SMALL else _placed)(g, input_shape, dim, keepdim, indices)


def _pair(input, dim, keepdim, largest):
    if 0 in input.shape:
        shape = reduced_shape(input.shape, (dim,), keepdim)
        return empty(shape, input.dtype, input._storage.device), empty(shape, dt.int64, input._storage.device)
    values, at = positions(input, dim, largest)
    return (values.unsqueeze(dim), at.unsqueeze(dim)) if keepdim and input.shape else (values, at)


@kernel("_max_dim", method=False, repeat=True, outputs=("values", "indices"), vjp=dict(input=_to_position))
def _max_dim(input, dim, keepdim):
    return _pair(input, dim, keepdim, True)


@kernel("_min_dim", method=False, repeat=True, outputs=("values", "indices"), vjp=dict(input=_to_position))
def _min_dim(input, dim, keepdim):
    return _pair(input, dim, keepdim, False)


@kernel("_max_all", method=False, repeat="ready alone whole", vjp=dict(input=_share_evenly))
def _max_all(input, dims, keepdim):
    return _fold_extreme(MAX, input, dims, keepdim)


@kernel("_min_all", method=False, repeat="ready alone whole", vjp=dict(input=_share_evenly))
def _min_all(input, dims, keepdim):
    return _fold_extreme(MIN, input, dims, keepdim)


_max_dim.op.grad_name, _min_dim.op.grad_name = "MaxBackward0", "MinBackward0"
_max_all.op.grad_name, _min_all.op.grad_name = "MaxBackward1", "MinBackward1"


def _extreme(name, input, dim, keepdim, other, out, parts):
    """The three forms of max and min: of two tensors, of all elements, along a dimension."""
    between, along, whole, result = parts
    if isinstance(dim, Tensor):
        if keepdim is not False:
            raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not Tensor")
        dim, other = _ALL, dim
    if other is not None:
        return between(input, other, out=out)
    rank = len(input.shape)
    if dim is _ALL:
        _no_identity(name, input, (), True)
        return set_out(out, whole(input, tuple(range(rank)), False))
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):
        if dim is None:
            raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, NoneType)")
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    d = wrap_dim(int(dim), rank)
    _no_identity(name, input, (d,), False)
    got = result(*along(input, d, keepdim))
    if out is None:
        return got
    same_dtype(REGISTRY[name], out, got)
    for o in out:
        refuse_overlap(o, (input,), True)
    return set_out(tuple(out), got)


def _np_extreme(fn, arg, two):
    def call(x, dim=None, keepdim=False):
        if isinstance(dim, np.ndarray):
            return two(x, dim)
        return fn(x) if dim is None else (fn(x, axis=dim, keepdims=keepdim), arg(x, axis=dim, keepdims=keepdim))
    return call


def _extreme_samples():
    r = np.random.default_rng(0)
    x, wide = r.standard_normal((3, 4, 5)), r.standard_normal((4, 300))
    return [((x,), {}), ((x, 1), {}), ((x, -1, True), {}), ((wide, 1), {}), ((wide, 0), {}), ((x, r.standard_normal((4, 1))), {})]


@composite("max", repeat="ready small", numpy=_np_extreme(np.max, np.argmax, np.maximum), samples=_extreme_samples, errors=_errors("max"))
def max(input, dim=_ALL, keepdim=False, *, other=None, out=None):
    """Largest element; with ``dim`` a pair ``(values, indices)``; with a second tensor the larger of each pair.

    Example:
        >>> clnn.tensor([[1, 5], [7, 2]]).max(1).indices
        tensor([1, 0])
    """
    return _extreme("max", input, dim, keepdim, other, out, (maximum, _max_dim, _max_all, _Max))


@composite("min", repeat="ready small", numpy=_np_extreme(np.min, np.argmin, np.minimum), samples=_extreme_samples, errors=_errors("min"))
def min(input, dim=_ALL, keepdim=False, *, other=None, out=None):
    """Smallest element; with ``dim`` a pair ``(values, indices)``; with a second tensor the smaller of each pair."""
    return _extreme("min", input, dim, keepdim, other, out, (minimum, _min_dim, _min_all, _Min))


def _arg(name, input, dim, keepdim, largest):
    if input.dtype is dt.bool_:
        raise RuntimeError(f"{name}(): does not support bool input")
    rank = len(input.shape)
    if dim is None:
        if input._numel == 0:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        at = positions(input.detach().reshape(-1), 0, largest)[1]
        return at.reshape((1,) * rank) if keepdim else at
    d = wrap_dim(dim, rank)
    _no_identity(name, input, (d,), False)
    return _pair(input.detach(), d, keepdim, largest)[1]


def _arg_errors(name):
    return [((np.zeros(0),), {}, IndexError, f"{name}(): Expected reduction dim to be specified for input.numel() == 0"),
            ((_EMPTY, 1), {}, IndexError, "to have non-zero size"), ((np.zeros(2, bool),), {}, RuntimeError, "does not support bool input")]


def _arg_samples():
    r = np.random.default_rng(0)
    x, wide = r.integers(0, 9, (3, 4, 5)).astype(np.float64), r.standard_normal((4, 300))
    return [((x,), {}), ((x, 1), {}), ((x, -1, True), {}), ((wide,), {}), ((wide, 1), {}), ((wide, 0), {}), ((x,), dict(keepdim=True))]


_NOT_BOOL = tuple(d for d in dt.REAL if d is not dt.bool_)


@composite("argmax", repeat=True, numpy=reference(np.argmax), samples=_arg_samples, errors=_arg_errors("argmax"), dtypes=_NOT_BOOL)
def argmax(input, dim=None, keepdim=False):
    """Position of the largest element (the first of equal ones), in the flattened tensor or along ``dim``."""
    return _arg("argmax", input, dim, keepdim, True)


@composite("argmin", repeat=True, numpy=reference(np.argmin), samples=_arg_samples, errors=_arg_errors("argmin"), dtypes=_NOT_BOOL)
def argmin(input, dim=None, keepdim=False):
    """Position of the smallest element (the first of equal ones), in the flattened tensor or along ``dim``."""
    return _arg("argmin", input, dim, keepdim, False)
