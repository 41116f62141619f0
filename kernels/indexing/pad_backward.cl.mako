<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## complex    True
## Gradient of indexing/pad: each element of gx adds up the elements of g that are copies of it, in a fixed order.
##
## gx (outer, i0, i1, ...), g (outer, o0, o1, ...), contiguous; b<d> as in indexing/pad.
## Geometry: LOOP global (ceil(outer * all i but the last / chunk)), chunk rows per work-item (CPUs); else global (i of the last dimension, all other i).
##
## Parameter  legal values
## T          dtype row of both; LOOP only where it is computed in as it is stored
## RANK MODE  as in indexing/pad; LOOP bool
<%
    L = 1 if T.is_complex or T.c != T.acc else 64 // T.acc_dtype.itemsize
    end = RANK - 1
%>\
% if LOOP and L > 1:
${vec.vector_io(T, L)}
% endif
__kernel void pad_backward(IN(${T.c}, g), OUT(${T.c}, gx), const long rows, const long chunk,
                           ${", ".join(f"const long i{d}, const long o{d}, const long b{d}" for d in range(RANK))}) {
    PTR_IN(${T.c}, g);
    PTR_OUT(${T.c}, gx);
% if LOOP:
    const long first = get_global_id(0) * chunk;
    for (long row = first; row < min(rows, first + chunk); row++) {
% else:
    const long row = get_global_id(1), p${end} = get_global_id(0);
    if (row >= rows || p${end} >= i${end}) return;
% endif
    long rest = row;
% for d in range(RANK - 2, -1, -1):
    const long p${d} = rest % i${d};
    rest /= i${d};
% endfor
% if LOOP:
    __global ${T.c}* restrict to = gx + row * i${end};
    const long lo = max(0L, -b${end}), hi = min(i${end}, o${end} - b${end});       /* to[lo..hi) has g[lo + b..] as its first copy */
    int seen = 0;
${sources(0, end)}
        __global const ${T.c}* restrict from = g + (${place(end)}) * o${end};
        if (!seen) {
            for (long j = 0; j < lo; j++) to[j] = 0;
            for (long j = max(lo, hi); j < i${end}; j++) to[j] = 0;
        }
        long j = lo;
% if L > 1:
        if (!seen) for (; j + ${L} <= hi; j += ${L}) stv_${T.name}(to + j, ldv_${T.name}(from + j + b${end}));
        else for (; j + ${L} <= hi; j += ${L}) stv_${T.name}(to + j, ldv_${T.name}(to + j) + ldv_${T.name}(from + j + b${end}));
% endif
        for (; j < hi; j++) to[j] = seen ? to[j] + from[j + b${end}] : from[j + b${end}];
        for (long o = 0; o < min(b${end}, o${end}); o++) { const long k = ${copied()}; to[k] += from[o]; }
        for (long o = max(0L, b${end} + i${end}); o < o${end}; o++) { const long k = ${copied()}; to[k] += from[o]; }
        seen = 1;
    ${"}" * (2 * end)}
    if (!seen) for (long j = 0; j < i${end}; j++) to[j] = 0;
    }
% else:
    ${T.acc} sum = 0;
${sources(0, RANK)}
        sum += ${T.load}(g, place);
    ${"}" * (2 * RANK)}
    ${T.store}(gx, row * i${end} + p${end}, sum);
% endif
}
<%def name="place(count)">${"rest" if count == 0 else f"q{count - 1}"}</%def>
<%def name="copied()">\
<% b, i = f"b{RANK - 1}", f"i{RANK - 1}" %>\
% if MODE == "reflect":
(o < ${b} ? ${b} - o : 2 * (${i} - 1) - (o - ${b}))\
% elif MODE == "replicate":
(o < ${b} ? 0L : ${i} - 1)\
% else:
(o < ${b} ? o - ${b} + ${i} : o - ${b} - ${i})\
% endif
</%def>
## Loops over the copies of p<d> along dimensions [d, stop): two braces each.
<%def name="sources(d, stop)">\
% for d in range(d, stop):
<% p, n, o, b = f"p{d}", f"i{d}", f"o{d}", f"b{d}" %>\
% if MODE == "replicate":
    for (long s${d} = ${p} == 0 ? 0 : max(0L, ${p} + ${b}), e${d} = ${p} == ${n} - 1 ? ${o} - 1 : min(${o} - 1, ${p} + ${b}); s${d} <= e${d}; s${d}++) { {
% else:
    for (int c${d} = 0; c${d} < 3; c${d}++) {
% if MODE == "reflect":
        const long s${d} = c${d} == 0 ? ${p} + ${b} : c${d} == 1 ? ${b} - ${p} : ${b} + 2 * (${n} - 1) - ${p};
        if (s${d} >= 0 && s${d} < ${o} && (c${d} == 0 || (c${d} == 1 ? ${p} > 0 : ${p} < ${n} - 1))) {
% else:
        const long s${d} = ${p} + ${b} + (c${d} == 0 ? 0L : c${d} == 1 ? -${n} : ${n});
        if (s${d} >= 0 && s${d} < ${o}) {
% endif
% endif
        const long q${d} = ${"rest" if d == 0 else f"q{d - 1}"} * ${o} + s${d};
% endfor
% if stop == RANK:
        const long place = q${RANK - 1};
% endif
</%def>
