"""Least squares with matrices of full rank on the device, from Q and R without exchanges of columns, or where they are square from L and U."""
from __future__ import annotations

import functools
import math

import numpy as np

from .._tensor.repeat import repeated
from ..core import dtype as dt
from . import _lanes, _small
from .creation import arange, eye
from .joining import cat
from .matmul import matmul

_DTYPES = (dt.float32, dt.float64)
_PROBES = 16
_repeated = functools.partial(repeated, mode="whole")
_FEW = 160              # rows up to which the Frobenius norm is near enough


def least_squares(A, B, lead, rcond):
    """``X`` of smallest norm with ``|A X - B|`` least, or None: sizes that LAPACK is better for, or matrices whose rank it has to tell.

    These are found by a bound of the condition of R: the rank that LAPACK estimates with the largest columns first is not less than such a bound says.
    Without ``B`` the pseudo-inverses, which singular values above ``rcond`` times the largest make.
    """
    count, device = math.prod(lead), A._storage.device
    if A.dtype not in _DTYPES or not A._numel or device.kind == "meta" or math.prod(A.shape[:-2]) not in (1, count):
        return None
    if B is not None and (not B._numel or math.prod(B.shape[:-2]) not in (1, count)):
        return None
    m, n = A.shape[-2:]
    limit = 0.9 / max(float(np.finfo(A.dtype.np).eps) * max(m, n), rcond or 0.0)
    if _lanes.suits_several(A, count):
        return _lanes.checked(*_lanes.least_squares(A, eye(m, dtype=A.dtype, device=device) if B is None else B, lead, limit))
    solve = _by_elimination if m == n and _small.suits(A) else _by_reflections if _small.suits_qr(A) else None
    if solve is None:
        return None
    return _lanes.checked(*solve(*[t if t is None or t.shape[:-2] == lead else t.expand(lead + tuple(t.shape[-2:])) for t in (A, B)], limit))


@_repeated
def _by_elimination(A, B, limit):
    """Of a square matrix the solution is that of an equation."""
    LU, pivots, _ = _small.lu(A, True, True)
    inverse = _small.lu_solve(LU, pivots, None)
    return _and_doubt(inverse if B is None else _small.lu_solve(LU, pivots, B), A, inverse, limit)


@_repeated
def _by_reflections(A, B, limit):
    m, n = A.shape[-2:]
    wide = m < n
    if B is not None and not wide and (2 * B.shape[-1] <= n or n > _FEW):
        R, right = _small.triangle_of(cat([A, B], -1), n)
    else:                                                       # few columns: a product is faster than as many reflections
        Q, R = _small.qr(A.mT if wide else A, "reduced")
        right = B if wide else Q.mT if B is None else matmul(Q.mT, B)
    X = _small.substitute(R, right, ((wide, not wide, False),))
    return _and_doubt(matmul(Q, X) if wide else X, R, _small.substitute(R, None, ((False, True, False),)), limit)


def _and_doubt(X, R, inverse, limit):
    """``X``, and per matrix whether its rank is in doubt."""
    condition = (_size(R) if R.shape[-1] <= _FEW else _bound(R)) * _size(inverse)
    return X, (condition < limit).logical_not() | (X * 0 != 0).any(-1).any(-1)


def _size(t):
    return t.square().sum((-2, -1)).sqrt()


def _bound(R):
    """What the largest singular value of ``R`` does not exceed: from R R^T R times columns of chirps, in which any direction has its share.

    The Frobenius norm exceeds the value by more, the larger a matrix is: 11 times for random ones of 512 rows, this 2 times.
    """
    n = R.shape[-1]
    place = arange(1, n + 1, dtype=R.dtype, device=R._storage.device).unsqueeze(-1)
    X = (place * place * 0.618034 * arange(1, _PROBES + 1, dtype=R.dtype, device=R._storage.device)).cos()
    Y = matmul(R, matmul(R.mT, matmul(R, X)))
    return (Y.square().sum((-2, -1)) * (4 * n / X.square().sum())) ** (1 / 6)
