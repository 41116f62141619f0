"""Norms and condition numbers of matrices."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite
from .._tensor.inplace import type_name
from ..core import dtype as dt
from ..core.shape import wrap_dim
from . import _factors
from .linalg import _REAL, square, svdvals
from .norms import convertible, vector_norm
from .selection import where


def _matrix_norm_np(x, ord="fro", dim=(-2, -1), keepdim=False):
    return np.linalg.norm(x, ord, dim, keepdim)


@composite("linalg_matrix_norm", repeat="ready small", complex=True, method=False, torch="linalg.matrix_norm", numpy=_matrix_norm_np, dtypes=_REAL, gradcheck=False,
           samples=lambda: [((np.random.default_rng(0).standard_normal((2, 3, 4)), o), {})
                            for o in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)])
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """Norm of matrices: ``fro``, ``nuc``, 1 and -1 (column sums), ``inf`` and ``-inf`` (row sums), 2 and -2 (singular values)."""
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if len(A.shape) < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if not A.dtype.differentiable:
        raise RuntimeError(f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {type_name(A.dtype)}")
    if dtype is not None:
        convertible(A.dtype, dt.as_dtype(dtype), "linalg.matrix_norm")
        A = A.to(dtype)
    rank = len(A.shape)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    r, c = wrap_dim(dim[0], rank), wrap_dim(dim[1], rank)
    if r == c:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro" or ord in ("nuc", 1, 2, math.inf) and not A.shape[r] * A.shape[c]:          # nothing has the norm 0
        return vector_norm(A, 2, (r, c), keepdim)
    if ord in (1, -1, math.inf, -math.inf):
        summed, other = (r, c) if abs(ord) == 1 else (c, r)
        sums = A.abs().sum(summed, True)
        return sums.amax((r, c), keepdim) if ord > 0 else sums.amin((r, c), keepdim)
    if ord not in ("nuc", 2, -2):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    S = svdvals(A.movedim((r, c), (-2, -1)))
    got = S.sum(-1) if ord == "nuc" else S.amax(-1) if ord == 2 else S.amin(-1)
    if keepdim:
        for d in sorted((r, c)):
            got = got.unsqueeze(d)
    return got


@composite("linalg_norm", repeat="ready small", complex=True, method=False, torch="linalg.norm", dtypes=_REAL, gradcheck=False)
def linalg_norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """:func:`vector_norm` of one dimension or all elements, :func:`matrix_norm` of two."""
    if ord is not None and isinstance(dim, (tuple, list)) and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if ord is None or (dim is not None and not isinstance(dim, (tuple, list))) or (dim is not None and len(dim) == 1):
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if dim is None:
        if len(A.shape) > 2 or not A.shape:
            raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {len(A.shape)}D.")
        return vector_norm(A, ord, None, keepdim, dtype=dtype) if len(A.shape) == 1 and not isinstance(ord, str) else matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype)
    return matrix_norm(A, ord, tuple(dim), keepdim, dtype=dtype)


@composite("linalg_cond", method=False, complex=True, torch="linalg.cond", dtypes=_REAL, gradcheck=False)
def cond(A, p=None):
    """Condition number: ratio of the extreme singular values, or ``norm(A) * norm(inv(A))`` for other norms."""
    if len(A.shape) < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if not A._numel:
        return A.new_zeros(A.shape[:-2], dtype=A.dtype.to_real())
    if p in (None, 2, -2):
        S = svdvals(A)
        return S.amax(-1) / S.amin(-1) if p != -2 else S.amin(-1) / S.amax(-1)
    square(f"linalg.cond(ord={p})", A)
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    inverses, info = _factors.inv_ex(A)
    product = matrix_norm(A, p) * matrix_norm(inverses, p)
    return where((info != 0) | product.isnan(), math.inf, product)                       # also of what holds a NaN, as in PyTorch
