"""Writes the C source of a fused kernel: a list of instructions over leaves, scalars and earlier values.

Forms, chosen by layout and driver:
  linear  every operand is walked in flat order: one index
  rows    the innermost dimension is a loop or a work-item axis; outer index arithmetic is done once per row
  flat    division and remainder per element: for tiny innermost dimensions
Each exists as ``loop`` (a work-item owns a run of elements; PoCL vectorises such loops) and ``item`` (one element per work-item; what
GPUs want and what Intel's CPU compiler vectorises); ``vectors.py`` has linear and rows in vectors for CPUs.
"""
from __future__ import annotations

import re

from ..core import dtype as dt
from .node import Expr

_WORD = re.compile(r"[A-Za-z_]\w*")
_FLOAT_SUFFIX = re.compile(r"(?<![\w.])(\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)f\b")
# clnn_<name> of the template base
OWN = frozenset(("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "tanh", "erf", "erfc", "sin", "cos", "tan", "pow", "asin", "acos", "atan", "atan2", "asinh",
                 "acosh", "atanh", "sinh", "cosh", "hypot", "lgamma", "fmax", "fmin", "copysign", "nextafter"))
_OWN_MATH = re.compile(rf"\b({'|'.join(sorted(OWN))})\(")

_COMPLEX_MATH = re.compile(r"\bc_(\w+)\(")

ACC_OF_CATEGORY = {dt.BOOL: "bool", dt.INT: "int", dt.FLOAT: "float"}


def convert(value: str, source: dt.dtype, target: dt.dtype) -> str:
    """C text that turns ``value`` of dtype ``source`` into the accumulate type of ``target``."""
    if target.is_complex or source.is_complex:
        return _convert_complex(value, source, target)
    if target.category == dt.BOOL:
        return value if source.category == dt.BOOL else f"({value} != 0)"
    if source.category == target.category == dt.INT and wraps(source, target):
        return as_stored(value, source, target)
    if source.acc == target.acc:
        return value
    return _converted(value, source.acc, target.acc)


def wraps(source: dt.dtype, target: dt.dtype) -> bool:
    """Whether the accumulate type of integers ``target`` holds numbers of ``source`` that the dtype itself does not: they wrap around."""
    return target in _NARROW and source is not target and not (source.itemsize < target.itemsize and source.is_signed <= target.is_signed)


def taken(value: str, source: dt.dtype, compute: dt.dtype, expr: Expr, one=False) -> str:
    """C text of ``value`` of dtype ``source`` as an operand; ``one``: it is a single element. What is not rounded here PyTorch leaves in float, too."""
    return convert(value, source, compute) if not is_rounded(source, compute, expr, one) else f"{compute.round_trip}((float)({convert(value, source, compute)}))"


def is_rounded(source, compute, expr, one) -> bool:
    """Whether an operand of another dtype becomes an element of a compute dtype of 16 bits before anything is computed."""
    return bool(compute.round_trip) and source is not compute and source.itemsize > 1 and expr.name != "cast" and (
        expr.elements or source.category == dt.INT and not one)


def number(k: int, compute: dt.dtype, expr: Expr) -> str:
    """C text of scalar ``k`` as an operand."""
    if compute.round_trip and expr.elements:
        return f"{compute.round_trip}((float)s{k})"
    return as_stored(f"s{k}", compute, compute) if compute in _NARROW else f"(({compute.acc})s{k})"


_NARROW = frozenset((dt.uint8, dt.int8, dt.int16, dt.uint16, dt.uint32))
# conversions that the template base does itself, as C or a driver's compiler does them otherwise or slowly
_CONVERSIONS = {("float", "ulong"): "clnn_f2ul", ("double", "ulong"): "clnn_d2ul", ("float", "long"): "clnn_f2l", ("double", "long"): "clnn_d2l",
                ("long", "float"): "clnn_l2f", ("long", "double"): "clnn_l2d"}


def _converted(value, acc, target):
    """C text of ``value`` of accumulate type ``acc`` as one of type ``target``."""
    return f"{_CONVERSIONS.get((acc, target), f'({target})')}({value})" if acc != target else f"(({acc})({value}))"


def _convert_complex(value, source, target):
    """:func:`convert` where one side is complex: a real number has no imaginary part, and only a complex zero is False."""
    if target.is_complex:
        if source.is_complex:
            return value if source is target else f"convert_{target.acc}({value})"
        return f"(({target.acc})({value}, 0))"
    return f"({value}.x != 0 || {value}.y != 0)" if target.category == dt.BOOL else convert(f"{value}.x", source.to_real(), target)


def as_stored(value: str, compute: dt.dtype, target: dt.dtype) -> str:
    """C text of ``value`` as it would read back from memory of dtype ``target``, so that fused and eager agree to the bit.

    An expression with a complex result gives it in the precision of its compute dtype; one over complex operands may have a real result.
    """
    if target.is_complex:
        return value
    compute = compute.to_real()
    if target.category == dt.BOOL:
        return value if compute.category == dt.BOOL else f"(({value}) != 0)"
    if target.round_trip:
        return f"{target.round_trip}((float)({value}))"
    if target.acc == "int" and target.itemsize < 4:
        value = f"(int)({value})" if compute.category == dt.FLOAT else value
        return f"wrap_{target.name}({value})" if target.is_signed else f"((int)({target.c})({value}))"
    got = _converted(value, compute.acc, target.acc)
    return f"((long)(uint){got})" if target is dt.uint32 else got


def expression(expr: Expr, compute: dt.dtype, operands: list[str], own: frozenset, text=None) -> str:
    """The operator's C text (or ``text`` in its place) with its operand names replaced and its literals typed for ``compute``."""
    if compute.is_complex and text is None:
        return _complex_expression(expr, compute, operands)
    text = expr.text if text is None else text
    if isinstance(text, dict):
        text = text[ACC_OF_CATEGORY[compute.category]]
    table = dict(zip(expr.names, operands))
    text = _WORD.sub(lambda m: table.get(m.group(), m.group()), text)
    if "c_" in text:
        text = _complex_names(text, compute)
    text = text.replace("ACC", compute.acc)
    if compute.acc == "double":
        text = _FLOAT_SUFFIX.sub(r"\1", text)
    if compute.acc in ("float", "double"):
        return _OWN_MATH.sub(lambda m: f"clnn_{m.group(1)}(" if m.group(1) in own else m.group(), text)
    return text


def _complex_names(text, compute):
    """``c_<name>`` as the function of the template base for the precision of ``compute``."""
    return _COMPLEX_MATH.sub(rf"clnn_c_\1_{'d' if 'double' in compute.acc else 'f'}(", text)


def _complex_expression(expr, compute, operands):
    """:func:`expression` over complex operands; in it ``ACC`` is the type of the parts and so ``ACC2`` that of the number."""
    if expr.complex is None:
        raise NotImplementedError(f'"{expr.name}" not implemented for {compute}')
    table = dict(zip(expr.names, operands))
    text = _WORD.sub(lambda m: table.get(m.group(), m.group()), expr.complex)
    text = _complex_names(text, compute).replace("ACC", compute.to_real().acc)
    return _FLOAT_SUFFIX.sub(r"\1", text) if compute.acc == "double2" else text


class Program:
    """What makes two fused computations the same kernel: instructions, leaves, scalars, outputs and form."""

    __slots__ = ("code", "leaves", "scalars", "outs", "form", "rank")

    def __init__(self, code, leaves, scalars, outs, form, rank):
        self.code = code            # ((expr index, compute index, dtype index, operands...), ...)
        self.leaves = leaves        # ((dtype index, class, has offset), ...); class: 'l' flat, '0' one element, or per-dimension string
        self.scalars = scalars      # accumulate types
        self.outs = outs            # ((value index, dtype index, class, has offset), ...)
        self.form, self.rank = form, rank

    def key(self):
        return (self.code, self.leaves, self.scalars, self.outs, self.form, self.rank)


def values(program: Program, index: str, leaf_index, own: frozenset, indent: str, leaf="x", texts=None, unrounded=()) -> list[str]:
    """One statement per load and instruction; ``leaf_index(k)`` is the C index of leaf k in ``leaf``k, ``texts`` what some instructions are instead,
    ``unrounded`` the instructions whose 16-bit floats are left to what stores them."""
    lines, types = [], []
    for k, (d, cls, _) in enumerate(program.leaves):
        row = dt.ALL[d]
        lines.append(f"{indent}const {row.acc} l{k} = {row.load}({leaf}{k}, {leaf_index(k)});")
    for n, (e, c, d, *operands) in enumerate(program.code):
        compute, out, expr = dt.ALL[c], dt.ALL[d], Expr.all[e]
        names = []
        for at, o in enumerate(operands):
            if o >= 0:
                names.append(taken(f"v{o}", types[o], compute, expr))
            elif o % 2:                                     # odd: a leaf, even: a scalar
                k = -(o + 1) // 2
                names.append(taken(f"l{k}", dt.ALL[program.leaves[k][0]], compute, expr, not program.leaves[k][1].strip("0")))
            else:
                k = -o // 2 - 1
                names.append(f"s{k}" if at in expr.longs else number(k, compute, expr) if compute.category != dt.BOOL else f"(s{k} != 0)")
        text = expression(expr, compute, names, own, texts.get(n) if texts else None)
        if expr.uses_index:
            text = re.sub(r"\bIDX\b", f"({index})", text)
        if compute.category in expr.failing:
            lines.append(f"{indent}bad{n} |= ({expression(_Check(expr), compute, names, own)}) != 0;")
        source = _source(program, operands[0], types) if expr.name == "cast" else None
        if source is out:
            lines.append(f"{indent}const {out.acc} v{n} = {text};")          # what was read or rounded already needs no rounding
        elif source is not None and (source.is_complex or out.is_complex):
            lines.append(f"{indent}const {out.acc} v{n} = {_cast_complex(names[0], compute, out)};")
        elif n in unrounded and out.round_trip:
            lines.append(f"{indent}const {out.acc} v{n} = (float)({text});")
        else:
            lines.append(f"{indent}const {out.acc} v{n} = {as_stored(f'({text})', compute, out)};")
        types.append(out)
    return lines


def _source(program, operand, types):
    """The dtype of an operand that is an earlier value or a leaf; None for a scalar."""
    if operand >= 0:
        return types[operand]
    return dt.ALL[program.leaves[-(operand + 1) // 2][0]] if operand % 2 else None


def _cast_complex(value, compute, out):
    """C text of a cast from or to a complex dtype; ``value`` is in the accumulate type of ``compute``."""
    if out.is_complex or out.category == dt.BOOL:
        return convert(value, compute, out)
    return as_stored(convert(value, compute, compute.to_real()), compute.to_real(), out)


class _Check:
    """Presents an Expr's error test as an expression of its own."""

    def __init__(self, expr):
        self.text, self.names = expr.checked, expr.names


def parameters(program: Program) -> list[str]:
    """Kernel parameters after the geometry: leaves, scalars, outputs."""
    out = []
    for k, (d, cls, off) in enumerate(program.leaves):
        out.append(f"__global const {dt.ALL[d].c}* restrict x{k}_p")
        if off:
            out.append(f"const long x{k}_o")
        out += [f"const long x{k}_s{j}" for j in strided_dims(cls)]
    out += [f"const {t} s{k}" for k, t in enumerate(program.scalars)]
    for k, (_, d, cls, off) in enumerate(program.outs):
        out.append(f"__global {dt.ALL[d].c}* restrict y{k}_p")
        if off:
            out.append(f"const long y{k}_o")
        out += [f"const long y{k}_s{j}" for j in strided_dims(cls)]
    return out + check_parameters(program)


def checks(program) -> list[int]:
    """The instructions that may report an error."""
    return [n for n, ins in enumerate(program.code) if dt.ALL[ins[1]].category in Expr.all[ins[0]].failing]


def check_parameters(program) -> list[str]:
    """Kernel parameters of the error word and of one code per check."""
    found = checks(program)
    return ["__global int* err"] + [f"const int e{n}" for n in found] if found else []


def with_checks(program, body: list[str]) -> list[str]:
    """``body`` with its checks collected in private flags and reported at its end, without an atomic: both would keep CPU compilers from
    vectorising. Work-items that race write the same code, or another one of this kernel, which is as true."""
    found = checks(program)
    return [*[f"    int bad{n} = 0;" for n in found], *body, *[f"    if (bad{n}) *err = *err ? *err : e{n};" for n in found]]


STEPS = "234"           # strides of the innermost dimension that kernels for large sizes are made for: their elements are picked from whole vectors


def leaf_class(strides, large=False) -> str:
    """Per-dimension access class: '0' repeated, '1' unit stride in the innermost dimension, or in the one before it where that is not
    the innermost one's, 'm' minus one in the innermost dimension, one of STEPS there where ``large``, 's' a run-time stride."""
    last = len(strides) - 1
    unit = last - 1 if last and strides[last] not in (0, 1) else last
    cls = "".join("0" if s == 0 else "1" if s == 1 and j == unit else "m" if s == -1 and j == last else "s" for j, s in enumerate(strides))
    step = next((c for c in STEPS if strides[last] == int(c)), None) if large and cls[-2:-1] != "1" else None      # by number: a traced one has no text
    return cls if step is None else cls[:-1] + step


def strided_dims(cls: str):
    """Dimensions whose stride is a run-time argument ('s' in the class string)."""
    return [j for j, c in enumerate(cls) if c == "s"] if cls not in ("l", "0") else []


def strided_index(name: str, cls: str, dims: list[str], flat: str) -> str:
    """Index text of an operand of class ``cls`` over the index variables ``dims``; 'l' operands use ``flat``."""
    if cls == "l":
        return flat
    terms = [v if c == "1" else f"-({v})" if c == "m" else f"{v}*{c if c in STEPS else f'{name}_s{j}'}" for j, (c, v) in enumerate(zip(cls, dims)) if c != "0"]
    return " + ".join(terms) or "0"


def _bases(program):
    lines = []
    for k, (d, _, off) in enumerate(program.leaves):
        lines.append(f"    __global const {dt.ALL[d].c}* restrict x{k} = x{k}_p{f' + x{k}_o' if off else ''};")
    for k, (_, d, _, off) in enumerate(program.outs):
        lines.append(f"    __global {dt.ALL[d].c}* restrict y{k} = y{k}_p{f' + y{k}_o' if off else ''};")
    return lines


def _one(program):
    """One as compilers for CPUs cannot see it: of a constant they make a masked load, ten times as slow where a comparison is false throughout."""
    return ["    const uchar one = (uchar)min(chunk, 1L);"] if any(dt.ALL[d].category == dt.BOOL for _, d, *_ in program.outs) else []


def _stores(program, out_index, indent, loop=False):
    return [f"{indent}y{k}[{out_index(k)}] = v{v} ? one : (uchar)0;" if loop and dt.ALL[d].category == dt.BOOL else
            f"{indent}{dt.ALL[d].store}(y{k}, {out_index(k)}, v{v});" for k, (v, d, *_) in enumerate(program.outs)]


def elementwise_source(program: Program, own: frozenset) -> str:
    """The whole source of a fused elementwise kernel called ``fused``."""
    from . import planes, runs, several, slim, tiles, vectors
    body = several.source if several.FORM.match(program.form) else None
    body = body or next((module.source for module in (slim, planes, runs) if program.form.startswith(module.FORM)), None) or {
        "linear-vector": vectors.linear, "rows-vector": vectors.rows, "tiles-vector": tiles.source, "linear-loop": _linear_loop, "linear-item": _linear_item,
        "rows-loop": _rows_loop, "rows-item": _rows_item, "rows-item-long": _rows_item,
        "flat-loop": _flat_loop, "flat-item": _flat_item}[program.form]
    geometry, lines = body(program, own)
    params = ",\n    ".join(geometry + parameters(program))
    return "\n".join(["#pragma OPENCL FP_CONTRACT OFF", f"__kernel void fused(\n    {params})", "{",
                      *_bases(program), *with_checks(program, lines), "}", ""])


def _linear_loop(program, own):
    lines = ["    const long lo = (long)get_global_id(0) * chunk;", "    if (lo >= n) return;",
             "    const int m = (int)min(chunk, n - lo);", *_one(program)]
    lines += [f"    x{k} += lo;" for k, leaf in enumerate(program.leaves) if leaf[1] != "0"]
    lines += [f"    y{k} += lo;" for k in range(len(program.outs))]
    lines += ["    for (int i = 0; i < m; i++) {",
              *values(program, "lo + i", lambda k: "0" if program.leaves[k][1] == "0" else "i", own, "        "),
              *_stores(program, lambda k: "i", "        ", True), "    }"]
    return ["const long n", "const long chunk"], lines


def _linear_item(program, own):
    return ["const long n"], ["    const long i = get_global_id(0);", "    if (i >= n) return;", *_linear_element(program, own, "    ")]


def _linear_element(program, own, indent):
    return [*values(program, "i", lambda k: "0" if program.leaves[k][1] == "0" else "i", own, indent), *_stores(program, lambda k: "i", indent)]


def _dims(program):
    return [f"const long d{j}" for j in range(program.rank)]


def _row_bases(program, indent):
    """Split the row number into outer indices and move every pointer to the start of its row."""
    return _outer_indices(program, "row", "const long", indent) + _row_pointers(program, indent)


def _outer_indices(program, row, kind, indent, rest="long"):
    lines, divisor = [f"{indent}{rest} rest = ({rest}){row};"], "(uint)" if rest == "uint" else ""
    for j in range(program.rank - 2, -1, -1):
        lines.append(f"{indent}{kind} i{j} = {'rest' if j == 0 else f'rest % {divisor}d{j}'};")
        if j:
            lines.append(f"{indent}rest /= {divisor}d{j};")
    return lines


def _carry(program, indent):
    """Statements that bring the outer indices in order after the last of them was raised: divisions per row would cost as much as short rows do."""
    lines, r = [], program.rank
    for j in range(r - 2, 0, -1):
        lines.append(f"{indent}if (i{j} == d{j}) {{ i{j} = 0; i{j - 1}++; }}")
    return lines


def _row_pointers(program, indent, declare=True):
    r, lines = program.rank, []
    outer = [f"i{j}" for j in range(r - 1)]

    def base(name, cls):
        return f"row * d{r - 1}" if cls == "l" else strided_index(name, cls[:-1] if cls != "0" else "", outer, "")
    for k, (d, cls, _) in enumerate(program.leaves):
        kind = f"__global const {dt.ALL[d].c}* restrict " if declare else ""
        lines.append(f"{indent}{kind}x{k} = x{k}b + ({base(f'x{k}', cls)});")
    for k, (_, d, cls, _) in enumerate(program.outs):
        kind = f"__global {dt.ALL[d].c}* restrict " if declare else ""
        lines.append(f"{indent}{kind}y{k} = y{k}b + ({base(f'y{k}', cls)});")
    return lines


def _inner(name, cls, var):
    if cls == "l" or cls[-1] == "1":
        return var
    step = cls[-1]
    return "0" if step == "0" else f"-({var})" if step == "m" else f"({var}) * {step if step in STEPS else f'{name}_s{len(cls) - 1}'}"


def row_body(program, own, var, indent, loop=False):
    flat = f"row * d{program.rank - 1} + {var}"
    return [*values(program, flat, lambda k: _inner(f"x{k}", program.leaves[k][1], var), own, indent),
            *_stores(program, lambda k: _inner(f"y{k}", program.outs[k][2], var), indent, loop)]


def _rename_bases(program):
    return ([f"    __global const {dt.ALL[d].c}* x{k}b = x{k};" for k, (d, *_) in enumerate(program.leaves)]
            + [f"    __global {dt.ALL[d].c}* y{k}b = y{k};" for k, (_, d, *_r) in enumerate(program.outs)])


def rows_start(program, running=False):
    """(parameters, statements up to the pointers of ``row``) of the forms in which a work-item walks ``seg`` elements of ``chunk`` rows.

    ``running``: pointers go on from row to row, which short rows gain by; compilers then cannot tell that operands do not overlap.
    """
    r = program.rank
    lines = [*_rename_bases(program), "    const long first = (long)get_global_id(0) * chunk;",
             "    const long last = min(first + chunk, rows);", "    const long lo = (long)get_global_id(1) * seg;",
             f"    const int m = (int)(min(seg, d{r - 1} - lo));", *_outer_indices(program, "first", "long", "    ")]
    parameters = _dims(program) + ["const long rows", "const long chunk", "const long seg"]
    if not running or r == 1:
        return parameters, [*lines, f"    for (long row = first; row < last; row++{f', i{r - 2}++' if r > 1 else ''}) {{", *_carry(program, "        "),
                            *_row_pointers(program, "        ")]
    operands = [(f"x{k}", cls) for k, (_, cls, _) in enumerate(program.leaves)] + [(f"y{k}", cls) for k, (_, _, cls, _) in enumerate(program.outs)]
    steps = [(name, f"d{r - 1}" if cls == "l" else "1" if cls[r - 2] == "1" else f"{name}_s{r - 2}")
             for name, cls in operands if cls == "l" or cls != "0" and cls[r - 2] != "0"]
    lines += ["    long row = first;", *_row_pointers(program, "    ", declare=False),
              f"    for (; row < last; row++, i{r - 2}++{''.join(f', {name} += {step}' for name, step in steps)}) {{",
              f"        if (i{r - 2} == d{r - 2}) {{", *_carry(program, "            "), *_row_pointers(program, "            ", declare=False), "        }"]
    return parameters, lines


def _rows_loop(program, own):
    parameters, lines = rows_start(program)
    lines += ["        for (int c = 0; c < m; c++) {", "            const long i = lo + c;", *row_body(program, own, "i", "            ", True), "        }", "    }"]
    return parameters, [*_one(program), *lines]


def _rows_item(program, own):
    r = program.rank
    rows = " * ".join(f"d{j}" for j in range(r - 1)) or "1"
    lines = [*_rename_bases(program), "    const long i = get_global_id(0), row = get_global_id(1);",
             f"    if (i >= d{r - 1} || row >= {rows}) return;",
             "    {", *_outer_indices(program, "row", "const long", "    ", "long" if program.form == "rows-item-long" else "uint"),
             *_row_pointers(program, "    "), *row_body(program, own, "i", "    "), "    }"]
    return _dims(program), lines


def _flat_split(program, indent, flat="flat", kind="const uint"):
    """Index variables i0.. of the element number ``flat``; 32-bit division is several times cheaper than 64-bit."""
    r = program.rank
    lines = [f"{indent}uint rest = (uint){flat};"]
    for j in range(r - 1, -1, -1):
        lines.append(f"{indent}{kind} i{j} = {'rest' if j == 0 else f'rest % (uint)d{j}'};")
        if j:
            lines.append(f"{indent}rest /= (uint)d{j};")
    return lines


def _flat_next(program):
    """A statement that raises the index variables to those of the next element: a division for each dimension would take longer than the element."""
    text = "i0++;"
    for j in range(1, program.rank):
        text = f"if (++i{j} == (uint)d{j}) {{ i{j} = 0; {text} }}"
    return text


def _flat_body(program, own, indent, loop=False):
    dims = [f"(long)i{j}" for j in range(program.rank)]

    def leaf(k):
        cls = program.leaves[k][1]
        return "0" if cls == "0" else strided_index(f"x{k}", cls, dims, "flat")

    def out(k):
        return strided_index(f"y{k}", program.outs[k][2], dims, "flat")
    return [*values(program, "flat", leaf, own, indent), *_stores(program, out, indent, loop)]


def _flat_loop(program, own):
    lines = [*_one(program), "    const long lo = (long)get_global_id(0) * chunk, hi = min(lo + chunk, n);", *_flat_split(program, "    ", "lo", "uint"),
             "    for (long flat = lo; flat < hi; flat++) {", *_flat_body(program, own, "        ", True), f"        {_flat_next(program)}", "    }"]
    return _dims(program) + ["const long n", "const long chunk"], lines


def _flat_item(program, own):
    lines = ["    const long flat = get_global_id(0);", "    if (flat >= n) return;", *_flat_split(program, "    "), *_flat_body(program, own, "    ")]
    return _dims(program) + ["const long n"], lines
