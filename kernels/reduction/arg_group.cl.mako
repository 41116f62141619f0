<%inherit file="/base.cl.mako"/>\
## First position of the largest (smallest) element along the middle dimension of X (outer, n, inner) on GPUs; NaN counts as the extreme.
##   V[o, p, i], I[o, p, i] = value and position of part p of the row (o, i); parts are `part` elements long
##
## Geometry: WIDE columns side by side, DEEP work-items for each. WIDE = 0, inner = 1: global (outer / (SIZE / DEEP) * SIZE, parts), local (SIZE, 1);
## else global (inner, outer * DEEP, parts), local (WIDE, DEEP, 1). Sizes are rounded up.
##
## parameter  values         meaning
## T          dtype row      of X and V
## SIGN       ">" "<"        largest or smallest
## WIDE       0 1 ...        see above
## DEEP       power of two   work-items of a row or column
## SIZE       1 ...          work-items of a group
## AHEAD      1 ...          loads of an item on their way at a time
## POSITIONS  bool           X comes with positions J of an earlier stage, else a position is the index along n
## Limits: a part has fewer than 2^31 elements.
<%
    A, STEP = T.acc, WIDE or 1
    PITCH = "" if not WIDE else " * inner"
    runs = [AHEAD] + [1 << k for k in reversed(range((AHEAD - 1).bit_length()))]
%>
#define BETTER(a, b) (((a) ${SIGN} (b)) | (((a) != (a)) & ((b) == (b))))
#define FIRST(a, ia, b, ib) (BETTER(a, b) | (!BETTER(b, a) & ((ia) < (ib))))
__kernel void reduction_arg(IN(${T.c}, X), IN(long, J), OUT(${T.c}, V), OUT(long, I), const long outer, const long n, const long inner, const long part,
                            const long parts) {
    PTR_IN(${T.c}, X);
    PTR_IN(long, J);
    PTR_OUT(${T.c}, V);
    PTR_OUT(long, I);
% if WIDE:
    const int d = get_local_id(1), lid = d * ${WIDE} + (int)get_local_id(0);
    const long own = get_global_id(0), i = min(own, inner - 1), o = get_global_id(1) / ${DEEP}, p = get_global_id(2);
    const bool there = own < inner;
% else:
    const int lid = get_local_id(0), d = lid % ${DEEP};
    const long own = (long)get_group_id(0) * ${SIZE // DEEP} + lid / ${DEEP}, o = min(own, outer - 1), p = get_global_id(1), i = 0;
    const bool there = own < outer;
% endif
    const long first = p * part;
    const int m = (int)(min(n, first + part) - first);
    __global const ${T.c}* x = X + (o * n + first)${PITCH} + i;
    int k = min(d, m - 1), mine_at = k;
    ${A} mine = ${T.load}(x, k${PITCH});
% for count in runs:
    ${"for" if count == AHEAD else "if"} (${"; " if count == AHEAD else ""}k + ${(count - 1) * DEEP} < m${"; k += " + str(count * DEEP) if count == AHEAD else ""}) {
        ${A} v[${count}];
#pragma unroll
        for (int q = 0; q < ${count}; q++) v[q] = ${T.load}(x, (k + q * ${DEEP})${PITCH});
#pragma unroll
        for (int q = 0; q < ${count}; q++)
            if (BETTER(v[q], mine)) { mine = v[q]; mine_at = k + q * ${DEEP}; }
% if count != AHEAD:
        k += ${count * DEEP};
% endif
    }
% endfor
% if DEEP > 1:
    __local ${A} best[${SIZE}];
    __local int at[${SIZE}];
    best[lid] = mine;
    at[lid] = mine_at;
    for (int s = ${DEEP // 2}; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (d < s && FIRST(best[lid + s * ${STEP}], at[lid + s * ${STEP}], best[lid], at[lid])) {
            best[lid] = best[lid + s * ${STEP}];
            at[lid] = at[lid + s * ${STEP}];
        }
    }
    mine = best[lid];
    mine_at = at[lid];
% endif
    if (there && d == 0) {
        const long to = (o * parts + p)${PITCH} + i;
        ${T.store}(V, to, mine);
        I[to] = ${f"J[(o * n + first + mine_at){PITCH} + i]" if POSITIONS else "first + mine_at"};
    }
}
