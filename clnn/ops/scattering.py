"""Writing by index: rows, elements, masks. Colliding writes fold in the order of the source, so every run gives equal bits."""
from __future__ import annotations

import math
import sys

import numpy as np

from .._tensor import formats
from .._tensor.declare import composite, kernel
from .._tensor.device import public
from .._tensor.dispatch import plain
from .._tensor.indexing import tracked
from .._tensor.inplace import apply_inplace, refuse_overlap, type_name
from .._tensor.repeat import full_value, repeated
from .._tensor.tensor import Tensor
from .._tensor.worded import refuse
from .._tensor.wrapped import local as modes
from .._tensor.writing import bump, copy
from ..core import dtype as dt
from ..core.limits import check_fits
from ..core.layout import contiguous_format
from ..core.shape import Size, wrap_dim
from ..core.warn import warn
from . import _scatter
from .creation import alert, arange, filled
from .indexing import Plan, _check_bounds, _deliver, _expand_masks, _index_rows, _numbers, _only_mask, _values, check_index, fit, no_vector, split
from .selection import cast, narrows, where

_refcount = sys.getrefcount


def _own_copy(input, work):
    """``input`` in dense memory of its own, in dtype ``work``."""
    value = full_value(input) if work is input.dtype else None
    if value is not None:
        return filled(input.shape, value, work, input._storage.device)
    return cast(input.contiguous(), work) if work is not input.dtype else copy(input)


def _work_dtype(dtype, op):
    """16-bit floats add and multiply in float32."""
    return dt.float32 if dtype.round_trip and op in ("add", "mul") else dtype


# -- rows -----------------------------------------------------------------------------------------------------------------------------
def _put_input_grad(g, index, shape, values_shape, first, count, wrap, op):
    if op == "add":
        return g
    zero = filled(Size(()), 0, g.dtype, g._storage.device).expand(values_shape)
    return _put_rows(g, index, zero, shape, values_shape, first, count, wrap, "set", "index_put")


@kernel("_put_rows", complex=True, method=False, repeat="whole fresh", vjp=dict(
    input=_put_input_grad, values=lambda g, index, shape, first, count, wrap: _index_rows(g, index, shape, first, count, wrap, "index")))
def _put_rows(input, index, values, shape, values_shape, first, count, wrap, op, what):
    """``input`` with the rows that ``index`` numbers in dimensions ``first .. first + count`` replaced by, or folded with, ``values``."""
    B, D, R = split(shape, first, count)
    _scatter.check_rows(what, first, D, index._numel)
    work = _work_dtype(input.dtype, op)
    out = _own_copy(input, work)
    err = _scatter.code(input._storage.device, what, first, D)
    _scatter.write_rows(out, index.contiguous(), cast(values, work), B, D, R, op, wrap, err)
    return cast(out, input.dtype)


_put_rows.op.grad_name = "IndexPutBackward0"


def _prepare_rows(name, input, dim, index, source):
    check_index(name, index)
    if len(index.shape) > 1:
        no_vector(name, index)
    if isinstance(source, Tensor) and source.dtype is not input.dtype:
        own, others = type_name(input.dtype), type_name(source.dtype)
        raise RuntimeError(f"index_copy_(): self and source expected to have the same dtype, but got (self) {own} and (source) {others}" if name == "index_copy" else
                           f"{name}_(): self ({own}) and source ({others}) must have the same scalar type")
    x = input.reshape(1) if not input.shape else input
    d = wrap_dim(dim, len(x.shape))
    index = index.reshape(-1)
    want = (*x.shape[:d], index._numel, *x.shape[d + 1:])
    if isinstance(source, Tensor):
        s = source.reshape(want) if not source.shape and math.prod(want) == 1 else source
        if tuple(s.shape) != want or name == "index_add" and not (input.shape and source.shape) and len(input.shape) != len(source.shape):
            if name == "index_copy" and len(s.shape) != len(want):
                raise IndexError("index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality "
                                 f"({len(source.shape)}), destination dimensionality ({len(input.shape)})")
            if len(s.shape) == len(want) and s.shape[d] != want[d]:
                kind, of = (IndexError, f" ({s.shape[d]})") if name == "index_copy" else (RuntimeError, f": ({s.shape[d]}), for dim: {d}")
                raise kind(f"{name}_(): Number of indices ({index._numel}) should be equal to source.size(dim){of}")
            raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. "
                               f"Got self.shape = {list(input.shape)} source.shape = {list(source.shape)}")
    else:
        check_fits(source, x.dtype)
        s = filled(Size(()), source, x.dtype, x._storage.device).expand(want)
    return x, d, index, s


def _rows_call(name, input, dim, index, source, op):
    x, d, index, s = _prepare_rows(name, input, dim, index, source)
    return _put_rows(x, index, s, x.shape, s.shape, d, 1, False, op, _loop(name, x)).reshape(input.shape)


def _loop(name, x):
    """The name that errors of indices on the device have."""
    return "index_add_" if name == "index_add" and len(x.shape) == 2 else name


def _np_index_add(x, dim, index, source, alpha=1):
    out = np.moveaxis(x.copy(), dim, 0)
    np.add.at(out, index, alpha * np.moveaxis(source, dim, 0))
    return np.moveaxis(out, 0, dim)


@composite("index_add", splice=True, repeat="ready small", complex=True, inplace=True, numpy=_np_index_add, samples=lambda: [
    ((_values(4, 3), 0, np.array([0, 2, 2]), _values(3, 3)), {}), ((_values(2, 5), 1, np.array([4, 0, 4]), _values(2, 3)), dict(alpha=2))])
def index_add(input, dim, index, source, *, alpha=1, out=None):
    """``input`` with ``alpha`` times each row of ``source`` added to the row of dimension ``dim`` that ``index`` names for it.

    Args:
        input: (*, D, *); index: (N); source: (*, N, *), same dtype as ``input``.

    Example:
        >>> clnn.zeros(3).index_add(0, clnn.tensor([0, 2, 2]), clnn.ones(3))
        tensor([1., 0., 2.])
    """
    if not isinstance(alpha, Tensor):
        check_fits(alpha, input.dtype)
        alpha = bool(alpha) if input.dtype is dt.bool_ else int(alpha) if input.dtype.category == dt.INT else alpha
    return _deliver(_rows_call("index_add", input, dim, index, source if alpha == 1 else source * alpha, "add"), out)


def _np_index_copy(x, dim, index, source):
    out = np.moveaxis(x.copy(), dim, 0)
    out[index] = np.moveaxis(source, dim, 0)
    return np.moveaxis(out, 0, dim)


@composite("index_copy", repeat="ready small", complex=True, inplace=True, numpy=_np_index_copy,
           samples=lambda: [((_values(4, 3), 0, np.array([0, 2]), _values(2, 3)), {})])
def index_copy(input, dim, index, source, *, out=None):
    """``input`` with the rows of dimension ``dim`` that ``index`` names replaced by those of ``source`` (of equal indices the last wins)."""
    return _deliver(_rows_call("index_copy", input, dim, index, source, "set"), out)


@composite("index_fill", repeat="ready small", complex=True, inplace=True, samples=lambda: [((_values(4, 3), 0, np.array([0, 2]), 5.0), {})],
           numpy=lambda x, dim, index, v: _np_index_copy(x, dim, index, np.full(x.shape[:dim] + (len(index),) + x.shape[dim + 1:], v, x.dtype)))
def index_fill(input, dim, index, value):
    """``input`` with ``value`` in the rows of dimension ``dim`` that ``index`` names."""
    strides = None if input._dense else formats.preserved(input)
    if strides is not None:                                         # the result lies as the input does
        order = formats.by_stride(input.shape, strides)
        r = _filled_rows(input.permute(order), order.index(wrap_dim(dim, len(order))), index, value)
        return r.permute([order.index(d) for d in range(len(order))])
    return _filled_rows(input, dim, index, value)


def _filled_rows(input, dim, index, value):
    if isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    x, d, index, s = _prepare_rows("index_fill", input, dim, index, 0 if isinstance(value, Tensor) else value)
    if isinstance(value, Tensor):
        if value.shape:
            raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {len(value.shape)} dimension(s).")
        if narrows(value, x.dtype):
            check_fits(value.item(), x.dtype)
        lines, count, device = Size((x.shape[d],)), Size((index._numel,)), x._storage.device
        rows = _put_rows(filled(lines, 0, dt.uint8, device), index, filled(count, 1, dt.uint8, device), lines, count, 0, 1, True, "set", "index_fill")
        wide = [1] * len(x.shape)                                   # equal indices count once: a mask, not a copy of the value for each
        wide[d] = x.shape[d]
        return where(rows.reshape(wide) != 0, cast(value, x.dtype), x).reshape(input.shape)
    return _put_rows(x, index, s, x.shape, s.shape, d, 1, True, "set", "index_fill").reshape(input.shape)


@composite("index_reduce", repeat="ready small", complex=True, inplace=True, samples=lambda: [
    ((_values(4, 3), 0, np.array([0, 2, 2]), _values(3, 3), r), {}) for r in ("mean", "amax")])
def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """Like ``index_add`` with ``reduce``: ``'prod'``, ``'mean'``, ``'amax'`` or ``'amin'``."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    _prepare_rows("index_reduce", input, dim, index, source)
    d = wrap_dim(dim, len(input.shape))
    if not source.shape:
        source = source.reshape(1)
    if input.shape:
        index = arange(input.shape[d], device=public(input._storage.device)).index_select(0, index.reshape(-1))       # its words for what is out of range
    shape = [1] * len(source.shape)
    shape[d] = index._numel
    wide = index.reshape(shape).expand(source.shape)
    return _deliver(scatter_reduce(input, d, wide, source, reduce, include_self=include_self), out)


# -- x[tensors and masks] = values ------------------------------------------------------------------------------------------------------
def _broadcast_values(values, shape):
    if len(values.shape) > len(shape):
        lead = len(values.shape) - len(shape)
        if all(s == 1 for s in values.shape[:lead]):
            values = values.reshape(values.shape[lead:])
    try:
        return values.expand(shape)
    except RuntimeError:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
                           f"{list(shape)}") from None


def _plan(base, indices):
    d, mask = _only_mask(indices)
    if mask is None:
        return Plan(base, _expand_masks(indices, base.shape))
    from .searching import flat_nonzero
    plan = object.__new__(Plan)
    plan.order, plan.first, plan.count, plan.rows, plan.wrap = None, d, len(mask.shape), flat_nonzero(mask), False
    plan.shape = Size((*base.shape[:d], plan.rows._numel, *base.shape[d + len(mask.shape):]))
    return plan


def _full(base, indices):
    """One entry per dimension of ``base`` from the ``indices`` of ``index_put``; a mask over several dimensions fills all of them."""
    out = []
    for t in indices:
        if t is not None and t.dtype is not dt.int64:
            if t.dtype is dt.uint8:
                warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
                t = t != 0
            elif t.dtype is not dt.bool_ and t.dtype is not dt.int32:
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        out.append(t)
        if t is not None and t.dtype is dt.bool_:
            out += [None] * (len(t.shape) - 1)
    if len(out) > len(base.shape):
        raise IndexError(f"too many indices for tensor of dimension {len(base.shape)} (got {len(out)})")
    return out + [None] * (len(base.shape) - len(out))


@composite("index_put", repeat="ready small", complex=True, inplace=True, samples=lambda: [
    ((_values(4, 3), (np.array([0, 2]), np.array([1, 1])), _values(2)), {}),
    ((_values(4, 3), (np.array([0, 0]),), _values(3)), dict(accumulate=True))])
def index_put(input, indices, values, accumulate=False):
    """``input`` with ``input[indices] = values``, or ``+=`` with ``accumulate`` (equal indices then add up).

    Args:
        indices: tuple of index tensors or masks, None for a whole dimension.
        values: broadcast to the shape of ``input[indices]``; same dtype as ``input``.
    """
    _same_dtype(input, values, indices)
    indices = _full(input, list(indices))
    if not any([i is not None for i in indices]):
        _broadcast_values(values, input.shape)                       # which is what is said first
        raise RuntimeError("index_put(): indices must not be empty")
    plan = _plan(input, indices)
    return _put(input, plan, values, "add" if accumulate else "set")


def _put(input, plan, values, op):
    x = plan.arrange(input)
    v = _broadcast_values(values, plan.shape)
    return plan.restore(_put_rows(x, plan.rows, v, x.shape, v.shape, plan.first, plan.count, plan.wrap, op, "index_put"))


def _same_dtype(target, values, indices):
    if not isinstance(values, Tensor) or isinstance(indices, Tensor):
        refuse("index_put_", (target, indices, values), None, True)
    if values.dtype is not target.dtype:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {type_name(target.dtype)} for the destination and "
                           f"{type_name(values.dtype)} for the source.")


@composite("_index_put_into", complex=True, method=False)
def _index_put_into(base, indices, values):
    """``base[indices] = values`` in place: straight into the memory of ``base`` when nothing else can still want the old values."""
    _same_dtype(base, values, indices)
    _put_into(base, indices, values, "set")


def _put_into(base, indices, values, op):
    at = [d for d, t in enumerate(indices) if t is not None]
    if at and at[-1] - at[0] < len(at) and _writable(base, values, op):
        st, others = base._storage, [values, *[indices[d] for d in at]]
        if all([t.__class__ in plain and t._storage is not st and t._storage.device is st.device for t in others]) \
                and not any([t.dtype is dt.bool_ for t in others[1:]]):
            _check_bounds(indices, base.shape)
            values._storage.buffer()                            # a pending value may read what is written to
            _lay_bare(st)
            _put_there(base, indices, values, op)
            bump(base)
            return base
    plan = _plan(base, indices)
    if plan.order is None:
        v = _broadcast_values(values, plan.shape)
        if _write_rows_into(base, plan.rows, v, plan.first, plan.count, plan.wrap, op, "index_put"):
            return base
    return apply_inplace(base, _put(base, plan, values, op), "index_put")


@repeated
def _put_there(base, indices, values, op):
    """The rows that index tensors number, beside each other, written where ``base`` lies."""
    plan = Plan(base, indices)
    values, (B, D, R) = _broadcast_values(values, plan.shape), split(base.shape, plan.first, plan.count)
    _scatter.check_rows("index_put", plan.first, D, plan.rows._numel)
    _scatter.write_rows(base, plan.rows.contiguous(), values, B, D, R, op, plan.wrap, _scatter.code(base._storage.device, "index_put", plan.first, D))


def _writable(base, src, op):
    """Whether ``base`` may be written where it lies, once nothing else wants to read that memory."""
    st = base._storage
    return not (tracked(base, src) or st.pinned or st.mirrored or st.device.kind == "meta" or not base.is_contiguous() or 0 in base._strides
                or base._inference or _work_dtype(base.dtype, op) is not base.dtype or modes.modes)     # who takes operators over is told of whole writes


def _lay_bare(st):
    """Give a storage memory that nothing else can still want to read."""
    st.buffer()
    if _refcount(st.buf) > 2:
        st.buf = st.device.duplicate(st.buf, st.nbytes)


def _own_memory(base, index, src, op):
    """(index, src) when ``base`` may be written where it lies, in memory that nothing else can still want to read; else None."""
    if not _writable(base, src, op):
        return None
    st = base._storage
    index, src = index.contiguous(), cast(src, base.dtype)
    index, src = (t.clone() if t._storage is st else t for t in (index, src))
    _lay_bare(st)
    return index, src


def _write_rows_into(base, index, values, first, count, wrap, op, what):
    """``_put_rows`` in place. False when it has to be done out of place."""
    own = _own_memory(base, index, values, op)
    if own is None:
        return False
    B, D, R = split(base.shape, first, count)
    _scatter.check_rows(what, first, D, index._numel)
    _written(base, *own, B, D, R, op, wrap, _scatter.code(base._storage.device, what, first, D))
    bump(base)
    return True


@repeated
def _written(base, index, src, B, D, R, op, wrap, err):
    _scatter.write_rows(base, index, src, B, D, R, op, wrap, err)


def _rows_in_place(self, name, dim, index, source, op):
    refuse_overlap(self, (index, source))
    x, d, index, s = _prepare_rows(name, self, dim, index, source)
    if _write_rows_into(x, index, s, d, 1, False, op, _loop(name, x)):
        return self
    r = _put_rows(x, index, s, x.shape, s.shape, d, 1, False, op, _loop(name, x))
    if r._grad_fn is not None:
        r._grad_fn.label = "IndexAddBackward0" if op == "add" else "IndexCopyBackward0"
    return apply_inplace(self, r if self.shape else r.reshape(()), name)


def _index_add_(self, dim, index, source, *, alpha=1):
    """In-place form of :func:`clnn.index_add`: touches only the rows that are named."""
    alpha = int(alpha) if self.dtype.category == dt.INT and not isinstance(alpha, Tensor) else alpha
    return _rows_in_place(self, "index_add", dim, index, source if alpha == 1 else source * alpha, "add")


def _index_copy_(self, dim, index, source):
    """In-place form of :func:`clnn.index_copy`: touches only the rows that are named."""
    return _rows_in_place(self, "index_copy", dim, index, source, "set")


def _index_put_(self, indices, values, accumulate=False):
    """In-place form of :func:`clnn.index_put`: touches only what is named."""
    _same_dtype(self, values, indices)
    refuse_overlap(self, (indices, values), True)
    return _put_into(self, _full(self, list(indices)), values, "add" if accumulate else "set")


Tensor.index_add_, Tensor.index_copy_, Tensor.index_put_ = _index_add_, _index_copy_, _index_put_


@composite("put", repeat="ready small", complex=True, inplace=True, torch="Tensor.put", samples=lambda: [((_values(4, 3), np.array([1, 9]), _values(2)), {})])
def put(input, index, source, accumulate=False):
    """``input`` with the elements that ``index`` numbers (of the flattened tensor) replaced by those of ``source``, or added to."""
    check_index("put", index)
    if index._numel != source._numel:
        raise IndexError(f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source._numel}, "
                           f"index.numel() = {index._numel}")
    if source.dtype is not input.dtype:
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got self.dtype = {dt.SPOKEN[input.dtype.name]} and "
                           f"source.dtype = {dt.SPOKEN[source.dtype.name]}")
    if not accumulate:
        alert("put_")
    n, index, source = input._numel, index.reshape(-1), source.reshape(-1)
    r = _put_rows(input.reshape(-1), index, source, (n,), source.shape, 0, 1, True, "add" if accumulate else "set", "put")
    return r.reshape(input.shape)


# -- elements -------------------------------------------------------------------------------------------------------------------------
def _scatter_input_grad(g, dim, index, op):
    return g if op == "add" else scatter(g, dim, index, 0)


@kernel("_scatter", complex=True, method=False, repeat="whole fresh", vjp=dict(input=_scatter_input_grad, src=lambda g, dim, index: g.gather(dim, index)))
def _scatter_op(input, dim, index, src, op, unique):
    """``set`` and ``add`` for operands that agree outside ``dim``."""
    return _fold(input, dim, index, src, op, unique)


_scatter_op.op.grad_name = "ScatterBackward0"


def _fold(input, dim, index, src, op, unique=False):
    B, D, _ = split(input.shape, dim, 1)
    _, N, R = split(index.shape, dim, 1)
    _scatter.check_rows("scatter", dim, D, index._numel)
    work = _work_dtype(input.dtype, op)
    out = _own_copy(input, work)
    err = _scatter.code(input._storage.device, "scatter", dim, D)
    _scatter.write_elements(out, index.contiguous(), cast(src, work), B, D, N, R, op, False, err, unique)
    return cast(out, input.dtype)


def _fold_grad(g, input, dim, index, src, op, before, result):
    """Products: the others' product; extremes: shared evenly among all that reached it, and in PyTorch ``before``, too, which ``input`` is without it."""
    if op == "mul":
        return _product_grad(g, input, dim, index, src)
    value = result.gather(dim, index)
    mine, theirs = ((input if before is None else before) == result), (src == value)
    count = cast(mine, g.dtype).scatter_add(dim, index, cast(theirs, g.dtype))
    share = g / count
    return where(mine, share, 0.0), where(theirs, share.gather(dim, index), 0.0)


def _product_grad(g, input, dim, index, src):
    """Zeros need care: with one of them, only its own gradient is not zero."""
    zeros = cast(src == 0, g.dtype)
    count = g.new_zeros(input.shape).scatter_add(dim, index, zeros) + cast(input == 0, g.dtype)
    full = scatter_reduce(where(input == 0, 1.0, input), dim, index, where(src == 0, 1.0, src), "prod")
    at, prod = count.gather(dim, index), (g * full)
    grad_input = where(input == 0, where(count == 1, prod, 0.0), where(count == 0, prod / input, 0.0))
    there = prod.gather(dim, index)
    grad_src = where(src == 0, where(at == 1, there, 0.0), where(at == 0, there / src, 0.0))
    return grad_input, grad_src


@kernel("_scatter_fold", complex=True, method=False, repeat="whole fresh", vjp={"input, src": _fold_grad})
def _scatter_fold(input, dim, index, src, op, before=None):
    """Products and extremes."""
    return _fold(input, dim, index, src, op)


_scatter_fold.op.grad_name = "ScatterReduceBackward0"


def _check_cover(input, dim, index, src):
    """RuntimeError where ``index`` reaches beyond ``input`` or ``src``."""
    sizes = index.shape
    over = any([d != dim and n > m for d, (n, m) in enumerate(zip(sizes, input.shape))])
    given = isinstance(src, Tensor)
    if len(sizes) == len(input.shape) and (over or given and len(sizes) == len(src.shape) and any([n > m for n, m in zip(sizes, src.shape)])):
        raise RuntimeError(f"Expected index {list(sizes)} to be no larger than self {list(input.shape)} apart from dimension {dim}"
                           + (f" and to be no larger size than src {list(src.shape)}" if given else ""))


def _elements(name, input, dim, index, src, op, before=None):
    """The part of ``input`` and ``src`` that ``index`` covers goes through the kernel; the rest of ``input`` stays."""
    check_index(name, index)
    if isinstance(src, Tensor) and src.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    shape = input.shape
    if not shape or not index.shape:
        if len(shape) > 1 or len(index.shape) > 1 and index._numel:
            raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
        input = input.reshape(-1) if not shape else input
        index = index.reshape(-1)
        src = src.reshape(-1) if isinstance(src, Tensor) else src
    d = wrap_dim(dim, len(input.shape))
    if index._numel == 0:
        return input.clone().reshape(shape)
    _check_cover(input, d, index, src)
    part = fit(name, input, d, index)
    if isinstance(src, Tensor):
        src = fit(name, src, -1, index, "src")
    else:
        check_fits(src, input.dtype)
        src = filled(Size(()), src, input.dtype, input._storage.device).expand(index.shape)
    if before is not None:
        before = fit(name, before.reshape(input.shape), d, index)
    call = _scatter_op(part, d, index, src, op, False) if op in ("set", "add") else _scatter_fold(part, d, index, src, op, before)
    if part is input:
        return call.reshape(shape)
    whole = input.clone(memory_format=contiguous_format)
    fit(name, whole, d, index).copy_(call)
    return whole


def _np_scatter(x, dim, index, src, reduce=None):
    out = x.copy()
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[dim] = index[at]
        v = src if np.isscalar(src) else src[at]
        to = tuple(to)
        out[to] = v if reduce is None else out[to] + v if reduce in ("add", "sum") else out[to] * v
    return out


def _unique_rows(high, *shape):
    rng = np.random.default_rng(3)
    return np.stack([rng.permutation(high)[:shape[1]] for _ in range(shape[0])])


@composite("scatter", repeat="ready small", complex=True, inplace=True, numpy=_np_scatter, samples=lambda: [
    ((_values(3, 5), 1, _unique_rows(5, 3, 3), _values(3, 3)), {}), ((_values(3, 5), 1, _unique_rows(5, 2, 2), 2.0), {})])
def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None):
    """``input`` with ``out[index[i][j]][j] = src[i][j]`` (for ``dim=0``); ``src`` may be a number. Of equal indices the last wins.

    Args:
        index: int64; as many dimensions as ``input``; values 0..size(dim)-1, others raise IndexError at the next synchronisation.
        reduce: ``'add'`` or ``'multiply'`` instead of overwriting.

    Example:
        >>> clnn.zeros(2, 3).scatter(1, clnn.tensor([[2], [0]]), 1.0)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    op = {None: "set", "add": "add", "multiply": "mul"}[reduce]
    return _deliver(_elements("scatter", input, dim, index, value if src is None else src, op), out)


@composite("scatter_add", splice=True, repeat="ready small", complex=True, inplace=True, numpy=lambda x, d, i, s: _np_scatter(x, d, i, s, "add"), samples=lambda: [
    ((_values(3, 5), 1, _numbers(5, 3, 5), _values(3, 5)), {}), ((_values(4, 3), 0, _numbers(4, 6, 2), _values(6, 2)), {})])
def scatter_add(input, dim, index, src, *, out=None):
    """``input`` with ``out[index[i][j]][j] += src[i][j]`` (for ``dim=0``). Equal indices add up, in the order of ``src``."""
    return _deliver(_elements("scatter_add", input, dim, index, src, "add"), out)


def _scatter_in_place(name):
    def method(self, dim, index, src=None, *, value=None, reduce=None):
        src = value if src is None else src
        op = "add" if name == "scatter_add" else {None: "set", "add": "add", "multiply": "mul"}.get(reduce, "?")
        d = wrap_dim(dim, len(self.shape))
        refuse_overlap(self, (index, src), True)
        if isinstance(src, Tensor) and src.dtype is self.dtype and src.shape == index.shape and index._numel and op in ("set", "add") \
                and index.dtype is dt.int64 and len(index.shape) == len(self.shape) and fit(name, self, d, index) is self:
            own = _own_memory(self, index, src, op)
            if own is not None:
                B, D, _ = split(self.shape, d, 1)
                _, N, R = split(index.shape, d, 1)
                _scatter.check_rows(name, d, D, index._numel)
                _scatter.write_elements(self, *own, B, D, N, R, op, False, _scatter.code(self._storage.device, "scatter", d, D))
                bump(self)
                return self
        fn = scatter_add(self, dim, index, src) if name == "scatter_add" else scatter(self, dim, index, src, reduce=reduce)
        return apply_inplace(self, fn, name)
    method.__name__ = method.__qualname__ = name + "_"
    method.__doc__ = f"In-place form of :func:`clnn.{name}`."
    setattr(Tensor, name + "_", method)


_scatter_in_place("scatter")
_scatter_in_place("scatter_add")
_FOLDS = dict(sum="add", prod="mul", mean="add", amax="max", amin="min")


@composite("scatter_reduce", repeat="ready small", complex=True, inplace=True, samples=lambda: [
    ((_values(3, 5), 1, _numbers(5, 3, 7), _values(3, 7), r), {}) for r in ("sum", "prod", "mean", "amax", "amin")])
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """Like ``scatter_add`` with ``reduce``: ``'sum'``, ``'prod'``, ``'mean'``, ``'amax'`` or ``'amin'``.

    Args:
        include_self: False leaves the old values of ``input`` out where something is written.
    """
    reduce = dict(max="amax", min="amin").get(reduce, reduce)
    if reduce not in _FOLDS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    if input.dtype.is_complex and reduce in ("amax", "amin"):
        raise NotImplementedError(f'"scatter_reduce" by {reduce} not implemented for \'{dt.SPOKEN[input.dtype.name]}\'')
    base = input
    if not include_self:
        start = dict(sum=0, mean=0, prod=1)[reduce] if reduce in ("sum", "mean", "prod") else _extreme(input.dtype, reduce)
        base = _elements("scatter_reduce", input, dim, index, start, "set")
    before = input.detach() if base is not input and reduce in ("amax", "amin") else None
    r = _elements("scatter_reduce", base, dim, index, src, _FOLDS[reduce], before)
    if reduce == "mean":
        ones = filled(index.shape, 1, row := input.dtype.to_real(), input._storage.device)
        count = input.detach().new_full(input.shape, 1 if include_self else 0, dtype=row)
        count = _elements("scatter_reduce", count, dim, index, ones, "add")
        count = where(count < 1, 1, count)
        r = r / count if input.dtype.differentiable else r.div(count, rounding_mode="floor")
    return _deliver(r, out)


def _extreme(dtype, reduce):
    """The start value that any other replaces."""
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    if dtype is dt.bool_:
        return reduce == "amin"
    info = np.iinfo(dtype.np)
    return int(info.min if reduce == "amax" else info.max)
