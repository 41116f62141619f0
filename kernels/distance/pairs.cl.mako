<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Distances of rows: out[b, i, j] = (sum over m of |x[b, i, m] - y[b, m, j]|^p)^(1/p). With TRIANGLE only those of pairs i < j, one after the other.
##
## x (B, P, M), y (B, M, R), out (B, P, R) or (P (P - 1) / 2), contiguous.
## Geometry: item: global (R, B * P), any local size; rows: global (ceil(P / chunk), B), local 1
##
## Parameter  legal values
## T          dtype row (float) of all three
## P          1 | 2 | "any": then the argument p
## TRIANGLE   bool; y is x then, and B is 1
## FORM       item | rows (CPUs): chunk rows per work-item, ROWS x COLUMNS * W of a block at a time
## W COLUMNS  rows: lanes of a vector, 1 | 2 | 4 | 8 | 16, and vectors side by side; W * COLUMNS is at most R. item: 1
<%
    ACC, ROWS = T.acc, 4 if FORM == "rows" else 1
    V = ACC if W == 1 else f"{ACC}{W}"
    LANE = "0123456789abcdef"
    load = lambda p: f"ldv_{T.name}({p})" if W > 1 else f"{T.load}({p}, 0)"
    cells = [(r, c) for r in range(ROWS) for c in range(COLUMNS)]
    power = {1: "fabs(d)", 2: "d * d"}.get(P, "pow(fabs(d), p)" if W == 1 else f"pow(fabs(d), ({V})(p))")
    root = {1: "{0}", 2: "sqrt({0})"}.get(P, "pow({0}, 1 / p)" if W == 1 else f"pow({{0}}, ({V})(1 / p))")
%>\
% if W > 1:
${vec.vector_io(T, W)}
% endif
__kernel void pairs(IN(${T.c}, x), IN(${T.c}, y), OUT(${T.c}, out), const long P, const long R, const long M, const long chunk, const ${ACC} p) {
    PTR_IN(${T.c}, x); PTR_IN(${T.c}, y); PTR_OUT(${T.c}, out);
% if FORM == "item":
    const long j = get_global_id(0), b = get_global_id(1) / P, i = get_global_id(1) % P;
    if (j >= R${" || j <= i" if TRIANGLE else ""}) return;
    {
        {
            const long i0 = i;
% else:
    const long b = get_global_id(1), last = min(P, (long)(get_global_id(0) + 1) * chunk);
    for (long i = get_global_id(0) * chunk; i < last; i += ${ROWS}) {
        const long ${", ".join(f"i{r} = min(i + {r}, last - 1)" for r in range(ROWS))};
        for (long at = ${"(i + 1) / %d * %d" % (W * COLUMNS, W * COLUMNS) if TRIANGLE else 0}; at < R; at += ${W * COLUMNS}) {
            const long j = min(at, R - ${W * COLUMNS});
% endif
            __global const ${T.c}* from = y + b * M * R + j;
            ${V} ${", ".join(f"s{r}{c} = 0" for r, c in cells)};
            for (long m = 0; m < M; m++) {
                const ${V} ${", ".join(f"y{c} = {load(f'from + m * R + {c * W}')}" for c in range(COLUMNS))};
% for r in range(ROWS):
                const ${ACC} x${r} = ${T.load}(x, (b * P + i${r}) * M + m);
% for c in range(COLUMNS):
                { const ${V} d = x${r} - y${c}; s${r}${c} += ${power}; }
% endfor
% endfor
            }
% for r, c in cells:
            { const ${V} e = ${root.format(f"s{r}{c}")};
% if TRIANGLE:
            const long first = j + ${c * W}, to = i${r} * R - i${r} * (i${r} + 1) / 2 - i${r} - 1;      /* pair (i, j) is number to + j */
% if W > 1:
            if (first > i${r}) stv_${T.name}(out + to + first, e);
            else { ${" ".join(f"if (first + {l} > i{r}) {T.store}(out, to + first + {l}, e.s{LANE[l]});" for l in range(W))} }
% else:
            if (first > i${r}) ${T.store}(out, to + first, e);
% endif
% else:
            ${f"stv_{T.name}(out + (b * P + i{r}) * R + j + {c * W}, e)" if W > 1 else f"{T.store}(out, (b * P + i{r}) * R + j + {c}, e)"};
% endif
            }
% endfor
        }
    }
}
