"""Matrices on the device: LU, Cholesky factors, QR and triangular solves, one work-group per matrix, or on CPUs one per block of columns (``kernels/linalg``).

Functions take float32 or float64 tensors and allocate their results; :func:`suits` says for which sizes that is better than LAPACK on the host.
"""
from __future__ import annotations

import math
import struct

from .._tensor.dispatch import run
from .._tensor.formats import with_strides
from .._tensor.repeat import repeated
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.shape import Size, contiguous_strides

_DTYPES = (dt.float32, dt.float64)
_MOST = {True: 128, False: 64}      # rows that a work-group keeps in local memory, on CPUs and on other devices, where it is short
_LARGE = 256            # rows from which on CPUs keep them in other memory
_WHOLE = 208            # float32 rows on CPUs up to which one core is as fast as all that work in blocks; float64 ones up to 128
_TALL = 1024            # rows up to which kernels have room for few
_MOST_IN_BLOCKS = 3072  # rows from which on LAPACK on the host is as fast
_REFLECTED = 48         # rows and columns from which on reflections are made in blocks
_MANY = 128             # columns from which on they are solved for in blocks
_COLUMNS = 32           # columns of a right side that a work-group of a GPU takes


def suits(A, B=None, factored=False):
    """Whether the matrices ``A`` are for the kernels, with right sides ``B``. ``factored``: they are triangles already."""
    if A.dtype not in _DTYPES or not A._numel or B is not None and (B.dtype is not A.dtype or not B._numel):
        return False
    device = A._storage.device
    if device.kind == "meta":
        return False
    most = _MOST[device.is_cpu]
    if device.is_cpu and max(A.shape[-2:]) <= _MOST_IN_BLOCKS and (A.dtype is dt.float32 or _in_blocks(A)):
        return True
    return max(A.shape[-2:]) <= most and (most + 4) * most * A.dtype.itemsize < device.local_mem


def _lanes(A):
    return 64 // A.dtype.itemsize if A._storage.device.is_cpu else 1


def _size(A):
    """Rows that the kernel has room for, in few steps, so that few are built; group size."""
    device, (m, n) = A._storage.device, A.shape[-2:]
    if device.is_cpu:
        return next(most for most in (_MOST[True], _LARGE, _TALL, _MOST_IN_BLOCKS) if max(m, n) <= most), 1
    small = max(m, n) <= _MOST[False] // 2
    most = _MOST[False] // 2 if small else _MOST[False]
    return most, min(device.max_work_group, 64 if small else 256)


def _columns(shape, dtype, device):
    """An empty tensor whose matrices lie column by column, as LAPACK leaves them."""
    *lead, m, n = shape
    turned = (*lead, n, m)
    t = empty(turned, dtype, device)
    t._shape = Size(shape)
    return with_strides(t, (*contiguous_strides(turned)[:-2], 1, max(m, 1)))


def _room(A, most):
    """Whether kernels work in global memory, and what they take for it."""
    W, (m, n) = _lanes(A), A.shape[-2:]
    large = most >= _LARGE
    return large, (empty((A.shape[:-2].numel() * m, -(-n // W) * W), A.dtype, A._storage.device),) if large else ()


def _in_blocks(A):
    """Whether a matrix is for the kernels that work in blocks."""
    return A._storage.device.is_cpu and max(A.shape[-2:]) > (_WHOLE if A.dtype is dt.float32 else _MOST[True])


def _blocks(A):
    """Parameters of kernels that work in blocks of columns, and how many these are."""
    device = A._storage.device
    W, B = device.lanes(A.dtype.c), 4 * _lanes(A)
    return dict(T=A.dtype, W=W, NV=B // W, R=6, P=4 if device.wide else 2), B


def _steps(rows):
    """Rows that kernels have room for, so that few are built."""
    return next(most for most in (_TALL, _MOST_IN_BLOCKS) if rows <= most)


def _items(blocks, step, last=None):
    """Work-items of a launch: one per block in the first and in the last one, else per block that is left, and more of them with little to do."""
    return blocks if step in (-1, last) else 2 * (blocks - step - 1) + 3


def _rows(t):
    """``t``, or a copy, whose rows are contiguous; distances of matrices and rows."""
    if t._strides[-1] != 1 or len(t.shape) > 3:
        t = t.contiguous()
    return t, t._strides[-3] if t.shape[:-2].numel() > 1 else 0, t._strides[-2]


def _layout(t):
    """``t``, or a copy, whose matrices are evenly spaced; distances of matrices, rows and columns."""
    m, n = t.shape[-2:]
    if len(t.shape) == 2 and not t.is_contiguous():
        return (t, m * n, *t._strides)
    if t.mT.is_contiguous() and not t.is_contiguous():
        return t, m * n, 1, m
    return t.contiguous(), m * n, n, 1


@repeated
def lu(A, pivot=True, inner=False):
    """L and U packed, row exchanges counted from 1, and per matrix 0 or the number of the first zero pivot. ``inner``: row by row, for :func:`lu_solve` alone."""
    lead, (m, n), device = tuple(A.shape[:-2]), A.shape[-2:], A._storage.device
    pivots, info = empty(lead + (min(m, n),), dt.int32, device), empty(lead, dt.int32, device)
    x, batch, rs, cs = _layout(A)
    if _in_blocks(A):
        params, B = _blocks(A)
        blocks = -(-n // B)
        room = empty((*lead, m, blocks * B + params["W"]), A.dtype, device)
        LU = room if inner else _columns(A.shape, A.dtype, device)
        last, params = -(-min(m, n) // B) - 1, dict(params, MOST=_steps(m))
        for step in range(-1, last + 1):
            run(device, "linalg/lu_blocks", params, (_items(blocks, step, last), math.prod(lead)), (1, 1), x, LU, pivots, info, room, m, n, batch, rs, cs,
                int(pivot), int(not inner), step)
        return LU.narrow(-1, 0, n) if inner else LU, pivots, info
    LU = _columns(A.shape, A.dtype, device)
    (most, group), W = _size(A), _lanes(A)
    large, room = _room(A, most)
    run(device, "linalg/lu", dict(T=A.dtype, W=W, MOST=most, LARGE=large), (math.prod(lead) * group,), (group,), x, LU, pivots, info, *room, m, n, batch,
        rs, cs, int(pivot))
    return LU, pivots, info


@repeated
def cholesky(A, turned=False):
    """The lower factor, whose transpose lies column by column where ``turned``, and per matrix 0 or the order of the first leading minor that is not
    positive definite (where the factor is NaN)."""
    lead, n, device = tuple(A.shape[:-2]), A.shape[-1], A._storage.device
    L, info = (empty if turned else _columns)(A.shape, A.dtype, device), empty(lead, dt.int32, device)
    x, batch, rs, cs = _layout(A)
    if _in_blocks(A):
        params, B = _blocks(A)
        blocks = -(-n // B)
        room = empty((*lead, blocks * B, blocks * B + params["W"]), A.dtype, device)
        for step in (*range(-1, blocks - 1), blocks):
            run(device, "linalg/cholesky_blocks", dict(params, MOST=_steps(blocks * B)), (_items(blocks, step, blocks), math.prod(lead)), (1, 1),
                x, L, info, room, n, batch, rs, cs, int(turned), step)
        return L, info
    most, group = _size(A)
    large, room = _room(A, most)
    run(device, "linalg/cholesky", dict(T=A.dtype, W=_lanes(A), MOST=most, LARGE=large), (math.prod(lead) * group,), (group,), x, L, info, *room, n, batch,
        rs, cs, int(turned))
    return L, info


@repeated
def substitute(A, B, passes, pivots=None, exchange=0):
    """``X``: ``B`` solved with the triangles ``passes`` of ``A``, in turn.

    Args:
        A: (*, n, n), a batch that broadcasts with that of ``B``.
        B: (*, n, r), or None: identity matrices.
        passes: up to two (turned, upper, unit): of ``A`` or of its transpose, which triangle, and whether its diagonal is taken as ones.
        pivots: row exchanges, carried out before (``exchange`` 1) or backwards afterwards (2).
    """
    device, n = A._storage.device, A.shape[-1]
    lead = tuple(A.shape[:-2])
    if B is not None and tuple(B.shape[:-2]) != lead:
        from ..core.shape import broadcast_shapes
        lead = tuple(broadcast_shapes(lead, tuple(B.shape[:-2])))
        A = _spread(A, lead, 2)
        pivots = pivots if pivots is None else _spread(pivots, lead, 1)
        B = _spread(B, lead, 2)
    r, one = n if B is None else B.shape[-1], math.prod(lead) == 1
    X = _columns(lead + (n, r), A.dtype, device)
    if _in_blocks(A) and r >= _MANY:
        return _substitute_in_blocks(A, B, X, passes, pivots, exchange)
    a, ba, ra, ca = _layout(A)
    b, bb, rb, cb = (a, 0, 0, 0) if B is None else _layout(B)
    ba, bb = ba if one or A.shape[:-2].numel() > 1 else 0, bb if one or B is None or B.shape[:-2].numel() > 1 else 0
    how = []
    for turned, upper, unit in passes:
        how += [ca, ra, int(upper), int(unit)] if turned else [ra, ca, int(upper), int(unit)]
    W, most = _lanes(A), _size(A)[0] if device.is_cpu else _MOST[False]
    group = 1 if device.is_cpu else min(_COLUMNS, device.max_work_group, 1 << (r - 1).bit_length())
    run(device, "linalg/substitute", dict(T=A.dtype, W=W, N=most, LOCAL=1 if device.is_cpu else _COLUMNS), (-(-r // W), math.prod(lead)), (group, 1),
        a, a if pivots is None else pivots.contiguous(), b, X, n, r, ba, n if ba or one else 0, bb, rb, cb, int(B is None), exchange, len(passes),
        struct.pack("8q", *how, *[0] * (8 - len(how))))
    return X


def _substitute_in_blocks(A, B, X, passes, pivots, exchange):
    device, (n, r), count = A._storage.device, X.shape[-2:], X.shape[:-2].numel()
    used = [_rows(A.mT if turned else A) for turned, *_ in passes] or [_rows(A)]
    (first, b1, r1), (second, b2, r2) = used[0], used[-1]
    b, bb, rb, cb = (first, 0, 0, 0) if B is None else _layout(B)
    params, wide = _blocks(A)
    blocks = -(-r // wide)
    room = empty((count, n, blocks * wide + params["W"]), A.dtype, device)
    how = [int(flag) for _, *flags in passes for flag in flags]
    run(device, "linalg/substitute_blocks", params, (blocks, count), (1, 1), first, second, room if pivots is None else pivots.contiguous(), b, X, room, n, r,
        b1, r1, b2, r2, n if pivots is not None and pivots._numel > n else 0, bb if B is not None and B.shape[:-2].numel() > 1 else 0, rb, cb,
        int(B is None), exchange, len(passes), struct.pack("4q", *how, *[0] * (4 - len(how))))
    return X


def _spread(t, lead, own):
    """``t`` with the batch ``lead``, unless it has one matrix, which all share."""
    return t if math.prod(t.shape[:-own]) == 1 else t.expand(lead + tuple(t.shape[len(t.shape) - own:])).contiguous()


def suits_qr(A):
    """Whether Q and R of ``A`` come from blocks of columns."""
    return A._storage.device.is_cpu and A.dtype in _DTYPES and min(A.shape[-2:]) >= _REFLECTED and max(A.shape[-2:]) <= _MOST_IN_BLOCKS and A._numel > 0


@repeated
def qr(A, mode):
    """Q (empty where ``mode`` is ``r``) and R, column by column."""
    lead, (m, n), device = tuple(A.shape[:-2]), A.shape[-2:], A._storage.device
    count, few = math.prod(lead), min(m, n)
    room, V, turned, params = _reflect(A, few)
    rows = m if mode == "complete" else few
    R = room.narrow(-1, 0, n).narrow(-2, 0, rows).mT.tril().contiguous().mT
    if mode == "r":
        return empty((0,), A.dtype, device), R
    Q, room = _columns(lead + (m, rows), A.dtype, device), empty((count, m, -(-rows // turned.shape[-1]) * turned.shape[-1] + params["W"]), A.dtype, device)
    run(device, "linalg/q_blocks", params, (-(-rows // turned.shape[-1]), count), (1, 1), V, turned, Q, room, m, n, rows)
    return Q, R


def _reflect(A, few):
    """R with ``few`` rows in more room, the reflections and the factors of their blocks, parameters of the kernels."""
    lead, (m, n), device = tuple(A.shape[:-2]), A.shape[-2:], A._storage.device
    x, batch, rs, cs = _layout(A)
    params, B = _blocks(A)
    count, blocks = math.prod(lead), -(-n // B)
    room, V = (empty((*lead, m, blocks * B + params["W"]), A.dtype, device) for _ in range(2))
    turned = empty((count, blocks, B, B), A.dtype, device)
    for step in range(-1, min(-(-few // B), blocks - 1)):
        run(device, "linalg/qr_blocks", dict(params, MOST=_steps(m)), (_items(blocks, step), count), (1, 1), x, room, V, turned, m, n, batch, rs, cs, step)
    return room, V, turned, params


@repeated
def triangle_of(A, n):
    """R of the first ``n`` columns, with zeros below its diagonal, and n rows of Q^T times the other columns, which are reflected like any."""
    room = _reflect(A, n)[0].narrow(-2, 0, n)
    return room.narrow(-1, 0, n).triu(), room.narrow(-1, n, A.shape[-1] - n).contiguous()


_FORWARD = ((False, False, True), (False, True, False))
_ADJOINT = ((True, False, False), (True, True, True))


def lu_solve(LU, pivots, B, adjoint=False):
    """``X`` with ``A X = B`` (``A^T X = B`` when ``adjoint``) from :func:`lu`; ``B`` None: the inverse."""
    return substitute(LU, B, _ADJOINT if adjoint else _FORWARD, pivots, 2 if adjoint else 1)


def cholesky_solve(L, B, upper=False):
    """``X`` with ``L L^T X = B`` (``L^T L X = B`` when ``upper``); ``B`` None: the inverse."""
    return substitute(L, B, ((upper, False, False), (not upper, True, False)))


def permutation(LU, pivots):
    """``P`` of ``A = P L U``."""
    return substitute(LU, None, (), pivots, 1).mT               # the exchanges in their own order give its transpose


@repeated
def determinant(LU, pivots, log=False):
    """The determinants, or their signs and the logarithms of their sizes."""
    lead, device, n = tuple(LU.shape[:-2]), LU._storage.device, LU.shape[-1]
    found = [empty(lead, LU.dtype, device) for _ in range(1 + log)]
    far, step = LU._strides[-3] if lead else 0, sum(LU._strides[-2:])
    run(device, "linalg/determinant", dict(T=LU.dtype, LOG=bool(log)), (math.prod(lead),), None, LU, pivots, *found, math.prod(lead), n, far, step)
    return tuple(found) if log else found[0]
