"""Fused computations over rows of a few elements that follow each other in memory, some operands of which are one row for all or one element per row:
as many rows as a vector has lanes are as many vectors as a row has elements, whatever that number is.
"""
from __future__ import annotations

from ..core import dtype as dt
from . import codegen, vectors

FORM = "slim-vector-"       # the number of columns follows: it is part of the kernel
LARGE = 4096                # elements that such a kernel pays for


def columns(sizes, classes, walks, out_classes, out_walks) -> int:
    """The number of columns where this form serves such a walk, else 0."""
    if sizes is None or len(sizes) != 2 or not 1 < sizes[1] < 16:
        return 0
    whole, kinds = (sizes[1], 1), {(0, 0), (0, 1), (1, 0), (sizes[1], 1)}
    return sizes[1] if all(tuple(w) == whole for w in out_walks) and all(tuple(w) in kinds for w in walks) else 0


def plan(walk, units):
    """(form, walk, leading arguments, global size) of this form for about ``units`` tasks, None where it does not serve."""
    count = columns(*walk)
    if not count:
        return None
    rows = walk[0][0]
    chunk = max(16, min(16384 // count, -(-rows // units)) + 15 & ~15)
    return FORM + str(count), walk, [*walk[0], chunk], (-(-rows // chunk),)


def _leaves(program, count, wide):
    """(statements before the loop, statements per block of rows, function of a vector's number that gives the function of a leaf)."""
    before, block, texts = [], [], {}
    for k, (d, cls, _) in enumerate(program.leaves):
        row = dt.ALL[d]
        lanes = [range(q * wide, (q + 1) * wide) for q in range(count)]
        if cls == "01":
            before += [f"    const {row.acc}{wide} i{k}_{q} = ({row.acc}{wide})({', '.join(f'{row.load}(x{k}, {f % count})' for f in lanes[q])});" for q in range(count)]
            texts[k] = [f"i{k}_{q}" for q in range(count)]
        elif cls == "s0":
            block.append(f"        const {row.acc}{wide} c{k} = {vectors.load(row, wide, f'x{k} + row')};")
            texts[k] = [f"(({row.acc}{wide})({', '.join(f'c{k}.s{f // count:x}' for f in lanes[q])}))" for q in range(count)]

    def at(q):
        return lambda k: (texts[k][q], None) if k in texts else (f"x{k}", True) if program.leaves[k][1] == "00" else \
            (f"x{k} + row * {count} + {q * wide}", False)
    return before, block, at


def source(program, own):
    """(parameters, statements) of the kernel, as ``codegen`` has them for its forms; None without a vector form."""
    count, wide = int(program.form[len(FORM):]), vectors.width(program)
    if any(dt.ALL[d].category == dt.BOOL for _, d, *_ in program.outs):
        return None
    before, block, at = _leaves(program, count, wide)
    lines = ["    const long first = (long)get_global_id(0) * chunk, last = min(first + chunk, d0);", *before, "    long row = first;",
             f"    for (; row + {wide} <= last; row += {wide}) {{", *block]
    for q in range(count):
        body = vectors.values(program, at(q), own, wide, "            ")
        if body is None:
            return None
        ends = [vectors.store(dt.ALL[d], wide, f"y{k} + row * {count} + {q * wide}", f"v{v}") for k, (v, d, *_) in enumerate(program.outs)]
        lines += ["        {", *body, *["            " + text for text in ends], "        }"]
    place = {"00": "0", "01": "i", "s0": "row"}
    lines += ["    }", "    for (; row < last; row++)", f"        for (long i = 0; i < {count}; i++) {{",
              *codegen.values(program, "0", lambda k: place.get(program.leaves[k][1], f"row * {count} + i"), own, "            "),
              *[f"            {dt.ALL[d].store}(y{k}, row * {count} + i, v{v});" for k, (v, d, *_) in enumerate(program.outs)], "        }"]
    return codegen._dims(program) + ["const long chunk"], lines
