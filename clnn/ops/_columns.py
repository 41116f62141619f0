"""How kernels for CPUs go through columns: in runs of a page, as a visit of a page costs much beside the lines that are read there, and pages of rows that
lie a power of two apart compete for the same places in caches.
"""
from __future__ import annotations

PAGE = 4096             # bytes
SMALL = 1 << 19         # elements up to which all are in nearer caches: runs are short then
WORK = 1 << 16          # elements that are worth a work-item


def span_of(dtype, inner=1 << 20, rows=1 << 20) -> int:
    """Columns of a work-item: a multiple of 64, runs of equal length if ``inner`` columns make several."""
    most = 64 if rows * inner <= SMALL else min(2048, PAGE // dtype.itemsize)
    pieces = -(-inner // most)
    return min(most, -(-inner // pieces) + 63 & ~63)


def part_of(device, outer, n, inner, dtype) -> int:
    """Rows per part, so that every unit gets work although runs are long."""
    idle = 4 * device.compute_units // (outer * -(-inner // span_of(dtype, inner, outer * n)))
    return n if idle < 2 else min(n, max(-(-n // idle), WORK // inner))
