"""Fused computations of large sizes for GPUs: a work-item has several elements, so that as many loads are on their way together; one alone leaves a third of
the memory's speed unused. Its elements lie a work-group apart, each next to its neighbours'.

  linear  all operands are walked in flat order
  rows    some columns of one row, or the same column of some rows where these are short
  turned  operands whose neighbours lie along the rows' dimension: squares of them go through local memory, so that memory is read and written in runs
"""
from __future__ import annotations

import re

from ..core import dtype as dt
from . import codegen, draws, vectors
from .node import Expr

GROUP = 256             # work-items of a group
LARGE = 1 << 20         # elements from which on a GPU is full with several in each work-item,
BRIEF = 12              # and instructions up to which these take no longer than their memory
TURNED = 1 << 16        # elements from which on operands are turned in local memory
CALLS = 2               # of functions; more are not written out several times
_HEAVY = frozenset(("pow", "lgamma", "clnn_fmod", "clnn_remainder", "clnn_floor_divide", "clnn_digamma", "clnn_erfinv", "clnn_j0", "clnn_j1", "clnn_y0", "clnn_y1"))
_CALLED = re.compile(r"\b(\w+)\(")
FORM = re.compile(r"(linear|rows|turned)-several")


def _sizes(program):
    """Bytes of an element of all operands."""
    return [dt.ALL[d].itemsize for d in [leaf[0] for leaf in program.leaves] + [out[1] for out in program.outs]]


def each(program) -> int:
    """Elements of a work-item: 16 bytes of the widest operand."""
    return max(4, 16 // max(_sizes(program)))


def _side_by_side(program) -> int:
    """Elements that a work-item takes side by side, so that it reads and writes at least four bytes at once and at most 16."""
    dtypes, sizes = [leaf[0] for leaf in program.leaves] + [out[1] for out in program.outs], _sizes(program)
    whole = not any(dt.ALL[d].is_complex for d in dtypes)
    return max(1, min(4 // min(sizes), 16 // max(sizes))) if whole else 1


def _width(program) -> int:
    """The same of operands in flat order: a block of random numbers, or what is aligned, as operands are that begin with their buffer."""
    begins = not any(leaf[2] for leaf in program.leaves) and not any(out[3] for out in program.outs)
    return draws.block(program) or (_side_by_side(program) if begins and draws.block(program) == 0 else 1)


def _brief(program) -> bool:
    """Is there little to write several times?"""
    called = []
    for e, c, *_ in program.code:
        text = Expr.all[e].text
        if dt.ALL[c].acc in ("float", "double"):
            named = [f for f in _CALLED.findall(text["float"] if isinstance(text, dict) else text) if f in vectors._LONG]
            called += named if dt.ALL[c].acc == "float" else named * CALLS * 2
    return len(program.code) <= BRIEF and len(called) <= CALLS and not _HEAVY.intersection(called)


def plan(device, program, form, sizes, numel, walks=()):
    """(form, leading arguments, global size, local size) where a GPU gains by it, in place of ``form``, which has one element; else None.

    ``walks``: the strides of operands over ``sizes``.
    """
    if device.max_work_group < GROUP or numel < TURNED or not _brief(program):
        return None
    if form == "linear-item" and numel >= LARGE:
        return "linear-several", [numel], (-(-numel // each(program)),), (GROUP,)
    if form != "rows-item" or len(sizes) < 2:
        return None
    inner, many = sizes[-1], each(program)
    rows = numel // inner
    if _turned(program) is not None:
        side = _side(program)
        across = -(-sizes[-2] // side)
        if sizes[-2] >= 16 and inner >= 16:
            return "turned-several", list(sizes), (-(-inner // side) * side, across * (rows // sizes[-2]) * (GROUP // side)), (side, GROUP // side)
    if numel < LARGE or any("s" in walk[-1:] or "m" in walk[-1:] for _, walk, *_ in program.leaves) or rows >= 1 << 31:
        return None
    wide, columns, deep = _shape(inner, many)
    width = _aligned(program, inner, walks) if deep == 1 else 1
    return f"rows-several-{wide}-{columns}-{deep}-{width}", list(sizes), (-(-inner // (columns * wide)) * wide, -(-rows // deep)), (wide, GROUP // wide)


def _aligned(program, inner, walks) -> int:
    """Elements side by side of a row: 1 where some row does not begin, or end, at a multiple of those that memory would have."""
    width = _side_by_side(program)
    begins = not any(leaf[2] for leaf in program.leaves) and not any(out[3] for out in program.outs)
    return width if begins and all(walk[-1] in (0, 1) and not any(s % width for s in walk[:-1]) for walk in walks) and inner % width == 0 else 1


def _shape(inner, many):
    """(columns of a group, columns and rows of an item) that leave few items without work."""
    if inner >= 32 * many:
        widths = [w for w in (256, 128, 64, 32) if w * many <= inner]
        return min(widths, key=lambda w: (round(-(-inner // (w * many)) * w * many / inner, 1), -w)), many, 1
    return min((256, 128, 64, 32, 16), key=lambda w: (-(-inner // w) * w, -w)), 1, many


def source(program, own):
    """(geometry parameters, statements) of the program's form."""
    return {"linear": _linear, "rows": _rows, "turned": _turned_source}[program.form.partition("-")[0]](program, own)


def _unless(whole, lines, count, index, bound, body):
    """``lines`` where all ``count`` elements are there, else ``body`` of those that are: ``index`` is the statement that places element ``e``."""
    # a loop that stays one has nothing in common with the other: compilers would join what ends both, and take the last load from its neighbours
    return [f"    if ({whole}) {{", *lines, "    } else {", "#pragma unroll 1", f"        for (int e = 0; e < {count}; e++) {{", f"            {index}",
            f"            if ({bound}) break;", *body, "        }", "    }"]


def _loop(variable, count, lines, step=""):
    return ["#pragma unroll", f"        for (int {variable} = 0; {variable} < {count}; {variable}{step or '++'}) {{", *lines, "        }"]


def _read(program, k, width, count, at):
    """Statements that read ``count`` elements of leaf ``k`` into ``r``k, ``width`` at a time: ``at`` is where those from ``e`` on are."""
    d, _, off = program.leaves[k]
    kind, lines = dt.ALL[d].c, [f"        {dt.ALL[d].c} r{k}[{count}];"]
    if width == 1:
        return lines + _loop("e", count, [f"            r{k}[e] = x{k}[{at}];"])
    whole = f"vload{width}(0, x{k} + {at})" if off else f"*(__global const {kind}{width}*)(x{k} + {at})"
    return lines + _loop("e", count, [f"            const {kind}{width} v = {whole};", *[f"            r{k}[e + {c}] = v.s{c};" for c in range(width)]], f" += {width}")


def _work(program, own, width, count, flat, start, once=(), texts=None):
    """Statements that compute the elements in ``r``k and write them. ``start`` are those ahead of ``width`` neighbours, which begin at column i and number
    ``flat`` in flat order; the leaves ``once`` have one element for all."""
    element = "e + c" if width > 1 else "e"

    def inputs(k):
        return "0" if k in once else element

    def outputs(k):
        return codegen._inner(f"y{k}", program.outs[k][2], "i")
    last = {v for v, *_ in program.outs} - {o for _, _, _, *operands in program.code for o in operands}
    if width == 1:
        values = codegen.values(program, flat, inputs, own, "            ", "r", None, last)
        return _loop("e", count, [*start, *values, *codegen._stores(program, outputs, "            ")])
    kinds = [dt.ALL[d].c for _, d, *_ in program.outs]
    lines = [*start, *[f"            {kind} t{k}[{width}];" for k, kind in enumerate(kinds)], "#pragma unroll", f"            for (int c = 0; c < {width}; c++) {{",
             *codegen.values(program, f"{flat} + c", inputs, own, "                ", "r", texts, last),
             *[f"                {dt.ALL[d].store}(t{k}, c, v{v});" for k, (v, d, *_) in enumerate(program.outs)], "            }"]
    for k, (kind, (*_, off)) in enumerate(zip(kinds, program.outs)):
        value = f"({kind}{width})({', '.join(f't{k}[{c}]' for c in range(width))})"
        lines.append(f"            vstore{width}({value}, 0, y{k} + {outputs(k)});" if off else f"            *(__global {kind}{width}*)(y{k} + {outputs(k)}) = {value};")
    return _loop("e", count, lines, f" += {width}")


def _linear(program, own):
    many, width = each(program), _width(program)
    once = [k for k, (_, cls, _) in enumerate(program.leaves) if cls == "0"]
    lines = []
    for k in range(len(program.leaves)):            # all that is read first: what branches, as division does, keeps loads behind it waiting
        lines += _read(program, k, 1, 1, "0") if k in once else _read(program, k, width, many, f"first + e * {GROUP}")
    drawn, texts = draws.of_block(program, "i", "            ") if width > 1 else ([], None)
    lines += _work(program, own, width, many, "i", [f"            const long i = first + e * {GROUP};", *drawn], once, texts)
    body = codegen._linear_element(program, own, "            ")
    return ["const long n"], [f"    const long first = (long)get_group_id(0) * {many * GROUP} + get_local_id(0) * {width};",
                              *_unless(f"first + {_last(many, width, GROUP)} < n", lines, many, f"const long i = {_place(width, GROUP)};", "i >= n", body)]


def _place(width, apart):
    """Where element ``e`` of a work-item is: ``width`` side by side, then as many by the work-items next to it."""
    return f"first + e * {apart}" if width == 1 else f"first + e / {width} * {width * apart} + e % {width}"


def _last(many, width, apart):
    return (many - width) * apart + width - 1


def _rows(program, own):
    wide, columns, deep, width = map(int, program.form.split("-")[2:])
    last, high, leaves = program.rank - 1, GROUP // wide, range(len(program.leaves))
    rows = " * ".join(f"d{j}" for j in range(last))
    place = [*codegen._outer_indices(program, "row", "const long", "            ", "uint"), *codegen._row_pointers(program, "            ")]
    body, flat = codegen.row_body(program, own, "i", "            "), f"row * d{last} + i"

    def column(k, at):
        return codegen._inner(f"x{k}", program.leaves[k][1], at)
    lines = [*codegen._rename_bases(program), f"    const long x = get_global_id(0), y = get_global_id(1), lx = get_local_id(0), rows = {rows};"]
    if deep == 1:
        once, whole = [k for k in leaves if column(k, "i") == "0"], []
        for k in leaves:
            whole += _read(program, k, 1, 1, "0") if k in once else _read(program, k, width, columns, column(k, f"first + e * {wide}"))
        whole += _work(program, own, width, columns, flat, [f"            const long i = first + e * {wide};"], once)
        lines += [f"    const long first = (x - lx) * {columns} + lx * {width}, row = y;", "    if (row >= rows) return;", "    {", *[line[8:] for line in place],
                  *_unless(f"first + {_last(columns, width, wide)} < d{last}", whole, columns, f"const long i = {_place(width, wide)};", f"i >= d{last}", body), "    }"]
    else:
        start = f"const long row = first + e * {high};"
        whole = [f"        {dt.ALL[program.leaves[k][0]].c} r{k}[{deep}];" for k in leaves]
        whole += _loop("e", deep, [f"            {start}", *place, *[f"            r{k}[e] = x{k}[{column(k, 'i')}];" for k in leaves]])
        whole += _work(program, own, 1, deep, flat, [f"            {start}", *place])
        lines += [f"    const long i = x, ly = get_local_id(1), first = (y - ly) * {deep} + ly;", f"    if (i >= d{last}) return;",
                  *_unless(f"first + {(deep - 1) * high} < rows", whole, deep, start, "row >= rows", [*place, *body])]
    return codegen._dims(program), lines


# ---- operands that are contiguous along the rows' dimension --------------------------------------------------------------------

def _turned(program):
    """The leaves to be turned, None where they are not the only obstacle."""
    found = [k for k, (_, cls, _) in enumerate(program.leaves) if cls not in ("l", "0") and cls[-1] == "s"]
    plain = all(cls in ("l", "0") or cls[-1] in "01" or k in found and cls[-2] == "1" for k, (_, cls, _) in enumerate(program.leaves))
    along = all(cls == "l" or cls[-1] == "1" for _, _, cls, _ in program.outs)
    return found if 0 < len(found) <= 2 and plain and along else None


def _side(program) -> int:
    """Rows and columns of a square: runs of 128 bytes."""
    return 32 if max(dt.ALL[program.leaves[k][0]].itemsize for k in _turned(program)) >= 4 else 64


def _turned_source(program, own):
    side, turned, r = _side(program), _turned(program), program.rank
    high = GROUP // side
    down, across = f"d{r - 2}", f"d{r - 1}"
    outer = [f"i{j}" for j in range(r - 2)]
    lines = [f"    __local {dt.ALL[program.leaves[k][0]].c} turned{k}[{side * (side + 1)}];" for k in turned]
    lines += [*codegen._rename_bases(program), "    const int lx = get_local_id(0), ly = get_local_id(1);",
              f"    const uint block = (uint)((get_global_id(1) - ly) / {high}), blocks = ((uint){down} + {side - 1}) / {side};",
              f"    const long a0 = (long)(block % blocks) * {side}, b0 = get_global_id(0) - lx;", "    uint rest = block / blocks;"]
    for j in range(r - 3, -1, -1):
        lines.append(f"    const long i{j} = {'rest' if j == 0 else f'rest % (uint)d{j}'};" + (f" rest /= (uint)d{j};" if j else ""))
    for k in turned:                            # what lies outside is read from the last place inside
        d, cls, _ = program.leaves[k]
        at = codegen.strided_index(f"x{k}", cls, [*outer, f"min(a0 + lx, {down} - 1)", f"min(b0 + ly + e * {high}, {across} - 1)"], "")
        lines += ["#pragma unroll", f"    for (int e = 0; e < {side // high}; e++) turned{k}[(ly + e * {high}) * {side + 1} + lx] = x{k}b[{at}];"]
    lines.append("    barrier(CLK_LOCAL_MEM_FENCE);")
    row = "row = " + " + ".join([f"a0 + ly + e * {high}", *[f"i{j} * {' * '.join(f'd{m}' for m in range(j + 1, r - 1))}" for j in range(r - 2)]])
    place = [f"            const long {row};", f"            const long i = b0 + lx, i{r - 2} = a0 + ly + e * {high};",
             *[line for line in codegen._row_pointers(program, "            ") if not any(f" x{k} = " in line for k in turned)],
             *[f"            __local const {dt.ALL[program.leaves[k][0]].c}* x{k} = turned{k} + lx * {side + 1} + ly;" for k in turned]]
    flat = f"row * {across} + i"
    body = [*codegen.values(program, flat, lambda k: f"e * {high}" if k in turned else codegen._inner(f"x{k}", program.leaves[k][1], "i"), own, "            "),
            *codegen._stores(program, lambda k: codegen._inner(f"y{k}", program.outs[k][2], "i"), "            ")]
    whole = _loop("e", side // high, [*place, *body])
    inside = f"a0 + {side} <= {down} && b0 + {side} <= {across}"
    lines += _unless(inside, whole, side // high, "", f"a0 + ly + e * {high} >= {down} || b0 + lx >= {across}", [*place, *body])
    return codegen._dims(program), lines
