"""Fused computations over operands whose neighbours lie along another dimension than the result's: squares of them are loaded along that
dimension, turned in registers and used row by row, so that every cache line is read and written once, whole.
"""
from __future__ import annotations

import re

from ..core import dtype as dt
from . import codegen, vectors

TILE = 64               # rows of a work-item
SEGMENT = 512           # columns of a work-item
UNROLLED = 16           # statements per row up to which the rows of a square are written out


def turned_leaves(program):
    """The leaves that are contiguous along the rows' dimension."""
    return [k for k, (_, cls, _) in enumerate(program.leaves) if cls not in ("l", "0") and cls[-1] == "s"]


def suits(program) -> bool:
    """True when turned operands (few enough for the registers) face a result that is written along its rows."""
    turned = turned_leaves(program)
    return (0 < len(turned) <= 2 and not any(cls[-1] in "m" + codegen.STEPS for _, cls, _ in program.leaves) and all(program.leaves[k][1][-2] == "1" for k in turned)
            and all((cls == "l" or cls[-1] == "1") and dt.ALL[d].category != dt.BOOL for _, d, cls, _ in program.outs))


def _shuffled(name, v, i, j, low, high):
    """Statement that leaves two selections of the elements of vectors i and j in their places; one shuffle each, which compilers keep as they are."""
    a, b = f"{name}{i}", f"{name}{j}"
    first, second = (f"CLNN_SHUFFLE({a}, {b}, {', '.join(map(str, places))})" for places in (low, high))
    return f"{{ const {v} lo = {first}, hi = {second}; {a} = lo; {b} = hi; }}"


def _turn(name, v, width, size):
    """(statements that transpose the square of vectors ``name0``, ``name1``, ... of type ``v``, the names of its columns in order).

    Elements are exchanged within pieces of 16 bytes first, then whole pieces: each step is one cheap instruction of a processor's.
    """
    each = min(16 // size, width)
    pieces, lines, columns, h = width // each, [], [0], 1
    while h < each:                                     # halves of each piece of two rows, in turn
        def half(start, h=h):
            return [r * width + p * each + start + q + e for p in range(pieces) for q in range(0, each // 2, h) for r in (0, 1) for e in range(h)]
        lines += [_shuffled(name, v, i, i + h, half(0), half(each // 2)) for i in range(width) if not i & h]
        columns += [c + each // 2 // h for c in columns]
        h *= 2
    h = 1
    while h < pieces:                                   # every other piece of two vectors
        def other(start):
            return [r * width + p * each + e for r in (0, 1) for p in range(start, pieces, 2) for e in range(each)]
        lines += [_shuffled(name, v, i, i + h * each, other(0), other(1)) for i in range(width) if not i // each & h]
        h *= 2
    return lines, [f"{name}{p * each + c}" for p in range(pieces) for c in columns]


class _Walk:
    """Pointer texts of a program's operands: at row ``q`` of a tile, whose first row the pointers stand on, and column ``i``."""

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

    def flat(self, turned):
        """The pointers that go along row q."""
        found = [self.leaf(k) for k in range(len(self.program.leaves)) if k not in turned]
        return [text for text, one in found if not one] + [self.out(k) for k in range(len(self.program.outs))]


def _load_turned(program, k, wide):
    """Statements that leave rows at, at + 1, ... of leaf k, columns i and on, in ``t<k>``."""
    row, step = dt.ALL[program.leaves[k][0]], f"x{k}_s{program.rank - 1}"
    v = f"{row.acc}{wide}"
    turn, columns = _turn(f"a{k}_", v, wide, row.acc_dtype.itemsize)
    places = [f"x{k} + at + (i + {q}) * {step}" for q in range(wide)]
    lines = [*[f"{v} a{k}_{q} = {vectors.load(row, wide, place)};" for q, place in enumerate(places)],
             *[f"FETCH({place} + {wide} * {step});" for place in places], *turn,            # the lines of the next columns
             f"const {v} t{k}[{wide}] = {{{', '.join(columns)}}};"]
    return ["            " + line for line in lines]


def _edges(program, walk, own, first, last, begin):
    """Statements for the rows of the tile from ``first`` to ``last`` and their columns from ``begin`` on, element by element."""
    lines = [f"    for (int q = {first}; q < {last}; q++) {{"]
    for k, (d, cls, _) in enumerate(program.leaves):
        lines.append(f"        __global const {dt.ALL[d].c}* z{k} = {walk.row(f'x{k}', cls)};")
    lines.append(f"        for (long i = {begin}; i < hi; i++) {{")
    body = codegen.values(program, "0", lambda k: codegen._inner(f"x{k}", program.leaves[k][1], "i"), own, "            ")
    lines += [re.sub(r"\bx(\d+),", r"z\1,", text) for text in body]
    lines += [f"            {dt.ALL[d].store}({walk.out(k)}, 0, v{v});" for k, (v, d, *_) in enumerate(program.outs)]
    return [*lines, "        }", "    }"]


def source(program, own):
    """(parameters, statements) of the kernel, as ``codegen`` has them for its forms; None where no operand is turned or without vectors."""
    if not suits(program):
        return None
    r, wide, turned, walk = program.rank, vectors.width(program), turned_leaves(program), _Walk(program)
    body = vectors.values(program, lambda k: (f"t{k}[q - at]", None) if k in turned else walk.leaf(k), own, wide, "                ")
    if body is None:
        return None
    lines = [*codegen._rename_bases(program), "    const long batch = get_global_id(0) / across, lo = (long)get_global_id(1) * seg;",
             f"    const long hi = min(lo + seg, d{r - 1}), first = (long)(get_global_id(0) % across) * {TILE}, row = batch * d{r - 2} + first;",
             f"    const int rows = (int)min({TILE}L, d{r - 2} - first), whole = rows / {wide} * {wide};",
             "    {", *codegen._row_bases(program, "    "), "    long edge = lo;", f"    for (; edge + {wide} <= hi; edge += {wide})",
             f"        for (int at = 0; at < whole; at += {wide}) {{", "            const long i = edge;"]
    for k in turned:
        lines += _load_turned(program, k, wide)
    lines += ["            #pragma unroll"] * (len(body) <= UNROLLED) + [f"            for (int q = at; q < at + {wide}; q++) {{"]
    lines += [f"                FETCH({place} + {wide});" for place in walk.flat(turned)]
    stores = [vectors.store(dt.ALL[d], wide, walk.out(k), f"v{v}") for k, (v, d, *_) in enumerate(program.outs)]
    lines += [*body, *["                " + text for text in stores], "            }", "        }",
              *_edges(program, walk, own, "0", "whole", "edge"), *_edges(program, walk, own, "whole", "rows", "lo"), "    }"]
    return codegen._dims(program) + ["const long across", "const long seg"], lines
