"""Factorisations beyond those of ``linalg.py``, status-returning forms, matrix exponentials, tensor equations and low-rank approximations.

Like there, LAPACK runs on the host, but for LU and Cholesky factors; gradients are matrix products on the device.
"""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.grad_mode import state
from .._tensor.return_types import named
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.shape import whole
from . import _factors, _groups, _lanes, _small
from ._factors import ILL_DEFINED, INDEFINITE, SINGULAR, UNSOLVED, raise_where, refuse_phase
from .creation import arange, eye, zeros
from .joining import cat
from .linalg import (_compatible, _on_host, _positive_samples, _REAL, _solve, _square_samples, _tracked, inv, matrices, qr, solve, solve_triangular, square,
                     square_matrices, svd)
from .matmul import matmul
from .random import randn
from .selection import where


# -- samples ------------------------------------------------------------------------------------------------------------------------------
_RIGHT = np.arange(6.0).reshape(3, 2) - 2
_LU = np.array([[4.0, 1, 2], [0.5, 3, -1], [0.25, -0.5, 2]])


def _equation_samples():
    return [((_LU, _RIGHT), {}), ((np.stack([_LU, _LU.T]), np.stack([_RIGHT, -_RIGHT])), {})]


def _packed_samples(*right):
    """A factorisation with row exchanges, and what follows it."""
    return lambda: [((_LU, np.array([2, 3, 3], np.int32), *right), {})]


def _triangle_samples(*right):
    return lambda: [((*right, _LU), {}), ((*right, _LU), {"upper": False})]


def _reflection_samples(*other):
    return lambda: [((_LU, np.array([1.2, 0.8, 0.0]), *other), {})]


def _one(A):
    """Identity matrices of the size of ``A``."""
    return eye(A.shape[-1], dtype=A.dtype, device=A._storage.device)


# -- forms that return a status -----------------------------------------------------------------------------------------------------------
@composite("linalg_cholesky_ex", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=_positive_samples)
def cholesky_ex(A, *, upper=False, check_errors=False):
    """Cholesky factor and a status per matrix: 0, or the order of the leading minor that is not positive definite (the factor is NaN there)."""
    square_matrices("linalg.cholesky_ex", A)
    L, info = _factors.cholesky_ex(A.mH if upper else A, bool(upper))
    if check_errors:
        raise_where("linalg.cholesky_ex", info, INDEFINITE)
    return named("linalg_cholesky_ex", "L", "info")(L.mH if upper else L, info)


@composite("linalg_inv_ex", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=_square_samples())
def inv_ex(A, *, check_errors=False):
    """Inverse and a status per matrix: 0, or the number of a zero pivot (the inverse is NaN there)."""
    square_matrices("linalg.inv_ex", A)
    inverse, info = _factors.inv_ex(A)
    if check_errors:
        raise_where("linalg.inv_ex", info, SINGULAR)
    return named("linalg_inv_ex", "inverse", "info")(_nan_where(info, inverse), info)


def _nan_where(info, result):
    """NaN for matrices that the status rules out."""
    return where((info == 0).reshape(info.shape + (1, 1)), result, math.nan)


@composite("linalg_solve_ex", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=_equation_samples)
def solve_ex(A, B, *, left=True, check_errors=False):
    """Solution of ``A X = B`` and a status per matrix as of :func:`inv_ex`."""
    square_matrices("linalg.solve_ex", A)
    vector = len(B.shape) == 1 or B.shape == A.shape[:-1]
    _compatible("linalg.solve_ex", A, B.unsqueeze(-1) if vector else B, left)
    X, info = _factors.solve_ex(*((A, B.unsqueeze(-1) if vector else B) if left or vector else (A.mT, B.mT)))
    if check_errors:
        raise_where("torch.linalg.solve_ex", info, UNSOLVED)
    X = _nan_where(info, X)
    return named("linalg_solve_ex", "result", "info")(X.squeeze(-1) if vector else X if left else X.mT, info)


# -- LU -------------------------------------------------------------------------------------------------------------------------------------
def _permutation(pivots, LU):
    """P of ``A = P L U``."""
    m = LU.shape[-2]
    if LU.shape[-1] == m and _small.suits(LU):
        return _small.permutation(LU.detach(), pivots)
    lead = tuple(pivots.shape[:-1])
    order, = _on_host("order", (pivots,), [(lead + (m,), dt.int64)], m)
    return (order.unsqueeze(-2) == arange(m, device=pivots._storage.device).unsqueeze(-1)).to(LU.dtype)


def _lower(LU):
    """L of a packed factorisation, with ones on its diagonal."""
    m, n = LU.shape[-2:]
    part = LU.narrow(-1, 0, min(m, n)).tril(-1)
    return part + eye(m, min(m, n), dtype=LU.dtype, device=LU._storage.device)


def _upper(LU):
    return LU.narrow(-2, 0, min(LU.shape[-2:])).triu()


def _lu_grad(g, LU, pivots):
    """L1 and U1, the square parts, are as free as the factors of a square matrix; what is left of the longer factor follows them."""
    (m, n), g = LU.shape[-2:], g[0]
    k = min(m, n)
    L, U, gL, gU = _lower(LU), _upper(LU), g.narrow(-1, 0, k).tril(-1), g.narrow(-2, 0, k).triu()
    L1, U1 = L.narrow(-2, 0, k), U.narrow(-1, 0, k)
    low, up = matmul(L1.mH, gL.narrow(-2, 0, k)), matmul(gU.narrow(-1, 0, k), U1.mH)
    if n > k:
        rest = gU.narrow(-1, k, n - k)
        low = low - matmul(rest, U.narrow(-1, k, n - k).mH)
        rest = solve_triangular(L1.mH, rest, upper=True, unitriangular=True)
    if m > k:
        rest = gL.narrow(-2, k, m - k)
        up = up - matmul(L.narrow(-2, k, m - k).mH, rest)
        rest = solve_triangular(U1, rest.mH, upper=True).mH
    left = solve_triangular(L1.mH, low.tril(-1) + up.triu(), upper=True, unitriangular=True)
    grad = solve_triangular(U1, left.mH, upper=True).mH
    return matmul(_permutation(pivots, LU), grad if m == n else cat([grad, rest], -1 if n > k else -2))


@kernel("_lu_factor", method=False, complex=True, outputs=("LU", "pivots", "info"), vjp=dict(A=_lu_grad))
def _lu_factor(A, pivot):
    return _factors.lu(A, pivot)


_lu_factor.op.grad_name = "LinalgLuFactorExBackward0"


_ZERO_PIVOT = ("U[%d,%d] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider "
               "calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")


def _pivoting(A, pivot):
    if not pivot and A._storage.device.kind == "cpu":
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


@composite("linalg_lu_factor", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=_square_samples())
def lu_factor(A, *, pivot=True):
    """L and U of ``A = P L U`` packed into one matrix, and the row exchanges (int32, counted from 1). LinAlgError when U is singular."""
    LU, pivots, info = lu_factor_ex(A, pivot=pivot)
    raise_where("torch.linalg.lu_factor", info, _ZERO_PIVOT, RuntimeError)
    return named("linalg_lu_factor", "LU", "pivots")(LU, pivots)


@composite("linalg_lu_factor_ex", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=_square_samples())
def lu_factor_ex(A, *, pivot=True, check_errors=False):
    """:func:`lu_factor` and a status per matrix: 0, or the number of a zero on the diagonal of U."""
    matrices("linalg.lu_factor_ex", A)
    _pivoting(A, pivot)
    LU, pivots, info = _lu_factor(A, pivot)
    if check_errors:
        raise_where("torch.linalg.lu_factor_ex", info, _ZERO_PIVOT, RuntimeError)
    return named("linalg_lu_factor_ex", "LU", "pivots", "info")(LU, pivots, info)


@composite("linalg_lu", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=_square_samples())
def lu(A, *, pivot=True):
    """``P``, ``L`` and ``U`` with ``A = P L U``: a permutation, lower triangular with ones on the diagonal, upper triangular."""
    matrices("linalg.lu", A)
    _pivoting(A, pivot)
    return named("linalg_lu", "P", "L", "U")(*lu_unpack(*_lu_factor(A, pivot)[:2]))


@composite("lu", complex=True, dtypes=_REAL, gradcheck=False, samples=_square_samples())
def legacy_lu(A, pivot=True, get_infos=False):
    """Packed LU factorisation and row exchanges; see :func:`clnn.linalg.lu_factor`."""
    LU, pivots, info = lu_factor_ex(A, pivot=pivot)
    return (LU, pivots, info) if get_infos else (LU, pivots)


def _whole_pivots(name, pivots):
    if pivots.dtype is not dt.int32:
        raise RuntimeError(f"{name}: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, got {pivots.dtype}")


@composite("lu_unpack", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=_packed_samples())
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """``P``, ``L`` and ``U`` from a packed factorisation; parts that were not asked for are empty."""
    _whole_pivots("torch.lu_unpack", LU_pivots)
    if unpack_pivots and LU_pivots.shape[-1] != min(LU_data.shape[-2:]):
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to have a number for each row or column of LU_data, whichever are fewer, "
                           f"got {LU_pivots.shape[-1]}")
    none = empty((0,), LU_data.dtype, LU_data._storage.device)
    P = _permutation(LU_pivots, LU_data) if unpack_pivots else none
    return named("lu_unpack", "P", "L", "U")(P, _lower(LU_data) if unpack_data else none, _upper(LU_data) if unpack_data else none)


@composite("linalg_lu_solve", method=False, complex=True, dtypes=_REAL, gradcheck=False, samples=_packed_samples(_RIGHT))
def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """``X`` with ``A X = B`` (``X A = B`` when not ``left``, the conjugate transpose of ``A`` when ``adjoint``), from :func:`lu_factor`."""
    if len(B.shape) < 2:
        raise RuntimeError("linalg.lu_solve: The input tensor B must have at least 2 dimensions.")
    square("linalg.lu_solve", LU)
    _whole_pivots("linalg.lu_solve", pivots)
    _compatible("linalg.lu_solve", LU, B, left)
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    if _small.suits(LU, B, True) and not (state.grad and (LU._rg or B._rg)):
        return _small.lu_solve(LU, pivots, B, adjoint)
    if not any(_tracked(t) for t in (LU, pivots, B)) and LU.dtype is B.dtype:
        return _on_host("lu_solve", (LU, pivots, B), [(_factors._wide(LU, B), B.dtype)], adjoint)[0]
    P, L, U = lu_unpack(LU, pivots)
    if adjoint:
        return matmul(P, solve_triangular(L.mH, solve_triangular(U.mH, B, upper=False), upper=True, unitriangular=True))
    return solve_triangular(U, solve_triangular(L, matmul(P.mT, B), upper=False, unitriangular=True), upper=True)


@composite("lu_solve", complex=True, dtypes=_REAL, gradcheck=False, samples=lambda: [((_RIGHT, *pair), {}) for (pair, _) in _packed_samples()()])
def legacy_lu_solve(b, LU_data, LU_pivots):
    """:func:`clnn.linalg.lu_solve` in the order of arguments of the top-level function."""
    return lu_solve(LU_data, LU_pivots, b)


# -- Cholesky, triangles, reflections --------------------------------------------------------------------------------------------------------
def _cholesky_inverse_np(L, upper=False):
    L = np.triu(L).mT.conj() if upper else np.tril(L)
    return np.linalg.inv(L @ L.mT.conj())


def _cholesky_inverse_grad(g, L, upper, result):
    """As in PyTorch that of all of ``L``, of which one half is not read."""
    common = matmul(matmul(result, g + g.mH), result)
    return -matmul(L, common) if upper else -matmul(common, L)


@kernel("_cholesky_inverse", method=False, complex=True, holomorphic=False, vjp=dict(L=_cholesky_inverse_grad))
def _cholesky_inverse(L, upper):
    zeros_ = (L.diagonal(0, -2, -1) == 0).to(dt.int32)
    raise_where("cholesky_inverse", where(zeros_.amax(-1) > 0, zeros_.argmax(-1) + 1, 0) if L._numel else zeros_, SINGULAR)
    if _small.suits(L):
        return _small.cholesky_solve(L, None, upper)
    half = _on_host("cholesky_inverse", (L,), [(L.shape, L.dtype)], upper)[0]
    return half.tril() + half.tril(-1).mH


_cholesky_inverse.op.grad_name = "CholeskyInverseBackward0"


# torch=None: LAPACK takes the diagonal of a factor for real, which that of the complex samples is not.
@composite("cholesky_inverse", complex=True, dtypes=_REAL, gradcheck=False, samples=_triangle_samples(), numpy=_cholesky_inverse_np, torch=None)
def cholesky_inverse(L, upper=False):
    """The inverse of ``L L^H`` (``L^H L`` when ``upper``)."""
    square("cholesky_inverse", L)
    return _cholesky_inverse(L, upper)


@composite("triangular_solve", complex=True, dtypes=_REAL, gradcheck=False, samples=_triangle_samples(_RIGHT))
def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """``X`` with ``A X = b`` for triangular ``A`` (deprecated in PyTorch; use :func:`clnn.linalg.solve_triangular`), and ``A``."""
    X = solve_triangular(A.mT if transpose else A, b, upper=upper != transpose, unitriangular=unitriangular)
    return named("triangular_solve", "solution", "cloned_coefficient")(X, A.clone())


@composite("geqrf", complex=True, dtypes=_REAL, gradcheck=False, samples=_square_samples())
def geqrf(input):
    """The raw QR factorisation: R above and Householder vectors below the diagonal, and their factors ``tau``."""
    matrices("geqrf", input)
    if _lanes.suits(input) and not _tracked(input):
        return named("geqrf", "a", "tau")(*reversed(_lanes.qr(input, "raw")))
    if _groups.suits(input, 0) and not _tracked(input):
        return named("geqrf", "a", "tau")(*reversed(_groups.qr(input, "raw")))
    return named("geqrf", "a", "tau")(*_on_host("geqrf", (input,), [(input.shape, input.dtype), ((*input.shape[:-2], min(input.shape[-2:])), input.dtype)]))


def _better_on_host(*inputs):
    """Whether LAPACK takes less time for the reflections of matrices than products on the device, which take all of a batch at once and have gradients."""
    tau = inputs[1]
    return not any(_tracked(t) for t in inputs) and not tau._storage.device.records() and math.prod(tau.shape[:-1]) < 32 * tau.shape[-1]


@composite("orgqr", repeat="ready small", complex=True, dtypes=_REAL, gradcheck=False, aliases=("linalg_householder_product",), samples=_reflection_samples())
def householder_product(input, tau):
    """The first columns of ``H1 H2 ... Hk``, reflections ``I - tau v v^H`` whose vectors stand below the diagonal of ``input``."""
    if len(input.shape) < 2:
        raise RuntimeError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    if not m >= n >= tau.shape[-1]:
        sides, k = ("input.shape[-2]", "input.shape[-1]") if m < n else ("input.shape[-1]", "tau.shape[-1]"), tau.shape[-1]
        raise RuntimeError(f"torch.linalg.householder_product: {sides[0]} must be greater than or equal to {sides[1]}, got {tuple(input.shape)} and tau of {k}")
    if tau.shape[:-1] != input.shape[:-2] or tau.dtype is not input.dtype:
        raise RuntimeError("torch.linalg.householder_product: Expected tau to have the batch dimensions and the dtype of input, but got "
                           f"{tuple(tau.shape)} of {tau.dtype} for {tuple(input.shape)} of {input.dtype}")
    if _better_on_host(input, tau):
        return _on_host("householder", (input, tau), [(input.shape, input.dtype)])[0]
    Q = eye(m, n, dtype=input.dtype, device=input._storage.device).expand(input.shape)
    v = input.tril(-1) + eye(m, n, dtype=input.dtype, device=input._storage.device)
    for i in reversed(range(tau.shape[-1])):
        w = v.narrow(-1, i, 1)
        Q = Q - tau.narrow(-1, i, 1).unsqueeze(-1) * matmul(w, matmul(w.mH, Q))
    return Q


@composite("ormqr", repeat="ready small", complex=True, dtypes=_REAL, gradcheck=False, samples=_reflection_samples(_RIGHT))
def ormqr(input, input2, input3, left=True, transpose=False):
    """The product of ``input3`` with all of ``Q`` of :func:`geqrf`, given its two results."""
    tau, other = input2, input3
    if len(input.shape) < 2 or len(other.shape) < 2:
        raise RuntimeError(f"torch.ormqr: {'input' if len(input.shape) < 2 else 'other'} must have at least 2 dimensions.")
    if other.shape[-2 if left else -1] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    if not tau.shape or tau.shape[-1] > input.shape[-1]:
        raise RuntimeError("torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]")
    if _better_on_host(input, tau, other) and input.shape[:-2] == other.shape[:-2] == tau.shape[:-1] and input.dtype is other.dtype is tau.dtype:
        return _on_host("ormqr", (input, tau, other), [(other.shape, other.dtype)], left, transpose)[0]
    m, k = input.shape[-2], tau.shape[-1]
    full = input.narrow(-1, 0, k)
    if m > k:
        full = cat([full, zeros(tuple(input.shape[:-2]) + (m, m - k), dtype=input.dtype, device=input._storage.device)], -1)
    Q = householder_product(full, tau)
    Q = Q.mH if transpose else Q
    return matmul(Q, other) if left else matmul(other, Q)


# -- functions of matrices, tensor equations ----------------------------------------------------------------------------------------------------
@composite("matrix_exp", complex=True, dtypes=_REAL, aliases=("linalg_matrix_exp",), samples=lambda: [((np.eye(2) + np.ones((3, 2, 2)) * 0.1,), {})])
def matrix_exp(input):
    """The exponential of square matrices: a Taylor polynomial of degree 4, 9 or 16, by scaling and squaring beyond.

    The polynomial of degree s * s takes 2 s - 2 products (Paterson & Stockmeyer, 1973). Waits for the device to learn the norm.
    """
    if input.dtype in (dt.float16, dt.bfloat16):                     # PyTorch's overflows from norm 1 on
        return matrix_exp(input.to(dt.float32)).to(input.dtype)
    square_matrices("linalg.matrix_exp", input)
    meta = input._storage.device.kind == "meta"
    norm = float(input.detach().abs().sum(-1).max()) if input._numel and not meta else 0.0
    eps = 2.0 ** -53 if input.dtype.needs_fp64 else 2.0 ** -24
    # the greatest norm for which the first term left out is below the rounding error
    reach = {s: (eps * math.factorial(s * s + 1)) ** (1 / (s * s + 1)) for s in (2, 3, 4)}
    step = next((s for s in reach if norm <= reach[s]), 4)
    squarings = math.ceil(math.log2(norm / reach[4])) if math.isfinite(norm) and norm > reach[4] else 0
    total = _taylor(input / 2 ** squarings if squarings else input, step)
    for _ in range(squarings):
        total = matmul(total, total)
    return total


def _taylor(a, step):
    """The sum of ``a^k / k!`` up to ``k = step * step``, in blocks of ``step`` terms by Horner's rule in ``a^step``."""
    powers = [_one(a).expand(a.shape), a]
    while len(powers) <= step:
        powers.append(matmul(powers[-1], a))
    total = powers[step] * (1 / math.factorial(step * step))
    for first in range(step * (step - 1), -1, -step):
        total = total if first == step * (step - 1) else matmul(total, powers[step])
        for k in range(step):
            total = total + powers[k] * (1 / math.factorial(first + k))
    return total


@composite("linalg_tensorinv", method=False, complex=True, dtypes=_REAL, gradcheck=False,
           samples=lambda: [((np.eye(6).reshape(2, 3, 6) * 2 + 0.1,), {}), ((np.eye(4).reshape(4, 2, 2) + 0.1, 1), {})])
def tensorinv(A, ind=2):
    """The inverse of ``A`` read as a matrix of its first ``ind`` against its other dimensions."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    rows, columns = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if math.prod(rows) != math.prod(columns):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
                           f"but got {math.prod(columns)} != {math.prod(rows)}")
    return inv(A.reshape(math.prod(rows), math.prod(columns))).reshape(columns + rows)


@composite("linalg_tensorsolve", method=False, complex=True, dtypes=_REAL, gradcheck=False,
           samples=lambda: [((np.eye(6).reshape(2, 3, 2, 3) * 2 + 0.1, _RIGHT.T), {})])
def tensorsolve(input, other, dims=None):
    """``X`` with ``tensordot(input, X, X.ndim) = other``; ``dims`` of ``input`` are moved to the right first."""
    A, B = input, other
    if dims is not None:
        n = len(A.shape)
        moved = [d % n for d in dims]
        A = A.permute([d for d in range(n) if d not in moved] + moved)
    unknown = tuple(A.shape[len(B.shape):])
    if math.prod(unknown) != math.prod(A.shape[:len(B.shape)]):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
                           f"but got {math.prod(unknown)} != {math.prod(A.shape[:len(B.shape)])}")
    return solve(A.reshape(math.prod(unknown), math.prod(unknown)), B.reshape(-1)).reshape(unknown)


@composite("linalg_vander", repeat="ready small", complex=True, method=False, samples=lambda: [((np.linspace(-1, 2, 4),), {}), ((np.ones((2, 3)) * 0.5, 5), {})])
def vander(x, N=None):
    """Vandermonde matrices: the powers 0 ... N - 1 of the elements of ``x`` as columns."""
    x = x if x.shape else x.unsqueeze(0)
    n = x.shape[-1] if N is None else whole(N)
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    ones = x.new_ones((*x.shape, 1))
    return cat([ones, x.unsqueeze(-1).expand(*x.shape, n - 1)], -1).cumprod(-1)


# -- low rank ---------------------------------------------------------------------------------------------------------------------------------------
@composite("svd_lowrank", method=False, complex=True, dtypes=_REAL, gradcheck=False)
def svd_lowrank(A, q=6, niter=2, M=None):
    """Approximate ``(U, S, V)`` of rank ``q`` from random projections.

    Halko, Martinsson & Tropp, "Finding structure with randomness", 2009.
    """
    q = min(q, *A.shape[-2:])
    A = A if M is None else A - M
    wide = A.shape[-2] < A.shape[-1]
    A = A.mH if wide else A
    Q = qr(matmul(A, randn(A.shape[-1], q, dtype=A.dtype, device=A._storage.device)))[0]
    for _ in range(niter):
        Q = qr(matmul(A, qr(matmul(A.mH, Q))[0]))[0]
    U, S, Vh = svd(matmul(Q.mH, A), False)
    U = matmul(Q, U)
    return (Vh.mH, S, U) if wide else (U, S, Vh.mH)


@composite("pca_lowrank", method=False, complex=True, dtypes=_REAL, gradcheck=False)
def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of the rows of ``A``: :func:`svd_lowrank` of the centred matrix; ``V`` holds the directions."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)


# -- eigenvalues of general matrices ------------------------------------------------------------------------------------------------------
_Eig = named("linalg_eig", "eigenvalues", "eigenvectors")


def _eig_grad(g, A, L, V):
    """Gradients of values and vectors; that of a vector's length, which is 1, is taken out first (Giles 2008, for complex numbers)."""
    gl, gv = g
    Vh, middle = V.mT.conj(), None
    if gv is not None:
        part = matmul(Vh, gv)
        refuse_phase(part.diagonal(0, -2, -1), "linalg_eig_backward", "eigenvectors", ILL_DEFINED)
        part = part - matmul(Vh, V) * part.diagonal(0, -2, -1).real.unsqueeze(-2)
        same = eye(L.shape[-1], dtype=dt.bool_, device=L.device)
        middle = where(same, 0.0, part / where(same, 1.0, (L.unsqueeze(-2) - L.unsqueeze(-1)).conj()))
    if gl is not None:
        middle = gl.diag_embed() if middle is None else middle + gl.diag_embed()
    return _solve(Vh, matmul(middle, Vh))


@kernel("_eig", method=False, complex=True, holomorphic=False, outputs=("L", "V"), vjp=dict(A=_eig_grad))
def _eig(A):
    row = dt.complex_of(A.dtype)
    return _on_host("eig", (A,), [(A.shape[:-1], row), (A.shape, row)])


_eig.op.grad_name = "LinalgEigBackward0"


@composite("linalg_eig", method=False, complex=True, dtypes=_REAL, torch="linalg.eig", gradcheck=False)
def eig(A):
    """Eigenvalues and eigenvectors (columns, of length 1) of square matrices: complex, in no particular order.

    Vectors are determined up to a factor of absolute value 1, so gradients make sense for what does not depend on it.
    """
    square_matrices("linalg.eig", A)
    return _Eig(*_eig(A))


@composite("linalg_eigvals", method=False, complex=True, dtypes=_REAL, torch="linalg.eigvals", gradcheck=False)
def eigvals(A):
    """Eigenvalues of square matrices: complex, in no particular order."""
    return _eig(A)[0] if _tracked(A) else _on_host("eigvals", (A,), [(A.shape[:-1], dt.complex_of(A.dtype))])[0]
