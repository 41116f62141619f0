"""The functions of ``_lapack.py`` with NumPy alone: small matrices, for which its loops over a batch are better, empty ones, and where SciPy is not installed.

NumPy has no LU, L D L^T and triangular routines: what stands in for them is short rather than fast.
"""
from __future__ import annotations

import math
import os
import threading

import numpy as np

from ..core.errors import LinAlgError

NO_SVD = "linalg.svd: %sThe algorithm failed to converge because the input matrix contained non-finite values."
NO_EIGH = ("linalg.eigh: %sThe algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: %d).")
NO_EIG = "torch.linalg.eig: input tensor should not contain infs or NaNs."
NO_CONVERGENCE = "linalg.eig: %sThe algorithm failed to converge because the input matrix is ill-conditioned (error code: %d)."
NO_LSTSQ = ("torch.linalg.lstsq: %sThe least squares solution could not be computed because the input matrix does not have full rank (error code: %d).")


def finite(a, text, kind=LinAlgError):
    """An error that names the first matrix of a batch with values that are not finite, for which routines need not end."""
    bad = ~np.isfinite(a).all((-1, -2))
    if bad.any():
        place = f"(Batch element {np.flatnonzero(bad)[0]}): " if bad.ndim else ""
        raise kind(text.replace("%s", place).replace("%d", "1"))


_WORK = 1 << 17         # multiplications from which on a second thread takes its part of a batch
_SHARED = 64            # rows or columns up to which OpenBLAS has no threads of its own


def _split(fn, a):
    """``fn(a)``, by all cores where ``a`` holds many matrices: each is computed as alone, so that the results are the same."""
    count, n = math.prod(a.shape[:-2]), max(a.shape[-2:])
    parts = min(os.cpu_count() or 1, count, count * n ** 3 // _WORK)
    if parts < 2 or n > _SHARED:
        return fn(a)
    flat = np.ascontiguousarray(a).reshape(count, *a.shape[-2:])
    found, failed = [None] * parts, []

    def work(i):
        try:
            with np.errstate(all="ignore"):
                found[i] = fn(flat[count * i // parts:count * (i + 1) // parts])
        except Exception as exc:
            failed.append(exc)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, parts)]
    for t in threads:
        t.start()
    work(0)
    for t in threads:
        t.join()
    if failed:
        raise failed[0]
    if not isinstance(found[0], tuple):
        return np.concatenate(found).reshape(a.shape[:-2] + found[0].shape[1:])
    return tuple(np.concatenate(p).reshape(a.shape[:-2] + p[0].shape[1:]) for p in zip(*found))


# -- LU -----------------------------------------------------------------------------------------------------------------------------------------
def sizes(z):
    """By which LAPACK chooses: of complex numbers the sum of the sizes of their parts."""
    return np.abs(z.real) + np.abs(z.imag) if z.dtype.kind == "c" else np.abs(z)


def lu(a, pivot=True):
    """Gauss elimination of a batch with the largest pivot of each column: L and U in one matrix, row exchanges counted from 1, status."""
    packed = np.array(a, order="C")
    pivots = np.empty((*a.shape[:-2], min(a.shape[-2:])), np.int32)
    for at in np.ndindex(*a.shape[:-2]):
        _eliminate(packed[at], pivots[at], pivot)
    return packed, pivots, _zeros_of(packed)


def _eliminate(m, exchanges, pivot):
    for j in range(len(exchanges)):
        best = j + sizes(m[j:, j]).argmax() if pivot else j
        if best != j:
            m[[j, best]] = m[[best, j]]
        if m[j, j] != 0:
            m[j + 1:, j] /= m[j, j]
        m[j + 1:, j + 1:] -= m[j + 1:, j, None] * m[j, j + 1:]
        exchanges[j] = best + 1


def _zeros_of(packed):
    """Per packed factorisation 0, or the number of the first zero on its diagonal."""
    zero = np.diagonal(packed, 0, -2, -1) == 0
    return (np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if zero.shape[-1] else np.zeros(packed.shape[:-2])).astype(np.int32)


def order(pivots, m):
    """Row exchanges as permutations: row i of P^T A is row order[i] of A."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    found = np.tile(np.arange(m), (len(flat), 1))
    rows = np.arange(len(flat))
    for j in range(flat.shape[1]):
        other = flat[:, j] - 1
        found[rows, other], found[:, j] = found[:, j].copy(), found[rows, other].copy()
    return found.reshape(*pivots.shape[:-1], m)


def lu_solve(packed, pivots, b, adjoint=False):
    n = packed.shape[-1]
    low, up = np.tril(packed, -1) + np.eye(n, dtype=packed.dtype), np.triu(packed)
    rows = order(pivots, n)[..., None]
    lead = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    b, rows = np.broadcast_to(b, lead + b.shape[-2:]), np.broadcast_to(rows, lead + (n, 1))
    if not adjoint:
        return np.linalg.solve(up, np.linalg.solve(low, np.take_along_axis(b, rows, -2)))
    x = np.linalg.solve(low.mT.conj(), np.linalg.solve(up.mT.conj(), b))
    return np.take_along_axis(x, np.argsort(rows, -2), -2)


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


def _singular(m):
    return int(lu(m)[2])


def _minor(m):
    """The order of the first leading minor of a matrix that has no Cholesky factor."""
    for k in range(1, len(m)):
        try:
            np.linalg.cholesky(m[:k, :k])
        except np.linalg.LinAlgError:
            return k
    return len(m)


def inverse(a):
    return _checked(np.linalg.inv, _singular, a)


def solve(a, b):
    return _checked(np.linalg.solve, _singular, a, b)


def det(a):
    return np.linalg.det(a)


def slogdet(a):
    return tuple(np.linalg.slogdet(a))


def cofactors(a):
    """d det(A) / dA, also for singular A: from the singular values."""
    u, s, vh = np.linalg.svd(a)
    others = np.stack([np.prod(np.delete(s, i, -1), -1) for i in range(s.shape[-1])], -1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * ((u * others[..., None, :]) @ vh)


# -- triangles and Cholesky ---------------------------------------------------------------------------------------------------------------------
def triangular(a, b, upper, unit):
    a = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    return _checked(np.linalg.solve, _singular, a + np.eye(a.shape[-1], dtype=a.dtype) if unit else a, b)[0]


def cholesky(a):
    return _checked(np.linalg.cholesky, _minor, a)


def cholesky_solve(factor, b, upper):
    low = factor.mT.conj() if upper else factor
    return triangular(low.mT.conj(), triangular(low, b, False, False), True, False)


def cholesky_inverse(factor, upper):
    return cholesky_solve(factor, np.eye(factor.shape[-1], dtype=factor.dtype), upper)


# -- reflections --------------------------------------------------------------------------------------------------------------------------------
def geqrf(a):
    packed, tau = _split(lambda part: tuple(np.linalg.qr(part, "raw")), a)
    return packed.swapaxes(-1, -2), tau


def householder(a, tau):
    """The first columns of the product of reflections ``I - tau v v^H``, from the last one on."""
    m, n = a.shape[-2:]
    q = np.broadcast_to(np.eye(m, n, dtype=a.dtype), a.shape)
    v = np.tril(a, -1) + np.eye(m, n, dtype=a.dtype)
    for i in reversed(range(tau.shape[-1])):
        w = v[..., i:i + 1]
        q = q - tau[..., i, None, None] * (w @ (w.mT.conj() @ q))
    return q


def ormqr(a, tau, c, left, transpose):
    m, k = a.shape[-2], tau.shape[-1]
    wide = np.zeros((*a.shape[:-1], m), a.dtype)
    wide[..., :k] = a[..., :k]
    q = householder(wide, tau)
    q = q.mT.conj() if transpose else q
    return q @ c if left else c @ q


def qr(a, mode):
    return _split(lambda part: np.linalg.qr(part, mode) if mode == "r" else tuple(np.linalg.qr(part, mode)), a)


# -- singular values, eigenvalues, least squares --------------------------------------------------------------------------------------------------
def svd(a, full):
    finite(a, NO_SVD)
    return _split(lambda part: tuple(np.linalg.svd(part, full)), a)


def svdvals(a):
    finite(a, NO_SVD)
    return _split(lambda part: np.linalg.svd(part, compute_uv=False), a)


def eigh(a, uplo):
    finite(a, NO_EIGH)
    return _split(lambda part: tuple(np.linalg.eigh(part, uplo)), a)


def eigvalsh(a, uplo):
    finite(a, NO_EIGH)
    return _split(lambda part: np.linalg.eigvalsh(part, uplo), a)


def eig(a):
    finite(a, NO_EIG, RuntimeError)

    def body(part):
        values, vectors = np.linalg.eig(part)
        row = np.result_type(a, np.complex64)                     # NumPy's are real where all values of a batch are
        return values.astype(row), vectors.astype(row)
    return _split(body, a)


def eigvals(a):
    return eig(a)[0]


def lstsq(a, b, rcond, driver):
    """(solutions, ranks, singular values), whatever the driver."""
    lead, k, own = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), min(a.shape[-2:]), tuple([slice(n) for n in a.shape[:-2]])
    a, b = np.broadcast_to(a, lead + a.shape[-2:]), np.broadcast_to(b, lead + b.shape[-2:])
    x, rank, s = np.zeros(lead + (a.shape[-1], b.shape[-1]), a.dtype), np.zeros(lead, np.int64), np.zeros(lead + (k,), a.real.dtype)
    try:
        for at in np.ndindex(*lead if k else (0,)):
            x[at], _, rank[at], s[at] = np.linalg.lstsq(a[at], b[at], rcond)
    except np.linalg.LinAlgError:
        finite(a, NO_LSTSQ)
        raise
    return x, rank[own], s[own]


# -- indefinite symmetric matrices: L D L^T (Bunch and Kaufman, 1977) -----------------------------------------------------------------------------
_ALPHA = (1 + math.sqrt(17)) / 8          # bounds the growth of elements


def _pivot(a, k):
    """(rows of the block at ``k``, row that changes places with its last one, 0-based); nothing but zeros: the block as it is."""
    own, n = sizes(a[k, k]), len(a)
    if k + 1 == n:
        return 1, k
    column = sizes(a[k + 1:, k])
    at = k + 1 + int(column.argmax())
    most = column.max()
    if own >= _ALPHA * most:
        return 1, k
    row = max(sizes(a[at, k:at]).max(), sizes(a[at + 1:, at]).max(initial=0.0))
    if own * row >= _ALPHA * most * most:
        return 1, k
    return (1, at) if sizes(a[at, at]) >= _ALPHA * row else (2, at)


def _exchange(a, k, j, p, turn):
    """Rows and columns ``j`` and ``p`` of the lower triangle from column ``k`` on change places."""
    if j == p:
        return
    a[p + 1:, [j, p]] = a[p + 1:, [p, j]]
    between = a[j + 1:p, j].copy()
    a[j + 1:p, j], a[p, j + 1:p] = turn(a[p, j + 1:p]), turn(between)
    a[p, j] = turn(a[p, j])
    a[[j, p], [j, p]] = a[[p, j], [p, j]]
    if k < j:
        a[[j, p], k] = a[[p, j], k]


def _factor(a, turn):
    """LD in the lower triangle, row exchanges counted from 1 (twice negative: a block of two), the number of the first zero block."""
    n, k, info = len(a), 0, 0
    pivots = np.zeros(n, np.int32)
    while k < n:
        step, p = _pivot(a, k)
        end = k + step
        _exchange(a, k, end - 1, p, turn)
        block, below = np.tril(a[k:end, k:end]), a[end:, k:end].copy()
        if step == 1 and not block.any():
            info = info or k + 1
        else:
            block = block + turn(np.tril(block, -1).T)
            factor = np.linalg.solve(block.T, below.T).T
            a[end:, end:] -= np.tril(factor @ turn(below.T))
            a[end:, k:end] = factor
        pivots[k:end] = p + 1 if step == 1 else -(p + 1)
        k = end
    return a, pivots, info


def _turn(a, hermitian):
    return np.conj if hermitian and a.dtype.kind == "c" else lambda v: v


def _each(fn, *arrays):
    """``fn`` over the matrices of batches, its results stacked."""
    lead = arrays[0].shape[:-2]
    count = math.prod(lead)
    return [fn(*parts) for parts in zip(*[a.reshape(count, *a.shape[len(lead):]) for a in arrays])]


def ldl(a, hermitian):
    rows = _each(lambda m: _factor(np.array(m), _turn(a, hermitian)), a)
    if not rows:
        return np.array(a), np.zeros(a.shape[:-1], np.int32), np.zeros(a.shape[:-2], np.int32)
    packed, pivots, info = (np.stack(part) for part in zip(*rows))
    return np.tril(packed.reshape(a.shape)), pivots, info


def ldl_solve(packed, pivots, b, hermitian):
    lead = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    packed, pivots, b = (np.broadcast_to(a, lead + a.shape[a.ndim - r:]) for a, r in ((packed, 2), (pivots, 1), (b, 2)))
    rows = _each(lambda *parts: _solve(*parts, _turn(packed, hermitian)), packed, pivots, b)
    return np.stack(rows).reshape(b.shape) if rows else np.array(b)


def _solve(packed, pivots, b, turn):
    """Forwards by the blocks of L, exchanging rows as the factorisation did, through D, and backwards."""
    x, n, k, blocks = np.array(b), len(packed), 0, []
    while k < n:
        step = 1 if pivots[k] > 0 else 2
        end, p = k + step, abs(int(pivots[k])) - 1
        blocks.append((k, end, p))
        x[[end - 1, p]] = x[[p, end - 1]]
        x[end:] -= packed[end:, k:end] @ x[k:end]
        block = np.tril(packed[k:end, k:end])
        x[k:end] = np.linalg.solve(block + turn(np.tril(block, -1).T), x[k:end])
        k = end
    for k, end, p in reversed(blocks):
        x[k:end] -= turn(packed[end:, k:end].T) @ x[end:]
        x[[end - 1, p]] = x[[p, end - 1]]
    return x
