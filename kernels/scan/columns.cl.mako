<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="lanes" file="/scan/lanes.cl.mako"/>\
<%namespace name="op" file="/scan/combine.cl.mako"/>\
## Running sums, products or log-sum-exps along the middle dimension of X (outer, n, inner) on CPUs, with the phases and the order of operations of
## scan/cumulate: blocks of BLOCK rows (16; 8 of 64-bit types) in vectors of as many neighbouring columns.
##   PHASE through   Y = scan of X, part after part: the totals are scanned on the way, as the other phases do it
##
## Geometry: global (inner / span, outer * parts / chunk; of PHASE through outer / chunk), local size 1. Sizes are rounded up.
##
## parameter  values                        meaning
## T, R       dtype rows                    of X, of Y; the same but for PHASE total
## OP         sum prod logaddexp            how elements combine
## REVERSE    bool                          from the last element to the first
## PHASE      whole through total apply
## COLUMNS    multiple of 64                the most columns of a work-item (span); there are at least as many as a vector has lanes
<%
    A = T.acc
    W = 8 if A in ("double", "long") else 16
    V = f"{A}{W}"
    NOTHING = op.attr.nothing(OP, T)
    SLOTS = COLUMNS + W
    PAST = PHASE in ("apply", "through")
%>
${op.combine(OP, T)}
${vec.vector_io(T, W)}
% if R is not T:
${vec.vector_io(R, W)}
% endif
__kernel void scan_columns(IN(${T.c}, X), IN(${A}, Z), OUT(${R.c}, Y), const long outer, const long n, const long inner, const long part,
                           const long parts, const long chunk, const long span) {
    PTR_IN(${T.c}, X);
    PTR_IN(${A}, Z);
    PTR_OUT(${R.c}, Y);
    const long i = get_global_id(0) * span, step = ${"-inner" if REVERSE else "inner"};
    if (i && inner - i < ${W}) return;                             /* so few columns are left to the work-item before */
    const int w = (int)(inner - i < span + ${W} ? inner - i : span), slots = (w + ${W - 1}) / ${W} * ${W};
    const long units = outer${"" if PHASE == "through" else " * parts"}, end = min(units, (long)(get_global_id(1) + 1) * chunk);
    ${A} kept[${SLOTS}]${f", before[{SLOTS}]" if PAST else ""}${f", totals[{W * SLOTS}], earlier[{SLOTS}]" if PHASE == "through" else ""};
    for (long unit = get_global_id(1) * chunk; unit < end; unit++) {
% if PHASE == "through":
    const long o = unit;
    for (int c = 0; c < slots; c++) before[c] = earlier[c] = ${NOTHING};
    for (long p = 0; p < parts; p++) {
% else:
    const long o = unit / parts, p = unit - o * parts;
    {
% endif
        const long first = p * part;
        const int m = (int)(min(n, first + part) - first);
        const long at = (o * n + ${"n - 1 - first" if REVERSE else "first"}) * inner + i, to = (o * parts + p) * inner + i;
        ## the last vector may have columns of the one before it: what was met so far has its own place then
        for (int d = 0; d < slots; d += ${W}) {
            vstore${W}((${V})(${NOTHING}), 0, kept + d);
% if PHASE == "apply":
            const int c = min(d, w - ${W});
            if (p) vstore${W}(vload${W}(0, Z + to - inner + c), 0, before + d);
            else vstore${W}((${V})(${NOTHING}), 0, before + d);
% endif
        }
        int done = 0;
        for (; done + ${W} <= m; done += ${W})
            for (int d = 0; d < slots; d += ${W}) {
                const int c = min(d, w - ${W});
                __global const ${T.c}* x = X + at + c + step * done;
% for l in range(W):
                ${V} b${l} = ldv_${T.name}(x + step * ${l});
                FETCH(x + step * ${l + W});
% endfor
% for s in lanes.attr.steps(W):
% for l in range(W - 1, s - 1, -1):
                b${l} = COMBINE(b${l - s}, b${l});
% endfor
% endfor
                const ${V} run = vload${W}(0, kept + d);
% if PAST:
                const ${V} past = vload${W}(0, before + d);
% endif
% if PHASE != "total":
                __global ${R.c}* y = Y + at + c + step * done;
% endif
% for l in range(W):
                b${l} = COMBINE(run, b${l});
% if PHASE != "total":
                FETCH(y + step * ${l + W});
                stv_${R.name}(y + step * ${l}, ${f"COMBINE(past, b{l})" if PAST else f"b{l}"});
% endif
% endfor
                vstore${W}(b${W - 1}, 0, kept + d);
            }
        const int some = m - done;
        if (some) for (int d = 0; d < slots; d += ${W}) {
            const int c = min(d, w - ${W});
            const long here = at + c + step * done;
            const ${V} run = vload${W}(0, kept + d)${f", past = vload{W}(0, before + d)" if PAST else ""};
            ${V} b[${W}];
            for (int l = 0; l < some; l++) b[l] = ldv_${T.name}(X + here + step * l);
            for (int s = 1; s < some; s *= 2)
                for (int l = some - 1; l >= s; l--) b[l] = COMBINE(b[l - s], b[l]);
            for (int l = 0; l < some; l++) {
                b[l] = COMBINE(run, b[l]);
% if PHASE != "total":
                stv_${R.name}(Y + here + step * l, ${"COMBINE(past, b[l])" if PAST else "b[l]"});
% endif
            }
            vstore${W}(b[some - 1], 0, kept + d);
        }
% if PHASE == "total":
        for (int d = 0; d < slots; d += ${W}) stv_${R.name}(Y + to + min(d, w - ${W}), vload${W}(0, kept + d));
% elif PHASE == "through":
        const int q = (int)(p % ${W});
        for (int d = 0; d < slots; d += ${W}) {
            ${V} b[${W}];
            vstore${W}(vload${W}(0, kept + d), 0, totals + q * ${SLOTS} + d);
            for (int l = 0; l <= q; l++) b[l] = vload${W}(0, totals + l * ${SLOTS} + d);
            for (int s = 1; s <= q; s *= 2)
                for (int l = q; l >= s; l--) b[l] = COMBINE(b[l - s], b[l]);
            const ${V} past = COMBINE(vload${W}(0, earlier + d), b[q]);
            vstore${W}(past, 0, before + d);
            if (q == ${W - 1}) vstore${W}(past, 0, earlier + d);
        }
% endif
    }
    }
}
