<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="pairs" file="/matmul/pairs.cl.mako"/>\
## C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias) on a CPU whose instructions multiply words: 2 bfloat16 or 4 int8 at a time.
##
## A word is G neighbouring steps of K. The register tile of matmul/cpu goes along words instead of numbers: one of A is broadcast, a vector of
## B holds those of W columns. All sizes and strides along K (d.s2, d.s5, d.s9, KB) count words; d.sa steps are in the last one.
## A (M, K) rows of unit stride and whole words; B (K, N); C (M, N) rows of unit stride; z counts two batch dimensions. Geometry: global (panels of NV * W columns, blocks of MB rows,
## batch), local (1, 1, 1). A work-item packs its panel of B into words in local memory, KB at a time, then runs over its rows.
##
## Parameter  legal values
## TA TB TC   dtype rows: bfloat16 twice, or uint8 or int8 and int8; int8 A comes from matmul/interleave, with 128 added to each number
## W NV MR    lanes of a vector (16), vectors and rows of the register tile
## KB         most words in a block of K
## MODE       rows: B rows have unit stride; cols: B columns have; any: neither
## USE        how the instruction is spelt (see matmul/pairs)
## BIAS BETA EPI  as matmul/cpu
##
## Limits: M >= MR
<%
    ACC = TC.acc
    V = f"{ACC}{W}"
    G, NR = 4 // TB.itemsize, NV * W
    FLIPPED = TA.name == "int8"
%>\
${tile.macros(ACC)}
#undef MAC
#define MAC(x, y, z) dot_words(z, x, y)
${vec.vector_io(TC, W)}
${pairs.instruction(TB, W, USE)}
${pairs.reading(TB, W)}
<%def name="pack_rows()">
        for (long k = 0; k < kc; k++) {
            __global const ${TB.c}* s = B + (k0 + k) * rbs + jt;
            const int n = k0 + k + 1 < K ? ${G} : tail;
% for g in range(G):
            ${" ".join(f"FETCH(s + {8 * G + g} * rb1 + {at});" for at in range(0, NR, 64 // TB.itemsize))}
% endfor
% if NV % G == 0:
            if (jt + ${NR} <= N && n == ${G}) {
                ${" ".join(f"join_rows(s + {j * W}, rb1, pk + k * {NV} + {j});" for j in range(0, NV, G))}
                continue;
            }
% endif
            for (int j = 0; j < ${NV}; j++)
                if (jt + (j + 1) * ${W} <= N) pk[k * ${NV} + j] = n == ${G} ? words(s + j * ${W}, rb1, ${G}) : words(s + j * ${W}, rb1, n);
                else for (int q = 0; q < ${W}; q++)
                    ((__local uint*)(pk + k * ${NV} + j))[q] = jt + j * ${W} + q < N ? word(s + j * ${W} + q, rb1, n) : 0;
        }
</%def>
<%def name="pack_cols()">
        const long whole = k0 + kc == K && tail < ${G} ? kc - 1 : kc;
        for (long j = 0; j < ${NV}; j++) {
            __global const ${TB.c}* s = B + k0 * ${G} + (jt + j * ${W}) * cbs;
            const long n = N - jt - j * ${W};
            long k = 0;
            for (; k + ${W} <= whole; k += ${W}) {
% for c in range(W):
                uint${W} t${c} = ${c} < n ? vload${W}(0, (__global const uint*)(s + ${c} * cbs + k * ${G})) : (uint${W})0;
% endfor
% for c in range(W):
                FETCH(s + ${c} * cbs + (k + ${W}) * ${G});
% endfor
                ${vec.transpose(f"uint{W}", W, "t")}
% for c in range(W):
                pk[(k + ${c}) * ${NV} + j] = t${c};
% endfor
            }
            for (; k < kc; k++)
                for (long q = 0; q < ${W}; q++)
                    ((__local uint*)(pk + k * ${NV} + j))[q] = q < n ? word(s + q * cbs + k * ${G}, 1, k < whole ? ${G} : tail) : 0;
        }
</%def>
<%def name="pack_any()">
        for (long k = 0; k < kc; k++)
            for (long j = 0; j < ${NR}; j++)
                ((__local uint*)pk)[k * ${NR} + j] = jt + j < N ? word(B + (k0 + k) * rbs + (jt + j) * cbs, rb1, k0 + k + 1 < K ? ${G} : tail) : 0;
</%def>
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_words(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z,
                  const ${ACC} alpha, const ${ACC} beta) {
    const long M = d.s0, N = d.s1, ras = d.s3, rbs = d.s5, rb1 = rbs / ${G}, cbs = d.s6, rcs = d.s7, MB = d.s8, KB = d.sb;
    const long z0 = get_group_id(2) / z.s0, z1 = get_group_id(2) % z.s0;
    const long K = d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2;  // split-K: batch z0 sums its own run of d.s9 words
    const int tail = d.s9 && z0 * d.s9 + K < d.s2 ? ${G} : (int)d.sa;
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5;
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
    const long jt = get_group_id(0) * ${NR}, j_new = 0, n_end = N;
    const long i_begin = get_group_id(1) * MB, i_end = min(M, i_begin + MB);
    __local uint${W} pk[${KB * NV}];
    for (long k0 = 0; k0 < K; k0 += KB) {
        const long kc = min(KB, K - k0);
        const bool first = k0 == 0, last = k0 + kc == K;
        ${dict(rows=pack_rows, cols=pack_cols, any=pack_any)[MODE]()}
% if FLIPPED:
% for j in range(NV):
        ${V} extra${j} = 0;    /* what the 128 that was added to each number of A adds to a column */
% endfor
        for (long k = 0; k < kc; k++) { ${" ".join(f"extra{j} = dot_words(extra{j}, (uint{W})0x80808080u, pk[k * {NV} + {j}]);" for j in range(NV))} }
% endif
        for (long i_new = i_begin; i_new < i_end; i_new += ${MR}) {
            const long i = min(i_new, M - ${MR});
            const int r_end = ${MR};
            const bool full = i == i_new && jt + ${NR} <= N;
            __global ${TC.c}* c = C + i * rcs + jt;
            __local const uint${W}* b = pk;
% for r in range(MR):
            __global const ${TA.c}* a${r} = A + (i + ${r}) * ras + k0 * ${G};
% endfor
<%
    ahead = lambda k: " ".join(f"FETCH(a{r} + {MR} * ras + {k} * {G});" for r in range(MR))
    start = (lambda j: f"-extra{j}") if FLIPPED else None
%>\
            ${tile.fetch_result(MR, NV, W)}
            ${tile.multiply(MR, NV, V, ACC, lambda r: f"WORD(a{r} + k * {G})", lambda j: f"b[{j}]", f"b += {NV};", ahead, 4, f"uint{W}", start)}
            ${tile.store(MR, NV, W, V, ACC, TC, BIAS, BETA, EPI)}
        }
    }
}
