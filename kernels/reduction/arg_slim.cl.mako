<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## The first position of the largest (smallest) element along the middle dimension of X (outer, n, COLUMNS), as in reduction/arg, for few columns on
## CPUs: rows are read as they lie, with candidates in the lanes of vectors.
##   V[o, p, i], I[o, p, i] = value and position of part p of the column (o, i); parts are PART elements long
## Geometry: one work-item per (o, p): global (1, outer, parts), local size 1.
##
## parameter  values            meaning
## T          dtype row         of X and V
## SIGN       ">" "<"           largest or smallest
## COLUMNS    2..15
## POSITIONS  bool              X comes with positions J of an earlier stage, else a position is the index along n
## Limits: a part has fewer than 2^31 elements.
#define BETTER(a, b) (((a) ${SIGN} (b)) | (((a) != (a)) & ((b) == (b))))
#define FIRST(a, ia, b, ib) (BETTER(a, b) | (!BETTER(b, a) & ((ia) < (ib))))
<%
    A = T.acc
    W = 8 if A in ("double", "long") else 16
    P = "long" if W == 8 else "int"                      # positions in lanes as wide as the values
%>
${vec.vector_io(T, W)}
__kernel void arg_slim(IN(${T.c}, X), IN(long, J), OUT(${T.c}, V), OUT(long, I), const long outer, const long n, const long part, const long parts) {
    PTR_IN(${T.c}, X);
    PTR_IN(long, J);
    PTR_OUT(${T.c}, V);
    PTR_OUT(long, I);
    const long o = get_global_id(1), p = get_global_id(2), first = p * part;
    if (o >= outer) return;
    const int m = (int)(min(n, first + part) - first);
    const long base = (o * n + first) * ${COLUMNS}, to = (o * parts + p) * ${COLUMNS};
    ${A} best[${COLUMNS}];
    int at[${COLUMNS}], k = 0;
    for (int c = 0; c < ${COLUMNS}; c++) { best[c] = ${T.load}(X, base + c); at[c] = 0; }
    if (m >= ${W}) {
        ${A}${W} ${", ".join(f"b{q} = ldv_{T.name}(X + base + {q * W})" for q in range(COLUMNS))};
        ${P}${W} ${", ".join(f"a{q} = 0" for q in range(COLUMNS))};
        for (k = ${W}; k + ${W} <= m; k += ${W}) {
            const long row = base + (long)k * ${COLUMNS};
% for q in range(COLUMNS):
            {
                const ${A}${W} v = ldv_${T.name}(X + row + ${q * W});
                const ${P}${W} take = BETTER(v, b${q});
                b${q} = take ? v : b${q};
                a${q} = take ? (${P}${W})(k) : a${q};
            }
% endfor
        }
        ${A} all[${COLUMNS * W}];
        ${P} places[${COLUMNS * W}];
% for q in range(COLUMNS):
        vstore${W}(b${q}, ${q}, all);
        vstore${W}(a${q}, ${q}, places);
% endfor
        for (int c = 0; c < ${COLUMNS}; c++) { best[c] = all[c]; at[c] = (int)places[c]; }
        for (int r = 1; r < ${W}; r++)
            for (int c = 0; c < ${COLUMNS}; c++) {
                const ${A} v = all[r * ${COLUMNS} + c];
                const int place = (int)places[r * ${COLUMNS} + c] + r;
                if (FIRST(v, place, best[c], at[c])) { best[c] = v; at[c] = place; }
            }
    }
    for (; k < m; k++)
        for (int c = 0; c < ${COLUMNS}; c++) {
            const ${A} v = ${T.load}(X, base + (long)k * ${COLUMNS} + c);
            if (BETTER(v, best[c])) { best[c] = v; at[c] = k; }
        }
    for (int c = 0; c < ${COLUMNS}; c++) {
        ${T.store}(V, to + c, best[c]);
        I[to + c] = ${f"J[base + c + (long)at[c] * {COLUMNS}]" if POSITIONS else "first + at[c]"};
    }
}
