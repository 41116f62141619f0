"""Scans on GPUs along sequences that lie next to each other, or in a few columns: who takes what in kernels/scan/group.cl.mako."""
from __future__ import annotations

from .._tensor.dispatch import run
from .._tensor.tensor import empty
from ..core import dtype as dt

GROUP = 256             # work-items
WIDE = 32               # columns from which on neighbouring work-items read runs of memory by themselves (scan/cumulate)
EACH = 64               # bytes of an item at a time
LOOPS = 16              # tiles of a sequence from which on few sequences are cut into parts
BUSY = 96               # groups that keep a GPU's memory busy, each with two tiles on their way
PARTS = 1024            # at most, of all sequences: as many groups as a large GPU takes at once
EXTREMES = "max", "min"


def _floor(n) -> int:
    return 1 << (max(1, n).bit_length() - 1)


def size_of(device) -> int:
    """Work-items of a group."""
    return _floor(min(GROUP, device.max_work_group))


def suits(device, inner, n) -> bool:
    return not device.is_cpu and inner < WIDE <= size_of(device) // 2 and n < 2 ** 31 // WIDE


def elements(dtype, op) -> int:
    """Elements of an item at a time: odd, so that neighbouring items are at different banks of local memory."""
    return max(4, EACH // (max(4, dtype.acc_dtype.itemsize) * (2 if op in EXTREMES else 1))) - 1


def shape_of(size, n, inner, each):
    """(DEEP, UNITS, K, LOOP): few distinct kernels, so work-items of a short sequence are a power of two and their elements even."""
    deep = 1
    while deep * (each + 1) < n and 2 * deep * inner <= size:
        deep *= 2
    units, need = size // (deep * inner), -(-n // deep)
    if need > each + 2:
        return size // inner, 1, each, True
    return deep, units, need | 1 if units == 1 else need + 1 & -2, False


def scan(op, x, j, outs, outer, n, inner, reverse):
    """The scan of the dense ``x`` to ``outs``: the results, and of extremes their positions (``j``: those of the elements, else their places)."""
    device, extreme = x._storage.device, op in EXTREMES
    size, each = size_of(device), elements(x.dtype, op)

    def phase(name, z, outs, part, parts, positions):
        deep, units, count, loop = shape_of(size, n, inner, each) if parts == 1 else (size // inner, 1, each, True)
        params = dict(T=x.dtype, R=outs[0].dtype, OP=op, REVERSE=reverse, PHASE=name, INNER=inner, DEEP=deep, UNITS=units, SIZE=size, K=count, LOOP=loop,
                      POSITIONS=positions)
        run(device, "scan/group", params, (-(-outer // units) * size, parts), (size, 1), x, *z, *outs, outer, n, part, parts)
    tile, unused = size // inner * each, (outs[0], outs[1] if j is None else j) if extreme else (outs[0],)
    if n <= LOOPS * tile or outer >= BUSY or j is not None:
        phase("whole", unused, outs, n, 1, j is not None)
        return
    part = -(-n // max(1, PARTS // outer))
    part = -(-part // tile) * tile
    parts = -(-n // part)
    kind = (x.dtype, dt.int64) if extreme else (x.dtype.acc_dtype,)
    totals, scanned = ([empty((outer, parts, inner), t, device) for t in kind] for _ in range(2))
    phase("total", unused, totals, part, parts, j is not None)
    scan(op, totals[0], totals[1] if extreme else None, scanned, outer, parts, inner, False)
    phase("apply", scanned, outs, part, parts, False)
