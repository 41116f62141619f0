<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias) for devices with fast local memory (and as a safe default anywhere).
##
## A (M, K), B (K, N) any strides; C (M, N) rows of unit stride; z counts two batch dimensions, or runs of K (split-K).
## Geometry: local (LX, LY, 1), global (LX * ceil(N / (LX * TN)), LY * ceil(M / (LY * TM)), batch). A work-group owns a
## (LY * TM) x (LX * TN) block of C; a work-item TM x TN elements that lie LY and LX apart, so that neighbours in a group
## read and write neighbouring columns.
##
## Parameter  legal values
## TA TB TC   dtype rows of one compute type
## LX LY      work-group size (1..16 each); TM TN: elements of a work-item (1..8)
## BK         steps per block of K; local memory is BK * (LY * TM + 1 + LX * TN + 1) elements of the compute type
## AFAST BFAST  which index of A (m, k) and B (k, n) neighbouring work-items step through when loading: the one of unit stride
## TABLE      True: column j of B starts at B + table[j] and has unit stride
## BIAS BETA EPI  as in matmul/cpu
##
## Limits: barriers stand at the top level; the loop bounds are the same for the whole group.
<%
    ACC = TC.acc
    BM, BN, G = LY * TM, LX * TN, LX * LY
%>\
${tile.macros(ACC)}
<%def name="load(X, T, L, width, fast_k, count, index, ok)">
        for (int e = lid; e < ${BK * width}; e += ${G}) {
% if fast_k:
            const int k = e % ${BK}, x = e / ${BK};
% else:
            const int k = e / ${width}, x = e % ${width};
% endif
            ${L}[k * ${width + 1} + x] = (k0 + k < K && ${ok}) ? ${T.load}(${X}, ${index}) : 0;
        }
</%def>
__kernel __attribute__((reqd_work_group_size(${LX}, ${LY}, 1)))
void matmul_gpu(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z,
                const ${ACC} alpha, const ${ACC} beta${", __global const int* table" if TABLE else ""}) {
    __local ${ACC} la[${BK * (BM + 1)}], lb[${BK * (BN + 1)}];
    const long M = d.s0, N = d.s1, ras = d.s3, cas = d.s4, rbs = d.s5, cbs = d.s6, rcs = d.s7;
    const long z0 = get_group_id(2) / z.s0, z1 = get_group_id(2) % z.s0;
    const long K = d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2;
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5;
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
    const int lx = get_local_id(0), ly = get_local_id(1), lid = ly * ${LX} + lx;
    const long m0 = get_group_id(1) * ${BM}, n0 = get_group_id(0) * ${BN};
% for r in range(TM):
    ${ACC} ${", ".join(f"c{r}_{q} = 0" for q in range(TN))};
% endfor
    for (long k0 = 0; k0 < K; k0 += ${BK}) {
        ${load("A", TA, "la", BM, AFAST == "k", "M", "(m0 + x) * ras + (k0 + k) * cas", "m0 + x < M")}
        ${load("B", TB, "lb", BN, BFAST == "k", "N", "k0 + k + table[n0 + x]" if TABLE else "(k0 + k) * rbs + (n0 + x) * cbs", "n0 + x < N")}
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < ${BK}; k++) {
% for q in range(TN):
            const ${ACC} y${q} = lb[k * ${BN + 1} + lx + ${q * LX}];
% endfor
% for r in range(TM):
            { const ${ACC} x = la[k * ${BM + 1} + ly + ${r * LY}]; ${" ".join(f"c{r}_{q} = MAC(x, y{q}, c{r}_{q});" for q in range(TN))} }
% endfor
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const bool first = true, last = true;
% for r in range(TM):
% for q in range(TN):
    { const long row = m0 + ly + ${r * LY}, col = n0 + lx + ${q * LX};
      if (row < M && col < N) {
        ${ACC} v = c${r}_${q} * alpha;
        __global ${TC.c}* p = C + row * rcs + col;
        ${tile.finish(TC, ACC, ACC, BIAS, BETA, EPI, "p", "col", False)} ${TC.store}(p, 0, v); } }
% endfor
% endfor
}
