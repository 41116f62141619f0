"""Triangles and diagonals of matrices."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite
from .._tensor.device import resolve
from .._tensor.interop import from_array
from .._tensor.tensor import from_node
from ..core import dtype as dt
from ..core.shape import Size, contiguous_strides, whole, wrap_dim
from ..graph.node import Expr, constants
from .arithmetic import lasting
from .creation import shared
from .indexing import _values
from .selection import where
from .views import _diagonal, embed_strided

_BELOW = Expr("below", ("rows", "cols", "diagonal"), "((IDX % cols) - (IDX / cols) % rows <= diagonal)")
_NUMBERS = Expr("numbers", ("first",), "((int)IDX + (int)first)")
_KEPT = 1 << 16         # rows or columns whose numbers the device keeps
_LARGE = 1 << 13        # elements of a matrix from which on comparing row and column numbers pays; the device keeps smaller masks


def _mask(input, diagonal):
    """True up to the diagonal, lazily, broadcastable to ``input``: it fuses into the choice that uses it."""
    (rows, cols), device = input.shape[-2:], input._storage.device
    diagonal = max(-rows, min(cols, whole(diagonal)))
    if rows * cols < _LARGE:
        mask = shared(device, ("below", rows, cols, diagonal), lambda: from_node(
            _BELOW, (rows, cols, diagonal), dt.int64, dt.bool_, Size((rows, cols)), rows * cols, device, 1, 0, True))
        return mask if len(input.shape) == 2 else mask.expand(input.shape)          # of full shape: the result lies in rows
    most = max(rows, cols)
    if most > _KEPT or device.recording is not None:            # memory that is kept would be a part of the recording
        row, column = (from_node(_NUMBERS, (first,), dt.int32, dt.int32, shape, shape.numel(), device, 1, 0, True)
                       for first, shape in ((diagonal, Size((rows, 1))), (0, Size((cols,)))))
        return column <= row
    numbers, zero = _numbers(device, most)
    return numbers[zero:zero + cols] <= numbers[zero + diagonal:zero + diagonal + rows].unsqueeze(1)


def _numbers(device, count):
    """Numbers that follow each other, from at least ``-count`` to twice that, and the place of zero; the device keeps them for the next matrix."""
    kept = constants.get(("numbers", device))
    if kept is None or kept._numel < 3 * count:
        zero = 1 << (count - 1).bit_length()
        kept = constants["numbers", device] = from_node(_NUMBERS, (-zero,), dt.int32, dt.int32, Size((3 * zero,)), 3 * zero, device, 1, 0, True)
        kept._storage.buffer()
    return kept, kept._numel // 3


def _matrix(name, input):
    if len(input.shape) < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@composite("tril", repeat="ready small", complex=True, inplace=True, numpy=np.tril,
           samples=lambda: [((_values(3, 4),), {}), ((_values(2, 3, 3), 1), {}), ((_values(4, 3), -2), {})])
def tril(input, diagonal=0):
    """The lower triangle of matrices (*, M, N), zeros above diagonal number ``diagonal``."""
    _matrix("tril", input)
    return lasting(where(_mask(input, diagonal), input, False).contiguous())


@composite("triu", repeat="ready small", complex=True, inplace=True, numpy=np.triu,
           samples=lambda: [((_values(3, 4),), {}), ((_values(2, 3, 3), 1), {}), ((_values(4, 3), -2), {})])
def triu(input, diagonal=0):
    """The upper triangle of matrices (*, M, N), zeros below diagonal number ``diagonal``."""
    _matrix("triu", input)
    return lasting(where(_mask(input, diagonal - 1), False, input).contiguous())


def _index_row(name, dtype, row, col):
    for what, size in (("row", row), ("column", col)):
        if whole(size) < 0:
            raise RuntimeError(f"{what} must be non-negative, got{size}")
    row = dt.as_dtype(dtype)
    if row not in (dt.int32, dt.int64):
        raise NotImplementedError(f'"{name}" not implemented for \'{dt.SPOKEN[row.name]}\'')
    return row


def places_of_triangle(row, col, offset, upper, kind=np.int64):
    """Row and column numbers, an array (2, count): each row's columns follow each other, so that no mask is made."""
    first = np.arange(offset, row + offset)
    first, end = (first.clip(0, col), col) if upper else (0, (first + 1).clip(0, col))
    counts = np.broadcast_to(end - first, row)
    out = np.empty((2, int(counts.sum())), kind)
    out[0] = np.repeat(np.arange(row, dtype=kind), counts)
    out[1] = np.arange(out.shape[1], dtype=kind)
    out[1] += np.repeat((first - np.cumsum(counts) + counts).astype(kind), counts)
    return out


def _triangle(name, row, col, offset, upper, dtype, device):
    kind, device = _index_row(name, dtype, row, col), resolve(device)
    return shared(device, (name, row, col, offset, kind), lambda: from_array(places_of_triangle(row, col, offset, upper, kind.np), device, kind))


def tril_indices(row, col, offset=0, *, dtype=dt.int64, device=None, layout=None):
    """Row and column numbers (2, count) of the lower triangle of a ``row`` by ``col`` matrix."""
    return _triangle("tril_indices", row, col, offset, False, dtype, device)


def triu_indices(row, col, offset=0, *, dtype=dt.int64, device=None, layout=None):
    """Row and column numbers (2, count) of the upper triangle of a ``row`` by ``col`` matrix."""
    return _triangle("triu_indices", row, col, offset, True, dtype, device)


tril_indices = composite("tril_indices", method=False, samples=lambda: [((3, 4, 1), {})])(tril_indices)
triu_indices = composite("triu_indices", method=False, samples=lambda: [((3, 4, -1), {})])(triu_indices)


@composite("diag_embed", repeat=True, complex=True, samples=lambda: [((_values(2, 3),), {}), ((_values(3), 1), {})])
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the last dimension of ``input`` on diagonal number ``offset`` and zeros elsewhere."""
    rank = len(input.shape) + 1
    a, b = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n, rest = input.shape[-1] + abs(offset), iter(input.shape[:-1])
    shape = tuple(n if d in (a, b) else next(rest) for d in range(rank))
    return embed_strided(input, shape, *_diagonal(shape, contiguous_strides(shape), 0, offset, a, b))


@composite("diag", repeat="ready small", complex=True, numpy=np.diag, samples=lambda: [((_values(3),), {}), ((_values(3, 4), 1), {}), ((_values(3), -2), {})])
def diag(input, diagonal=0):
    """A vector as the diagonal of a matrix of zeros, or the diagonal of a matrix as a vector."""
    if len(input.shape) == 1:
        return diag_embed(input, diagonal)
    if len(input.shape) == 2:
        return input.diagonal(diagonal).clone().contiguous()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {len(input.shape)}D")


@composite("diagflat", repeat="ready small", complex=True, numpy=np.diagflat, samples=lambda: [((_values(2, 2),), {})])
def diagflat(input, offset=0):
    """The flattened tensor as the diagonal of a matrix of zeros."""
    return diag_embed(input.reshape(-1), offset)


@composite("trace", repeat="whole", complex=True, numpy=np.trace, samples=lambda: [((_values(3, 4),), {})])
def trace(input):
    """The sum of the main diagonal of a matrix."""
    if len(input.shape) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(input.shape)}")
    return input.diagonal().sum()
