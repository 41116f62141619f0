"""Splitting tensors: parts of them as views."""
from __future__ import annotations

import itertools

from .._tensor import tape
from .._tensor.declare import composite
from .._tensor.dispatch import memory_order
from .._tensor.grad_mode import state
from .._tensor.indexing import basic_index, take_int
from .._tensor.inplace import type_name
from .._tensor.tensor import Tensor, Version, edge, view_of
from ..core import dtype as dt
from ..core.shape import Size, is_contiguous, whole, wrap_dim
from ..core.symbols import memo
from .creation import filled
from .indexing import _values
from .joining import cat, stack


class _Pieces(tape.Node):
    """Views that together cover a dimension: their gradients are joined once, instead of one full-size gradient per view."""

    bare = True

    def __init__(self, label, base, dim, sizes, stacked):
        super().__init__([edge(base)], len(sizes))
        self.label, self.dim, self.sizes, self.stacked = label, dim, sizes, stacked
        self.shape, self.dtype, self.device = base.shape, base.dtype, base._storage.device
        self.order = None if self.device.is_cpu or not stacked else memory_order(base, dense=True)

    def name(self):
        return self.label

    def traits(self):
        return (_Pieces, self.dim, self.sizes, self.stacked, self.shape, self.dtype, self.order and tuple(self.order)), ()

    def take(self, told):
        _, self.dim, self.sizes, self.stacked, self.shape, _, self.order = told

    def apply(self, grads, needed):
        d, whole = self.dim, self.shape
        parts = []
        for g, n in zip(grads, self.sizes):
            if g is None:
                middle = () if self.stacked else (n,)
                g = filled(Size((*whole[:d], *middle, *whole[d + 1:])), 0, self.dtype, self.device)
            parts.append(g)
        if self.order is not None:      # joined as the base lies in memory, where whole rows of all pieces are neighbours
            rest = [k - (k > d) for k in self.order if k != d]
            joined = stack([g.permute(rest) for g in parts], self.order.index(d))
            return [joined.permute([self.order.index(k) for k in range(len(whole))])]
        return [stack(parts, d) if self.stacked else cat(parts, d)]


@memo(1024)
def _cuts(shape, strides, dim, sizes, stacked):
    """Per piece its shape, strides, distance from the first one's start, number of elements and whether it is contiguous."""
    at, out = 0, []
    for n in sizes:
        part = Size((*shape[:dim], *(() if stacked else (n,)), *shape[dim + 1:]))
        steps = strides[:dim] + strides[dim + 1:] if stacked else strides
        out.append((part, steps, at * strides[dim], part.numel(), is_contiguous(part, steps)))
        at += 1 if stacked else n
    return out


def _pieces(name, input, dim, sizes, stacked=False):
    """Views of the lengths ``sizes`` along ``dim``. Those of one function with several results may not be written while gradients are recorded."""
    sizes, first = tuple(sizes), input._offset
    out = [view_of(input, shape, steps, first + at, numel, dense and first + at == 0)
           for shape, steps, at, numel, dense in _cuts(input.shape, input._strides, dim, sizes, stacked)]
    if state.grad and input._rg and out:
        node = _Pieces(name + "Backward0", input, dim, sizes, stacked)
        for nr, t in enumerate(out):
            t._grad_fn, t._out_nr, t._rg = node, nr, True
    if state.grad and name != "Slice":
        for t in out:
            t._origin = "multiple"
    return tuple(out)


def _apart(pieces):
    """The pieces as tensors of their own: each may be written, although they share the memory."""
    for t in pieces:
        t._base, t._origin, t._ver, t._rg = None, None, Version(), t._grad_fn is not None
    return pieces


@composite("split_with_sizes", complex=True, samples=lambda: [
    ((_values(5, 3), [2, 3]), {}), ((_values(2, 4), [1, 0, 3], 1), {})])
def split_with_sizes(input, split_sizes, dim=0):
    """Views of the given lengths along ``dim``, which must add up to its size."""
    d = wrap_dim(dim, len(input.shape))
    if any(s < 0 for s in split_sizes):
        raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(split_sizes)}")
    if sum(split_sizes) != input.shape[d]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {input.shape[d]} (input tensor's size at dimension {d}), "
                           f"but got split_sizes={list(split_sizes)}")
    return _pieces("SplitWithSizes", input, d, [whole(s) for s in split_sizes])


@composite("unsafe_split_with_sizes", complex=True)
def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """``split_with_sizes`` whose results are no views to autograd: each may be written as long as the others and ``input`` are no longer used."""
    return _apart(split_with_sizes(input, split_sizes, dim))


@composite("split", complex=True)
def split(tensor, split_size_or_sections, dim=0):
    """Views of length ``split_size_or_sections`` along ``dim`` (the last may be shorter), or of the lengths in that list."""
    if isinstance(split_size_or_sections, (list, tuple)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    if not tensor.shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d, step = wrap_dim(dim, len(tensor.shape)), whole(split_size_or_sections)
    size = tensor.shape[d]
    if step < 0 or step == 0 and size:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}" if step < 0 else
                           f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    return _pieces("Split", tensor, d, _lengths(size, step))


def _lengths(size, step):
    """Those of pieces of length ``step``, of which the last may be shorter."""
    return (step,) * (size // step) + ((size % step,) if size % step else ()) if size else (0,)


@composite("unsafe_split", complex=True)
def unsafe_split(tensor, split_size, dim=0):
    """``split`` whose results are no views to autograd: each may be written as long as the others and ``tensor`` are no longer used."""
    return _apart(split(tensor, split_size, dim))


@composite("chunk", complex=True)
def chunk(input, chunks, dim=0):
    """At most ``chunks`` views of equal length along ``dim`` (the last may be shorter)."""
    if whole(chunks) <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not input.shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, len(input.shape))
    size = input.shape[d]
    return _pieces("Split", input, d, _lengths(size, -(-size // chunks))) if size else _pieces("SplitWithSizes", input, d, [0] * chunks)


@composite("unsafe_chunk", complex=True)
def unsafe_chunk(input, chunks, dim=0):
    """``chunk`` whose results are no views to autograd: each may be written as long as the others and ``input`` are no longer used."""
    return _apart(chunk(input, chunks, dim))


@composite("tensor_split", complex=True)
def tensor_split(input, indices_or_sections, dim=0):
    """Views: ``indices_or_sections`` parts of nearly equal length, or cut at the given positions."""
    if not input.shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    if isinstance(indices_or_sections, Tensor) and indices_or_sections.dtype is not dt.int64:
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {type_name(indices_or_sections.dtype)}")
    if isinstance(indices_or_sections, Tensor) and len(indices_or_sections.shape) > 1:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with "
                           f"{len(indices_or_sections.shape)} dims")
    d = wrap_dim(dim, len(input.shape))
    size = input.shape[d]
    cuts = indices_or_sections.tolist() if isinstance(indices_or_sections, Tensor) else indices_or_sections
    if hasattr(cuts, "__index__"):
        cuts = whole(cuts)
        if cuts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
        base, extra = divmod(size, cuts)
        return _pieces("Slice", input, d, [base + (i < extra) for i in range(cuts)])
    marks = [0, *[min(max(c + size if c < 0 else c, 0), size) for c in cuts], size]
    return tuple(input.narrow(d, a, max(0, b - a)) for a, b in itertools.pairwise(marks))


def _named_split(name, axis_of, rank):
    def body(input, indices_or_sections, *more):
        if more:
            indices_or_sections = (indices_or_sections, *more)
        if len(input.shape) < rank:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {len(input.shape)} dimensions!")
        d = axis_of(input)
        if hasattr(indices_or_sections, "__index__") and not isinstance(indices_or_sections, Tensor) \
                and (not indices_or_sections or input.shape[d] % indices_or_sections):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {input.shape[d]} is not divisible "
                               f"by the split_size {indices_or_sections}!")
        return tensor_split(input, indices_or_sections, d)
    body.__doc__ = f"``tensor_split`` as NumPy's {name} does."
    return composite(name, complex=True)(body)


hsplit = _named_split("hsplit", lambda t: 0 if len(t.shape) == 1 else 1, 1)
vsplit = _named_split("vsplit", lambda t: 0, 2)
dsplit = _named_split("dsplit", lambda t: 2, 3)


@composite("unbind", complex=True)
def unbind(input, dim=0):
    """Views without dimension ``dim``, one per position in it."""
    if not input.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, len(input.shape))
    return _pieces("Unbind", input, d, [1] * input.shape[d], stacked=True)


def _whole(shape, d):
    return tuple([(0, 1, s) for s in tuple(shape)[:d]]) if d else ()


@composite("narrow", complex=True, seen=True)
def narrow(input, dim, start, length):
    """The view of ``length`` elements of dimension ``dim`` from ``start`` on."""
    if not input.shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start.shape or start.dtype.is_floating_point or start.dtype is dt.bool_):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    d, start, length = wrap_dim(dim, len(input.shape)), whole(start), whole(length)
    size = tuple(input.shape)[d]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return basic_index(input, (*_whole(input.shape, d), (start, 1, length)), input.shape)


@composite("select", complex=True, seen=True)
def select(input, dim, index):
    """The view at position ``index`` of dimension ``dim``."""
    if not input.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, len(input.shape))
    index, size = whole(index), tuple(input.shape)[d]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {d}")
    return basic_index(input, (*_whole(input.shape, d), take_int(index, size, d)), input.shape)
