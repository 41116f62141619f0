"""What inverses, determinants, equations and factorisations are made of: kernels for small matrices, NumPy (LAPACK) on the host for the others.

Each gives a status per matrix, 0 where all went well, and does not wait for the device where it has a kernel.
"""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import kernel
from .._tensor.interop import from_array, read
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.errors import LinAlgError
from . import _small
from .matmul import matmul


def on_host(fn, inputs, shapes, failure=None, rows=None):
    """Results of a NumPy function as tensors of the dtype of ``inputs``, or of the dtypes ``rows``; on the meta device only shapes."""
    device = inputs[0]._storage.device
    rows = rows or (inputs[0].dtype,) * len(shapes)
    if device.kind == "meta":
        return tuple(empty(s, row, device) for s, row in zip(shapes, rows))
    try:
        with np.errstate(all="ignore"):
            got = fn(*[read(t.detach()) for t in inputs])
    except np.linalg.LinAlgError as exc:
        raise LinAlgError(failure or f"linalg: {exc}") from None
    got = got if isinstance(got, tuple) else (got,)
    return tuple(from_array(np.ascontiguousarray(a, row.np).reshape(s), device, row) for a, s, row in zip(got, shapes, rows))


def raise_where(name, info, text, kind=LinAlgError):
    """An error that names the first matrix of a batch whose status is not 0; the status takes the place of ``%d`` in ``text``."""
    if info._storage.device.kind == "meta":
        return
    info = info._bearer
    status = read(info.detach())
    bad = np.flatnonzero(status)
    if len(bad):
        where_ = f"(Batch element {bad[0]}): " if len(info.shape) else ""
        raise kind(f"{name}: {where_}{text.replace('%d', str(status.reshape(-1)[bad[0]]))}")


SINGULAR = "The diagonal element %d is zero, the inversion could not be completed because the input matrix is singular."
UNSOLVED = "The solver failed because the input matrix is singular."
INDEFINITE = ("The factorization could not be completed because the input is not positive-definite (the leading minor of order %d is not "
              "positive-definite).")


# -- on the host ------------------------------------------------------------------------------------------------------------------------------
def sizes(z):
    """By which LAPACK chooses: of complex numbers the sum of the sizes of their parts."""
    return np.abs(z.real) + np.abs(z.imag) if z.dtype.kind == "c" else np.abs(z)


_COLUMNS = 16           # that are eliminated one by one; wider parts are products of matrices


def factor(a, pivot):
    """L and U in one matrix, and the row exchanges counted from 1: Gauss elimination of a batch with the largest pivot of each column."""
    lu = np.array(a)
    k = min(lu.shape[-2:])
    exchanges = np.empty((*a.shape[:-2], k), np.int32)
    for at in np.ndindex(*a.shape[:-2]):
        exchanges[at] = _eliminate(lu[at], pivot) + 1
    return lu, exchanges


def _eliminate(lu, pivot):
    """Factor a matrix in place, and give the row that each row on the diagonal was exchanged with.

    The left half of the columns comes first, whole, then what follows from it for the others (Toledo, "Locality of reference in LU decomposition with
    partial pivoting", 1997).
    """
    m, n = lu.shape
    k = min(m, n)
    if k <= _COLUMNS:
        return _eliminate_columns(lu, k, pivot)
    half = k // 2
    left, right = lu[:, :half], lu[:, half:]
    rows = _eliminate(left, pivot)
    _exchange(right, rows)
    right[:half] = np.linalg.solve(np.tril(left[:half], -1) + np.eye(half, dtype=lu.dtype), right[:half])
    right[half:] -= left[half:] @ right[:half]
    others = _eliminate(right[half:], pivot)
    _exchange(left[half:], others)
    return np.concatenate([rows, others + half])


def _eliminate_columns(lu, k, pivot):
    rows = np.arange(k)
    for j in range(k):
        if pivot:
            best = rows[j] = j + sizes(lu[j:, j]).argmax()
            if best != j:
                lu[[j, best]] = lu[[best, j]]
        if lu[j, j] != 0:
            lu[j + 1:, j] /= lu[j, j]
        lu[j + 1:, j + 1:] -= lu[j + 1:, j, None] * lu[j, j + 1:]
    return rows


def _exchange(part, rows):
    """Exchange rows as another part of the matrix did."""
    order = np.arange(len(part))
    for j, other in enumerate(rows.tolist()):
        if other != j:
            order[[j, other]] = order[[other, j]]
    moved = np.flatnonzero(order != np.arange(len(part)))
    part[moved] = part[order[moved]]


def _zeros_of(lu):
    """Per packed factorisation 0, or the number of the first zero on its diagonal."""
    zero = np.diagonal(lu, 0, -2, -1) == 0
    return np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if zero.shape[-1] else np.zeros(lu.shape[:-2])


def _singular(m):
    return int(_zeros_of(factor(m, True)[0]))


def _minor(m):
    """The order of the first leading minor of a matrix that has no Cholesky factor."""
    for k in range(1, len(m)):
        try:
            np.linalg.cholesky(m[:k, :k])
        except np.linalg.LinAlgError:
            return k
    return len(m)


def _checked(fn, status, a, *right):
    """``fn(a, *right)`` and a status per matrix; NaN where the function refuses one."""
    lead, n = a.shape[:-2], a.shape[-1]
    try:
        return fn(a, *right), np.zeros(lead, np.int32)
    except np.linalg.LinAlgError:
        pass

    def of(m):
        try:
            fn(m, *[np.zeros((n, 1), m.dtype) for _ in right])
        except np.linalg.LinAlgError:
            return status(m) or n
        return 0
    info = np.array([of(m) for m in a.reshape(-1, n, n)], np.int32).reshape(lead)
    bad = (info != 0)[..., None, None]
    return np.where(bad, math.nan, fn(np.where(bad, np.eye(n, dtype=a.dtype), a), *right)), info


def _wide(A, B):
    return tuple(np.broadcast_shapes(tuple(A.shape[:-2]), tuple(B.shape[:-2]))) + tuple(B.shape[-2:])


# -- operators --------------------------------------------------------------------------------------------------------------------------------
@kernel("_inv_ex", method=False, complex=True, outputs=("inverse", "info"),
        vjp=dict(A=lambda g, inverse: -matmul(matmul(inverse.mH, g[0]), inverse.mH)))
def inv_ex(A):
    if _small.suits(A, columns=A.shape[-1]):
        LU, pivots, info = _small.lu(A)
        return _small.lu_solve(LU, pivots, None), info
    return on_host(lambda a: _checked(np.linalg.inv, _singular, a), (A,), (A.shape, A.shape[:-2]), rows=(A.dtype, dt.int32))


inv_ex.op.grad_name = "LinalgInvExBackward0"


def inverse(A, name="linalg.inv"):
    """The inverse, or an error."""
    result, info = inv_ex(A)
    raise_where(name, info, SINGULAR)
    return result


def _solve_grad(g, A, result, needs):
    gb = solution(A.mH, g[0])
    return (-matmul(gb, result.mH) if needs[0] else None), gb


@kernel("_solve_ex", method=False, complex=True, outputs=("result", "info"), vjp={"A, B": _solve_grad})
def solve_ex(A, B):
    if _small.suits(A, B):
        LU, pivots, info = _small.lu(A)
        return _small.lu_solve(LU, pivots, B), info
    return on_host(lambda a, b: _checked(np.linalg.solve, _singular, a, b), (A, B), (_wide(A, B), A.shape[:-2]), rows=(A.dtype, dt.int32))


solve_ex.op.grad_name = "LinalgSolveExBackward0"


def solution(A, B):
    """``X`` with ``A X = B``, or an error."""
    result, info = solve_ex(A, B)
    raise_where("torch.linalg.solve", info, UNSOLVED)
    return result


def _triangular_grad(g, A, result, upper, unit, needs):
    gb = solve_triangular(A.mT, g, not upper, unit)
    if not needs[0]:
        return None, gb
    ga = -matmul(gb, result.mT)
    return ga.triu(int(unit)) if upper else ga.tril(-int(unit)), gb


@kernel("_solve_triangular", method=False, complex=True, vjp={"A, B": _triangular_grad})
def solve_triangular(A, B, upper, unit):
    """``X`` with ``A X = B``; one triangle of ``A`` is read. Where it has a zero on its diagonal, the result is not finite."""
    if _small.suits(A, B):
        return _small.substitute(A, B, ((False, upper, unit),))

    def of(a, b):
        a = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
        return _checked(np.linalg.solve, _singular, a + np.eye(a.shape[-1], dtype=a.dtype) if unit else a, b)[0]
    return on_host(of, (A, B), (_wide(A, B),))[0]


solve_triangular.op.grad_name = "LinalgSolveTriangularBackward0"


def _cholesky_grad(g, L, turned):
    half = 0.5 * matmul(L.mH, g[0])
    upper = L.mH
    left = solve_triangular(upper, half.tril() + half.tril(-1).mH, True, False)
    grad = solve_triangular(upper, left.mH, True, False)
    return grad if turned else grad.mH          # as in PyTorch the same for both halves, though it need not be Hermitian


@kernel("_cholesky_ex", method=False, complex=True, holomorphic=False, outputs=("L", "info"), vjp=dict(A=_cholesky_grad))
def cholesky_ex(A, turned):
    """The lower factor of ``A``, which is the conjugate transpose of what the caller was given where ``turned``."""
    if _small.suits(A):
        return _small.cholesky(A)
    return on_host(lambda a: _checked(np.linalg.cholesky, _minor, a), (A,), (A.shape, A.shape[:-2]), rows=(A.dtype, dt.int32))


cholesky_ex.op.grad_name = "LinalgCholeskyExBackward0"


def _cholesky_solve_grad(g, L, upper, result, needs):
    """As in PyTorch that of all of ``L``, of which one half is not read."""
    gb = cholesky_solve(g, L, upper)
    if not needs[1]:
        return gb, None
    common = matmul(gb, result.mH)
    common = common + common.mH
    return gb, -matmul(L, common) if upper else -matmul(common, L)


@kernel("_cholesky_solve", method=False, complex=True, holomorphic=False, vjp={"B, L": _cholesky_solve_grad})
def cholesky_solve(B, L, upper):
    if _small.suits(L, B):
        return _small.cholesky_solve(L, B, upper)
    first = L.mH if upper else L
    return solve_triangular(first.mH, solve_triangular(first, B, False, False), True, False)


cholesky_solve.op.grad_name = "CholeskySolveBackward0"


@kernel("_det", method=False, complex=True, vjp=dict(A=lambda g, A, result: _det_grad(g, A, result)))
def det(A):
    if _small.suits(A):
        return _small.determinant(*_small.lu(A)[:2])
    return on_host(np.linalg.det, (A,), (A.shape[:-2],))[0]


det.op.grad_name = "LinalgDetBackward0"


def _cofactors_np(a):
    """d det(A) / dA, also for singular A: from the singular values."""
    u, s, vh = np.linalg.svd(a)
    others = np.stack([np.prod(np.delete(s, i, -1), -1) for i in range(s.shape[-1])], -1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * ((u * others[..., None, :]) @ vh)


def _cofactors(A, value):
    """The same: det(A) times the transposed inverse, where that exists."""
    if _small.suits(A):
        LU, pivots, info = _small.lu(A)
        if not read(info).any():
            return value * _small.lu_solve(LU, pivots, None).mT
    return on_host(_cofactors_np, (A,), (A.shape,))[0]


def _det_grad(g, A, result):
    from .._tensor.grad_mode import state
    g, value = g.unsqueeze(-1).unsqueeze(-1), result.unsqueeze(-1).unsqueeze(-1)
    if not A._numel:
        return A * 0
    if not state.grad and not A.dtype.is_complex:
        return g * _cofactors(A, value)
    return g * value * inverse(A).mT


def _slogdet_grad(g, A, sign):
    """The real part of tr(A^-1 dA) moves the logarithm, its imaginary part turns a complex sign."""
    turn = (g[0] * sign.conj()).imag * 1j if g[0] is not None and sign.dtype.is_complex else None
    g = g[1] if turn is None else turn if g[1] is None else g[1] + turn
    return None if g is None else g.unsqueeze(-1).unsqueeze(-1) * inverse(A).mH


@kernel("_slogdet", method=False, complex=True, outputs=("sign", "logabsdet"), vjp=dict(A=_slogdet_grad))
def slogdet(A):
    if _small.suits(A):
        return _small.determinant(*_small.lu(A)[:2], log=True)
    return on_host(lambda a: tuple(np.linalg.slogdet(a)), (A,), (A.shape[:-2],) * 2, rows=(A.dtype, A.dtype.to_real()))


slogdet.op.grad_name = "LinalgSlogdetBackward0"


def lu_host(a, pivot):
    """Packed factors, row exchanges and statuses."""
    packed, exchanges = factor(a, pivot)
    return packed, exchanges, _zeros_of(packed)


def lu(A, pivot):
    """L and U packed, row exchanges counted from 1, status."""
    if _small.suits(A):
        return _small.lu(A, pivot)
    lead, k = tuple(A.shape[:-2]), min(A.shape[-2:])
    return on_host(lambda a: lu_host(a, pivot), (A,), (A.shape, lead + (k,), lead), rows=(A.dtype, dt.int32, dt.int32))
