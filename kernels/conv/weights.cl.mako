<%inherit file="/base.cl.mako"/>\
## Weights in the order that a product needs: Y[g, m, k] = X[g * d.s3 + m * d.s4 + index[k]], in the compute type where BLOCK, else in their own.
##
## Geometry: BLOCK: a work-item takes 256 steps k of 8 rows m, whose elements are neighbours in memory: global (ceil(K / 256), ceil(M / 8), groups);
## else global (K, M, groups), and an index of -1 gives zeros. Any local size.
##
## Parameter  legal values
## T          dtype row of X
## BLOCK      True on CPUs
## WORDS      True: Y holds words of two 16-bit numbers, of which the second lies d.s5 elements behind the first
<%
    O = "uint" if WORDS else T.acc if BLOCK else T.c
    at = "(uint)(from + m * d.s4)[index[k]] | (uint)(from + m * d.s4)[index[k] + d.s5] << 16" if WORDS else f"{T.load}(from + m * d.s4, index[k])"
%>\
__kernel void conv_weights(IN(${T.c}, X), OUT(${O}, Y), __global const int* restrict index, const long8 d) {
    const long K = d.s0, M = d.s1, g = get_global_id(2);
    __global const ${T.c}* restrict from = X_p + X_o + g * d.s3;
    __global ${O}* restrict to = Y_p + Y_o + g * M * K;
% if BLOCK:
    const long k_begin = get_global_id(0) * 256, m_begin = get_global_id(1) * 8, k_end = min(K, k_begin + 256), m_end = min(M, m_begin + 8);
    for (long m = m_begin; m < m_end; m++)
        for (long k = k_begin; k < k_end; k++) to[m * K + k] = ${at};
% else:
    const long k = get_global_id(0), m = get_global_id(1);
    if (k < K && m < M) to[m * K + k] = index[k] < 0 ? 0 : (from + m * d.s4)[index[k]];
% endif
}
