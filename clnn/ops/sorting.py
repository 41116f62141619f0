"""Sorting and order statistics. NaN counts as the greatest value; equal elements keep their order."""
from __future__ import annotations

import math

import numpy as np

from .._tensor import formats
from .._tensor.declare import composite, elementwise, kernel
from .._tensor.dispatch import run
from .._tensor.inplace import set_out
from .._tensor.interop import from_array
from .._tensor.refusals import spoken
from .._tensor.return_types import named
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.shape import Size, flag, whole, wrap_dim
from . import _radix, _tiles
from .arithmetic import lerp
from .creation import filled
from .indexing import _values
from .scattering import _scatter_op
from .selection import cast, where


def _rows(input, dim):
    """(contiguous input with ``dim`` last, rows, row length)."""
    x = input.transpose(dim, -1).contiguous() if input.shape else input.reshape(1)
    length = x.shape[-1]
    return x, (x._numel // length if length else 0), length


def _back(t, input, dim):
    if not input.shape:
        return t.reshape(())
    r = t.transpose(dim, -1)
    return t.reshape(r.shape) if r.is_contiguous() else r.contiguous()         # the strides of dimensions of size 1 are those of fresh memory


def _to_places(g, shape, dim, indices):
    """The gradient of values that were picked along ``dim`` without repetition."""
    if g[0] is None:
        return None
    if not shape:
        return g[0]
    return _scatter_op(g[0].new_zeros(shape), dim, indices, g[0], "set", True)


_picked = dict(input=lambda g, shape, dim, indices: _to_places(g, shape, dim, indices))


@kernel("_sort", method=False, repeat="whole", outputs=("values", "indices"), vjp=_picked)
def _sort(input, dim, descending, shape):
    def sorted_along(input, dim):
        x, rows, length = _rows(input, dim)
        values, indices = _radix.sort_rows(x, rows, length, descending)
        return _back(values, input, dim), _back(indices, input, dim)
    return sorted_along(input, dim) if input._dense else formats.as_it_lies(input, dim, sorted_along)


_sort.op.grad_name = "SortBackward0"


def _deliver(result, out):
    if out is None:
        return result
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{type(result).__name__}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    for o, r in zip(out, result):
        if o.dtype is not r.dtype:
            raise RuntimeError(f"Expected out tensor to have dtype {spoken(r.dtype)}, but got {spoken(o.dtype)} instead")
    return set_out(tuple(out), result)


def _np_sort(x, dim=-1, descending=False, **_):
    order = np.argsort(-np.asarray(x, np.float64) if descending else x, dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


@composite("sort", repeat="whole", numpy=_np_sort, samples=lambda: [
    ((_values(3, 5),), {}), ((_values(3, 5), 0), dict(descending=True)), ((_values(2, 50, 3), 1), {})])
def sort(input, dim=-1, descending=False, *, stable=None, out=None):
    """Elements in order along ``dim`` and their former positions: ``(values, indices)``. Always stable; NaN is the greatest value.

    Example:
        >>> clnn.tensor([3., 1., 2.]).sort().indices
        tensor([1, 2, 0])
    """
    d = wrap_dim(dim, len(input.shape))
    r = _sort(input, d, flag("sort", "descending", descending), input.shape)
    if stable is not None and r[0]._grad_fn is not None:
        r[0]._grad_fn.label = "SortBackward1"                          # PyTorch's other form of it
    return _deliver(named("sort", "values", "indices")(r), out)


@composite("argsort", repeat="whole", numpy=lambda *a, **k: _np_sort(*a, **k)[1], samples=lambda: [
    ((_values(3, 5),), {}), ((_values(3, 5), 0), dict(descending=True))])
def argsort(input, dim=-1, descending=False, *, stable=None):
    """The positions that sort ``input`` along ``dim``."""
    return _sort(input.detach(), wrap_dim(dim, len(input.shape)), flag("sort", "descending", descending), input.shape)[1]


@composite("msort", repeat="ready small", numpy=lambda x: np.sort(x, 0), samples=lambda: [((_values(5, 3),), {})])
def msort(input, *, out=None):
    """Sorted along the first dimension, values only."""
    return set_out(out, _sort(input, 0, False, input.shape)[0])


# -- the first of a row -------------------------------------------------------------------------------------------------------------------
@kernel("_topk", method=False, repeat="whole", outputs=("values", "indices"), vjp=_picked)
def _topk(input, dim, k, largest, shape):
    x, rows, length = _rows(input, dim)
    device = x._storage.device
    shape = (*x.shape[:-1], k)
    if not k or not x._numel or k * 4 > length and not _radix.in_lanes(x, rows, length) or not device.is_cpu and k > _tiles.FIRST:
        values, indices = (t[..., :k] for t in _radix.sort_rows(x, rows, length, largest))
    else:
        values, indices = (t.reshape(shape) for t in (_radix if device.is_cpu else _tiles).top_rows(x, rows, length, k, largest))
    return _back(values, input, dim), _back(indices, input, dim)


_topk.op.grad_name = "TopkBackward0"


def _np_topk(x, k, dim=-1, largest=True, sorted=True):
    v, i = _np_sort(x, dim, largest)
    cut = (slice(None),) * (dim % x.ndim) + (slice(0, k),)
    return v[cut], i[cut]


def _distinct(*shape):
    return np.random.default_rng(4).permutation(math.prod(shape)).reshape(shape) * 1.0


@composite("topk", repeat="whole", numpy=_np_topk, samples=lambda: [
    ((_distinct(3, 20), 2), {}), ((_distinct(20, 3), 3), dict(dim=0, largest=False)), ((_distinct(3, 6), 5), {})])
def topk(input, k, dim=-1, largest=True, sorted=True, *, out=None):
    """The ``k`` greatest (or smallest) elements along ``dim``, in order, and their positions: ``(values, indices)``.

    Example:
        >>> clnn.tensor([3., 1., 2.]).topk(2).values
        tensor([3., 2.])
    """
    if isinstance(k, float) or dim is True or dim is False:
        name, at, value = ("k", 1, k) if isinstance(k, float) else ("dim", 2, dim)
        raise TypeError(f"topk(): argument '{name}' (position {at}) must be int, not {type(value).__name__}")
    d, k = wrap_dim(dim, len(input.shape)), whole(k)
    if not 0 <= k <= (input.shape[d] if input.shape else 1):
        raise RuntimeError("selected index k out of range")
    if not input.shape:
        k = 1                                                       # of one number there is no less
    return _deliver(named("topk", "values", "indices")(_topk(input, d, k, flag("topk", "largest", largest), input.shape)), out)


# -- one of a row ---------------------------------------------------------------------------------------------------------------------------
def _to_place(g, shape, dim, keepdim, indices):
    if g[0] is None:
        return None
    if not shape:
        return g[0]
    grad, at = (g[0], indices) if keepdim else (g[0].unsqueeze(dim), indices.unsqueeze(dim))
    return _scatter_op(grad.new_zeros(shape), dim, at, grad, "set", True)


_one = dict(input=lambda g, shape, dim, keepdim, indices: _to_place(g, shape, dim, keepdim, indices))


def _reduced(t, input, dim, keepdim):
    """(..., 1) with the row last -> the shape of a reduction."""
    if not input.shape:
        return t.reshape(())
    t = t.transpose(dim, -1)
    return t.contiguous() if keepdim else t.squeeze(dim).contiguous()


@kernel("_order", method=False, repeat="whole", outputs=("values", "indices"), vjp=_one)
def _order(input, dim, keepdim, what, shape):
    """The element of each row at a place of the sorted row: a number, ``median`` or ``nanmedian``."""
    x, rows, length = _rows(input, dim)
    if _radix.picks(x, rows, length):
        picked = _radix.select_rows(x, rows, length, what)
        return tuple(_reduced(t.reshape((*x.shape[:-1], 1)), input, dim, keepdim) for t in picked)
    values, indices = _radix.sort_rows(x, rows, length)
    if not x._storage.device.is_cpu and rows:
        picked = _tiles.pick(values, indices, rows, length, what)
        return tuple(_reduced(t.reshape((*x.shape[:-1], 1)), input, dim, keepdim) for t in picked)
    if isinstance(what, int) or not x.dtype.is_floating_point:
        at = what if isinstance(what, int) else (length - 1) // 2
        picked = values[..., at:at + 1], indices[..., at:at + 1]
    else:
        nans = cast(values != values, dt.int64).sum(-1, True)
        if what == "median":
            at = where(nans > 0, length - nans, (length - 1) // 2)
        else:
            at = ((length - nans - 1).div(2, rounding_mode="trunc")).clamp(min=0)
        picked = values.gather(-1, at), indices.gather(-1, at)
    return tuple(_reduced(t, input, dim, keepdim) for t in picked)


@composite("kthvalue", repeat="whole", samples=lambda: [((_distinct(3, 5), 2), {}), ((_distinct(5, 3), 1, 0), dict(keepdim=True))],
           numpy=lambda x, k, dim=-1, keepdim=False: tuple(np.take(a, [k - 1] if keepdim else k - 1, dim) for a in _np_sort(x, dim)))
def kthvalue(input, k, dim=-1, keepdim=False, *, out=None):
    """The ``k``-th smallest element (counted from 1) along ``dim`` and its position: ``(values, indices)``."""
    d = wrap_dim(dim, len(input.shape))
    if input.shape and not input.shape[d]:
        raise IndexError(f"kthvalue(): Expected reduction dim {d} to have non-zero size.")
    if not 1 <= k <= (input.shape[d] if input.shape else 1):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(d))
    return _deliver(named("kthvalue", "values", "indices")(_order(input, d, keepdim, whole(k) - 1, input.shape)), out)


@kernel("_median_all", method=False, repeat="whole", vjp=dict(input=lambda g, input, result: _share(g, input, result)))
def _median_all(input, what):
    flat = input.reshape(-1)
    return _order(flat, 0, False, what, flat.shape)[0]


def _share(g, input, result):
    """Evenly among all elements equal to the result."""
    hit = (input == result) | ((input != input) & (result != result))
    return where(hit, g / cast(hit, g.dtype).sum(), 0.0)


def _median(name, input, dim, keepdim, out):
    if dim is None:
        if input._numel == 0:
            return from_array(np.asarray(math.nan), input._storage.device, input.dtype)
        return _median_all(input, name)
    d = wrap_dim(dim, len(input.shape))
    if input.shape and input.shape[d] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    return _deliver(named(name, "values", "indices")(_order(input, d, keepdim, name, input.shape)), out)


@composite("median", repeat="whole", samples=lambda: [((_values(3, 5),), {}), ((np.array([3, 1, 4, 2]),), {})],
           numpy=lambda x: np.sort(x, None)[(x.size - 1) // 2])
def median(input, dim=None, keepdim=False, *, out=None):
    """The median (of an even count the lower one); with ``dim`` also its position. NaN if there is a NaN."""
    return _median("median", input, dim, keepdim, out)


@composite("nanmedian", repeat="whole", samples=lambda: [((_values(3, 5),), {})], numpy=lambda x: np.sort(x, None)[(x.size - np.isnan(x).sum() - 1) // 2])
def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """``median`` that ignores NaN."""
    return _median("nanmedian", input, dim, keepdim, out)


@kernel("_mode", method=False, repeat="whole", outputs=("values", "indices"), vjp=_one)
def _mode(input, dim, keepdim, shape):
    x, rows, length = _rows(input, dim)
    device = x._storage.device
    ordered, places = _radix.sort_rows(x, rows, length)
    values, indices = empty((*x.shape[:-1], 1), x.dtype, device), empty((*x.shape[:-1], 1), dt.int64, device)
    if rows:
        run(device, "sorting/mode", dict(T=x.dtype), (rows,), (1 if device.loops else 16,), ordered, places, values, indices, rows, length)
    return tuple(_reduced(t, input, dim, keepdim) for t in (values, indices))


@composite("mode", repeat="whole", gradcheck=False, samples=lambda: [((_distinct(3, 7) // 4,), {}), ((_distinct(4, 3) // 3, 0), dict(keepdim=True))])
def mode(input, dim=-1, keepdim=False, *, out=None):
    """The most frequent element along ``dim`` (the smallest of several) and the position of its last occurrence: ``(values, indices)``."""
    d = wrap_dim(dim, len(input.shape))
    if input.shape and input.shape[d] == 0:
        raise IndexError(f"mode(): Expected reduction dim {d} to have non-zero size.")
    return _deliver(named("mode", "values", "indices")(_mode(input, d, keepdim, input.shape)), out)


# -- quantiles ------------------------------------------------------------------------------------------------------------------------------
_levels = elementwise("_levels", "input", "input", checked=dict(bool="0", int="0", float="!(input >= 0 && input <= 1)"), method=False, inplace=False,
                     failure=(RuntimeError, "quantile() q values must be in the range [0, 1]"), vjp=dict(input=lambda g: g))
_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(input, q, dim, keepdim, interpolation, ignore_nan):
    name = "quantile"                                           # as the errors of both call it
    if input.dtype not in (dt.float32, dt.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
    if input._numel == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = filled(Size(()), float(q), input.dtype, input._storage.device)
    elif len(q.shape) > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    elif q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    else:
        q = _levels(q)
    rank = len(input.shape)
    d = None if dim is None else wrap_dim(dim, rank)
    x = input.reshape(-1) if dim is None or not rank else input.movedim(d, -1)
    ordered = _sort(x, len(x.shape) - 1, False, x.shape)[0]
    n = x.shape[-1]
    nans = cast(ordered.detach() != ordered.detach(), x.dtype).sum(-1, True)
    places = q.reshape(-1).expand((*x.shape[:-1], q._numel))
    ranks = (places * (n - 1 - nans)).clamp(min=0) if ignore_nan else where(nans > 0, float(n - 1), places * (n - 1))
    r = _interpolate(ordered, ranks, interpolation)
    r = r.movedim(-1, 0)
    if keepdim:
        r = r.reshape((q._numel,) + (1,) * rank) if dim is None else r.unsqueeze(d + 1) if rank else r
    return r if q.shape else r.squeeze(0)


def _interpolate(ordered, ranks, how):
    if how == "lower":
        return ordered.gather(-1, cast(ranks.floor(), dt.int64))
    if how == "higher":
        return ordered.gather(-1, cast(ranks.ceil(), dt.int64))
    if how == "nearest":
        return ordered.gather(-1, cast(ranks.round(), dt.int64))
    below = ranks.floor()
    a, b = ordered.gather(-1, cast(below, dt.int64)), ordered.gather(-1, cast(ranks.ceil(), dt.int64))
    return lerp(a, b, ranks - below if how == "linear" else 0.5)


def _np_quantile(x, q, dim=None, keepdim=False, *, interpolation="linear"):
    return np.quantile(x, q, dim, keepdims=keepdim, method=interpolation)


@composite("quantile", splice=True, repeat="whole", numpy=_np_quantile, samples=lambda: [((_values(3, 5), 0.3), {}), ((_values(3, 5), np.array([0.1, 0.9]), 1), {})])
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """Quantiles along ``dim`` (default: of all elements); a vector ``q`` gives a new first dimension. NaN where there is a NaN.

    Args:
        q: number or vector in [0, 1]; same dtype as ``input`` if a tensor.
        interpolation: ``'linear'``, ``'lower'``, ``'higher'``, ``'midpoint'`` or ``'nearest'`` between two elements.
    """
    return set_out(out, _quantile(input, q, dim, keepdim, interpolation, False))


@composite("nanquantile", splice=True, repeat="whole", numpy=_np_quantile, samples=lambda: [((_values(3, 5), 0.3), {})])
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """``quantile`` that ignores NaN."""
    return set_out(out, _quantile(input, q, dim, keepdim, interpolation, True))
