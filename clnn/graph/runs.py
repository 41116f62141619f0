"""Fused computations whose innermost dimension has a few elements, on CPUs: the run is written out, so that no index is divided and compilers join its moves.

Leaves that are read across the result's order come in pieces of some lines into a tile of private memory, from which the result is written along its rows:
every line is read and written once, whole, and strides that are powers of two do no harm.
"""
from __future__ import annotations

import math

from ..core import dtype as dt
from . import codegen, vectors

FORM = "runs-loop-"         # the number of elements follows, and the numbers of leaves that come in tiles: they are part of the kernel
STATEMENTS = 96             # up to which a run is written out
TASK = 8192                 # elements of a work-item, about
PIECE = 128                 # elements of a leaf in one piece
PIECES = 32                 # columns of a tile


def plan(walk, units):
    """(form, walk, leading arguments, global size) of this form for about ``units`` tasks, None where it does not serve."""
    sizes, _, walks, _, _ = walk
    if sizes is None or len(sizes) < 2 or not 1 < sizes[-1] < 16:
        return None
    count, columns, rows = sizes[-1], sizes[-2], sizes[-3] if len(sizes) > 2 else 1
    turned = [k for k, w in enumerate(walks) if rows > 1 and w[-3] == count and w[-1] == 1 and w[-2] > count]
    deep = min(rows, PIECE // count if turned else max(1, TASK // (columns * count)))
    across = -(-rows // deep)
    batch = across * math.prod(sizes[:-3])
    wide = max(TASK // (deep * count), -(-columns * batch // units)) if turned else TASK // count
    wide = min(columns, -(-wide // PIECES) * PIECES)
    return FORM + "-".join(map(str, [count, *turned])), walk, [*sizes, across, deep, wide], (-(-columns // wide), batch)


class _Walk:
    """Index texts of operands: at row ``a``, whose batch has the indices ``i0``..., then columns ``b`` and elements of the run."""

    def __init__(self, program):
        self.rank = program.rank
        self.count, *self.turned = map(int, program.form[len(FORM):].split("-"))
        self.height = f"d{self.rank - 3}" if self.rank > 2 else "1L"

    def row(self, name, cls, a):
        if cls in ("l", "0"):
            return f"flat * {self.count}" if cls == "l" else "0"
        outer = [f"i{j}" for j in range(self.rank - 3)] + [a] * (self.rank > 2)
        return codegen.strided_index(name, cls[:self.rank - 2], outer, "")

    def element(self, name, cls, b, i):
        if cls == "0":
            return "0"
        step = str(self.count) if cls == "l" else {"0": "0", "1": "1", "s": f"{name}_s{self.rank - 2}"}[cls[-2]]
        inner = i if cls == "l" else {"0": "0", "1": i, "m": f"-({i})", "s": f"({i}) * {name}_s{self.rank - 1}"}.get(cls[-1]) or f"({i}) * {cls[-1]}"
        return f"{b} * {step} + {inner}"

    def batch(self):
        """Statements for the indices of the batch."""
        lines = ["    long rest = batch;"] if self.rank > 3 else []
        for j in range(self.rank - 4, -1, -1):
            lines.append(f"    const long i{j} = {'rest' if j == 0 else f'rest % d{j}'};")
            if j:
                lines.append(f"    rest /= d{j};")
        return lines


def _pieces(program, walk):
    """Statements that bring the turned leaves' elements of rows a0..a1 and columns b2..b3 into tiles."""
    lines, pitch = [], PIECE // walk.count * walk.count
    for k in walk.turned:
        d, cls, _ = program.leaves[k]
        row = dt.ALL[d]
        place = f"x{k}b + {walk.row(f'x{k}', cls, 'a0')} + {walk.element(f'x{k}', cls, 'b', '0')}"
        lines += ["        for (long b = b2; b < b3; b++) {", f"            __global const {row.c}* restrict from = {place};",
                  f"            const int m = (int)(a1 - a0) * {walk.count};",
                  f"            for (int f = 0; f < m; f++) t{k}[(b - b2) * {pitch} + f] = {row.load}(from, f);", "        }"]
    return lines


def _run(program, walk, own, i, indent):
    """Statements for element ``i`` of the run."""
    body = codegen.values(program, f"(flat + b) * {walk.count} + {i}", lambda k: walk.element(f"x{k}", program.leaves[k][1], "b", i), own, indent)
    for k in walk.turned:
        at = f"(b - b2) * {PIECE // walk.count * walk.count} + (a - a0) * {walk.count} + {i}"
        body[k] = f"{indent}const {dt.ALL[program.leaves[k][0]].acc} l{k} = t{k}[{at}];"
    return [*body, *codegen._stores(program, lambda k: walk.element(f"y{k}", program.outs[k][2], "b", i), indent, True)]


def source(program, own):
    """(parameters, statements) of the kernel, as ``codegen`` has them for its forms; None where long functions gain more by vectors."""
    if vectors.calls(program):
        return None
    r, walk = program.rank, _Walk(program)
    lines = [line.replace("chunk", "wide") for line in codegen._one(program)]
    lines += [*codegen._rename_bases(program), f"    const long b0 = get_global_id(0) * wide, b1 = min(b0 + wide, d{r - 2}), batch = get_global_id(1) / across;",
              f"    const long a0 = get_global_id(1) % across * deep, a1 = min(a0 + deep, {walk.height});", *walk.batch()]
    lines += [f"    {dt.ALL[program.leaves[k][0]].acc} t{k}[{PIECES * PIECE}];" for k in walk.turned]
    lines += [f"    for (long b2 = b0; b2 < b1; b2 += {PIECES}) {{", f"        const long b3 = min(b2 + {PIECES}, b1);"] if walk.turned else \
             ["    {", "        const long b2 = b0, b3 = b1;"]
    lines += [*_pieces(program, walk), "        for (long a = a0; a < a1; a++) {", f"            const long flat = (batch * {walk.height} + a) * d{r - 2};"]
    for k, (d, cls, _) in enumerate(program.leaves):
        lines.append(f"            __global const {dt.ALL[d].c}* restrict x{k} = x{k}b + ({walk.row(f'x{k}', cls, 'a')});")
    for k, (_, d, cls, _) in enumerate(program.outs):
        lines.append(f"            __global {dt.ALL[d].c}* restrict y{k} = y{k}b + ({walk.row(f'y{k}', cls, 'a')});")
    lines += ["            #pragma clang loop vectorize(disable) interleave(disable)", "            for (long b = b2; b < b3; b++) {"]
    if len(program.code) * walk.count <= STATEMENTS:
        for i in range(walk.count):
            lines += ["                {", *_run(program, walk, own, str(i), "                    "), "                }"]
    else:
        lines += [f"                for (int i = 0; i < {walk.count}; i++) {{", *_run(program, walk, own, "i", "                    "), "                }"]
    return codegen._dims(program) + [f"const long {name}" for name in ("across", "deep", "wide")], [*lines, "            }", "        }", "    }"]
