<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## Weight gradient of a 3 x 3 convolution of stride 1 by Winograd's F(3x3, 2x2) on a CPU: 16 products per 2 x 2 outputs instead of 36.
##
## Y[s, g, p, o, c] = sum over the tiles of split s of (G dY G')[p, o, tile] * (B' x B)[p, c, tile], p one of 16 planes; conv/winograd_gradient_sum
## makes the weights of it. x (groups, N, 2 TH + 2, 2 TW + 2, CP) and dY (groups, N, 2 TH, 2 TW, OP): padded, channels innermost, from conv/channels.
## scratch: per work-group 16 planes of TILES x (NV * 16 + 48) transformed elements. Columns of Y are padded to whole panels.
## Geometry: global (panels of NV * 16 channels, 1, groups * splits), local (1, 1, 1). A work-item takes its tiles TILES at a time: it transforms
## its channels of x, then, 48 output channels at a time, transforms dY and adds the 16 products to Y with the register tile of matmul/cpu.
##
## Parameter  legal values
## NV MR      vectors and rows of the register tile; MR <= O, a divisor of 48
## TILES      most tiles at a time
<% W, NR, OB = 16, 16 * NV, 48 %>\
${tile.macros("float")}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_winograd_gradient(IN(float, x), IN(float, dY), OUT(float, Y), __global float* restrict scratch, const long16 d) {
    const long O = d.s0, tiles = d.s1, TH = d.s2, TW = d.s3, CP = d.s4, OP = d.s5, rcs = d.s6, groups = d.s7, share = d.s8, N = d.s9;
    const long g = get_group_id(2) % groups, split = get_group_id(2) / groups, c0 = get_group_id(0) * ${NR};
    const long GW = 2 * TW + 2, P = (2 * TH + 2) * GW, DW = 2 * TW, DP = 2 * TH * DW;
    __global const float* restrict X = x_p + x_o + g * N * P * CP;
    __global const float* restrict D = dY_p + dY_o + g * N * DP * OP;
    __global float* restrict v = scratch + (get_group_id(2) * get_num_groups(0) + get_group_id(0)) * ${16 * TILES * (NR + OB)};
    __global float* restrict u = v + ${16 * TILES * NR};
    __global float* restrict out = Y_p + Y_o + (split * groups + g) * 16 * O * rcs + c0;
    const long t_end = min(tiles, (split + 1) * share);
    int corner[${TILES}], mark[${TILES}];                     // the first pixel of each tile in x and in dY
    for (long t0 = split * share; t0 < t_end; t0 += ${TILES}) {
        const long kc = min(${TILES}L, t_end - t0);
        const bool first = t0 == split * share;
        long tx = t0 % TW, ty = t0 / TW % TH, n = t0 / (TW * TH);
        for (int k = 0; k < kc; k++) {
            corner[k] = (int)(n * P + 2 * ty * GW + 2 * tx);
            mark[k] = (int)(n * DP + 2 * ty * DW + 2 * tx);
            if (++tx == TW) { tx = 0; if (++ty == TH) { ty = 0; n++; } }
        }
        for (int k = 0; k < kc; k++)
            for (int j = 0; j < ${NV}; j++) {
                __global const float* p = X + corner[k] * CP + min(c0 + j * 16, CP - 16);
                __global float* o = v + k * ${NR} + j * 16;
% for i in range(4):
                float16 t${i}0, t${i}1, t${i}2, t${i}3;
                { __global const float* s = p + ${i} * GW * CP;
                  const float16 d0 = vload16(0, s), d1 = vload16(0, s + CP), d2 = vload16(0, s + 2 * CP), d3 = vload16(0, s + 3 * CP);
                  t${i}0 = d0 - d2; t${i}1 = d1 + d2; t${i}2 = d2 - d1; t${i}3 = d1 - d3; }
% endfor
% for b in range(4):
                vstore16(t0${b} - t2${b}, 0, o + ${b * TILES * NR});
                vstore16(t1${b} + t2${b}, 0, o + ${(4 + b) * TILES * NR});
                vstore16(t2${b} - t1${b}, 0, o + ${(8 + b) * TILES * NR});
                vstore16(t1${b} - t3${b}, 0, o + ${(12 + b) * TILES * NR});
% endfor
            }
        for (long o0 = 0; o0 < O; o0 += ${OB}) {
            const long o_end = min(O, o0 + ${OB});
            for (int k = 0; k < kc; k++)
                for (int j = 0; o0 + j * 16 < o_end; j++) {
                    __global const float* p = D + mark[k] * OP + o0 + j * 16;
                    __global float* o = u + k * ${OB} + j * 16;
% for i in range(2):
                    const float16 x${i}0 = vload16(0, p + ${i} * DW * OP), x${i}3 = vload16(0, p + ${i} * DW * OP + OP);
                    const float16 x${i}1 = 0.5f * (x${i}0 + x${i}3), x${i}2 = 0.5f * (x${i}0 - x${i}3);
% endfor
% for b in range(4):
                    vstore16(x0${b}, 0, o + ${b * TILES * OB});
                    vstore16(0.5f * (x0${b} + x1${b}), 0, o + ${(4 + b) * TILES * OB});
                    vstore16(0.5f * (x0${b} - x1${b}), 0, o + ${(8 + b) * TILES * OB});
                    vstore16(x1${b}, 0, o + ${(12 + b) * TILES * OB});
% endfor
                }
            for (int p = 0; p < 16; p++)
                for (long i_new = o0; i_new < o_end; i_new += ${MR}) {
                    const long i = max(o0, min(i_new, o_end - ${MR}));
                    __global const float* b = v + p * ${TILES * NR};
                    __global const float* a = u + p * ${TILES * OB} + i - o0;
                    __global float* c = out + (p * O + i) * rcs;
                    ${tile.fetch_result(MR, NV, W)}
                    ${tile.multiply(MR, NV, "float16", "float", lambda r: f"a[{r}]", lambda j: f"vload16({j}, b)", f"b += {NR}; a += {OB};", unroll=4)}
                    float16 t[${MR * NV}];
% for r in range(MR):
                    ${" ".join(f"t[{r * NV + j}] = c{r}_{j};" for j in range(NV))}
% endfor
                    for (long r = i_new - i; i + r < o_end && r < ${MR}; r++) {
% for j in range(NV):
                        vstore16(first ? t[r * ${NV} + ${j}] : t[r * ${NV} + ${j}] + vload16(${j}, c + r * rcs), ${j}, c + r * rcs);
% endfor
                    }
                }
        }
    }
}
