"""Fused computations written with OpenCL vector types, for CPU drivers: one instruction then serves 8 or 16 elements, whatever the
driver's own vectoriser makes of the loops around it.

Only programs whose text means the same for vectors qualify: arithmetic, some functions, comparisons and choices, no other branches and no rounding to a
narrower storage type. ``form`` says whether a program does; the callers keep a scalar form for all others.
"""
from __future__ import annotations

import re

from ..core import dtype as dt
from . import choices, codegen, draws
from .node import Expr

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|\d+\.\d*(?:[eE][-+]?\d+)?f?|\d+f?|[-+*/(),^~]|&(?!&)|\|(?!\|))")
# Functions that gain by whole vectors on drivers that vectorise loops by themselves, which they do in vectors half as wide, and not where a function
# branches, as these look at all lanes before they do.
_LONG = codegen.OWN | frozenset(("floor", "ceil", "trunc", "rint", "clnn_fmod", "clnn_remainder", "clnn_floor_divide",
                                  "clnn_digamma", "clnn_erfinv", "clnn_j0", "clnn_j1", "clnn_y0", "clnn_y1"))
_FUNCTIONS = _LONG | frozenset(("fabs", "sqrt", "rsqrt"))
_DRAWN = frozenset(("clnn_uniform", "clnn_exponential", "clnn_keep", "clnn_coin", "clnn_scaled", "clnn_less"))      # of words
_CALL = re.compile(rf"\b(?:{'|'.join(sorted(_LONG))})\(")
_FLOATING = re.compile(r"(?<!\w)\d+\.\d*|(?<!\w)\d+f\b")
_BITS = re.compile(r"\((?:\w+ [&|^]|1 -) \w+\)")      # of 0 and 1 it makes 0 or 1
_SERIES = re.compile(r"\bclnn_(?:dirichlet_grad|gamma_grad|igammac?)\(")
_QUOTIENT = re.compile(r"\bclnn_(?:fmod|remainder)\(")


class _Scalar(Exception):
    """The program has no vector form."""


_REST = "#pragma clang loop vectorize(disable) interleave(disable) unroll(disable)"      # for the last few elements that would be built for nothing
_DRAWN_VECTOR = re.compile(r"\bas_ulong8\(d\d+_\d+\)|\bd\d+_\d+(?:\.lo|\.hi)?")


def is_plain(text, names, more=()):
    """True when ``text`` holds nothing but operands, numbers, + - * / & | ^ ~ and functions of vectors."""
    at, text = 0, text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return False
        word = token.group(1)
        if (word[0].isalpha() or word[0] == "_") and word not in names and word not in _FUNCTIONS and word not in more:
            return False
        at = token.end()
    return True


def _says(program, pattern) -> bool:
    """True when the text of an instruction on floats matches."""
    for e, c, *_ in program.code:
        text = Expr.all[e].text
        if dt.ALL[c].acc in ("float", "double") and pattern.search(text["float"] if isinstance(text, dict) else text):
            return True
    return False


def calls(program) -> bool:
    """True when the program calls a function for which whole vectors serve a driver better that vectorises loops by itself."""
    return _says(program, _CALL)


def sums_up(program) -> bool:
    """True when the program calls a function that adds terms until they are small. Intel's compiler gets such loops wrong inside of the loop of a reduction: the
    derivatives of shares, of which five operands are read, lost what some of the work-items had."""
    return _says(program, _SERIES)


def numberwise(program) -> bool:
    """True for what Intel's runtime does better in work-items: between floats and 64-bit integers it converts vectors number by number, and a vector
    waits for the largest of its quotients."""
    rows = [dt.ALL[leaf[0]] for leaf in program.leaves] + [dt.ALL[i] for ins in program.code for i in ins[1:3]]
    return any(r.acc == "long" for r in rows) and any(r.category == dt.FLOAT for r in rows) or _says(program, _QUOTIENT)


def width(program, *more) -> int:
    """Elements per vector: 512 bits of the widest compute type."""
    rows = [dt.ALL[leaf[0]] for leaf in program.leaves] + [dt.ALL[i] for ins in program.code for i in ins[1:3]] + list(more)
    return 8 if any(r.acc in ("double", "long") for r in rows) else 16


def selected(names, places, width):
    """C text of a vector with the elements ``places``, (vector, lane) pairs of the vectors ``names``: a shuffle per vector but the first."""
    used = sorted({v for v, _ in places})
    text, done = names[used[0]], used[:1]
    for v in used[1:] or used:
        lanes = [width + lane if at == v and v not in done else (k if len(done) > 1 else lane) if at in done else -1 for k, (at, lane) in enumerate(places)]
        text, done = f"CLNN_SHUFFLE({text}, {names[v]}, {', '.join(map(str, lanes))})", done + [v]
    return text


def _pieces(width, step):
    """(places of whole vectors, (vector, lane) of each of ``width`` elements that lie ``step`` apart); none reaches beyond the last element."""
    if step < 0:
        return [1 - width], [(0, width - 1 - k) for k in range(width)]
    starts = [min(q * width, (width - 1) * (step - 1)) for q in range(step)]
    chosen = [min(k * step // width, step - 1) for k in range(width)]
    return starts, [(q, k * step - starts[q]) for k, q in enumerate(chosen)]


def load(row, width, pointer, step=1):
    """C text of ``width`` elements from ``pointer`` on, in the compute type; ``step``: from one to the next, -1 or a small number."""
    whole = f"clnn_load_{row.name}_{width}({{}})" if row.round_trip else f"vload{width}(0, {{}})"
    starts, places = _pieces(width, step)
    raw = whole.format(pointer) if step == 1 else selected([whole.format(f"{pointer} + {start}") for start in starts], places, width)
    if row.round_trip:
        return raw
    if row.category == dt.BOOL:
        return f"(-convert_int{width}({raw} != (uchar{width})0))"
    return raw if row.c == row.acc else f"convert_{row.acc}{width}({raw})"


def store(row, width, pointer, value):
    """Statement that stores the vector ``value`` of the compute type at ``pointer``."""
    if row.round_trip:
        return f"clnn_store_{row.name}_{width}({pointer}, {value});"
    return f"vstore{width}({value if row.c == row.acc else f'convert_{row.c}{width}({value})'}, 0, {pointer});"


def _truth(mask, acc, width):
    """C text of 1 where a comparison of vectors of type ``acc`` is true and 0 elsewhere."""
    return f"convert_int{width}(-({mask}))" if acc in ("double", "long") else f"(-({mask}))"


def _convert(value, source, target, width):
    if target.category == dt.BOOL and source.category != dt.BOOL:
        return _truth(f"{value} != ({source.acc}{width})0", source.acc, width)
    if source.category == target.category == dt.INT and codegen.wraps(source, target):
        raise _Scalar
    return value if source.acc == target.acc else f"convert_{target.acc}{width}({value})"


def _truths(program):
    """True when all that the program reads and makes is bool: bytes, of which more fit a vector than of what work-items compare."""
    return all(dt.ALL[d].category == dt.BOOL for part in (*[leaf[:1] for leaf in program.leaves], *[i[1:3] for i in program.code]) for d in part)


def _stored(value, compute, target, width):
    if target.acc == "int" and target.itemsize < 4:        # numbers wrap around there, and truth is 1
        raise _Scalar
    if target.round_trip:
        return f"clnn_round_{target.name}_{width}({value if compute.acc == 'float' else f'convert_float{width}({value})'})"
    return f"({value})" if compute.acc == target.acc else f"convert_{target.acc}{width}({value})"


def _operand(program, o, types, compute, width, expr):
    if o >= 0 or o % 2:
        k = -(o + 1) // 2
        name, source, one = (f"v{o}", types[o], False) if o >= 0 else (f"l{k}", dt.ALL[program.leaves[k][0]], not program.leaves[k][1].strip("0"))
        text = _convert(name, source, compute, width)
        return f"clnn_round_{compute.name}_{width}({text})" if codegen.is_rounded(source, compute, expr, one) else text
    if compute.category == dt.BOOL:
        raise _Scalar
    return f"(({compute.acc}{width})({codegen.number(-o // 2 - 1, compute, expr)}))"


def _instruction(program, n, types, own, width, part):
    e, c, d, *operands = program.code[n]
    compute, out, expr = dt.ALL[c], dt.ALL[d], Expr.all[e]
    if compute.is_complex or out.is_complex or compute in dt.UNSIGNED or out in dt.UNSIGNED or expr.uses_index and part is None or compute.category in expr.failing:
        raise _Scalar
    if expr.name == "cast":
        o = operands[0]
        source = None if o < 0 and o % 2 == 0 else types[o] if o >= 0 else dt.ALL[program.leaves[-(o + 1) // 2][0]]
        if source is out:                       # what was read or rounded already needs no rounding
            return out, f"v{o}" if o >= 0 else f"l{-(o + 1) // 2}"
    text = expr.text[codegen.ACC_OF_CATEGORY[compute.category]] if isinstance(expr.text, dict) else expr.text
    if expr.uses_index:
        text = draws.replaced(program, n, text, part, width)
        if text is None:
            raise _Scalar
    if compute.category == dt.INT and _FLOATING.search(text):     # which makes a number of the operand there
        raise _Scalar
    kind = choices.VECTOR if is_plain(_DRAWN_VECTOR.sub("1", text) if expr.uses_index else text, expr.names, _DRAWN if expr.uses_index else ()) else None
    if kind is None and not (expr.uses_index or expr.longs) and compute.category in (dt.INT, dt.FLOAT):
        kind = choices.kind(text, expr.names, _FUNCTIONS)
    if kind is None or (kind == choices.MASK) != (out.category == dt.BOOL and compute.category != dt.BOOL):
        raise _Scalar
    names = [f"s{-o // 2 - 1}" if at in expr.longs else _operand(program, o, types, compute, width, expr) for at, o in enumerate(operands)]
    bits = compute.category == out.category == dt.BOOL and _BITS.fullmatch(text)
    text = codegen.expression(expr, compute, names, own, text)
    if bits:
        return out, text
    return out, _truth(text, compute.acc, width) if kind == choices.MASK else _stored(text, compute, out, width)


def values(program, leaf_at, own, width, indent, part=None):
    """Statements like ``codegen.values`` whose variables are vectors; None when the program has no such form.

    ``leaf_at(k)`` is the pointer text of leaf k and whether it is one element for the whole vector (None: the text is the vector), and the step from
    one element to the next where that is not one.
    ``part``: the number of the vector in a step of ``draws``, None where elements are not counted off like that.
    """
    lines, types = [], []
    try:
        for k, (d, _, _) in enumerate(program.leaves):
            row = dt.ALL[d]
            if row.is_complex or row in dt.UNSIGNED:
                raise _Scalar
            pointer, single, *step = leaf_at(k)
            text = pointer if single is None else f"({row.acc}{width})({row.load}({pointer}, 0))" if single else load(row, width, pointer, *step)
            lines.append(f"{indent}const {row.acc}{width} l{k} = {text};")
        for n in range(len(program.code)):
            out, text = _instruction(program, n, types, own, width, part)
            lines.append(f"{indent}const {out.acc}{width} v{n} = {text};")
            types.append(out)
    except _Scalar:
        return None
    return lines


def _block(program, own, wide, at, index, indent):
    """Statements for the elements from ``i`` on, a vector or, where the program draws, a step of them; None without a vector form.

    ``at(shift)`` gives the function of a leaf for the vector ``shift`` elements on, ``index`` is the element number of ``i``.
    """
    if not draws.found(program):
        body = values(program, at(0), own, wide, indent)
        return body and [*body, *_ends(program, wide, "i", indent)]
    lines = draws.statements(program, index, indent)
    for part in range(draws.STEP // wide):
        body = values(program, at(part * wide), own, wide, indent + "    ", part)
        if body is None:
            return None
        lines += [f"{indent}{{", *body, *_ends(program, wide, f"i + {part * wide}", indent + "    "), f"{indent}}}"]
    return lines


def _ends(program, wide, index, indent):
    """Results that are only stored are rounded by the store."""
    return [indent + store(dt.ALL[d], wide, f"y{k} + {index}", f"v{v}") for k, (v, d, *_) in enumerate(program.outs)]


def linear(program, own):
    """(parameters, statements) of an elementwise kernel in flat order, as ``codegen`` has them for its forms; None without a vector form."""
    if any(dt.ALL[d].category == dt.BOOL for _, d, *_ in program.outs) and not _truths(program):
        return None
    wide = width(program)
    step = draws.STEP if draws.found(program) else wide

    def at(shift):
        return lambda k: (f"x{k}", True) if program.leaves[k][1] == "0" else (f"x{k} + i + {shift}", False)
    body = _block(program, own, wide, at, "lo + i", "        ")
    if body is None:
        return None
    lines = ["    const long lo = (long)get_global_id(0) * chunk;", "    if (lo >= n) return;", "    const int m = (int)min(chunk, n - lo);"]
    lines += [f"    x{k} += lo;" for k, leaf in enumerate(program.leaves) if leaf[1] != "0"] + [f"    y{k} += lo;" for k in range(len(program.outs))]
    lines += ["    int i = 0;", f"    for (; i + {step} <= m; i += {step}) {{", *body, "    }", _REST, "    for (; i < m; i++) {",
              *codegen.values(program, "lo + i", lambda k: "0" if program.leaves[k][1] == "0" else "i", own, "        "),
              *[f"        {dt.ALL[d].store}(y{k}, i, v{v});" for k, (v, d, *_) in enumerate(program.outs)], "    }"]
    return ["const long n", "const long chunk"], lines


def rows(program, own):
    """The same for rows of a strided walk whose innermost dimension every operand takes in small steps or backwards, or with one element for all.

    Programs that draw need rows, and segments of them, of whole steps.
    """
    last = [cls if cls in ("l", "0") else cls[-1] for _, cls, _ in program.leaves]
    if "s" in last or any(dt.ALL[d].category == dt.BOOL or cls != "l" and cls[-1] != "1" for _, d, cls, _ in program.outs):
        return None
    wide = width(program)
    step = draws.STEP if draws.found(program) else wide
    apart = [-1 if c == "m" else int(c) if c in codegen.STEPS else 1 for c in last]

    def at(shift):
        return lambda k: (f"x{k}", True) if last[k] == "0" else (f"x{k} + (i + {shift}) * {apart[k]}", False, apart[k])
    body = _block(program, own, wide, at, f"row * d{program.rank - 1} + i", "            ")
    if body is None:
        return None
    parameters, lines = codegen.rows_start(program, True)
    lines += ["        int c = 0;", f"        for (; c + {step} <= m; c += {step}) {{", "            const long i = lo + c;", *body, "        }",
              _REST, "        for (; c < m; c++) {", "            const long i = lo + c;", *codegen.row_body(program, own, "i", "            "), "        }", "    }"]
    return parameters, lines


def element(program, value, acc, leaf_at, own, width, indent):
    """Statements that leave the vector, in the accumulate type ``acc``, in ``e``; None without a vector form."""
    lines = values(program, leaf_at, own, width, indent)
    if lines is None or acc.is_complex:
        return None
    try:
        text = _convert(f"v{len(program.code) - 1}", value, acc, width)
    except _Scalar:
        return None
    return lines + [f"{indent}const {acc.acc}{width} e = {text};"]
