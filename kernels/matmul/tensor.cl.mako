<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="frag" file="/matmul/fragments.cl.mako"/>\
## C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias) on the tensor cores of NVIDIA's GPUs (compute capability 8.0 on), sums in float, or in int of bytes.
##
## A (M, K), B (K, N) any strides; C (M, N) rows of unit stride; z counts two batch dimensions, or runs of K (split-K). 16-bit operands are
## multiplied as they are, float operands rounded to tf32 (10 bits of mantissa).
## Geometry: local (32 WX WY, 1, 1), global (local * ceil(N / BN), ceil(M / BM), batch). A work-group owns a BM x BN block of C, BM = 16 MT WY and
## BN = 8 NT WX; each of its WY x WX warps MT x NT tiles of 16 x 8. A block of K is 16 words (64 bytes, 32 elements of 16 bits, 16 floats); the next one is
## fetched into registers while one is multiplied, and put into the other of two buffers. The result goes through local memory, so that rows are
## written in vectors.
##
## Parameter  legal values
## TA TB TC   dtype rows: TA is TB, one of float16, bfloat16, float32, and TC is TA or float32; or TB is int8, TA int8 or uint8, TC int32
## WX WY      warps side by side and one below the other; MT NT: tiles of a warp. Pieces of 4 words must go round evenly: 64 WX WY divides 4 BM,
##            32 WX WY divides 4 BN
## AFAST BFAST  "k" or "x": the index along which neighbouring work-items load A (m, k) and B (k, n)
## AWIDE BWIDE  True: that index has unit stride, and address, other strides and extents allow loads of 16 bytes (of 4 elements along "x"):
##            extents are multiples of 16 bytes along "k", of 4 elements along "x". False: any strides
## PTX        True: the instruction; False: spelt out, for tests
## BIAS BETA EPI  as in matmul/cpu
##
## Limits: offsets inside a block are 32 bits; barriers stand at the top level; the loop bounds are the same for the whole group.
<%
    G, BM, BN = 32 * WX * WY, 16 * MT * WY, 8 * NT * WX
    assert 4 * BM % (2 * G) == 0 and 4 * BN % G == 0
    BK = 64 // TA.itemsize
    words = frag.module.words
    SA, SB = words(BM, AFAST) // 4, words(BN, BFAST) // 4
    WN = NT * 8
    pool = max(2 * (SA + SB), WX * WY * 4 * (WN + 8))
    A = ("A", TA, BM, G, AFAST, AWIDE, "ras", "cas", "m0", "M")
    B = ("B", TB, BN, G, BFAST, BWIDE, "cbs", "rbs", "n0", "N")
    ACC = TC.acc
    vectors = tile.module.vector_epilogue(EPI)
    place = lambda row, col: f"C + {row} * rcs + {col}"
    finish = lambda many, V, col: capture(tile.finish, TC, ACC, V, BIAS, BETA, EPI, "p", col, many)
%>\
${frag.helpers(TB, TC, PTX, TA)}
${vec.vector_io(TC, 4)}
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void matmul_tensor(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z, const ${ACC} alpha, const ${ACC} beta) {
    __local uint4 pool[${pool}];
% if not PTX:
    __local uint exchange[${WX * WY * 32 * (MT * 4 + NT * 2)}];
% endif
    const long M = d.s0, N = d.s1, ras = d.s3, cas = d.s4, rbs = d.s5, cbs = d.s6, rcs = d.s7;
    const long z0 = get_global_id(2) / z.s0, z1 = get_global_id(2) % z.s0;
    const int K = (int)(d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2);
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
    const int wm = warp / ${WX} * ${16 * MT}, wn = warp % ${WX} * ${WN};
    const long m0 = get_global_id(1) * ${BM}, n0 = get_group_id(0) * ${BN};
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4 + m0 * ras;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5 + n0 * cbs;
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
% if not PTX:
    __local uint* mine = exchange + warp * ${32 * (MT * 4 + NT * 2)};
% endif
${frag.offsets(*A)}
${frag.offsets(*B)}
% for i in range(MT):
    ${ACC} ${", ".join(f"c{i}_{j}_{r} = 0" for j in range(NT) for r in range(4))};
% endfor
    int left = K;
    __local uint4* now = pool;
${frag.fetch(*A)}
${frag.fetch(*B)}
${frag.place("A", BM, G, AFAST, "now")}
${frag.place("B", BN, G, BFAST, f"(now + {SA})")}
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k0 = 0; k0 < K; k0 += ${BK}) {
        A += ${BK} * cas;
        B += ${BK} * rbs;
        left -= ${BK};
${frag.fetch(*A)}
${frag.fetch(*B)}
% for s in (0, 1):
${frag.fragments("A", MT, BM, AFAST, "now", "wm", s)}
${frag.fragments("B", NT, BN, BFAST, f"(now + {SA})", "wn", s)}
${frag.multiply(MT, NT, PTX, s)}
% endfor
        now = pool + (k0 / ${BK} & 1 ? 0 : ${SA + SB});
${frag.place("A", BM, G, AFAST, "now")}
${frag.place("B", BN, G, BFAST, f"(now + {SA})")}
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const bool first = true, last = true;
% if vectors:
    const bool neat = (((size_t)C | (size_t)(rcs * ${TC.itemsize})) & ${4 * TC.itemsize - 1}) == 0;
% endif
${frag.store(MT, NT, TC, "neat" if vectors else "", place, finish)}
}
