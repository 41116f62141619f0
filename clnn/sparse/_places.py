"""Operators that change where the elements of a sparse tensor are: selecting, joining, moving dimensions."""
from __future__ import annotations

import operator

from .._tensor.foreign import NoStrides
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import wrap_dim
from ..ops import creation
from ._build import coalesce, to_layout
from ._pattern import Pattern, fn
from ._tensor import COO, CSC, CSR, SparseTensor, make


def coo(t):
    """``t`` by coordinates."""
    return to_layout(t, COO)


def _dense_axis(t, d):
    """The dimension of the values that is dimension ``d`` of ``t``."""
    return d - t.sparse_dim() + 1


def _kept(t, flags, rows, sizes):
    """The elements with a flag, at new places: ``rows`` holds a row of places per sparse dimension, or a function of the chosen elements."""
    chosen = fn("nonzero")(flags).reshape(-1)
    moved = [r.index_select(0, chosen) for r in rows]
    places = fn("stack")(moved) if moved else chosen.new_zeros((0, chosen._numel))
    return make(Pattern(sizes, places, t.pattern.ordered), t.part.index_select(0, chosen), COO)


def select(input, dim, index):
    """Slice number ``index`` of dimension ``dim``; a dense tensor when no sparse dimension remains."""
    t, d = coo(input), wrap_dim(dim, input.ndim)
    size, index = t.shape[d], operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(t.shape)} at dimension {d}")
    index %= size
    if d >= t.sparse_dim():
        return make(t.pattern, t.part.select(_dense_axis(t, d), index), COO)
    places, sizes = t.pattern.indices, t.pattern.sizes
    if len(sizes) == 1:
        return t.part.index_select(0, fn("nonzero")(places[0] == index).reshape(-1)).sum(0, dtype=t.dtype)
    return _kept(t, places[d] == index, [places[k] for k in range(len(sizes)) if k != d], sizes[:d] + sizes[d + 1:])


def narrow_copy(input, dim, start, length):
    """The part ``start .. start + length`` of dimension ``dim``."""
    t, d = coo(input), wrap_dim(dim, input.ndim)
    start = start + t.shape[d] if start < 0 else start
    if length < 0 or start + length > t.shape[d]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({t.shape[d]}).")
    if d >= t.sparse_dim():
        return make(t.pattern, t.part.narrow(_dense_axis(t, d), start, length), COO)
    places, sizes = t.pattern.indices, t.pattern.sizes
    rows = [places[k] - start if k == d else places[k] for k in range(len(sizes))]
    return _kept(t, (places[d] >= start) & (places[d] < start + length), rows, sizes[:d] + (length,) + sizes[d + 1:])


def index_select(input, dim, index):
    """The slices of dimension ``dim`` that ``index`` names, in its order."""
    t, d = coo(input), wrap_dim(dim, input.ndim)
    if d >= t.sparse_dim():
        return make(t.pattern, t.part.index_select(_dense_axis(t, d), index), COO)
    index = index.reshape(-1).to(dt.int64)
    sizes = t.pattern.sizes[:d] + (index._numel,) + t.pattern.sizes[d + 1:]
    # Elements by slice: those of slice s are place[first[s]] and on. Each named slice takes all of its own.
    by_slice = Pattern((t.shape[d], 1), fn("stack")([t.pattern.indices[d], creation.zeros(t._nnz(), dtype=dt.int64, device=t.device)])).packed(0)
    start = by_slice.start.to(dt.int64)
    first = start.index_select(0, fn("where")(index < 0, index + t.shape[d], index))
    count = start.index_select(0, fn("where")(index < 0, index + t.shape[d], index) + 1) - first
    new = fn("repeat_interleave")(creation.arange(index._numel, device=t.device), count)
    within = creation.arange(new._numel, device=t.device) - (count.cumsum(0) - count).index_select(0, new)
    chosen = by_slice.place.index_select(0, first.index_select(0, new) + within).to(dt.int64)
    places = t.pattern.indices.index_select(1, chosen)
    rows = [new if k == d else places[k] for k in range(len(sizes))]
    return make(Pattern(sizes, fn("stack")(rows), d == 0 and t.pattern.ordered), t.part.index_select(0, chosen), COO)


def cat(tensors, dim=0, **kwargs):
    """Sparse tensors side by side along ``dim``."""
    dim = kwargs.get("axis", dim)
    if not all(isinstance(t, SparseTensor) for t in tensors):
        raise RuntimeError("cat: Sparse tensors cannot be concatenated with dense ones; use to_sparse() or to_dense()")
    tensors = [coo(t) for t in tensors]
    first = tensors[0]
    d, sparse = wrap_dim(dim, first.ndim), first.sparse_dim()
    for t in tensors[1:]:
        if t.sparse_dim() != sparse or t.dense_dim() != first.dense_dim():
            raise RuntimeError(f"All tensors must have the same: sparse_dim and dense_dim; got {t.sparse_dim()}, {t.dense_dim()} and {sparse}, {first.dense_dim()}")
        if any(a != b for k, (a, b) in enumerate(zip(t.shape, first.shape)) if k != d):
            raise RuntimeError(f"All tensors must have the same shape except in the concatenating dimension; got {list(first.shape)} and {list(t.shape)}")
    if d >= sparse:
        return _joined_blocks(tensors, _dense_axis(first, d))
    places, at = [], 0
    for t in tensors:
        shift = [at if k == d else 0 for k in range(sparse)]
        places.append(t.pattern.indices + creation.tensor(shift, device=t.device).unsqueeze(1) if at else t.pattern.indices)
        at += t.shape[d]
    sizes = first.pattern.sizes[:d] + (at,) + first.pattern.sizes[d + 1:]
    return make(Pattern(sizes, fn("cat")(places, 1), d == 0 and all(t.pattern.ordered for t in tensors)), fn("cat")([t.part for t in tensors]), COO)


def _joined_blocks(tensors, axis):
    """Side by side along a dense dimension: each tensor's blocks, with zeros where the others are."""
    sizes, at = [t.part.shape[axis] for t in tensors], 0
    parts = []
    for t, size in zip(tensors, sizes):
        pad = [0, 0] * (t.part.ndim - 1 - axis) + [at, sum(sizes) - at - size]
        parts.append(fn("pad")(t.part, pad))
        at += size
    return make(Pattern(tensors[0].pattern.sizes, fn("cat")([t.pattern.indices for t in tensors], 1)), fn("cat")(parts), COO)


def stack(tensors, dim=0, **kwargs):
    """Sparse tensors stacked along a new dimension ``dim``."""
    return cat([unsqueeze(t, dim) for t in tensors], wrap_dim(dim, tensors[0].ndim + 1))


def unsqueeze(input, dim):
    """A new dimension of size 1, sparse among the sparse ones and in front of the dense ones."""
    t, d = coo(input), wrap_dim(dim, input.ndim + 1)
    if d > t.sparse_dim():
        return make(t.pattern, t.part.unsqueeze(_dense_axis(t, d)), COO)
    places, sizes = t.pattern.indices, t.pattern.sizes
    new = fn("cat")([places[:d], places.new_zeros((1, t._nnz())), places[d:]])
    return make(Pattern(sizes[:d] + (1,) + sizes[d:], new, t.pattern.ordered), t.part, COO)


def permute(input, *dims):
    """The dimensions in another order; sparse ones stay sparse."""
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    dims = tuple(wrap_dim(d, input.ndim) for d in dims)
    if sorted(dims) != list(range(input.ndim)):
        raise RuntimeError(f"permute(sparse_coo): the dimensions {dims} are no order of {input.ndim} dimensions")
    if dims == tuple(range(input.ndim)):
        return input
    t = coo(input)
    sparse = t.sparse_dim()
    if any(d >= sparse for d in dims[:sparse]):
        raise RuntimeError(f"transpose(sparse, dense): sparse and dense dimensions do not mix; got dims {dims} of {sparse} sparse dimensions")
    part = t.part if dims[sparse:] == tuple(range(sparse, t.ndim)) else t.part.permute(0, *[_dense_axis(t, d) for d in dims[sparse:]])
    if dims[:sparse] == tuple(range(sparse)):
        return make(t.pattern, part, COO)
    if sparse == 2:
        if input.layout is not COO:
            return make(input.pattern.transposed(), part, CSC if input.layout is CSR else CSR)
        return make(t.pattern.transposed(), part, COO)
    order = creation.tensor(dims[:sparse], device=t.device)
    return make(Pattern([t.pattern.sizes[d] for d in dims[:sparse]], t.pattern.indices.index_select(0, order)), part, COO)


def transpose(input, dim0, dim1):
    """Two dimensions exchanged."""
    order = list(range(input.ndim))
    a, b = wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim)
    order[a], order[b] = b, a
    return permute(input, order)


def t(input):
    """The transpose of a matrix."""
    if input.ndim > 2 or input.sparse_dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {input.sparse_dim()} sparse and {input.dense_dim()} dense")
    return transpose(input, 0, 1) if input.ndim == 2 else input


def squeeze(input, dim=None):
    """Without dimensions of size 1 (``dim``: that one, a number or several)."""
    dims = range(input.ndim) if dim is None else [wrap_dim(d, input.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    gone = {d for d in dims if input.shape[d] == 1}
    t = coo(input)
    sparse = t.sparse_dim()
    part = t.part.squeeze(tuple(_dense_axis(t, d) for d in gone if d >= sparse)) if any(d >= sparse for d in gone) else t.part
    kept = [d for d in range(sparse) if d not in gone]
    if len(kept) == sparse:
        return make(t.pattern, part, COO)
    places = t.pattern.indices.index_select(0, creation.tensor(kept, dtype=dt.int64, device=t.device))
    return make(Pattern([t.pattern.sizes[d] for d in kept], places, t.pattern.ordered), part, COO)


def getitem(input, index):
    """``input[index]`` for numbers, ``:``, ``...`` and ``None``, and one vector of numbers."""
    items = list(index) if isinstance(index, tuple) else [index]
    if any(i is Ellipsis for i in items):
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        items[at:at + 1] = [slice(None)] * (input.ndim - sum(i is not None and i is not Ellipsis for i in items))
    r, d = input, 0
    for item in items:
        if item is None:
            r = unsqueeze(r, d) if isinstance(r, SparseTensor) else r.unsqueeze(d)
            d += 1
        elif isinstance(item, slice):
            r = _sliced(input, r, d, item)
            d += 1
        elif isinstance(item, (Tensor, list)) and not isinstance(item, SparseTensor):
            numbers = creation.as_tensor(item, device=input.device)
            if numbers.ndim != 1 or numbers.dtype.differentiable:
                raise NoStrides(input).of("index")
            numbers = fn("nonzero")(numbers).reshape(-1) if numbers.dtype is dt.bool_ else numbers
            r = r.index_select(d, numbers)
            d += 1
        else:
            if d >= r.ndim:
                raise IndexError(f"too many indices for tensor of dimension {input.ndim}")
            r = r.select(d, item)
    return r


def _sliced(input, r, d, item):
    if item == slice(None):
        return r
    start, stop, step = item.indices(r.shape[d])
    if step != 1:
        raise NoStrides(input).of("slice")
    return r.narrow_copy(d, start, max(0, stop - start))


__all__ = ["coalesce"]
