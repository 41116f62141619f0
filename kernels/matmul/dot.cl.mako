<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias) where both operands are contiguous along K (x @ weight.T): every
## element is a dot product of two rows, so nothing is packed or transposed. For CPUs; best for few rows, few columns or a vector.
##
## A (M, K) and B.T (N, K) with unit stride along K; C (M, N) rows of unit stride; z counts two batch dimensions.
## Geometry: global (blocks of NB columns, blocks of MB rows, batch), local (1, 1, 1). A tile is DM x DN dot products, each a
## vector of W partial sums; DM * DN == W, so one butterfly adds the lanes of all of them into one vector.
##
## Parameter  legal values
## TA TB TC   dtype rows of one compute type
## W          lanes of a vector (16; 8 for 8-byte types)
## DM DN      rows and columns of the tile, DM * DN == W; DN in 1, 2, 4, 8, 16
## TABLE      True: row j of B.T starts at B + table[j]
## BIAS BETA EPI  as in matmul/cpu
##
## Limits: the order of sums depends on K and W alone.
<%
    ACC = TC.acc
    V = f"{ACC}{W}"
%>\
${tile.macros(ACC)}
% for t in dict.fromkeys([TA, TB]):
${vec.vector_io(t, W)}
% endfor
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_dot(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z,
                const ${ACC} alpha, const ${ACC} beta${", __global const int* table" if TABLE else ""}) {
    const long M = d.s0, N = d.s1, ras = d.s3, cbs = d.s6, rcs = d.s7, MB = d.s8, NB = d.sa;
    const long z0 = get_group_id(2) / z.s0, z1 = get_group_id(2) % z.s0;
    const long K = d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2;
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5;
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
    const long i_begin = get_group_id(1) * MB, i_end = min(M, i_begin + MB);
    const long j_begin = get_group_id(0) * NB, j_end = min(N, j_begin + NB);
    const bool by_rows = i_end - i_begin > j_end - j_begin;    /* the longer side is walked once, with the other one in the caches */
    long i0 = i_begin, j0 = j_begin;
    while (i0 < i_end && j0 < j_end) {
        // Rows and columns past the end repeat the last one; their sums are not stored.
% for c in range(DN):
        __global const ${TB.c}* b${c} = B + ${"table[min(j0 + %d, N - 1)]" % c if TABLE else "min(j0 + %d, N - 1) * cbs" % c};
% endfor
% for r in range(DM):
        __global const ${TA.c}* a${r} = A + min(i0 + ${r}, M - 1) * ras;
% endfor
% for s in range(W):
        ${V} s${s} = 0;
% endfor
        long k = 0;
        for (; k + ${W} <= K; k += ${W}) {
% for c in range(DN):
            const ${V} y${c} = ldv_${TB.name}(b${c} + k);
% endfor
% for r in range(DM):
            { const ${V} x = ldv_${TA.name}(a${r} + k); ${" ".join(f"s{r * DN + c} = MAC(x, y{c}, s{r * DN + c});" for c in range(DN))} }
% endfor
        }
        ${ACC} tail[${W}];
% for s in range(W):
        tail[${s}] = 0;
% endfor
        for (; k < K; k++) {
% for r in range(DM):
            { const ${ACC} x = ${TA.load}(a${r}, k);
              ${" ".join(f"tail[{r * DN + c}] = MAC(x, {TB.load}(b{c}, k), tail[{r * DN + c}]);" for c in range(DN))} }
% endfor
        }
        ${vec.lane_sums(V, W, "s")}
        ${ACC} sums[${W}];
        vstore${W}(s0 + vload${W}(0, tail), 0, sums);
        for (long r = 0; r < ${DM} && i0 + r < i_end; r++)
            for (long q = 0; q < ${DN} && j0 + q < j_end; q++) {
                const long row = i0 + r;
                __global ${TC.c}* p = C + row * rcs + j0 + q;
                ${ACC} v = sums[r * ${DN} + q] * alpha;
                const bool first = true, last = true;
                ${tile.finish(TC, ACC, ACC, BIAS, BETA, EPI, "p", "j0 + q", False)}
                ${TC.store}(p, 0, v);
            }
        if (by_rows) {
            j0 += ${DN};
            if (j0 >= j_end) { j0 = j_begin; i0 += ${DM}; }
        } else {
            i0 += ${DM};
            if (i0 >= i_end) { i0 = i_begin; j0 += ${DN}; }
        }
    }
}
