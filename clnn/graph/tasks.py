"""How elementwise work is cut into tasks and work-groups."""
from __future__ import annotations

from ..core import symbols

NARROW = 16             # innermost dimensions shorter than this are avoided
TILE = 64               # rows and columns that a work-item takes together when operands are walked across their memory order


def plan(device, sizes, numel, crossing=False):
    """(form, leading arguments, global size, local size).

    ``crossing``: some operand has its neighbours along rows (a transpose); work in tiles then, so that each cache line is used up while it is there.
    """
    loop = device.loops
    if sizes is None:
        if loop:
            chunk = share(numel, device.compute_units, 4096, 65536)
            return "linear-loop", [numel, chunk], (-(-numel // chunk),), (1,)
        return "linear-item", [numel], (numel,), (_local(device, numel),)
    inner = sizes[-1]
    rows = numel // inner
    if len(sizes) > 1 and inner < NARROW and numel < 2 ** 31:
        if loop:
            chunk = share(numel, device.compute_units, 2048, 1 << 62)
            return "flat-loop", [*sizes, numel, chunk], (-(-numel // chunk),), (1,)
        return "flat-item", [*sizes, numel], (numel,), (_local(device, numel),)
    if loop and crossing and inner >= TILE and rows >= TILE:
        return "rows-loop", [*sizes, rows, TILE, TILE], (-(-rows // TILE), -(-inner // TILE)), (1, 1)
    if loop:
        seg = TILE * 16 if crossing else inner if rows >= 4 * device.compute_units else share(inner, device.compute_units, 4096, 1 << 62)
        chunk = max(1, 8192 // min(inner, seg), -(-rows // 64) if not crossing else 1)
        return "rows-loop", [*sizes, rows, chunk, seg], (-(-rows // chunk), -(-inner // seg)), (1, 1)
    return "rows-item" if rows < 2 ** 32 else "rows-item-long", list(sizes), (inner, rows), work_group(device, inner, rows, crossing)


def work_group(device, inner, rows, crossing=False):
    """A work-group over (innermost dimension, rows): wide for long rows, many rows together for short ones; few distinct ones."""
    wide = _wide(device, inner, crossing)
    return wide, _deep(device, wide, rows)


@symbols.computed
def _wide(device, inner, crossing):
    if inner >= 256 and not crossing:
        return 256
    return TILE if inner >= TILE and (device.is_cpu or not crossing) else 16


@symbols.computed
def _deep(device, wide, rows):
    if wide == 256:
        return 8 if device.is_cpu and rows >= 32 and device.max_work_group >= 2048 else 1         # a task per group, there
    deep = (1024 if device.is_cpu else 256) // wide
    while deep >= 2 * rows and deep > 1:
        deep //= 4
    return max(1, deep)


@symbols.computed
def _local(device, n):
    """A work-group that divides no size needlessly. On CPUs each costs a task: large ones for large sizes."""
    if device.is_cpu and n >= 1 << 16:
        return min(2048, device.max_work_group)
    return 256 if n >= 256 else 64 if n >= 64 else 16


@symbols.computed
def share(n, units, least, most, step=1):
    """Elements of a task, some of which there are for each of the units."""
    return max(least, min(most, -(-(-(-n // (4 * units))) // step) * step))


@symbols.computed
def rows_of(rows, inner, seg, tasks):
    """Rows of a task: some thousand elements, or all in so many tasks."""
    return max(1, min(8192 // min(inner, seg), -(-rows // tasks)))
