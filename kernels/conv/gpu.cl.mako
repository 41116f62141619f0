<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="blocks" file="/matmul/blocks.cl.mako"/>\
## Convolution as a matrix product in local-memory tiles: Y[pixel] = epilogue(wt @ patch(pixel) + bias), for any device.
##
## Operands as in conv/cpu (weights, padded grid, table of steps). Geometry and tiling as in matmul/gpu: local (LX, LY, 1),
## columns are pixels; the group keeps the offsets of its pixels in local memory.
##
## Parameter  legal values
## TC         dtype row of Y and bias; wt and grid hold its compute type
## LX LY TM TN BK  as in matmul/gpu; BIAS: "" | m; EPI as in matmul/tile
<%
    ACC = TC.acc
    BM, BN, G = LY * TM, LX * TN, LX * LY
    pad, vector = blocks.module.PAD, blocks.module.vector
    place = lambda row, col: f"out + {row} * rcs + place[(int)({col} - n0)]"
    # Pixels of one row of Y that begin at a multiple of their size
    VN = min(TN, 4)
    at = "(int)(col - n0)"
    neat = f"col + {VN} <= N && place[{at} + {VN - 1}] - place[{at}] == {VN - 1} && ((size_t)({place('row', 'col')}) & {VN * TC.itemsize - 1}) == 0"
    vectors = tile.module.vector_epilogue(EPI)
    finish = lambda vec, V, col: capture(tile.finish, TC, ACC, V, BIAS, False, EPI, "p", "0", False)
%>\
${tile.macros(ACC)}
% if vectors:
${vec.vector_io(TC, VN)}
% endif
__kernel __attribute__((reqd_work_group_size(${LX}, ${LY}, 1)))
void conv_gpu(IN(${ACC}, wt), IN(${ACC}, grid), OUT(${TC.c}, Y), IN(${TC.c}, bias), __global const int* restrict koff, const long16 d, const long8 y) {
    __local ${ACC}4 pool[${-(-BK * (BM + BN + 2 * pad) // 4)}];
    __local ${ACC}* la = (__local ${ACC}*)pool;
    __local ${ACC}* lb = la + ${BK * (BM + pad)};
    __local int from[${BN}];
    __local long place[${BN}];
    const long M = d.s0, K = d.s1, pixels = d.s2, OD = d.s3, OH = d.s4, OW = d.s5, P = d.s6, GHW = d.s7, GW = d.s8, rcs = y.s4;
    const long group = get_global_id(2);
    __global const ${ACC}* restrict A = wt_p + wt_o + group * d.sa;
    __global const ${ACC}* restrict X = grid_p + grid_o + group * d.sb;
    __global ${TC.c}* restrict out = Y_p + Y_o + group * y.s5;
% if BIAS:
    __global const ${TC.c}* restrict bias = bias_p + bias_o + group * M;
% endif
    const int lx = get_local_id(0), ly = get_local_id(1), lid = ly * ${LX} + lx;
    const long m0 = (get_global_id(1) - ly) * ${TM}, n0 = get_group_id(0) * ${BN};
    for (int e = lid; e < ${BN}; e += ${G}) {
        const long p = n0 + e, ow = p % OW, oh = p / OW % OH, od = p / (OW * OH) % OD, n = p / (OW * OH * OD);
        from[e] = p < pixels ? (int)(n * P + od * GHW + oh * GW + ow) : -1;
        place[e] = n * y.s0 + od * y.s1 + oh * y.s2 + ow * y.s3;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% for r in range(TM):
    ${vector(ACC, VN)} ${", ".join(f"c{r}_{q} = 0" for q in range(TN // VN))};
% endfor
    A += m0 * K;
    for (long k0 = 0; k0 < K; k0 += ${BK}) {
        const int left = (int)min(K - k0, ${BK}L);
        for (int e = lid; e < ${BK * BM}; e += ${G}) {
            const int k = e % ${BK}, x = e / ${BK};
            la[k * ${BM + pad} + x] = k < left && m0 + x < M ? A[x * K + k0 + k] : 0;
        }
        for (int e = lid; e < ${BK * BN}; e += ${G}) {
            const int k = e / ${BN}, x = e % ${BN};
            lb[k * ${BN + pad} + x] = k < left && from[x] >= 0 ? X[koff[k0 + k] + from[x]] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
${blocks.multiply(TM, TN, LX, LY, BK, ACC)}
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const ${ACC} alpha = 1, beta = 0;
    const bool first = true, last = true;
    const long N = pixels;
${blocks.store(TM, TN, LX, LY, ACC, TC, neat if vectors else "", place, finish)}
}
