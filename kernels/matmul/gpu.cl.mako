<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="blocks" file="/matmul/blocks.cl.mako"/>\
## C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias) for devices with fast local memory (and as a safe default anywhere).
##
## A (M, K), B (K, N) any strides; C (M, N) rows of unit stride; z counts two batch dimensions, or runs of K (split-K).
## Geometry: local (LX, LY, 1), global (LX * ceil(N / (LX * TN)), LY * ceil(M / (LY * TM)), batch). A work-group owns a
## (LY * TM) x (LX * TN) block of C, a work-item TM x TN elements of it. With wide loads the next block of K
## is fetched into registers while one is multiplied.
##
## Parameter  legal values
## TA TB TC   dtype rows of one compute type
## LX LY      work-group size (1..16 each); TM TN: elements of a work-item (2, 4, 8)
## BK         steps per block of K; local memory is BK * (LY * TM + LX * TN + 8) elements of the compute type
## AFAST BFAST  "k" or "x": the index along which neighbouring work-items load A (m, k) and B (k, n), the one of unit stride
## WIDE       True: loads of up to 16 bytes along them; addresses, other strides and extents must allow them, and offsets inside a block fit 32 bits
## TABLE      True: column j of B starts at B + table[j] and has unit stride
## BIAS BETA EPI  as in matmul/cpu
##
## Limits: barriers stand at the top level; the loop bounds are the same for the whole group.
<%
    ACC = TC.acc
    BM, BN, G = LY * TM, LX * TN, LX * LY
    VN = min(TN, 4)
    pad, vector = blocks.module.PAD, blocks.module.vector
    A, B = ("A", TA, BM, BK, G, AFAST), ("B", TB, BN, BK, G, BFAST)
    vectors = tile.module.vector_epilogue(EPI)
    place = lambda row, col: f"C + {row} * rcs + {col}"
    finish = lambda vec, V, col: capture(tile.finish, TC, ACC, V, BIAS, BETA, EPI, "p", col, vec)
%>\
${tile.macros(ACC)}
% if vectors:
${vec.vector_io(TC, VN)}
% endif
__kernel __attribute__((reqd_work_group_size(${LX}, ${LY}, 1)))
void matmul_gpu(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z,
                const ${ACC} alpha, const ${ACC} beta${", __global const int* table" if TABLE else ""}) {
    __local ${ACC}4 pool[${-(-BK * (BM + BN + 2 * pad) // 4)}];
    __local ${ACC}* la = (__local ${ACC}*)pool;
    __local ${ACC}* lb = la + ${BK * (BM + pad)};
    const long M = d.s0, N = d.s1, ras = d.s3, cas = d.s4, rbs = d.s5, cbs = d.s6, rcs = d.s7;
    const long z0 = get_global_id(2) / z.s0, z1 = get_global_id(2) % z.s0;
    const long K = d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2;
    const int lx = get_local_id(0), ly = get_local_id(1), lid = ly * ${LX} + lx;
    const long m0 = (get_global_id(1) - ly) * ${TM}, n0 = get_group_id(0) * ${BN};
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4 + m0 * ras;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5${"" if TABLE else " + n0 * cbs"};
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
% if WIDE:
${blocks.offsets(*A, "ras", "cas", "m0", "M")}
${blocks.offsets(*B, "cbs", "rbs", "n0", "N")}
% endif
% for r in range(TM):
    ${vector(ACC, VN)} ${", ".join(f"c{r}_{q} = 0" for q in range(TN // VN))};
% endfor
    int left = (int)min(K, ${BK}L);
% if WIDE:
${blocks.fetch(*A)}
${blocks.fetch(*B)}
% endif
    for (long k0 = 0; k0 < K; k0 += ${BK}) {
% if WIDE:
${blocks.place(*A, ACC, "la")}
${blocks.place(*B, ACC, "lb")}
% else:
${blocks.load(*A, "la", "m0", "M", "x * ras + k * cas")}
${blocks.load(*B, "lb", "n0", "N", "table[n0 + x] + k" if TABLE else "x * cbs + k * rbs")}
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
        A += ${BK} * cas;
        B += ${BK} * rbs;
        left = (int)max(0L, min(K - k0 - ${BK}, ${BK}L));
% if WIDE:
${blocks.fetch(*A)}
${blocks.fetch(*B)}
% endif
${blocks.multiply(TM, TN, LX, LY, BK, ACC)}
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const bool first = true, last = true;
% if vectors:
    const bool neat = (((size_t)C | (size_t)(rcs * ${TC.itemsize})) & ${VN * TC.itemsize - 1}) == 0;
% endif
${blocks.store(TM, TN, LX, LY, ACC, TC, "neat" if vectors else "", place, finish)}
}
