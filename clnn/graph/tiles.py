"""Fused computations over operands whose neighbours lie along another dimension than the result's: squares of them are loaded along that
dimension, turned in registers and used row by row, so that every cache line is read and written once, whole.
"""
from __future__ import annotations

import re

from ..core import dtype as dt
from . import codegen, vectors

TILE = 64               # rows of a work-item
SEGMENT = 512           # columns of a work-item


def turned_leaves(program):
    """The leaves that are contiguous along the rows' dimension."""
    return [k for k, (_, cls, _) in enumerate(program.leaves) if cls not in ("l", "0") and cls[-1] == "s"]


def suits(program) -> bool:
    """True when turned operands (few enough for the registers) face a result that is written along its rows."""
    turned = turned_leaves(program)
    return (0 < len(turned) <= 2 and not any(cls[-1] == "m" for _, cls, _ in program.leaves) and all(program.leaves[k][1][-2] == "1" for k in turned)
            and all((cls == "l" or cls[-1] == "1") and dt.ALL[d].category != dt.BOOL for _, d, cls, _ in program.outs))


def _turn(name, width):
    """Statements that transpose the square of vectors ``name0``, ``name1``, ...: log2(width) rounds of exchanges at half the distance."""
    lanes, lines, h = "0123456789abcdef", [], width // 2
    while h:
        for i in range(width):
            if not i & h:
                low, high = ([f"{v}.s{lanes[b + shift:b + shift + h]}" for b in range(0, width, 2 * h) for v in (f"{name}{i}", f"{name}{i + h}")]
                             for shift in (0, h))
                lines.append(f"{{ const V lo = (V)({', '.join(low)}), hi = (V)({', '.join(high)}); {name}{i} = lo; {name}{i + h} = hi; }}")
        h //= 2
    return lines


class _Walk:
    """Pointer texts of a program's operands: at row ``q`` of a block, whose first row the pointers stand on, and column ``i``."""

    def __init__(self, program):
        self.program, self.rank = program, program.rank

    def row(self, name, cls):
        """The pointer at the start of row q."""
        if cls == "0" or cls != "l" and cls[-2] == "0":
            return name
        step = f"d{self.rank - 1}" if cls == "l" else "1" if cls[-2] == "1" else f"{name}_s{self.rank - 2}"
        return f"{name} + q * {step}"

    def leaf(self, k):
        cls = self.program.leaves[k][1]
        one = cls == "0" or cls != "l" and cls[-1] == "0"
        return (self.row(f"x{k}", cls) + ("" if one else " + i")), one

    def out(self, k):
        return self.row(f"y{k}", self.program.outs[k][2]) + " + i"


def _load_turned(program, k, wide):
    """Statements that leave rows 0, 1, ... of leaf k, columns i and on, in ``t<k>``."""
    row, step = dt.ALL[program.leaves[k][0]], f"x{k}_s{program.rank - 1}"
    v = f"{row.acc}{wide}"
    places = [f"x{k} + (i + {q}) * {step}" for q in range(wide)]
    return [*[f"            {v} a{k}_{q} = {vectors.load(row, wide, place)};" for q, place in enumerate(places)],
            *[f"            FETCH({place} + {wide});" for place in places],           # the next rows' lines: used after this block of rows
            *["            " + re.sub(r"\bV\b", v, text) for text in _turn(f"a{k}_", wide)],
            f"            const {v} t{k}[{wide}] = {{{', '.join(f'a{k}_{q}' for q in range(wide))}}};"]


def _edges(program, walk, own):
    """Statements for the columns that are left, and for blocks of fewer rows, element by element."""
    lines = ["        for (int q = 0; q < rows; q++) {"]
    for k, (d, cls, _) in enumerate(program.leaves):
        lines.append(f"            __global const {dt.ALL[d].c}* z{k} = {walk.row(f'x{k}', cls)};")
    lines.append("            for (long i = edge; i < hi; i++) {")
    body = codegen.values(program, "0", lambda k: codegen._inner(f"x{k}", program.leaves[k][1], "i"), own, "                ")
    lines += [re.sub(r"\bx(\d+),", r"z\1,", text) for text in body]
    lines += [f"                {dt.ALL[d].store}({walk.out(k)}, 0, v{v});" for k, (v, d, *_) in enumerate(program.outs)]
    return [*lines, "            }", "        }"]


def source(program, own):
    """(parameters, statements) of the kernel, as ``codegen`` has them for its forms; None where no operand is turned or without vectors."""
    if not suits(program):
        return None
    r, wide, turned, walk = program.rank, vectors.width(program), turned_leaves(program), _Walk(program)
    body = vectors.values(program, lambda k: (f"t{k}[q]", None) if k in turned else walk.leaf(k), own, wide, "                ")
    if body is None:
        return None
    lines = [*codegen._rename_bases(program), "    const long batch = get_global_id(0) / across, lo = (long)get_global_id(1) * seg;",
             f"    const long hi = min(lo + seg, d{r - 1}), first = (long)(get_global_id(0) % across) * {TILE}, last = min(first + {TILE}, d{r - 2});",
             f"    for (long at = first; at < last; at += {wide}) {{", f"        const int rows = (int)min(last - at, {wide}L);",
             f"        const long row = batch * d{r - 2} + at;", *codegen._row_bases(program, "        "), "        long edge = lo;",
             f"        if (rows == {wide}) for (; edge + {wide} <= hi; edge += {wide}) {{", "            const long i = edge;"]
    for k in turned:
        lines += _load_turned(program, k, wide)
    lines.append(f"            for (int q = 0; q < {wide}; q++) {{")
    lines += [f"                FETCH({walk.out(k)} + {wide});" for k in range(len(program.outs))]
    stores = [vectors.store(dt.ALL[d], wide, walk.out(k), f"v{v}") for k, (v, d, *_) in enumerate(program.outs)]
    lines += [*body, *["                " + text for text in stores], "            }", "        }", *_edges(program, walk, own), "    }"]
    return codegen._dims(program) + ["const long across", "const long seg"], lines
