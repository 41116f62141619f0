<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="frag" file="/matmul/fragments.cl.mako"/>\
## Convolution of 16-bit tensors on the tensor cores of NVIDIA's GPUs: Y[pixel] = epilogue(wt @ patch(pixel) + bias), sums in float.
##
## Operands as in conv/gpu; blocks and warps as in matmul/tensor, columns are pixels. wt and grid hold floats that came from 16 bits: they become
## words of two again on their way into local memory, without loss.
##
## Parameter  legal values
## TC         dtype row of Y and bias: float16 or bfloat16
## WX WY MT NT PTX  as in matmul/tensor; BIAS: "" | m; EPI as in matmul/tile
## AWIDE      True: K is a multiple of 8, and wt begins at a multiple of 32 bytes
<%
    G, BM, BN, WN = 32 * WX * WY, 16 * MT * WY, 8 * NT * WX, 8 * NT
    assert 4 * BM % (2 * G) == 0 and 4 * BN % G == 0
    words = frag.module.words
    SA, SB = words(BM, "k") // 4, words(BN, "x") // 4
    column = frag.module.column
    place = lambda row, col: f"out + {row} * rcs + place[(int)({col} - n0)]"
    finish = lambda many, V, col: capture(tile.finish, TC, "float", V, BIAS, False, EPI, "p", "0", many)
    # Pixels of one row of Y whose address allows a vector
    neat = f"place[wn + q + 3] - place[wn + q] == 3 && ((size_t)({place('row', 'col')}) & {4 * TC.itemsize - 1}) == 0"
    vectors = tile.module.vector_epilogue(EPI)
%>\
${frag.helpers(TC, TC, PTX)}
${vec.vector_io(TC, 4)}
<%def name="fetch()">
% for p in range(BM * 4 // G):
    { __global const float* a = A + Aat${p}; const int k = (lid & 3) * 8;
% if AWIDE:
      const float4 u = k < left ? *(__global const float4*)a : (float4)(0.0f), v = k < left ? *(__global const float4*)(a + 4) : (float4)(0.0f);
      Agot${p} = (uint4)(pack(u.s0, u.s1), pack(u.s2, u.s3), pack(v.s0, v.s1), pack(v.s2, v.s3)); }
% else:
      Agot${p} = (uint4)(${", ".join(f"pack(k + {2 * i} < left ? a[{2 * i}] : 0.0f, k + {2 * i + 1} < left ? a[{2 * i + 1}] : 0.0f)" for i in range(4))}); }
% endif
% endfor
% for p in range(BN * 4 // G):
    { const int k = ${column(BN, G, p)} * 2, lo = k < left ? steps[k] : -1, hi = k + 1 < left ? steps[k + 1] : -1;
      const int4 at = *(__local const int4*)(from + (lid + ${p * G}) % ${BN // 4} * 4);
      Bgot${p} = (uint4)(${", ".join(f"pack(lo >= 0 ? X[lo + at.s{i}] : 0.0f, hi >= 0 ? X[hi + at.s{i}] : 0.0f)" for i in range(4))}); }
% endfor
</%def>
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void conv_tensor(IN(float, wt), IN(float, grid), OUT(${TC.c}, Y), IN(${TC.c}, bias), __global const int* restrict koff, const long16 d, const long8 y) {
    __local uint4 pool[${max(2 * (SA + SB), WX * WY * 4 * (WN + 8))}];
    __local int4 offsets[${BN // 4}];
    __local int* from = (__local int*)offsets;
    __local long place[${BN}];
% if not PTX:
    __local uint exchange[${WX * WY * 32 * (MT * 4 + NT * 2)}];
% endif
    const long M = d.s0, pixels = d.s2, OD = d.s3, OH = d.s4, OW = d.s5, P = d.s6, GHW = d.s7, GW = d.s8, rcs = y.s4, N = pixels;
    const int K = (int)d.s1;
    const long group = get_global_id(2), m0 = get_global_id(1) * ${BM}, n0 = get_group_id(0) * ${BN};
    __global const float* restrict A = wt_p + wt_o + group * d.sa + m0 * K;
    __global const float* restrict X = grid_p + grid_o + group * d.sb;
    __global const int* restrict steps = koff;
    __global ${TC.c}* restrict out = Y_p + Y_o + group * y.s5;
% if BIAS:
    __global const ${TC.c}* restrict bias = bias_p + bias_o + group * M;
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
    const int wm = warp / ${WX} * ${16 * MT}, wn = warp % ${WX} * ${WN};
% if not PTX:
    __local uint* mine = exchange + warp * ${32 * (MT * 4 + NT * 2)};
% endif
    for (int e = lid; e < ${BN}; e += ${G}) {
        const long p = min(n0 + e, pixels - 1), ow = p % OW, oh = p / OW % OH, od = p / (OW * OH) % OD, n = p / (OW * OH * OD);
        from[e] = (int)(n * P + od * GHW + oh * GW + ow);
        place[e] = n * y.s0 + od * y.s1 + oh * y.s2 + ow * y.s3;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% for p in range(BM * 4 // G):
    const int Aat${p} = (int)min(${frag.module.row("A", p, G)}, M - 1 - m0) * K + (lid & 3) * 8;
% endfor
    uint4 ${", ".join([f"Agot{p}" for p in range(BM * 4 // G)] + [f"Bgot{p}" for p in range(BN * 4 // G)])};
% for i in range(MT):
    float ${", ".join(f"c{i}_{j}_{r} = 0" for j in range(NT) for r in range(4))};
% endfor
    int left = K;
    __local uint4* now = pool;
${fetch()}
${frag.place("A", BM, G, "k", "now")}
${frag.place("B", BN, G, "x", f"(now + {SA})")}
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k0 = 0; k0 < K; k0 += 32) {
        A += 32;
        steps += 32;
        left -= 32;
${fetch()}
% for s in (0, 1):
${frag.fragments("A", MT, BM, "k", "now", "wm", s)}
${frag.fragments("B", NT, BN, "x", f"(now + {SA})", "wn", s)}
${frag.multiply(MT, NT, PTX, s)}
% endfor
        now = pool + (k0 / 32 & 1 ? 0 : ${SA + SB});
${frag.place("A", BM, G, "k", "now")}
${frag.place("B", BN, G, "x", f"(now + {SA})")}
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const bool first = true, last = true;
    const float alpha = 1, beta = 0;
${frag.store(MT, NT, TC, neat if vectors else "", place, finish)}
}
