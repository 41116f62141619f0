<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
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
%>\
${tile.macros(ACC)}
__kernel __attribute__((reqd_work_group_size(${LX}, ${LY}, 1)))
void conv_gpu(IN(${ACC}, wt), IN(${ACC}, grid), OUT(${TC.c}, Y), IN(${TC.c}, bias), __global const int* restrict koff, const long16 d, const long8 y) {
    __local ${ACC} la[${BK * (BM + 1)}], lb[${BK * (BN + 1)}];
    __local int from[${BN}];
    __local long place[${BN}];
    const long M = d.s0, K = d.s1, pixels = d.s2, OD = d.s3, OH = d.s4, OW = d.s5, P = d.s6, GHW = d.s7, GW = d.s8, rcs = y.s4;
    const long group = get_group_id(2);
    __global const ${ACC}* restrict A = wt_p + wt_o + group * d.sa;
    __global const ${ACC}* restrict X = grid_p + grid_o + group * d.sb;
    __global ${TC.c}* restrict out = Y_p + Y_o + group * y.s5;
% if BIAS:
    __global const ${TC.c}* restrict bias = bias_p + bias_o + group * M;
% endif
    const int lx = get_local_id(0), ly = get_local_id(1), lid = ly * ${LX} + lx;
    const long m0 = get_group_id(1) * ${BM}, n0 = get_group_id(0) * ${BN};
    for (int e = lid; e < ${BN}; e += ${G}) {
        const long p = n0 + e, ow = p % OW, oh = p / OW % OH, od = p / (OW * OH) % OD, n = p / (OW * OH * OD);
        from[e] = p < pixels ? (int)(n * P + od * GHW + oh * GW + ow) : -1;
        place[e] = n * y.s0 + od * y.s1 + oh * y.s2 + ow * y.s3;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% for r in range(TM):
    ${ACC} ${", ".join(f"c{r}_{q} = 0" for q in range(TN))};
% endfor
    for (long k0 = 0; k0 < K; k0 += ${BK}) {
        for (int e = lid; e < ${BK * BM}; e += ${G}) {
            const int k = e % ${BK}, x = e / ${BK};
            la[k * ${BM + 1} + x] = (k0 + k < K && m0 + x < M) ? A[(m0 + x) * K + k0 + k] : 0;
        }
        for (int e = lid; e < ${BK * BN}; e += ${G}) {
            const int k = e / ${BN}, x = e % ${BN};
            lb[k * ${BN + 1} + x] = (k0 + k < K && from[x] >= 0) ? X[koff[k0 + k] + from[x]] : 0;
        }
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
    const ${ACC} alpha = 1, beta = 0;
    const bool first = true, last = true;
% for r in range(TM):
% for q in range(TN):
    { const long row = m0 + ly + ${r * LY}; const int col = lx + ${q * LX};
      if (row < M && n0 + col < pixels) {
        ${ACC} v = c${r}_${q};
        __global ${TC.c}* p = out + row * rcs + place[col];
        ${tile.finish(TC, ACC, ACC, BIAS, False, EPI, "p", "0", False)} ${TC.store}(p, 0, v); } }
% endfor
% endfor
}
