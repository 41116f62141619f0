"""Matrices of middle size on devices that are no CPUs: a work-group to each, which keeps it in local memory (``kernels/linalg/*_group``)."""
from __future__ import annotations

import math

from .._tensor.dispatch import run
from .._tensor.repeat import repeated
from .._tensor.tensor import empty
from ..core import dtype as dt
from ._lanes import checked
from ._small import _columns, _layout

_DTYPES = (dt.float32, dt.float64)
_ROOMS = (32 * 33, 64 * 65)         # numbers that local memory is kept for
_GROUP = 256
_LEAST = 8                          # matrices: fewer are done sooner on the host


def suits(A, few=None):
    """Whether there are enough of the matrices ``A``, and their columns (or ``few``, if they are more) and numbers fit; with ``few`` there is a second of each."""
    device, (m, n) = A._storage.device, A.shape[-2:]
    if device.kind == "meta" or device.is_cpu or A.dtype not in _DTYPES or not A._numel or math.prod(A.shape[:-2]) < _LEAST:
        return False
    room = _room(m, max(n, few or 0))
    return room is not None and max(n, few or 0) <= min(128, device.max_work_group) and (1 + (few is not None)) * room * A.dtype.itemsize + 10240 <= device.local_mem


def suits_either(A):
    """The same of what may be transposed."""
    return suits(A if A.shape[-2] >= A.shape[-1] else A.mT)


def _room(rows, columns):
    numbers = (max(rows, 2) + 1) * (columns + columns % 2)
    return next((room for room in _ROOMS if numbers <= room), None)


def _size(device, most):
    """Work-items of a group that has work for ``most``."""
    return min(_GROUP, 1 << (device.max_work_group.bit_length() - 1), max(32, 1 << (most - 1).bit_length()))


@repeated
def qr(A, mode):
    """What :func:`._lanes.qr` gives."""
    lead, (m, n), device = tuple(A.shape[:-2]), A.shape[-2:], A._storage.device
    few, vectors = m if mode in ("complete", "raw") else min(m, n), mode in ("complete", "reduced")
    x, batch, rs, cs = _layout(A)
    R = _columns(lead + (few, n), A.dtype, device)
    Q = _columns(lead + (m, few), A.dtype, device) if vectors else empty(lead + (min(m, n),) if mode == "raw" else (0,), A.dtype, device)
    columns = max(n, few if vectors else 0)
    group = _size(device, columns)
    run(device, "linalg/qr_group", dict(T=A.dtype, ROOM=_room(m, columns), LEAST=128, VECTORS=vectors), (math.prod(lead) * group,), (group,), x, Q, R, m, n, few,
        batch, rs, cs, int(mode == "raw"))
    return Q, R


def eigenvalues(A, uplo):
    """Eigenvalues of symmetric matrices in ascending order, or None."""
    return checked(*_eigenvalues(A, uplo))


@repeated
def _eigenvalues(A, uplo):
    lead, n, device = tuple(A.shape[:-2]), A.shape[-1], A._storage.device
    values, failed = empty(lead + (n,), A.dtype, device), empty(lead, dt.int32, device)
    x, batch, rs, cs = _layout(A)
    group = _size(device, (n + 1) // 2 * ((n + 1) // 2))
    run(device, "linalg/eigenvalues_group", dict(T=A.dtype, ROOM=_room(n, n), LEAST=128), (math.prod(lead) * group,), (group,), x, values, failed, n, batch,
        *((rs, cs) if uplo.upper() == "L" else (cs, rs)))
    return values, failed


def singular_values(A):
    """Singular values in descending order, or None."""
    return checked(*_singular_values(A))


@repeated
def _singular_values(A):
    lead, (m, n), device = tuple(A.shape[:-2]), A.shape[-2:], A._storage.device
    few = min(m, n)
    values, failed = empty(lead + (few,), A.dtype, device), empty(lead, dt.int32, device)
    x, batch, rs, cs = _layout(A)
    group = _size(device, (few + 1) // 2 * 8)
    run(device, "linalg/singular_values_group", dict(T=A.dtype, ROOM=_room(max(m, n), few), LEAST=128), (math.prod(lead) * group,), (group,), x, values, failed,
        *((m, n, batch, rs, cs) if m >= n else (n, m, batch, cs, rs)))
    return values, failed
