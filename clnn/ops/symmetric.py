"""Indefinite symmetric matrices: L D L^T factors (Bunch and Kaufman, 1977), equations with them, and a few extreme eigenvalues (Knyazev, 2001)."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite
from .._tensor.return_types import named
from ..core import dtype as dt
from ._factors import on_host, raise_where
from .joining import cat, stack
from .linalg import _REAL, cholesky, eigh, qr, solve_triangular, square_matrices
from .matmul import matmul
from .random import randn

_SINGULAR = "The factorization has been completed, but the block diagonal matrix D is exactly singular (D[%d,%d] is zero)"
_INDEFINITE = np.array([[1.0, 2, 0.5], [2, -1, 3], [0.5, 3, 0.2]])


@composite("linalg_ldl_factor_ex", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=lambda: [((_INDEFINITE,), {}), ((np.eye(3),), {})])
def ldl_factor_ex(A, *, hermitian=False, check_errors=False):
    """:func:`ldl_factor` and a status per matrix: 0, or the number of a zero on the diagonal of D."""
    square_matrices("torch.linalg.ldl_factor_ex", A)
    lead = tuple(A.shape[:-2])
    LD, pivots, info = on_host("ldl", (A,), [(A.shape, A.dtype), (A.shape[:-1], dt.int32), (lead, dt.int32)], hermitian)
    if check_errors:
        raise_where("torch.linalg.ldl_factor_ex", info, _SINGULAR, RuntimeError)
    return named("linalg_ldl_factor_ex", "LD", "pivots", "info")(LD, pivots, info)


@composite("linalg_ldl_factor", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=lambda: [((_INDEFINITE,), {})])
def ldl_factor(A, *, hermitian=False):
    """``A = P L D L^T P^T`` of a symmetric matrix (``hermitian``: ``L^H``), of which the lower triangle is read: L and the blocks of D packed into one matrix,
    and the row exchanges, as LAPACK has them. On the host.

    Example:
        >>> LD, pivots = clnn.linalg.ldl_factor(clnn.tensor([[0., 1.], [1., 0.]]))
        >>> clnn.linalg.ldl_solve(LD, pivots, clnn.tensor([[2.], [3.]])).flatten()
        tensor([3., 2.])
    """
    LD, pivots, info = ldl_factor_ex(A, hermitian=hermitian)
    raise_where("torch.linalg.ldl_factor", info, _SINGULAR, RuntimeError)
    return named("linalg_ldl_factor", "LD", "pivots")(LD, pivots)


@composite("linalg_ldl_solve", method=False, complex=True, dtypes=_REAL, gradcheck=False,
           samples=lambda: [((np.eye(3) * 2, np.array([1, 2, 3], np.int32), np.arange(6.0).reshape(3, 2)), {})])
def ldl_solve(LD, pivots, B, *, hermitian=False):
    """``X`` with ``A X = B``, from :func:`ldl_factor`. On the host."""
    square_matrices("torch.linalg.ldl_solve", LD)
    if len(B.shape) < 2 or B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions and {LD.shape[-1]} rows, but got shape {list(B.shape)}")
    lead = np.broadcast_shapes(tuple(LD.shape[:-2]), tuple(B.shape[:-2]))
    return on_host("ldl_solve", (LD, pivots, B), [(lead + tuple(B.shape[-2:]), B.dtype)], hermitian)[0]


# -- a few eigenvalues ----------------------------------------------------------------------------------------------------------------------
def _orthonormal(S, B):
    """The columns of ``S`` combined so that ``S^T B S = I``."""
    S = qr(S)[0]
    if B is None:
        return S
    return solve_triangular(cholesky(matmul(S.mT, matmul(B, S))), S.mT, upper=False).mT


@composite("lobpcg", method=False, dtypes=_REAL, gradcheck=False)
def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None, ortho_iparams=None,
           ortho_fparams=None, ortho_bparams=None):
    """The ``k`` largest (or smallest) eigenvalues of a symmetric ``A``, or of ``A x = e B x``, and their vectors as columns, by the locally optimal block
    preconditioned conjugate gradient method: ``(E, X)``.

    Args:
        A: (*, m, m), dense or sparse. B: positive definite, of that size. X: (*, m, n), first approximations (drawn at random).
        k: number of eigenvalues (1, or columns of ``X``); m >= 3 k.
        iK: an approximate inverse of ``A``.
        niter: most iterations (1000 here where none is given or it is negative). tol: bound of a residual, relative to ``|A| + |e| |B|``.
    """
    m, largest = A.shape[-1], largest is None or largest
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested eigenpairs (={n})")
    if len(A.shape) > 2:
        flat = [t if t is None else t.reshape(-1, *t.shape[-2:]) for t in (A, B, X, iK)]
        pairs = [lobpcg(*[None if t is None else t[i] for t in flat[:1]], k, *[None if t is None else t[i] for t in flat[1:3]], n,
                        None if iK is None else flat[3][i], niter, tol, largest) for i in range(flat[0].shape[0])]
        return tuple(stack(part).reshape((*A.shape[:-2], *part[0].shape)) for part in zip(*pairs))
    tol = (1.2e-7 if A.dtype is dt.float32 else 2.2e-16) ** 0.5 if tol is None else tol
    X = randn(m, n, dtype=A.dtype, device=A.device) if X is None else X
    X, P, sign = _orthonormal(X, B), None, -1.0 if largest else 1.0
    for _ in range(1000 if niter is None or niter < 0 else niter):
        E, Y = eigh(matmul(X.mT, matmul(A, X)) * sign)
        X, AX = matmul(X, Y), None
        AX, BX = matmul(A, X), X if B is None else matmul(B, X)
        R = AX - BX * (E * sign)
        if float((R.norm(dim=0) / (AX.norm(dim=0) + BX.norm(dim=0) * E.abs()).clamp(min=1e-30)).max()) < tol:
            break
        W = R if iK is None else matmul(iK, R)
        S = _orthonormal(cat([X, W] if P is None else [X, W, P], -1), B)
        _, Y = eigh(matmul(S.mT, matmul(A, S)) * sign)
        new = matmul(S, Y[:, :n])
        P, X = new - matmul(X, matmul(BX.mT, new)), new
    E, Y = eigh(matmul(X.mT, matmul(A, X)) * sign)
    return E[:k] * sign, matmul(X, Y)[:, :k]
