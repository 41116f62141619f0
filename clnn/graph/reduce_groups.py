"""Reductions on GPUs: which work-items of a group share an output, and the statements of these kernels.

Rows: ``lanes`` items share a row, ``across`` of them its innermost dimension and the others its rows; a group has as many rows as it has room for.
Columns: a group has some columns side by side, and several items for each. All combine what they have in local memory, in the order of the items.
"""
from __future__ import annotations

GROUP = 256             # work-items
BUSY = 1 << 18          # work-items that a large GPU takes at once
EACH = 4                # elements of an item of a row, at least
AHEAD = 8               # loads of an item that are on their way at a time; of 16 bits and less, and where items are few, twice as many
ENOUGH = 512            # long rows that occupy a large GPU with a group for each
FEW = 8 * AHEAD         # rows of a column's item for which a second launch takes longer
LONG = 1 << 15          # elements of an output from which on a second launch takes less time than to add them up in one group
SECTOR = 32             # bytes that memory gives at least
SHORT = 8               # elements that one item adds up alone


def group(device) -> int:
    """Work-items of a group: a power of two."""
    return 1 << (min(GROUP, device.max_work_group).bit_length() - 1)


def _floor(n) -> int:
    return 1 << (max(1, n).bit_length() - 1)


def _ceil(n) -> int:
    return 1 << (max(1, n) - 1).bit_length()


def arrange(device, geo, itemsize) -> None:
    """Parts enough for all units, but none so short, and none so many, that adding them up takes longer than that saves; and who shares an output."""
    geo.part_rows, geo.part_inner, geo.parts = geo.rows, geo.inner, 1
    if geo.column:
        count = geo.kept[-1]
        team = columns(device, geo.outputs, count, geo.rows, itemsize)
        geo.part_rows, geo.parts = cut_columns(geo.outputs, count, geo.rows, team)
        geo.team = *team, *trips(-(-geo.part_rows // team[1]), itemsize <= 2 or geo.outputs * geo.parts * team[1] <= BUSY // 4)
    elif geo.kind != "short":
        geo.part_rows, geo.part_inner, geo.parts = cut(geo.outputs, geo.rows, geo.inner)
        geo.team = lanes(device, min(geo.part_rows, geo.rows), min(geo.part_inner, geo.inner), itemsize <= 2, geo.outputs * geo.parts)


def cut(outputs, rows, inner):
    """(rows per part, elements per part of a row, parts) of an output that is reduced along rows."""
    total, most = rows * inner, min(1024, BUSY // GROUP // max(1, outputs))
    if total < LONG or most < 2 or outputs >= ENOUGH:
        return rows, inner, 1
    each = max(AHEAD * GROUP, -(-total // most))
    if rows == 1 or rows < most // 2:
        part = -(-(-(-each // rows)) // GROUP) * GROUP
        return rows, part, -(-inner // part)
    part = -(-each // inner)
    return part, inner, -(-rows // part)


def lanes(device, rows, inner, narrow=False, outputs=BUSY):
    """(work-items of a row, those along its innermost dimension, work-items of a group, places of an item at a time, whether these are all), for a part of
    ``rows`` by ``inner`` elements."""
    size = group(device)
    many = min(size, _floor(rows * inner // EACH))
    across = min(many, _ceil(inner))
    more = narrow or outputs * many <= BUSY // 4
    return many, across, size, *trips(-(-rows * across // many) if many > across else -(-inner // across), more)


def trips(count, more):
    """(places of an item at a time, whether that is all)."""
    ahead = 2 * AHEAD if more else AHEAD
    return min(count, ahead), count <= ahead


def columns(device, outputs, inner, rows, itemsize):
    """(columns of a group, work-items of each); one item needs no others where there are columns enough."""
    size, least = group(device), max(1, SECTOR // itemsize)
    wide = min(size, inner if inner < 32 else 64 if itemsize <= 2 and inner >= 64 else 32)
    if FEW * (size // wide) < rows <= FEW * (size // least) and least < wide and outputs * (size // least) <= BUSY:
        wide = least            # more items for each column save the second launch
    deep = min(_floor(size // wide), _ceil(BUSY // max(1, outputs)), _floor(rows // 2))
    return (wide, deep) if deep > 1 else (min(size, _ceil(inner)), 1)


def cut_columns(outputs, inner, rows, team):
    """(rows per part, parts): groups for all units, each item with some rows."""
    wide, deep = team
    if rows <= FEW * deep:
        return rows, 1
    groups = outputs // inner * -(-inner // wide)
    parts = max(1, min(1024 // max(1, groups), rows // (AHEAD * deep)))
    part = -(-rows // parts)
    return part, -(-rows // part)


def row(acc, identity, fold, head, per_row, element, store, team):
    """Statements of a kernel over rows; the other arguments are those of the forms in ``reduce``."""
    many, across, size, count, once = team
    head = [line.replace("row1 =", "row_end =") for line in head]
    some = "there"
    if many > across:               # rows are no longer than the items beside each other
        some = f"there && in0 + l % {across} < in1"
        place = [f"        const long i = in0 + l % {across};"]
        walk = _walk("row", f"row0 + l / {across}", "row1", many // across, count, once, [*per_row, *place, *element], fold)
    else:
        walk = ["#pragma unroll 1", "    for (long row = row0; row < row1; row++) {", *per_row,
                *_walk("i", "in0 + l", "in1", across, count, once, element, fold), "    }"]
    return [f"    const int lid = get_local_id(0), l = lid % {many};",
            f"    const long place = (long)get_group_id(0) * {size // many} + lid / {many};",
            "    const bool there = place < outputs;", "    const long o = there ? place : 0, p = get_global_id(1);", *head,
            f"    const long row1 = {some} ? row_end : row0;", f"    {acc} mine = {identity};", *walk, *_tree(acc, fold, many, size, 1),
            f"    if (l == 0 && there) {{ const {acc} total = {'part[lid]' if many > 1 else 'mine'}; {store} }}"]


def column(acc, identity, fold, head, per_row, element, store, team, width):
    """Statements of a kernel over columns, of which there are ``width`` side by side."""
    wide, deep, count, once = team
    head = [line.replace("outer = get_global_id(1)", f"outer = get_global_id(1) / {deep}").replace("row1 =", "row_end =") for line in head]
    return [f"    const int l = get_local_id(1), lid = l * {wide} + (int)get_local_id(0);", "    const long at = get_global_id(0);",
            f"    const bool there = at < {width};", f"    const long i = there ? at : {width} - 1;", *head, "    const long row1 = there ? row_end : row0;",
            f"    {acc} mine = {identity};", *_walk("row", "row0 + l", "row1", deep, count, once, [*per_row, *element], fold),
            *_tree(acc, fold, deep, wide * deep, wide), f"    if (l == 0 && there) {{ const {acc} total = {'part[lid]' if deep > 1 else 'mine'}; {store} }}"]


def _walk(name, first, end, step, count, once, body, fold):
    """Statements that fold what ``body`` computes at places ``name``, ``count`` of them at a time, all of whose loads are on their way together. What is left
    goes in runs of half as many each: compilers make a branch of a choice per place, which waits for each load. ``once``: there are no more than ``count``."""
    def block(many):
        return ["#pragma unroll", f"        for (int k = 0; k < {many}; k++) {{", f"            const long {name} = {at} + k * {step};", *body,
                f"            mine = {fold('mine', 'e')};", "        }"]
    at = f"{name}_at"
    lines = [f"    long {at} = {first};"]
    if not once:
        lines += [f"    for (; {at} + {(count - 1) * step} < {end}; {at} += {count * step}) {{", *block(count), "    }"]
    runs = [1 << k for k in reversed(range((count - 1).bit_length()))]
    for many in [count, *runs] if once else runs:
        lines += [f"    if ({at} + {(many - 1) * step} < {end}) {{", *block(many), f"        {at} += {many * step};", "    }"]
    return lines


def _tree(acc, fold, many, size, step):
    """What ``many`` items have, ``step`` items apart, is combined in the part of the first of them."""
    if many == 1:
        return []
    return [f"    __local {acc} part[{size}];", "    part[lid] = mine;", f"    for (int s = {many // 2}; s > 0; s >>= 1) {{", "        barrier(CLK_LOCAL_MEM_FENCE);",
            f"        if (l < s) part[lid] = {fold('part[lid]', f'part[lid + s * {step}]')};", "    }"]
