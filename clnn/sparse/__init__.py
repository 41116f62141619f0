"""``clnn.sparse``: tensors of which only some elements are stored, by coordinates (COO) or as compressed rows (CSR) or columns (CSC).

A sparse tensor is a *pattern* of places and a dense tensor of values. What is worked out for a pattern - rows and columns in order, for products with it
and with its transpose - is kept and shared by all tensors with these places. Products sum in the order of the elements, so two runs give equal bits.
Gradients have the places of what they belong to.
"""
from __future__ import annotations

import functools as _functools

from .._tensor.tensor import Tensor as _Tensor
from ..ops import creation as _creation
from ._build import check_sparse_tensor_invariants, coalesce as _coalesce
from ._operators import log_softmax, softmax, total as _total
from ._pattern import Pattern as _Pattern, fn as _fn
from ._products import addmm, hspmm, mm, saddmm, sampled_addmm, smm, sspaddmm
from ._tensor import COO as _COO, SparseTensor as _SparseTensor, make as _make
from ._typed import types_of as _types_of

__all__ = ["addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "hspmm", "log_softmax", "mm", "sampled_addmm", "smm", "softmax", "spdiags",
           "spmm", "sspaddmm", "sum"]

spmm = dsmm = mm
globals().update(_types_of(__name__))


def sum(input, dim=None, dtype=None):  # noqa: A001
    """Sum over ``dim`` of the stored elements: sparse, unless no sparse dimension remains.

    Example:
        >>> clnn.sparse.sum(clnn.tensor([[1., 0.], [2., 0.]]).to_sparse(), 0).to_dense()
        tensor([3., 0.])
    """
    return _total(input, dim, dtype=dtype)


def spdiags(diagonals, offsets, shape, layout=None):
    """A matrix of the given diagonals: ``diagonals[i, j]`` lies in column ``j`` of diagonal ``offsets[i]``.

    Args:
        diagonals: (D, L) or (L).
        offsets: int64 (D) or a number; 0 is the main diagonal, 1 the one above it.
        shape: (rows, columns).

    Example:
        >>> clnn.sparse.spdiags(clnn.ones(2, 3), clnn.tensor([0, -1]), (3, 3)).to_dense()
        tensor([[1., 0., 0.],
                [1., 1., 0.],
                [0., 1., 1.]])
    """
    diagonals = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    offsets = offsets.reshape(-1).tolist() if isinstance(offsets, _Tensor) else [offsets]
    if diagonals.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(offsets) != diagonals.shape[0]:
        raise RuntimeError(f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets ({len(offsets)})")
    if len(set(offsets)) != len(offsets):
        raise RuntimeError("Offset tensor contains duplicate values")
    rows, columns = shape
    places, values = [], []
    for k, offset in enumerate(offsets):
        first, past = max(0, offset), min(columns, rows + offset, diagonals.shape[1])
        j = _creation.arange(first, max(first, past), device=diagonals.device)
        places.append(_fn("stack")([j - offset, j]))
        values.append(diagonals[k, first:max(first, past)])
    t = _make(_Pattern((rows, columns), _fn("cat")(places, 1)), _fn("cat")(values), _COO)
    return t if layout is None else t.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck):
    """``gradcheck`` for functions of sparse tensors: differences are taken of the stored elements.

    Example:
        >>> check = clnn.sparse.as_sparse_gradcheck(clnn.autograd.gradcheck)
        >>> x = clnn.eye(2, dtype=clnn.float64).to_sparse().requires_grad_()
        >>> check(lambda t: clnn.sparse.mm(t, clnn.ones(2, 2, dtype=clnn.float64)), x)
        True
    """
    @_functools.wraps(gradcheck)
    def check(func, inputs, **kwargs):
        inputs = (inputs,) if isinstance(inputs, _Tensor) else tuple(inputs)
        kwargs.pop("masked", None)

        def dense(*values):
            got = func(*[t.like(v) if isinstance(t, _SparseTensor) else v for t, v in zip(inputs, values)])
            got = got if isinstance(got, (tuple, list)) else (got,)
            return tuple(_coalesce(r).part if isinstance(r, _SparseTensor) else r for r in got)
        parts = tuple(t.part.detach().requires_grad_(t.requires_grad) if isinstance(t, _SparseTensor) else t for t in inputs)
        return gradcheck(dense, parts, **kwargs)
    return check
