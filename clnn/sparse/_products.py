"""Products with sparse matrices. Two kernels differentiate into each other: compressed rows times a dense matrix, and elements of a dense product."""
from __future__ import annotations

import functools
import struct

from .._tensor.declare import kernel
from .._tensor.autocast import cast_floats
from .._tensor.dispatch import run
from .._tensor.grad_mode import state
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.shape import Size
from ..ops import creation
from . import _build
from ._build import coalesce
from ._pattern import Pattern, flat_key, fn, unflat
from ._tensor import COO, SparseTensor, make

_ROWS_PER_ITEM = 64          # rows and elements that are worth a work-item


_ITEMS = 16                 # per compute unit


@functools.lru_cache(maxsize=None)
def _code(device):
    return struct.pack("i", device.error_code("sparse matrix product", "an index of the sparse tensor is out of range", IndexError))


def _lanes(dtype, n):
    """Lanes of the vectors that rows of ``n`` elements are read in on CPUs; 1 where they do not fill one."""
    lanes = 8 if dtype.itemsize == 8 else 16
    return lanes if n >= lanes and not dtype.is_complex else 1


@kernel("_sparse_mm", method=False, complex=True, vjp=dict(
    values=lambda g, dense, pattern, side: _sparse_dots(g, dense, pattern) if side == 0 else _sparse_dots(dense, g, pattern),
    dense=lambda g, values, pattern, side: _sparse_mm(values, g, pattern, 1 - side)))
def _sparse_mm(values, dense, pattern, side):
    """The matrix of ``pattern`` (side 1: its transpose) with ``values``, times ``dense``."""
    device, dtype = values._storage.device, values.dtype
    rows, inner, n = pattern.sizes[side], pattern.sizes[1 - side], dense.shape[1]
    if not rows * n or not pattern.nnz or not inner:
        return creation.filled(Size((rows, n)), 0, dtype, device)
    packed = pattern.packed(side)
    out, loop = empty(Size((rows, n)), dtype, device), device.is_cpu
    lanes = _lanes(dtype, n) if loop else 1
    if not (dense._strides[1] == 1 and dense._strides[0] >= dense.shape[1]):
        dense = dense.contiguous()
    items = max(1, min(_ITEMS * device.compute_units, (rows + pattern.nnz) // _ROWS_PER_ITEM))
    if loop:
        geometry = (items,), (1,)
    else:
        wide = min(64, 1 << (n - 1).bit_length(), device.max_work_group)
        geometry = (n, rows), (wide, max(1, min(64, device.max_work_group) // wide))
    run(device, "sparse/rows", dict(T=dtype, TI=packed.start.dtype, PLACED=packed.place is not None, LOOP=loop, W=lanes,
                                    FEW=n if loop and lanes == 1 and n < 16 else 0), *geometry,
        packed.start, packed.other, packed.other if packed.place is None else packed.place, values.contiguous(), dense, out,
        rows, inner, n, dense._strides[0] if inner > 1 else dense.shape[1], pattern.nnz, items, device.error_buffer, _code(device))
    return out


@kernel("_sparse_dots", method=False, complex=True, vjp=dict(
    left=lambda g, right, pattern: _sparse_mm(g, right, pattern, 0), right=lambda g, left, pattern: _sparse_mm(g, left, pattern, 1)))
def _sparse_dots(left, right, pattern):
    """The elements of ``left @ right.T`` at the places of ``pattern``: (nnz)."""
    device, dtype, nnz, n = left._storage.device, left.dtype, pattern.nnz, left.shape[1]
    if not nnz or not n:
        return creation.filled(Size((nnz,)), 0, dtype, device)
    out, loop = empty(Size((nnz,)), dtype, device), device.is_cpu
    lanes, share = 1, 1
    if loop:
        lanes = _lanes(dtype, n)
        chunk = max(_ROWS_PER_ITEM, -(-nnz // (32 * device.compute_units)))
        geometry = (-(-nnz // chunk),), (1,)
    else:
        chunk, share = 1, min(32, 1 << (n - 1).bit_length(), 1 << (device.max_work_group.bit_length() - 1))
        geometry = (share, nnz), (share, 1)
    run(device, "sparse/dots", dict(T=dtype, LOOP=loop, W=lanes, LANES=share), *geometry, pattern.indices.contiguous(), left.contiguous(),
        right.contiguous(), out, nnz, left.shape[0], right.shape[0], n, chunk, device.error_buffer, _code(device))
    return out


_sparse_mm.op.grad_name, _sparse_dots.op.grad_name = "MmBackward0", "SampledAddmmBackward0"


# -- products of matrices -------------------------------------------------------------------------------------------------------------
def _matrix(name, t):
    if t.ndim != 2 or isinstance(t, SparseTensor) and t.dense_dim():
        raise RuntimeError(f"{name}: both operands must be matrices" + (f" of 2 sparse and 0 dense dimensions; got {t.sparse_dim()} and {t.dense_dim()}"
                                                                        if isinstance(t, SparseTensor) else f"; got shape {tuple(t.shape)}"))


def _fitting(name, a, b):
    _matrix(name, a)
    _matrix(name, b)
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"{name}: inner sizes differ; got a.shape={tuple(a.shape)}, b.shape={tuple(b.shape)} (mat1 and mat2 shapes cannot be multiplied: "
                           f"Expected dim 0 size {a.shape[1]}, got {b.shape[0]})")
    _alike(name, a, b)


def _alike(name, a, b):
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name}: expected both operands to have the same dtype, but got: {a.dtype} != {b.dtype}")
    if a.device != b.device:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {a.device} and {b.device}! ({name})")


def mm(input, mat2, reduce="sum"):
    """Product of two matrices of which one or both are sparse. Of two sparse ones it is sparse.

    Args:
        input: (M, K).
        mat2: (K, N).
        reduce: ``"sum"``; or, of a sparse and a dense matrix, ``"mean"``, ``"amax"`` or ``"amin"`` of the products instead.

    Raises:
        RuntimeError: the operands are no matrices, their sizes do not fit, or their dtypes differ.

    Example:
        >>> s = clnn.sparse_coo_tensor([[0, 1], [1, 0]], [2., 3.], (2, 2))
        >>> clnn.sparse.mm(s, clnn.tensor([[1., 2.], [3., 4.]]))
        tensor([[6., 8.],
                [3., 6.]])
    """
    if state.autocast is not None and input.dtype is not mat2.dtype:
        input, mat2 = cast_floats([input, mat2], state.autocast, state.autocast.low)
    _fitting("mm", input, mat2)
    if reduce != "sum":
        return _reduced(input, mat2, reduce)
    if not isinstance(input, SparseTensor):
        if not isinstance(mat2, SparseTensor):
            return fn("mm")(input, mat2)
        return _sparse_mm(mat2.part, input.t(), mat2.pattern, 1).t()
    if isinstance(mat2, SparseTensor):
        return _both_sparse(input, mat2)
    return _sparse_mm(input.part, mat2, input.pattern, 0)


def _reduced(input, mat2, reduce):
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}.")
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor):
        raise RuntimeError(f"mm: reduce={reduce!r} takes a sparse and a dense matrix")
    rows = input.pattern.indices[0]
    if reduce == "mean":
        count = input.part.new_zeros((input.shape[0],)).index_add(0, rows, input.part.detach().new_ones((input._nnz(),)))
        return mm(input, mat2) / count.clamp_min(1).unsqueeze(1)
    each = input.part.unsqueeze(1) * mat2.index_select(0, input.pattern.indices[1])
    return each.new_zeros((input.shape[0], each.shape[1])).index_reduce(0, rows, each, reduce, include_self=False)


def _both_sparse(a, b):
    """Each element (i, k) of ``a`` meets row k of ``b``; what falls on one place is added up."""
    kind, a, b = a.layout, coalesce(a), coalesce(b)
    sizes = (a.shape[0], b.shape[1])
    rows = b.pattern.packed(0)
    (i, k), start = a.pattern.indices, rows.start.to(dt.int64)
    first = start.index_select(0, k)
    count = start.index_select(0, k + 1) - first
    ends = count.cumsum(0)
    from_a = fn("repeat_interleave")(creation.arange(a._nnz(), device=a.device), count)
    if not from_a._numel:
        return _layout(make(Pattern(sizes, from_a.new_zeros((2, 0)), True), a.part[:0] * b.part[:0], COO), kind)
    within = creation.arange(from_a._numel, device=a.device) - (ends - count).index_select(0, from_a)
    from_b = first.index_select(0, from_a) + within
    if rows.place is not None:
        from_b = rows.place.index_select(0, from_b).to(dt.int64)
    values = a.part.index_select(0, from_a) * b.part.index_select(0, from_b)
    j = b.pattern.indices[1].index_select(0, from_b)
    return _layout(coalesce(make(Pattern(sizes, fn("stack")([i.index_select(0, from_a), j])), values, COO)), kind)


def _layout(t, kind):
    from ._build import to_layout
    return to_layout(t, kind)


def matmul(input, other):
    """``input @ other`` where one or both are sparse: matrices and vectors, stacks of matrices as by :func:`bmm`."""
    na, nb = input.ndim, other.ndim
    if na == 2 and nb == 2:
        return mm(input, other)
    if na == 2 and nb == 1 and not isinstance(other, SparseTensor):
        return mm(input, other.unsqueeze(1)).squeeze(1)
    if na == 1 and nb == 2 and not isinstance(input, SparseTensor):
        return mm(input.unsqueeze(0), other).squeeze(0)
    if na == 3 and nb == 3:
        return bmm(input, other)
    if nb == 2 and isinstance(other, SparseTensor) and na > 2:
        return mm(input.flatten(0, -2), other).reshape(*input.shape[:-1], other.shape[1])
    raise NotImplementedError(f"matmul: of sparse tensors, matrices with matrices or vectors, and stacks of as many matrices; got a.shape={tuple(input.shape)}, "
                              f"b.shape={tuple(other.shape)}")


def mv(input, vec):
    """Matrix times vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"mv: expected a matrix and a vector; got shapes {tuple(input.shape)}, {tuple(vec.shape)}")
    return matmul(input, vec)


def bmm(input, mat2):
    """Products of a stack of sparse matrices (B, M, K) and a stack of dense ones (B, K, N): one product by the blocks on a diagonal."""
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor):
        raise NotImplementedError("bmm: a sparse and a dense stack of matrices, in this order")
    if input.sparse_dim() != 3 or mat2.ndim != 3:
        raise RuntimeError(f"bmm: batch1 and batch2 must be 3D tensors; got a.shape={tuple(input.shape)}, b.shape={tuple(mat2.shape)}")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(f"bmm: Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, {input.shape[2]}] "
                           f"but got: [{mat2.shape[0]}, {mat2.shape[1]}].")
    _alike("bmm", input, mat2)
    B, M, K = input.shape
    if input.pattern.blocks is None:
        b, i, k = input.pattern.indices
        input.pattern.blocks = Pattern((B * M, B * K), fn("stack")([b * M + i, b * K + k]), input.pattern.ordered)
    return _sparse_mm(input.part, mat2.reshape(B * K, mat2.shape[2]), input.pattern.blocks, 0).reshape(B, M, mat2.shape[2])


def addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0):
    """``beta * input + alpha * mat1 @ mat2``, where ``mat1`` or ``mat2`` or both are sparse.

    Example:
        >>> clnn.sparse.addmm(clnn.ones(2, 1), clnn.eye(2).to_sparse(), clnn.ones(2, 1), beta=2)
        tensor([[3.],
                [3.]])
    """
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else (input if beta == 1 else input * beta) + product


def addmv(input, mat, vec, *, beta=1, alpha=1):
    """``beta * input + alpha * mat @ vec``."""
    product = mv(mat, vec)
    return (product if alpha == 1 else product * alpha) + (input if beta == 1 else input * beta)


def linear(input, weight, bias=None):
    """``input @ weight.T + bias``, where ``input`` or ``weight`` is sparse."""
    r = matmul(input, weight.t())
    return r if bias is None else r + bias


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """``alpha * (mat1 @ mat2) + beta * input`` at the places of the sparse ``input`` only.

    Args:
        input: (M, N), sparse.
        mat1: (M, K), dense.
        mat2: (K, N), dense.

    Example:
        >>> clnn.sparse.sampled_addmm(clnn.eye(2).to_sparse_csr(), clnn.ones(2, 3), clnn.ones(3, 2)).values()
        tensor([4., 4.])
    """
    _fitting("sampled_addmm", mat1, mat2)
    _matrix("sampled_addmm", input)
    product = _sparse_dots(mat1, mat2.t(), input.pattern)
    product = product if alpha == 1 else product * alpha
    return input.like(product if beta == 0 else product + (input.part if beta == 1 else input.part * beta))


def smm(input, mat):
    """The product of a sparse and a dense matrix as a sparse one.

    Example:
        >>> clnn.smm(clnn.eye(2).to_sparse(), clnn.ones(2, 2)).to_dense()
        tensor([[1., 1.],
                [1., 1.]])
    """
    if not isinstance(input, SparseTensor):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    return sspaddmm(_build.nothing_of((input.shape[0], mat.shape[1]), 2, input.dtype, input._home), input, mat)


def hspmm(mat1, mat2):
    """The product of a sparse and a dense matrix with its rows that have elements as blocks.

    Example:
        >>> clnn.hspmm(clnn.eye(2).to_sparse(), clnn.ones(2, 2)).to_dense()
        tensor([[1., 1.],
                [1., 1.]])
    """
    t = coalesce(mat1)
    rows = fn("unique_consecutive")(t.pattern.indices[0])
    r = mm(t, mat2)
    return make(Pattern((r.shape[0],), rows.unsqueeze(0), True), r.index_select(0, rows), COO)


def sspaddmm(*args, beta=1, alpha=1):
    """``sspaddmm(input, mat1, mat2)``: ``beta * input + alpha * mat1 @ mat2`` with all results sparse: the elements of ``input``, then the rows of the
    product that have any, not coalesced.

    Example:
        >>> a = clnn.eye(2).to_sparse()
        >>> clnn.sspaddmm(a, a, clnn.ones(2, 2)).to_dense()
        tensor([[2., 1.],
                [1., 2.]])
    """
    numbers = [a for a in args if not isinstance(a, Tensor)]                 # the order of before 1.5: beta, input, alpha, mat1, mat2
    beta, alpha = (*numbers, *(beta, alpha)[len(numbers):])
    input, mat1, mat2 = (a for a in args if isinstance(a, Tensor))          # noqa: A001
    for name, t, layout in (("self", input, COO), ("mat1", mat1, COO), ("mat2", mat2, None)):
        if (t.layout if isinstance(t, SparseTensor) else None) is not layout:
            raise RuntimeError(f"sspaddmm: expected '{name}' to have {'sparse' if layout else 'strided'} layout, got '{name}' with layout {t.layout}")
    rows = fn("unique_consecutive")(coalesce(mat1).pattern.indices[0])
    count, width = rows._numel, mat2.shape[1]
    columns = creation.arange(width, device=mat2.device)
    places = fn("stack")([rows.repeat_interleave(width), columns.repeat(count)])
    product = mm(mat1, mat2).index_select(0, rows).reshape(-1)
    part = input.part if beta == 1 else input.part * beta
    both = fn("cat")([part, product if alpha == 1 else product * alpha])
    return make(Pattern(input.pattern.sizes, fn("cat")([input.pattern.indices, places], 1)), both, COO, input.shape)


saddmm = sspaddmm
__all__ = ["Tensor", "flat_key", "unflat"]
