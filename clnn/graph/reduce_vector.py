"""Bodies of reduction kernels for CPU drivers, with vector types: a work-item reduces rows, or a block of columns, by itself.

The partial results are those of the other forms (``reduce.LANES`` per segment, or one per column), so the bits are too.
"""
from __future__ import annotations

from . import codegen, vectors

LANES = 64
WIDEST = 2048           # columns per work-item
AHEAD = 8               # rows that are asked for ahead of use


class Writer:
    """What the two bodies share: names, types and the statements for one vector or one element."""

    def __init__(self, call, program, value, own, base):
        """``base`` gives, for the index text of an element, a function of the leaf number: (pointer, one element for all)."""
        self.call, self.program, self.value, self.own, self.base = call, program, value, own, base
        self.width = vectors.width(program, value, call.acc)
        self.acc = call.acc.acc
        self.vector = f"{self.acc}{self.width}"
        self.count = LANES // self.width
        self.identity = call.spec.identity(call.acc)

    def fold(self, a, b):
        return self.call.spec.combined(self.acc, a, b)

    def element(self, index, indent):
        """Statements that leave the vector of elements from ``index`` on in ``e``, or None."""
        return vectors.element(self.program, self.value, self.call.acc, self.base(index), self.own, self.width, indent)

    def start(self, indent):
        return [f"{indent}{self.vector} {', '.join(f'a{q} = ({self.vector})({self.identity})' for q in range(self.count))};"]

    def step(self, index, indent):
        """Fold the 64 elements from ``index`` on."""
        lines = []
        for q in range(self.count):
            lines += [f"{indent}{{", *self.element(f"{index} + {q * self.width}", indent + "    "),
                      f"{indent}    a{q} = {self.fold(f'a{q}', 'e')};", f"{indent}}}"]
        return lines

    def lanes(self, indent):
        """Fold the vectors to the one ``a0``."""
        lines, count = [], self.count
        while count > 1:
            count //= 2
            lines += [f"{indent}a{q} = {self.fold(f'a{q}', f'a{q + count}')};" for q in range(count)]
        return lines

    def tree(self, name, indent):
        """Fold all lanes to the scalar ``name``, halves onto halves."""
        lines, width, last = self.lanes(indent), self.width, "a0"
        while width > 2:
            width //= 2
            lines.append(f"{indent}const {self.acc}{width} h{width} = {self.fold(f'{last}.lo', f'{last}.hi')};")
            last = f"h{width}"
        return lines + [f"{indent}const {self.acc} {name} = {self.fold(f'{last}.x', f'{last}.y')};"]

    def forest(self, indent):
        """Fold the lanes of the vectors ``t0``.. like ``tree``, all at once: lane k of ``t0`` becomes the result of vector k."""
        lines, half, wide = [], self.width // 2, self.width
        while half:
            clear, bit = ("s" + "".join(f"{lane:x}" for lane in range(wide) if bool(lane & half) == odd) for odd in (False, True))
            for n in range(half):
                low, high = (f"({self.vector})(t{2 * n}.{names}, t{2 * n + 1}.{names})" for names in (clear, bit))
                lines.append(f"{indent}{{ const {self.vector} low = {low}, high = {high}; t{n} = {self.fold('low', 'high')}; }}")
            half //= 2
        return lines


def finished(call, final):
    """C text of the result, of ``total``."""
    return codegen._WORD.sub(lambda m: {"a": "total"}.get(m.group(), m.group()), call.spec.finish) if final else "total"


def store_whole(call, out_dtype, final, index, width):
    """The same of a vector ``total``; empty where there is no such text."""
    text = finished(call, final)
    return vectors.store(out_dtype, width, f"out + {index}", text) if out_dtype.c == call.acc.c and vectors.is_plain(text, ("total", "c")) else ""


def row(writer, head, per_row, scalar, store, brief, many=False):
    """Statements of the row form.

    Args:
        head: statements that place the pointers of output ``o``; ``per_row``: those of its row number ``row``.
        scalar: statements that leave element ``i`` in the scalar ``e``; ``store``: the statement that stores ``total``.
        brief: no row has as many elements as there are lanes; ``many``: one row per output, and the last steps are done for as many outputs at
            once as a vector has lanes.
    """
    w = writer
    main = [] if brief else [f"        for (; base + {LANES} <= in1; base += {LANES}) {{", *w.step("base", "            "), "        }"]
    rest = ["            const int m = (int)(in1 - base);"]
    for q in range(w.count - 1):
        rest += [f"            if (m >= {(q + 1) * w.width}) {{", *w.element(f"base + {q * w.width}", "                "),
                 f"                a{q} = {w.fold(f'a{q}', 'e')};", "            }"]
    rest += [f"            if (m % {w.width}) {{", f"                const int whole = m / {w.width}, left = m % {w.width};",
             f"                {w.acc} t[{w.width}];", f"                for (int l = 0; l < {w.width}; l++) t[l] = {w.identity};",
             "                for (int l = 0; l < left; l++) {", f"                    const long i = base + whole * {w.width} + l;", *scalar,
             "                    t[l] = e;", "                }", f"                const {w.vector} e = vload{w.width}(0, t);",
             *[f"                {'else ' if q else ''}if (whole == {q}) a{q} = {w.fold(f'a{q}', 'e')};" for q in range(w.count)], "            }"]
    loop = "    {" if many else "    for (long row = row0; row < row1; row++) {"
    part = [*head, *w.start("    "), loop, *per_row, "        long base = in0;", *main, "        if (base < in1) {", *rest, "        }", "    }"]
    begin = "    const long p = get_global_id(1), lo = get_global_id(0) * chunk, hi = min(outputs, lo + chunk);"
    if not many:
        return [begin, "    for (long o = lo; o < hi; o++) {", *part, *w.tree("total", "    "), "    " + store, "    }"]
    width = w.width
    return [begin, "    const long in0 = 0, in1 = inner;", f"    for (long first = lo; first < hi; first += {width}) {{",
            f"    const int some = (int)min({width}L, hi - first);",
            f"    {w.acc} all[{width * width}];", "    for (int g = 0; g < some; g++) {", "    const long o = first + g;", *part, *w.lanes("    "),
            f"    vstore{width}(a0, g, all);", "    }", f"    for (int g = some; g < {width}; g++) vstore{width}(({w.vector})({w.identity}), g, all);",
            *[f"    {w.vector} t{q} = vload{width}({q}, all);" for q in range(width)], *w.forest("    "), f"    vstore{width}(t0, 0, all);",
            "    for (int g = 0; g < some; g++) {", "        const long o = first + g;", f"        const {w.acc} total = all[g];", "        " + store, "    }", "    }"]


def _by_vectors(w, per_row, scalar, first):
    """``m`` columns from ``first`` on, fewer than there are lanes: vector after vector, then column after column."""
    rows = "for (long row = row0; row < row1; row++) {"
    return ["        int q = 0;", f"        for (; q + {w.width} <= m; q += {w.width}) {{", f"            {w.vector} a0 = ({w.vector})({w.identity});",
            "            " + rows, *per_row, *w.element(f"{first}q", "                "), f"                a0 = {w.fold('a0', 'e')};", "            }",
            f"            vstore{w.width}(a0, 0, part + q);", "        }", "        for (; q < m; q++) {", f"            const long i = {first}q;",
            f"            {w.acc} sum = {w.identity};", "            " + rows, *per_row, *scalar, f"                sum = {w.fold('sum', 'e')};", "            }",
            "            part[q] = sum;", "        }"]


def column(writer, head, size, per_row, scalar, store, narrow=False, ahead=(), whole_store=""):
    """Statements of the column form: ``chunk`` of ``size`` columns per work-item; ``store`` stores ``total`` of column ``i``, ``whole_store`` a vector of them from
    there on, if there is such a statement. ``narrow``: there are never 64.

    ``ahead``: per leaf that lies along the columns its number and the step of its rows. Runs are as long as a page where rows are that long and there is
    enough to do (``reduce._span``): rows lie in pages of their own then, and the first lines of each cost as much as many more.
    """
    w, acc, most = writer, writer.acc, WIDEST + writer.width
    if narrow:
        return [*head, f"    const int m = (int){size};", f"    {acc} part[{LANES}];", "    {", *_by_vectors(w, per_row, scalar, ""), "    }",
                "    for (int l = 0; l < m; l++) {", "        const long i = l;", f"        const {acc} total = part[l];", "        " + store, "    }"]
    rows = "for (long row = row0; row < row1; row++) {"
    fetch = [f"                FETCH(x{k} + first + c + {AHEAD} * {step});" for k, step in ahead]
    return [*head, "    const long first = (long)get_global_id(0) * chunk;",
            f"    if (first && chunk > {LANES} && {size} - first < {w.width}) return;",           # so few are left to the work-item before
            f"    const int more = chunk > {LANES} ? {w.width} : 1;",
            f"    const int m = (int)({size} - first < chunk + more ? {size} - first : chunk);",
            "    int whole = m;              // part[l] is column l up to here; the last vector ends with the last column",
            f"    {w.vector} wide[{-(-most // w.width)}];", f"    {acc}* part = ({acc}*)wide;",
            f"    if (m == {LANES}) {{", *w.start("        "), "        " + rows, *per_row, *w.step("first", "            "), "        }",
            *[f"        vstore{w.width}(a{q}, {q}, part);" for q in range(w.count)],
            f"    }} else if (m < {LANES}) {{", *_by_vectors(w, per_row, scalar, "first + "), "    } else {", f"        whole = m / {w.width} * {w.width};",
            f"        for (int d = 0; d < m; d += {w.width}) wide[d / {w.width}] = ({w.vector})({w.identity});",
            "        " + rows, *per_row, f"            for (int d = 0; d < m; d += {w.width}) {{",
            f"                const int c = min(d, m - {w.width});", *fetch, *w.element("first + c", "                "),
            f"                const {w.vector} a = wide[d / {w.width}];",
            # written another way than read: of a choice between what stands there and another value Intel's compiler makes a masked store, half as fast
            f"                vstore{w.width}({w.fold('a', 'e')}, 0, part + d);", "            }", "        }", "    }",
            "    int l = 0;",
            *([f"    for (; l + {w.width} <= whole; l += {w.width}) {{", "        const long i = first + l;",
               f"        const {w.vector} total = vload{w.width}(0, part + l);", "        " + whole_store, "    }"] if whole_store else []),
            "    for (; l < m; l++) {", "        const long i = first + l;",
            f"        const {acc} total = part[l < whole ? l : l + whole + {w.width} - m];", "        " + store, "    }"]


def slim(writer, count, rows, scalar, store):
    """Statements for ``count`` columns that lie side by side: ``rows`` rows at a time are vectors whose lanes are partial results of their columns."""
    w, acc, block = writer, writer.acc, count * rows
    names = range(block // w.width)
    lines = [f"    {w.vector} {', '.join(f'a{q} = ({w.vector})({w.identity})' for q in names)};", f"    const long all = (row1 - row0) * {count};",
             "    long base = 0;", f"    for (; base + {block} <= all; base += {block}) {{"]
    for q in names:
        lines += ["        {", *w.element(f"base + {q * w.width}", "            "), f"            a{q} = {w.fold(f'a{q}', 'e')};", "        }"]
    return [*lines, "    }", f"    {acc} part[{block}];", *[f"    vstore{w.width}(a{q}, {q}, part);" for q in names],
            "    for (long i = base; i < all; i++) {", *scalar, f"        part[i - base] = {w.fold('part[i - base]', 'e')};", "    }",
            f"    for (int s = {block // 2}; s >= {count}; s >>= 1)", f"        for (int l = 0; l < s; l++) part[l] = {w.fold('part[l]', 'part[l + s]')};",
            f"    for (int l = 0; l < {count}; l++) {{", "        const long i = l;", f"        const {acc} total = part[l];", "        " + store, "    }"]
