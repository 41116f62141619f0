"""Many small matrices on the device: on CPUs as many at a time as a vector has lanes, else one per work-item (``kernels/linalg/*_lanes``).

:func:`suits` says for which sizes that is better than LAPACK on the host, whose calls cost more than the work on a few numbers.
"""
from __future__ import annotations

import math

from .._tensor.dispatch import run
from .._tensor.interop import read
from .._tensor.repeat import repeated
from .._tensor.tensor import empty
from ..core import dtype as dt
from ._small import _columns, _layout

_DTYPES = (dt.float32, dt.float64)
_ROOM = {True: (1024,), False: (16, 64, 256)}       # elements that a work-item has room for, on CPUs and on other devices, where that is short
_ALONE = 64


def suits(A, elements=None):
    """Whether the matrices ``A`` are for the kernels, which keep ``elements`` of one (those that it has). Alone a slow work-item takes the smallest."""
    device, elements = A._storage.device, elements or math.prod(A.shape[-2:])
    if A.dtype not in _DTYPES or not A._numel or device.kind == "meta":
        return False
    return elements <= (_ROOM[device.is_cpu][-1] if device.is_cpu or math.prod(A.shape[:-2]) >= device.compute_units else _ALONE)


def suits_several(A, count):
    """The same for what takes longer, so that larger matrices have to be several."""
    return suits(A) and (math.prod(A.shape[-2:]) <= 256 or count >= 32 // A.dtype.itemsize)


def _how(A, elements, count=None):
    """Parameters of a kernel, size of its launch and of a group, how many matrices there are."""
    device, count = A._storage.device, math.prod(A.shape[:-2]) if count is None else count
    W = 64 // A.dtype.itemsize if device.is_cpu else 1
    room = next(most for most in _ROOM[device.is_cpu] if elements <= most)
    return dict(T=A.dtype, W=W, ROOM=room, LEAST=math.isqrt(room)), (-(-count // W),), (1,) if W > 1 else None, count


@repeated
def qr(A, mode):
    """Q (empty where ``mode`` is ``r``) and R, column by column; the reflections in place of R and their factors where ``mode`` is ``raw``."""
    lead, (m, n), device = tuple(A.shape[:-2]), A.shape[-2:], A._storage.device
    few = m if mode in ("complete", "raw") else min(m, n)
    params, size, group, count = _how(A, m * max(n, few if mode == "complete" else 0))
    x, batch, rs, cs = _layout(A)
    R = _columns(lead + (few, n), A.dtype, device)
    Q = _columns(lead + (m, few), A.dtype, device) if mode in ("complete", "reduced") else empty(lead + (min(m, n),) if mode == "raw" else (0,), A.dtype, device)
    run(device, "linalg/qr_lanes", params, size, group, x, Q, R, count, m, n, few, batch, rs, cs, int(mode in ("complete", "reduced")), int(mode == "raw"))
    return Q, R


def checked(result, failed):
    """``result``, or None where the status of a matrix is not 0: LAPACK has the last word then. Waits for the device."""
    return None if read(failed).any() else result


def eigenvalues(A, uplo):
    """Eigenvalues of symmetric matrices in ascending order, or None."""
    return checked(*_eigenvalues(A, uplo))


@repeated
def _eigenvalues(A, uplo):
    lead, n, device = tuple(A.shape[:-2]), A.shape[-1], A._storage.device
    values, failed = empty(lead + (n,), A.dtype, device), empty(lead, dt.int32, device)
    params, size, group, count = _how(A, n * n)
    x, batch, rs, cs = _layout(A)
    run(device, "linalg/eigenvalues_lanes", params, size, group, x, values, failed, count, n, batch, *((rs, cs) if uplo.upper() == "L" else (cs, rs)))
    return values, failed


def singular_values(A):
    """Singular values in descending order, or None."""
    return checked(*_singular_values(A))


@repeated
def _singular_values(A):
    lead, (m, n), device = tuple(A.shape[:-2]), A.shape[-2:], A._storage.device
    values, failed = empty(lead + (min(m, n),), A.dtype, device), empty(lead, dt.int32, device)
    params, size, group, count = _how(A, m * n)
    x, batch, rs, cs = _layout(A)
    run(device, "linalg/singular_values_lanes", params, size, group, x, values, failed, count, *((m, n, batch, rs, cs) if m >= n else (n, m, batch, cs, rs)))
    return values, failed


@repeated
def least_squares(A, B, lead, limit):
    """Solutions for matrices ``A`` of full rank, and per matrix 0, or 1 where that is in doubt: the condition is not below ``limit``.

    ``lead``: the shape of the batch, which ``A`` and ``B`` have, unless one matrix is for all.
    """
    (m, n), k, device = A.shape[-2:], B.shape[-1], A._storage.device
    X, failed = _columns(lead + (n, k), A.dtype, device), empty(lead, dt.int32, device)
    params, size, group, count = _how(A, m * n, math.prod(lead))
    a, ba, ra, ca = _layout(A)
    b, bb, rb, cb = _layout(B)
    ba, bb = ba if A.shape[:-2].numel() == count else 0, bb if B.shape[:-2].numel() == count else 0
    run(device, "linalg/least_squares_lanes", params, size, group, a, b, X, failed, count, *((m, n) if m >= n else (n, m)), k, ba,
        *((ra, ca) if m >= n else (ca, ra)), bb, rb, cb, int(m < n), float(limit))
    return X, failed


def suits_lu(A, B=None):
    """Whether there are as many of the square or other matrices ``A`` as lanes are worth, each small enough for exchanges of rows that differ by lane."""
    return A.dtype in _DTYPES and 0 < math.prod(A.shape[-2:]) <= 256 and math.prod(A.shape[:-2]) >= 8 and A._storage.device.is_cpu and (
        B is None or B.dtype is A.dtype and B._numel > 0 and (B.shape[:-2] == A.shape[:-2] or B.shape[:-2].numel() == 1 and len(B.shape) <= len(A.shape)))


@repeated
def lu(A, pivot=True):
    """L and U packed, row exchanges counted from 1, and per matrix 0 or the number of the first zero pivot."""
    lead, (m, n), device = tuple(A.shape[:-2]), A.shape[-2:], A._storage.device
    LU, pivots = _columns(A.shape, A.dtype, device), empty(lead + (min(m, n),), dt.int32, device)
    return LU, pivots, _eliminate(A, "factors", (LU, pivots), pivot)


@repeated
def solve(A, B):
    """``X`` with ``A X = B``, or the inverse where ``B`` is None, and the same status."""
    lead, n, k = tuple(A.shape[:-2]), A.shape[-1], A.shape[-1] if B is None else B.shape[-1]
    X = _columns(lead + (n, k), A.dtype, A._storage.device)
    b, bb, rb, cb = (A, 0, 0, 0) if B is None else _layout(B)
    return X, _eliminate(A, "solve", (b, X), True, k, 0 if B is not None and B.shape[:-2].numel() == 1 else bb, rb, cb, int(B is None))


@repeated
def determinant(A, log=False):
    """The determinants, or their signs and the logarithms of their sizes."""
    found = tuple([empty(tuple(A.shape[:-2]), A.dtype, A._storage.device) for _ in range(1 + log)])
    _eliminate(A, "log" if log else "determinant", found, True)
    return found if log else found[0]


def _eliminate(A, form, operands, pivot, *more):
    info, (params, size, group, count) = empty(tuple(A.shape[:-2]), dt.int32, A._storage.device), _how(A, math.prod(A.shape[-2:]))
    x, batch, rs, cs = _layout(A)
    run(A._storage.device, "linalg/lu_lanes", dict(params, FORM=form), size, group, x, info, *operands, count, *A.shape[-2:], batch, rs, cs, int(pivot), *more)
    return info
