<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## C = epilogue(alpha * (P[0] + P[1] + ...) + beta * C + bias): adds the partial products of split-K in a fixed order.
##
## P (S, M, N) contiguous in the compute type; C (M, N) any strides. Geometry: global (N, M), any local size.
##
## Parameter  legal values
## TC         dtype row of C (P holds its compute type); BIAS BETA EPI as in matmul/cpu
__kernel void matmul_sum(IN(${TC.acc}, P), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const ${TC.acc} alpha, const ${TC.acc} beta) {
    const long M = d.s0, N = d.s1, S = d.s2, rcs = d.s7, ccs = d.s8;
    const long col = get_global_id(0), row = get_global_id(1);
    if (col >= N || row >= M) return;
    PTR_IN(${TC.acc}, P);
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
    ${TC.acc} v = 0;
    for (long s = 0; s < S; s++) v += P[(s * M + row) * N + col];
    v *= alpha;
    __global ${TC.c}* p = C_p + C_o + row * rcs + col * ccs;
    const bool first = true, last = true;
    ${tile.finish(TC, TC.acc, TC.acc, BIAS, BETA, EPI, "p", "col", False)}
    ${TC.store}(p, 0, v);
}
