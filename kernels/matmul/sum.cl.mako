<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## C = epilogue(alpha * (P[0] + P[1] + ...) + beta * C + bias): adds the partial products of split-K in a fixed order.
##
## P (S, M, N) contiguous in the compute type; C (M, N) any strides.
## Geometry: global (columns / CHUNK, rows / d.s9), local (1, 1) where W > 1; else global (N, M), any local size.
##
## Parameter  legal values
## TC         dtype row of C (P holds its compute type); BIAS BETA EPI as in matmul/cpu
## W          lanes of a vector, 1 for an element per work-item
## CHUNK      columns of a work-item
<%
    ACC, V = TC.acc, f"{TC.acc}{W}"
    vectors = W > 1 and tile.module.vector_epilogue(EPI)
%>\
% if vectors:
${vec.vector_io(TC, W)}
#define ldv_sum(p) vload${W}(0, p)
% endif
<%def name="one(T, vec, load, store)">
            ${T} v = 0;
            for (long s = 0; s < S; s++) v += ${load("P + (s * M + row) * N + col")};
            v *= alpha;
            __global ${TC.c}* p = C_p + C_o + row * rcs + col * ccs;
            ${tile.finish(TC, ACC, T, BIAS, BETA, EPI, "p", "col", vec)}
            ${store("p", "v")};
</%def>
__kernel ${"__attribute__((reqd_work_group_size(1, 1, 1)))" if W > 1 else ""}
void matmul_sum(IN(${ACC}, P), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const ${ACC} alpha, const ${ACC} beta) {
    const long M = d.s0, N = d.s1, S = d.s2, rcs = d.s7, ccs = d.s8;
    const bool first = true, last = true;
    PTR_IN(${ACC}, P);
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
% if W > 1:
    const long begin = get_global_id(0) * ${CHUNK}, end = min(N, begin + ${CHUNK}), row_end = min(M, (long)(get_global_id(1) + 1) * d.s9);
    for (long row = get_global_id(1) * d.s9; row < row_end; row++) {
        long col = begin;
% if vectors:
        if (ccs == 1) for (; col + ${W} <= end; col += ${W}) {
            ${one(V, True, lambda p: f"ldv_sum({p})", lambda p, v: f"stv_{TC.name}({p}, {v})")}
        }
% endif
        for (; col < end; col++) {
            ${one(ACC, False, lambda p: f"*({p})", lambda p, v: f"{TC.store}({p}, 0, {v})")}
        }
    }
% else:
    const long col = get_global_id(0), row = get_global_id(1);
    if (col >= N || row >= M) return;
    ${one(ACC, False, lambda p: f"*({p})", lambda p, v: f"{TC.store}({p}, 0, {v})")}
% endif
}
