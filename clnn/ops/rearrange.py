"""The same elements in another order or repeated, and copies with one region replaced."""
from __future__ import annotations

import numpy as np

from .._tensor import formats
from .._tensor.declare import composite, kernel
from .._tensor.interop import read
from .._tensor.tensor import Tensor, view_of
from .._tensor.writing import copy
from ..core import dtype as dt
from ..core.layout import contiguous_format
from ..core.shape import missing, whole, wrap_dim, wrap_dims
from ..core.symbols import memo
from .creation import tensor
from .indexing import _index_rows, _values
from .joining import _cat
from .views import _numbers, owned


# -- order of dimensions ----------------------------------------------------------------------------------------------------------------
@composite("movedim", complex=True, seen=True, aliases=("moveaxis",), numpy=np.moveaxis, samples=lambda: [
    ((_values(2, 3, 4), 0, 2), {}), ((_values(2, 3, 4), (0, 1), (-1, 0)), {})])
def movedim(input, source, destination):
    """Dimensions ``source`` (an int or several) at the positions ``destination``; the others keep their order."""
    rank = len(input.shape)
    source, destination = ((s,) if not isinstance(s, (tuple, list)) else tuple(s) for s in (source, destination))
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims as "
                           f"destination ({list(destination)} dims)")
    given = dict(source=source, destination=destination)
    source, destination = [wrap_dim(s, rank) for s in source], [wrap_dim(d, rank) for d in destination]
    for name, dims in (("source", source), ("destination", destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given[name])})")
    order = [d for d in range(rank) if d not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return input.permute(order if rank else ())


# -- mirrored and shifted -----------------------------------------------------------------------------------------------------------------
@memo(4096)
def _mirrored(shape, strides, dims):
    """(the dimensions as numbers from 0 on, strides that walk these backwards, distance of the first element) of a call of ``flip``."""
    dims = wrap_dims(dims, len(shape))
    return dims, tuple([-s if d in dims else s for d, s in enumerate(strides)]), sum([(shape[d] - 1) * strides[d] for d in dims if shape and shape[d]])


@kernel("_flip", complex=True, method=False, vjp=dict(input=lambda g, dims: _flip(g, dims)))
def _flip(input, dims):
    """Read with negative strides, lazily: it fuses into what reads it."""
    _, strides, first = _mirrored(input.shape, input._strides, dims)
    input._storage.buffer()
    mirrored, order = view_of(input, input.shape, strides, input._offset + first, input._numel, False), None if input._dense else formats.preserved(input)
    return copy(mirrored) if order is None else formats.reordered(mirrored, order)


_flip.op.grad_name = "FlipBackward0"


@composite("flip", repeat="ready small", complex=True, numpy=lambda x, *d: np.flip(x, d[0] if len(d) == 1 else d), samples=lambda: [
    ((_values(2, 3), (0,)), {}), ((_values(2, 3, 4), (0, -1)), {})])
def flip(input, *dims):
    """The order of elements reversed along ``dims``.

    Example:
        >>> clnn.arange(3).flip(0)
        tensor([2, 1, 0])
    """
    if not dims:
        raise missing("flip", "dims")
    dims = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    for d in dims:
        if d.__class__ is not int:                              # True would be taken for a 1 that was met
            dims = wrap_dims(dims, len(input.shape))
            break
    return _flip(input, _mirrored(input.shape, input._strides, dims)[0])


@composite("fliplr", repeat="ready small", complex=True, numpy=np.fliplr, samples=lambda: [((_values(2, 3),), {})])
def fliplr(input):
    """Columns in reverse order."""
    if len(input.shape) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@composite("flipud", repeat="ready small", complex=True, numpy=np.flipud, samples=lambda: [((_values(2, 3),), {})])
def flipud(input):
    """Rows in reverse order."""
    if not input.shape:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@composite("rot90", repeat="ready small", complex=True, numpy=lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims), samples=lambda: [
    ((_values(2, 3),), {}), ((_values(2, 3, 2), 3, (1, 2)), {})])
def rot90(input, k=1, dims=(0, 1)):
    """Rotated by ``k`` quarter turns in the plane of two dimensions, from the first towards the second."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if len(input.shape) < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {len(input.shape)}")
    a, b = (wrap_dim(d, len(input.shape)) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k = whole(k) % 4
    if k == 0:
        return input.clone(memory_format=contiguous_format)
    if k == 2:
        return flip(input, a, b)
    return flip(input, b).transpose(a, b) if k == 1 else flip(input, a).transpose(a, b)


@kernel("_roll", complex=True, method=False, repeat=True, vjp=dict(input=lambda g, shifts, dims: _roll(g, tuple([-s for s in shifts]), dims)))
def _roll(input, shifts, dims):
    """Each dimension is two pieces that change places."""
    r = input
    for s, d in zip(shifts, dims) if input._numel else ():
        size = input.shape[d]
        s = s % size
        r = _cat([r.narrow(d, size - s, s), r.narrow(d, 0, size - s)], d, (s, size - s), r.dtype) if s else r.contiguous()
    return r.clone() if r is input else r


_roll.op.grad_name = "RollBackward0"


@composite("roll", repeat="ready small", complex=True, numpy=lambda x, s, d=None: np.roll(x, s, d), samples=lambda: [
    ((_values(2, 3), 1), {}), ((_values(2, 3), (1, -4), (0, 1)), {}), ((_values(5), 7, 0), {})])
def roll(input, shifts, dims=None):
    """Shifted along ``dims``; what leaves at the end comes in at the start. Without ``dims`` the flattened tensor is shifted."""
    shifts = tuple([whole(s) for s in shifts]) if isinstance(shifts, (tuple, list)) else (whole(shifts),)
    dims = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims:
        if len(shifts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
        return roll(input.reshape(-1), shifts, 0).reshape(input.shape)
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not input.shape:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions (roll)")
    return _roll(input, shifts, tuple([wrap_dim(d, len(input.shape)) for d in dims]))


# -- repeated -------------------------------------------------------------------------------------------------------------------------------
@composite("repeat", repeat="ready small", complex=True, method=True, numpy=lambda x, *r: np.tile(x, r))
def repeat(input, *sizes):
    """Copies side by side: ``sizes[i]`` times along dimension i; more sizes than dimensions add leading ones."""
    sizes = _numbers(sizes, "repeat", "repeats")
    if len(sizes) < len(input.shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(s < 0 for s in sizes):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    shape = (1,) * (len(sizes) - len(input.shape)) + tuple(input.shape)
    inner = [n for s in shape for n in (1, s)]
    wide = [n for r, s in zip(sizes, shape) for n in (r, s)]
    r = input.reshape(inner).expand(wide)
    return owned(r.reshape([a * s for a, s in zip(sizes, shape)]).contiguous(), input)


@composite("tile", repeat="ready small", complex=True, numpy=np.tile, samples=lambda: [
    ((_values(2, 3), (2, 1)), {}), ((_values(2, 3), (2,)), {}), ((_values(3), (2, 2)), {})])
def tile(input, *dims):
    """``repeat`` where missing leading numbers are 1."""
    dims = _numbers(dims, "tile", "dims")
    return repeat(input, (1,) * (len(input.shape) - len(dims)) + tuple(dims))


@composite("repeat_interleave", repeat="ready small", complex=True, numpy=lambda x, r, dim=None: np.repeat(x, r, dim), samples=lambda: [
    ((_values(2, 3), 2), {}), ((_values(2, 3), 2), dict(dim=1)), ((_values(3, 2), np.array([1, 0, 2])), dict(dim=0))])
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (or slice of ``dim``) several times in a row; ``repeats`` is a number, or a vector of counts, which is read by the host."""
    if repeats is None:
        if len(input.shape) != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        counts = _counts(input, output_size)
        return tensor(np.repeat(np.arange(counts.size), counts).astype(counts.dtype), device=input.device)
    x = input.reshape(-1) if dim is None else input
    d = wrap_dim(dim or 0, len(x.shape))
    size, counts, told = x.shape[d], None, "allocated size does not match required size"
    if isinstance(repeats, Tensor):
        if len(repeats.shape) > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        _one_each(repeats._numel, size, d)
        counts = _counts(repeats)
        repeats = int(counts.reshape(())) if repeats._numel == 1 else counts
    elif isinstance(repeats, (np.integer, float, bool)) or isinstance(repeats, np.ndarray) and not repeats.ndim:
        repeats = whole(repeats)
    if isinstance(repeats, int):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        if output_size is not None and output_size != size * repeats:
            raise RuntimeError(told if counts is not None else f"repeat_interleave: Invalid output_size, expected {size * repeats} but got {output_size}")
        wide = x.unsqueeze(d + 1).expand((*x.shape[:d + 1], repeats, *x.shape[d + 1:]))
        return owned(wide.contiguous().reshape((*x.shape[:d], size * repeats, *x.shape[d + 1:])), input)
    counts = np.asarray(repeats)
    _one_each(counts.size, size, d)
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != counts.sum():
        raise RuntimeError(told)
    index = tensor(np.repeat(np.arange(counts.size), counts), device=x.device)
    return _index_rows(x, index, x.shape, d, 1, False, "repeat_interleave")


def _one_each(count, size, dim):
    if count not in (1, size):
        raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = {count} and input.size({dim}) = {size}")


def _counts(repeats, output_size=None):
    """The numbers of a tensor that says how often, which the host reads."""
    if repeats.dtype not in (dt.int32, dt.int64):
        raise NotImplementedError(f'"repeat_interleave_cpu" not implemented for \'{dt.SPOKEN[repeats.dtype.name]}\'')
    counts = read(repeats.detach())
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != counts.sum():
        raise RuntimeError("allocated size does not match required size")
    return counts


@composite("narrow_copy", repeat="ready small", complex=True, samples=lambda: [((_values(3, 4), 1, 1, 2), {})])
def narrow_copy(input, dim, start, length):
    """``narrow`` as a copy."""
    return input.narrow(dim, start, length).contiguous().clone()


# -- a copy with one region replaced ----------------------------------------------------------------------------------------------------------
def _replaced(input, src, part):
    r = input.clone()
    target = part(r)
    if target.shape != src.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(target.shape)}")
    target.copy_(src)
    return r


@composite("select_scatter", repeat="ready small", complex=True, samples=lambda: [((_values(3, 4), _values(3), 1, 2), {})])
def select_scatter(input, src, dim, index):
    """``input`` with ``src`` at position ``index`` of dimension ``dim``."""
    return _replaced(input, src, lambda r: r.select(dim, index))


@composite("slice_scatter", repeat="ready small", complex=True, samples=lambda: [((_values(3, 4), _values(3, 2)), dict(dim=1, start=1, step=2))])
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """``input`` with ``src`` in ``start:end:step`` of dimension ``dim``."""
    d = wrap_dim(dim, len(input.shape))
    return _replaced(input, src, lambda r: r[(slice(None),) * d + (slice(start, end, step),)])


@composite("diagonal_scatter", repeat="ready small", complex=True, samples=lambda: [((_values(3, 4), _values(3)), {}), ((_values(3, 4), _values(2), -1), {})])
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """``input`` with ``src`` on a diagonal."""
    return _replaced(input, src, lambda r: r.diagonal(offset, dim1, dim2))


def _np_as_strided_scatter(x, src, size, stride, offset=0):
    out = np.ascontiguousarray(x).copy().ravel()
    np.lib.stride_tricks.as_strided(out[offset:], size, [s * out.itemsize for s in stride])[...] = src
    return out.reshape(x.shape)


# PyTorch 2.13 gives a wrong gradient for the input here (that of the region instead of the rest): compared with finite differences only
@composite("as_strided_scatter", repeat="ready small", complex=True, torch=None, numpy=_np_as_strided_scatter, samples=lambda: [
    ((_values(3, 4), _values(2, 2), (2, 2), (4, 1), 1), {})])
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """``input`` with ``src`` in the region that ``as_strided`` would show."""
    return _replaced(input.contiguous(), src, lambda r: r.as_strided(size, stride, storage_offset))
