"""Fused computations over a few columns which some operands have side by side, and others each for itself: images with channels last and channels
first. As many rows as a vector has lanes are a vector per column; where columns lie side by side, they are separated or joined in registers.
"""
from __future__ import annotations

import math

from ..core import dtype as dt
from . import codegen, vectors

FORM = "planes-vector-"     # the number of columns follows: it is part of the kernel
ROWS = 32                   # rows that such a kernel pays for
TASK = 4096                 # elements of a task at least


def plan(walk, units):
    """(form, walk with rows and columns last, leading arguments, global size) of this form for about ``units`` tasks, None where it does not serve."""
    sizes, _, walks, _, written = walk
    order = sizes and _order(sizes, [*walks, *written], written)
    if not order:
        return None
    sizes = tuple([sizes[j] for j in order])
    walks, written = ([tuple([w[j] for j in order]) for w in found] for found in (walks, written))
    *outer, rows, count = sizes
    batch = math.prod(outer)
    chunk = max(16, min(16384 // count, -(-rows * batch // units)) + 15 & ~15)
    pieces, each = -(-rows // chunk), max(1, TASK // (min(rows, chunk) * count))
    classes, out_classes = ([codegen.leaf_class(w) for w in found] for found in (walks, written))
    return FORM + str(count), (sizes, classes, walks, out_classes, written), [*sizes, batch * pieces, pieces, chunk, each], (-(-batch * pieces // each),)


def _order(sizes, walks, written):
    """The dimensions with rows and columns last; None where this form does not serve. ``written``: the walks of results."""
    for c in range(len(sizes)):
        for r in range(len(sizes)):
            if r == c or not _may([w[r] for w in walks], [w[c] for w in walks]):
                continue
            if 1 < sizes[c] < 16 and sizes[r] >= ROWS and _suits(sizes[c], [(w[r], w[c]) for w in walks], [(w[r], w[c]) for w in written]):
                return [j for j in range(len(sizes)) if j not in (r, c)] + [r, c]
    return None


def _may(rows, columns) -> bool:
    """Whether some operand has columns side by side, and another one rows: to be asked before their sizes are."""
    return any([s == 1 for s in columns]) and any([s == 1 for s in rows])


def _suits(count, steps, written) -> bool:
    whole = [s == (count, 1) for s in steps]
    apart = [s[0] == 1 and s[1] not in (-1, 0, 1) for s in steps]
    return (any(whole) and any(apart) and all(w or a or s in ((0, 0), (0, 1), (1, 0)) for s, w, a in zip(steps, whole, apart))
            and all(s[0] and s[1] for s in written))


def _apart(names, count, width):
    """C texts of the columns of rows that lie one behind the other in the vectors ``names``."""
    return [vectors.selected(names, [divmod(k * count + q, width) for k in range(width)], width) for q in range(count)]


def _joined(names, count, width):
    """The other way round."""
    return [vectors.selected(names, [divmod(f, count)[::-1] for f in range(q * width, (q + 1) * width)], width) for q in range(count)]


def _kind(cls):
    return {"s1": "whole", "1s": "apart", "s0": "row", "01": "column", "00": "one"}[cls[-2:] if cls != "0" else "00"]


def _leaf(program, k, count, wide):
    """(statements per block of rows, texts of leaf k's columns)."""
    row, kind = dt.ALL[program.leaves[k][0]], _kind(program.leaves[k][1])
    v = f"{row.acc}{wide}"
    if kind == "apart":
        return [], [vectors.load(row, wide, f"x{k} + at + {q} * x{k}_s{program.rank - 1}") for q in range(count)]
    if kind == "whole":
        lines = [f"        const {v} a{k}_{q} = {vectors.load(row, wide, f'x{k} + at * {count} + {q * wide}')};" for q in range(count)]
        return lines, _apart([f"a{k}_{q}" for q in range(count)], count, wide)
    if kind == "row":
        return [f"        const {v} c{k} = {vectors.load(row, wide, f'x{k} + at')};"], [f"c{k}"] * count
    return [], [f"({v})({row.load}(x{k}, {q if kind == 'column' else 0}))" for q in range(count)]


def _place(name, program, cls, q):
    """The index of the element in row ``at`` and column ``q``."""
    count = int(program.form[len(FORM):])
    return {"whole": f"at * {count} + {q}", "apart": f"at + {q} * {name}_s{program.rank - 1}", "row": "at", "column": f"{q}", "one": "0"}[_kind(cls)]


def _block(program, own, count, wide):
    """Statements for the rows from ``at`` on, a vector of them; None without a vector form."""
    lines, texts, ends = [], [], []
    for k in range(len(program.leaves)):
        block, columns = _leaf(program, k, count, wide)
        lines, texts = lines + block, texts + [columns]
    joined = [k for k, (_, _, cls, _) in enumerate(program.outs) if _kind(cls) == "whole"]
    lines += [f"        {dt.ALL[program.outs[k][1]].acc}{wide} o{k}_{q};" for k in joined for q in range(count)]
    for q in range(count):
        body = vectors.values(program, lambda k: (texts[k][q], None), own, wide, "            ")
        if body is None:
            return None
        stores = [f"o{k}_{q} = v{v};" if k in joined else vectors.store(dt.ALL[d], wide, f"y{k} + {_place(f'y{k}', program, cls, q)}", f"v{v}")
                  for k, (v, d, cls, _) in enumerate(program.outs)]
        lines += ["        {", *body, *["            " + text for text in stores], "        }"]
    for k in joined:
        for q, text in enumerate(_joined([f"o{k}_{q}" for q in range(count)], count, wide)):
            ends.append("        " + vectors.store(dt.ALL[program.outs[k][1]], wide, f"y{k} + at * {count} + {q * wide}", text))
    return lines + ends


def source(program, own):
    """(parameters, statements) of the kernel, as ``codegen`` has them for its forms; None without a vector form."""
    count, wide, r = int(program.form[len(FORM):]), vectors.width(program), program.rank
    if any(dt.ALL[d].category == dt.BOOL for _, d, *_ in program.outs):
        return None
    body = _block(program, own, count, wide)
    if body is None:
        return None
    lines = [*codegen._rename_bases(program), "    const long begin = get_global_id(0) * each, end = min(begin + each, tasks);",
             "    for (long task = begin; task < end; task++) {", f"    const long first = task % pieces * chunk, m = min(chunk, d{r - 2} - first);",
             f"    const long row = task / pieces * d{r - 2} + first;", *codegen._row_bases(program, "    "), "    long at = 0;",
             f"    for (; at + {wide} <= m; at += {wide}) {{", *body, "    }", "    for (; at < m; at++)", f"        for (long q = 0; q < {count}; q++) {{",
             *codegen.values(program, "0", lambda k: _place(f"x{k}", program, program.leaves[k][1], "q"), own, "            "),
             *[f"            {dt.ALL[d].store}(y{k}, {_place(f'y{k}', program, cls, 'q')}, v{v});" for k, (v, d, cls, _) in enumerate(program.outs)],
             "        }", "    }"]
    return codegen._dims(program) + [f"const long {name}" for name in ("tasks", "pieces", "chunk", "each")], lines
