"""Inverses, solutions and factorisations of matrices.

LU and Cholesky factors (on GPUs of small matrices) and QR on CPUs have kernels (``_small.py``), as have values without vectors, QR and least squares of many
small matrices (``_lanes.py``); all others run on the host with LAPACK (``_lapack.py``) and wait for the device.
Gradients are made of matrix products on the device. float32 and float64, and complex numbers of these. All take batches of matrices in leading dimensions.
"""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.grad_mode import is_grad_enabled
from .._tensor.inplace import type_name
from .._tensor.return_types import named
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.shape import Size, flag
from . import _factors, _groups, _lanes, _small
from ._factors import ILL_DEFINED, INDEFINITE, inverse, raise_where, refuse_phase
from ._factors import on_host as _on_host
from ._factors import solution as _solve
from ._least_squares import least_squares
from .complexes import real
from .creation import filled
from .joining import cat
from .matmul import matmul
from .selection import where

_REAL = (dt.float32, dt.float64)
_TOLERANCE = {dt.float32: 1e-3}


def matrices(name, A):
    """Checks what every function of matrices requires."""
    if len(A.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_name(A.dtype)}")
    if A.dtype.itemsize == 2:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_name(A.dtype)}")


def square(name, A):
    """Checks for square matrices, of any dtype."""
    if len(A.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")


def square_matrices(name, A):
    """Checks what functions of square matrices require."""
    matrices(name, A)
    square(name, A)


def _square_samples(*more):
    def make():
        r = np.random.default_rng(0)
        return [((r.standard_normal(s) + 3 * np.eye(s[-1]), *more), {}) for s in ((3, 3), (2, 4, 4), (1, 1))]
    return make


def _square_errors(name):
    return [((np.ones((2, 3)),), {}, RuntimeError, f"{name}: A must be batches of square matrices, but they are 2 by 3 matrices"),
            ((np.ones(3),), {}, RuntimeError, f"{name}: The input tensor A must have at least 2 dimensions.")]


# -- inverse, determinant, solve ------------------------------------------------------------------------------------------------------
@composite("inverse", complex=True, numpy=np.linalg.inv, samples=_square_samples(), dtypes=_REAL, tolerance=_TOLERANCE,
           errors=[*_square_errors("linalg.inv"), ((np.zeros((2, 2)),), {}, RuntimeError, "singular")])
def inv(A):
    """Inverse of square matrices. LinAlgError when one is singular."""
    square_matrices("linalg.inv", A)
    return inverse(A)


@composite("det", complex=True, numpy=np.linalg.det, samples=_square_samples(), errors=_square_errors("linalg.det"), dtypes=_REAL,
           tolerance=_TOLERANCE)
def det(A):
    """Determinant of square matrices."""
    square_matrices("linalg.det", A)
    return _factors.det(A)


_Slogdet = named("linalg_slogdet", "sign", "logabsdet")


@composite("linalg_slogdet", method=False, complex=True, torch="linalg.slogdet", numpy=lambda a: tuple(np.linalg.slogdet(a)), samples=_square_samples(),
           dtypes=_REAL, errors=_square_errors("linalg.slogdet"), tolerance=_TOLERANCE)
def slogdet(A):
    """Sign and logarithm of the absolute value of the determinant."""
    square_matrices("linalg.slogdet", A)
    return _Slogdet(*_factors.slogdet(A))


@composite("slogdet", complex=True, dtypes=_REAL, samples=_square_samples())
def legacy_slogdet(A):
    """Sign and logarithm of the absolute value of the determinant; see :func:`clnn.linalg.slogdet`."""
    return named("slogdet", "sign", "logabsdet")(*slogdet(A))


@composite("logdet", complex=True, dtypes=_REAL)
def logdet(A):
    """Logarithm of the determinant (NaN where it is a negative real number)."""
    sign, log = slogdet(A)
    return log + (sign if sign.dtype.is_complex else sign.detach()).log()


def _compatible(name, A, B, left):
    """Checks that ``B`` has as many rows (columns, when not ``left``) as the square ``A``."""
    if len(B.shape) < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})")


@composite("linalg_solve", method=False, complex=True, numpy=np.linalg.solve, torch="linalg.solve", dtypes=_REAL, tolerance=_TOLERANCE,
           samples=lambda: [((np.eye(3) * 3 + np.ones((3, 3)), np.arange(6.0).reshape(3, 2)), {})])
def solve(A, B, *, left=True):
    """``X`` with ``A X = B`` (``X A = B`` when not ``left``); ``B`` holds columns, or one vector per matrix."""
    square_matrices("linalg.solve", A)
    vector = len(B.shape) == 1 or B.shape == A.shape[:-1]
    if A.dtype is not B.dtype:
        raise RuntimeError(f"linalg.solve: Expected A and B to have the same dtype, but found A of type {type_name(A.dtype)} and B of type "
                           f"{type_name(B.dtype)} instead")
    _compatible("linalg.solve", A, B.unsqueeze(-1) if vector else B, left)
    if vector:
        return _solve(A, B.unsqueeze(-1)).squeeze(-1)
    return _solve(A, B) if left else _solve(A.mT, B.mT).mT


@composite("linalg_solve_triangular", method=False, complex=True)
def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """``X`` with ``A X = B`` for triangular ``A``; only that triangle is read."""
    square("linalg.solve_triangular", A)
    _compatible("linalg.solve_triangular", A, B, left)
    if not left:
        return _factors.solve_triangular(A.mT, B.mT, not upper, unitriangular).mT
    return _factors.solve_triangular(A, B, upper, unitriangular)


# -- factorisations ---------------------------------------------------------------------------------------------------------------------
def _positive_samples():
    r = np.random.default_rng(0).standard_normal((2, 3, 3))
    return [((r @ r.swapaxes(-1, -2) + np.eye(3),), {})]


@composite("linalg_cholesky", method=False, torch="linalg.cholesky", complex=True, numpy=lambda a: np.linalg.cholesky(a), samples=_positive_samples,
           dtypes=_REAL, gradcheck=False, tolerance=_TOLERANCE, errors=[*_square_errors("linalg.cholesky"), ((-np.eye(2),), {}, RuntimeError, "not positive-definite")])
def cholesky(A, *, upper=False):
    """Lower triangular ``L`` with ``A = L L^H`` (or ``L^H`` when ``upper``) of positive-definite matrices."""
    square_matrices("linalg.cholesky", A)
    L, info = _factors.cholesky_ex(A.mH if upper else A, bool(upper))         # one triangle is read
    raise_where("linalg.cholesky", info, INDEFINITE)
    return L.mH if upper else L


@composite("cholesky", complex=True, dtypes=_REAL, gradcheck=False, samples=_positive_samples)
def legacy_cholesky(input, upper=False):
    """:func:`clnn.linalg.cholesky`: lower triangular ``L`` with ``A = L L^H``, or ``L^H``."""
    return cholesky(input, upper=upper)


def _cholesky_solve_np(input, input2, upper=False):
    L = np.triu(input2).mT.conj() if upper else np.tril(input2)
    return np.linalg.solve(L @ L.mT.conj(), input)


# The gradient is that of all of L, of which one triangle is read, as in PyTorch (``test_linear_algebra`` compares): it is not what differences show.
@composite("cholesky_solve", complex=True, numpy=_cholesky_solve_np, torch=None, gradcheck=False,
           samples=lambda: [((np.arange(6.0).reshape(3, 2), np.eye(3) * 2 + np.ones((3, 3)) * 0.1), {"upper": u}) for u in (False, True)])
def cholesky_solve(input, input2, upper=False):
    """``X`` with ``A X = input``, given the Cholesky factor ``input2`` of ``A``."""
    B, L = input, input2
    if len(B.shape) < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {len(B.shape)} dimensions instead")
    if len(L.shape) < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {len(L.shape)} dimensions instead")
    square("cholesky_solve", L)
    if B.shape[-2] != L.shape[-1]:
        raise RuntimeError(f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-1]} by {L.shape[-1]} but each b matrix is "
                           f"{B.shape[-2]} by {B.shape[-1]}")
    if B.dtype is not L.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {type_name(B.dtype)} and A of type {type_name(L.dtype)} instead.")
    return _factors.cholesky_solve(B, L, upper)


_QR = named("linalg_qr", "Q", "R")


def _qr_grad(g, Q, R, A_shape, mode):
    gq, gr = g
    m, n = A_shape[-2:]
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are "
                           "going to differentiate through linalg.qr.")
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if m < n:                                                    # the first columns have a factorisation of their own; the others are Q^H times theirs
        return _wide_qr_grad(gq, gr, Q, R)
    middle = 0
    if gr is not None:
        middle = matmul(R, gr.mH)
    if gq is not None:
        middle = middle - matmul(gq.mH, Q)
    lower = middle.tril(-1)
    gram = lower + lower.mH + real(middle.diagonal(0, -2, -1)).diag_embed()
    total = matmul(Q, gram) if gq is None else gq + matmul(Q, gram)
    return _solve(R, total.mH).mH


def _wide_qr_grad(gq, gr, Q, R):
    k = Q.shape[-1]
    rest = 0
    if gr is not None:                                           # R2 = Q^H A2, so A2 = Q R2
        later = gr.narrow(-1, k, R.shape[-1] - k)
        part = matmul(Q, matmul(R.narrow(-1, k, R.shape[-1] - k), later.mH))
        gq = part if gq is None else gq + part
        rest = matmul(Q, later)
    first = _qr_grad((gq, None if gr is None else gr.narrow(-1, 0, k)), Q, R.narrow(-1, 0, k), Q.shape, "reduced")
    return cat([first, rest if gr is not None else R.new_zeros((*Q.shape[:-1], R.shape[-1] - k))], -1)


@kernel("_qr", method=False, complex=True, outputs=("Q", "R"), vjp=dict(A=_qr_grad))
def _qr(A, mode):
    m, n = A.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    lead = tuple(A.shape[:-2])
    if _small.suits_qr(A):
        return _small.qr(A, mode)
    if _lanes.suits(A, m * max(n, k)):
        return _lanes.qr(A, mode)
    if _groups.suits(A, 0 if mode == "r" else k):
        return _groups.qr(A, mode)
    if mode == "r":
        return empty((0,), A.dtype, A._storage.device), _on_host("qr", (A,), [(lead + (k, n), A.dtype)], mode)[0]
    return _on_host("qr", (A,), [(lead + (m, k), A.dtype), (lead + (k, n), A.dtype)], mode)


_qr.op.grad_name = "LinalgQrBackward0"


@composite("linalg_qr", method=False, complex=True, dtypes=_REAL, torch="linalg.qr", gradcheck=False, samples=_square_samples())
def qr(A, mode="reduced"):
    """Orthogonal ``Q`` and upper triangular ``R`` with ``A = Q R``; mode ``reduced``, ``complete`` or ``r``.

    Gradients need mode ``reduced``, or ``complete`` and matrices that are not higher than wide.
    """
    matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    return _QR(*_qr(A, mode))


@composite("qr", complex=True, dtypes=_REAL, gradcheck=False)
def legacy_qr(input, some=True):
    """``(Q, R)`` of :func:`clnn.linalg.qr`: the reduced matrices, or with ``some=False`` the complete ones."""
    return named("qr", "Q", "R")(*qr(input, "reduced" if some else "complete"))


_SVD, _Eigh = named("linalg_svd", "U", "S", "Vh"), named("linalg_eigh", "eigenvalues", "eigenvectors")


def _svd_grad(g, U, S, Vh):
    """Giles, "An extended collection of matrix derivative results" (2008); singular values must differ."""
    gu, gs, gvh = g
    k = S.shape[-1]
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)              # of the full matrices, what singular values belong to
    gu, gvh = None if gu is None else gu.narrow(-1, 0, k), None if gvh is None else gvh.narrow(-2, 0, k)
    s, V = S.unsqueeze(-2), Vh.mH
    gaps = s * s - (s * s).mT
    gaps = where(gaps == 0, math.inf, gaps)
    middle = gs.diag_embed() if gs is not None else None
    both = [matmul(a, b) for a, b in ((U.mH, gu), (Vh, None if gvh is None else gvh.mH)) if b is not None]
    if both and U.dtype.is_complex:
        turns = [part.diagonal(0, -2, -1) for part in both]
        refuse_phase(turns[0] + turns[-1] if len(turns) > 1 else turns[0], "svd_backward", "singular vectors", "phase term, making it ill-defined.")
    if gu is not None:
        skew = both[0] - both[0].mH
        part = skew / gaps * s
        if skew.dtype.is_complex:                                # the vectors' common turn, which cancels for losses that do not depend on it
            part = part + (skew.diagonal(0, -2, -1) / (2 * S)).diag_embed()
        middle = part if middle is None else middle + part
    if gvh is not None:
        part = s.mT * ((both[-1] - both[-1].mH) / gaps)
        middle = part if middle is None else middle + part
    total = matmul(matmul(U, middle.to(U.dtype)), Vh)
    if gu is not None and U.shape[-2] > k:
        rest = gu / s
        total = total + matmul(rest - matmul(U, matmul(U.mH, rest)), Vh)
    if gvh is not None and Vh.shape[-1] > k:
        rest = gvh.mH / s
        total = total + matmul(U, (rest - matmul(V, matmul(Vh, rest))).mH)
    return total


@kernel("_svd", method=False, complex=True, outputs=("U", "S", "Vh"), vjp=dict(A=_svd_grad))
def _svd(A, full_matrices):
    m, n = A.shape[-2:]
    k, lead = min(m, n), tuple(A.shape[:-2])
    return _on_host("svd", (A,), [(lead + (m, m if full_matrices else k), A.dtype), (lead + (k,), A.dtype.to_real()),
                                  (lead + (n if full_matrices else k, n), A.dtype)], full_matrices)


@kernel("_svdvals", method=False, complex=True, vjp=dict(A=lambda g, A: _from_values(g, *_svd(A, False)[::2])))
def _svdvals(A):
    found = _lanes.singular_values(A) if _lanes.suits_several(A, math.prod(A.shape[:-2])) else _groups.singular_values(A) if _groups.suits_either(A) else None
    if found is not None:
        return found
    return _on_host("svdvals", (A,), [((*A.shape[:-2], min(A.shape[-2:])), A.dtype.to_real())])[0]


def _from_values(g, left, right):
    return matmul(left * g.unsqueeze(-2), right)


def _tracked(A):
    """Whether ``A`` comes with more than its values, as for gradients: vectors are found with the values then."""
    return type(A) is not Tensor or A.requires_grad and is_grad_enabled()


_svd.op.grad_name = _svdvals.op.grad_name = "LinalgSvdBackward0"


def _no_driver(A, driver):
    if driver is not None and A._storage.device.kind == "cpu":
        raise RuntimeError("linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


@composite("linalg_svd", method=False, complex=True, dtypes=_REAL, torch="linalg.svd", gradcheck=False)
def svd(A, full_matrices=True, *, driver=None):
    """``A = U diag(S) Vh`` with singular values in descending order. Vectors without a singular value pass no gradient on."""
    matrices("linalg.svd", A)
    _no_driver(A, driver)
    return _SVD(*_svd(A, flag("linalg_svd", "full_matrices", full_matrices)))


@composite("linalg_svdvals", method=False, complex=True, dtypes=_REAL, torch="linalg.svdvals", gradcheck=False, numpy=lambda a: np.linalg.svd(a, compute_uv=False),
           samples=lambda: [((np.random.default_rng(0).standard_normal((2, 3, 4)),), {})])
def svdvals(A, *, driver=None):
    """Singular values in descending order."""
    matrices("linalg.svdvals", A)
    _no_driver(A, driver)
    return _svd(A, False)[1] if _tracked(A) else _svdvals(A)


@composite("svd", complex=True, dtypes=_REAL, gradcheck=False)
def legacy_svd(input, some=True, compute_uv=True):
    """``(U, S, V)`` with ``A = U diag(S) V^H``; see :func:`clnn.linalg.svd`."""
    if not compute_uv:
        S, (m, n) = svdvals(input), input.shape[-2:]
        U, V = (filled(Size((*input.shape[:-2], k, k)), 0, input.dtype, input._storage.device) for k in (m, n))
        return named("svd", "U", "S", "V")(U, S, V)
    U, S, Vh = svd(input, not some)
    return named("svd", "U", "S", "V")(U, S, Vh.mH.contiguous())


def _eigh_grad(g, L, V):
    gl, gv = g
    middle = gl.diag_embed() if gl is not None else None
    if gv is not None:
        gaps = L.unsqueeze(-2) - L.unsqueeze(-1)
        part = matmul(V.mH, gv)
        refuse_phase(part.diagonal(0, -2, -1), "linalg_eigh_backward", "eigenvectors", ILL_DEFINED)
        part = part / where(gaps == 0, math.inf, gaps)
        middle = part if middle is None else middle + part
    got = matmul(matmul(V, middle.to(V.dtype)), V.mH)
    return 0.5 * (got + got.mH)


@kernel("_eigh", method=False, complex=True, outputs=("L", "V"), vjp=dict(A=_eigh_grad))
def _eigh(A, uplo):
    return _on_host("eigh", (A,), [(A.shape[:-1], A.dtype.to_real()), (A.shape, A.dtype)], uplo)


@kernel("_eigvalsh", method=False, complex=True, vjp=dict(A=lambda g, A, uplo: _from_values(g, *(lambda V: (V, V.mH))(_eigh(A, uplo)[1]))))
def _eigvalsh(A, uplo):
    found = _lanes.eigenvalues(A, uplo) if _lanes.suits(A) else _groups.eigenvalues(A, uplo) if _groups.suits(A) else None
    if found is not None:
        return found
    return _on_host("eigvalsh", (A,), [(A.shape[:-1], A.dtype.to_real())], uplo)[0]


_eigh.op.grad_name = _eigvalsh.op.grad_name = "LinalgEighBackward0"


def _triangle(uplo):
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")


@composite("linalg_eigh", method=False, complex=True, dtypes=_REAL, torch="linalg.eigh", gradcheck=False)
def eigh(A, UPLO="L"):
    """Eigenvalues in ascending order and eigenvectors (columns) of Hermitian (symmetric) matrices; one triangle is read."""
    square_matrices("linalg.eigh", A)
    _triangle(UPLO)
    return _Eigh(*_eigh(A, UPLO))


@composite("linalg_eigvalsh", method=False, complex=True, dtypes=_REAL, torch="linalg.eigvalsh", gradcheck=False)
def eigvalsh(A, UPLO="L"):
    """Eigenvalues of symmetric matrices in ascending order."""
    square_matrices("linalg.eigvalsh", A)
    _triangle(UPLO)
    return _eigh(A, UPLO)[0] if _tracked(A) else _eigvalsh(A, UPLO)


def _pinv_grad(g, A, result):
    """Golub & Pereyra, "The differentiation of pseudo-inverses" (1973), for changes that keep the rank."""
    P, PH, gH = result, result.mH, g.mH
    left = matmul(gH - matmul(A, matmul(P, gH)), matmul(P, PH))
    right = matmul(matmul(PH, P), gH - matmul(matmul(gH, P), A))
    return left + right - matmul(matmul(PH, g), PH)


@kernel("_pinv", method=False, complex=True, holomorphic=False, vjp=dict(A=_pinv_grad))
def _pinv(A, atol, rtol, hermitian):
    if not hermitian and atol is None and not isinstance(rtol, Tensor):
        X = least_squares(A, None, tuple(A.shape[:-2]), rtol)
        if X is not None:
            return X.contiguous()
    U, S, Vh = _symmetric_svd(A) if hermitian else svd(A, False)
    keep = S > _cut(A, S, atol, rtol)
    return matmul(Vh.mH * where(keep, 1.0 / where(keep, S, 1.0), 0.0).unsqueeze(-2), U.mH)


_pinv.op.grad_name = "LinalgPinvBackward0"


@composite("pinverse", complex=True, dtypes=_REAL, gradcheck=False, numpy=np.linalg.pinv,
           samples=lambda: [((np.random.default_rng(0).standard_normal(s),), {}) for s in ((3, 4), (4, 3), (2, 3, 3))])
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """Moore-Penrose inverse, from the singular values above ``max(atol, rtol * largest)``.

    ``rtol`` (also ``rcond``) is eps * larger size unless it or ``atol`` is given.
    """
    matrices("linalg.pinv", A)
    _real_limits("pinv", atol, rcond if rtol is None else rtol)
    return _pinv(A, atol, rcond if rtol is None else rtol, hermitian)


def _real_limits(name, atol, rtol):
    for what, limit in (("atol", atol), ("rtol", rtol)):
        if isinstance(limit, Tensor) and limit.dtype.is_complex:
            raise RuntimeError(f"torch.linalg.{name}: {what} tensor of complex type is not supported. Got {type_name(limit.dtype)}")


def _symmetric_svd(A):
    """Singular values and vectors of symmetric matrices, of which the lower triangle is read."""
    values, V = eigh(A)
    return V, values.abs(), (V * where(values < 0, -1.0, 1.0).unsqueeze(-2)).mH


def _cut(A, S, atol, rtol):
    """The value that singular values ``S`` of ``A`` must exceed to count, one per matrix."""
    atol, rtol = (t.unsqueeze(-1) if isinstance(t, Tensor) and t.shape else t for t in (atol, rtol))
    if rtol is None:
        rtol = 0.0 if atol is not None else float(np.finfo(A.dtype.np).eps) * max(A.shape[-2:])
    cut = S.amax(-1, True) * rtol if S.shape[-1] else S.sum(-1, True)
    return cut if atol is None else cut.maximum(atol if isinstance(atol, Tensor) else S.new_full((), atol))


def _no_more_dims(A, B):
    if not 0 <= len(A.shape) - len(B.shape) <= 1:
        raise RuntimeError("torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")


def _lstsq_grad(g, A, B, rcond, needs):
    P = pinv(A, rcond)
    return _pinv_grad(matmul(g[0], B.mH), A, P) if needs[0] else None, matmul(P.mH, g[0])


@kernel("_lstsq", method=False, complex=True, holomorphic=False, outputs=("solution", "rank", "values"), vjp={"A, B": _lstsq_grad})
def _lstsq(A, B, rcond, driver):
    lead, (m, n) = tuple(np.broadcast_shapes(A.shape[:-2], B.shape[:-2])), A.shape[-2:]
    X = least_squares(A, B, lead, rcond) if driver in ("gelsy", "gels") else None
    if X is not None:
        shape, device = Size(A.shape[:-2]), A._storage.device
        return X, filled(shape, min(m, n), dt.int64, device), filled(Size((*shape, min(m, n))), 0, A.dtype, device)
    return _on_host("lstsq", (A, B), [(lead + (n, B.shape[-1]), A.dtype), (A.shape[:-2], dt.int64), ((*A.shape[:-2], min(m, n)), A.dtype.to_real())],
                    rcond, driver)


_lstsq.op.grad_name = "LinalgLstsqBackward0"


@composite("linalg_lstsq", method=False, complex=True, dtypes=_REAL, torch="linalg.lstsq", gradcheck=False)
def lstsq(input, b, rcond=None, *, driver=None):
    """Least-squares solution of ``input X = b``, of smallest norm where there are several.

    Args:
        input: shape (*, M, N).
        b: shape (*, M, K), or (*, M).
        driver: ``gelsy`` (default), ``gelsd``, ``gelss``, ``gels``: which of ``residuals`` (sums of squares, when M > N and the rank is N), ``rank`` and
            ``singular_values`` are filled in, as in LAPACK's routines of these names. All of them compute the same solution.
    """
    A, B = input, b
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver}")
    if len(A.shape) < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if A.dtype is not B.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{type_name(A.dtype)} and other's dtype {type_name(B.dtype)}")
    vector = len(B.shape) == 1 or len(B.shape) == len(A.shape) - 1 and B.shape == A.shape[:-1]
    right = B.unsqueeze(-1) if vector else B
    if A.dtype.itemsize == 2 or not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError("This function doesn't handle types other than float and double")
    _no_more_dims(A, B)
    if A.shape[-2] != right.shape[-2]:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-" + ("1)" if vector else "2)"))
    X, rank, S = _lstsq(A, right, None if rcond is None else float(rcond), driver or "gelsy")
    S = S.detach()
    residuals = values = empty((0,), A.dtype.to_real(), A._storage.device)
    if driver not in (None, "gelsy") and A.shape[-2] > A.shape[-1] and bool((rank == A.shape[-1]).all()):
        residuals = (matmul(A, X) - right).abs().square().sum(-2)
    if driver == "gels":
        rank = empty((0,), dt.int64, A._storage.device)
    values = S if driver in ("gelsd", "gelss") else values
    return named("linalg_lstsq", "solution", "residuals", "rank", "singular_values")(X.squeeze(-1) if vector else X, residuals, rank, values)


@composite("linalg_matrix_rank", method=False, complex=True, dtypes=_REAL, torch="linalg.matrix_rank", gradcheck=False)
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """Number of singular values above ``max(atol, rtol * largest)``; ``tol`` is another name of ``atol``.

    ``rtol`` is eps * larger size unless it or ``atol`` is given.
    """
    _real_limits("matrix_rank", atol if tol is None else tol, rtol)
    if len(A.shape) < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    S = eigvalsh(A.detach()).abs() if hermitian else svdvals(A.detach())
    return (S > _cut(A, S, tol if atol is None else atol, rtol)).sum(-1)
