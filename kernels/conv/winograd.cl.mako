<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## 3 x 3 convolution of stride 1 by Winograd's F(2x2, 3x3) on a CPU: 16 products per 2 x 2 outputs instead of 36.
##
## U (groups, 16, M, C) weights of conv/winograd_weights; grid (C, N, GH, GW): the padded input of conv/grid; Y: rows of unit
## stride. scratch: per work-group 16 planes of C x NR (+ 16 spare) transformed inputs and 16 of MB x NR (+ 16) products; NR = NV * W.
## Geometry: global (slots, blocks of MB = d.sa rows, groups), local (1, 1, 1). A work-item takes every slots-th panel of NR tiles (2 x 2
## outputs each): it transforms the panel's input for all channels, forms 16 matrix products with the register tile of matmul/cpu while one
## plane stays in cache, then transforms back. Runs of neighbouring tiles in one row of tiles are handled W at a time; a
## store may overrun into the next run, which is written after it.
##
## Parameter  legal values
## W NV MR    lanes of a vector, vectors and rows of the register tile; MR <= the rows of each block
## BIAS       "" | m; EPI as in matmul/tile, valid on vectors
##
## Limits: float32. An Inf or NaN in the input spreads to all four outputs of the tiles that read it.
<% NR, V = NV * W, f"float{W}" %>\
${tile.macros("float")}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_winograd(IN(float, U), IN(float, grid), OUT(float, Y), IN(float, bias), __global float* restrict scratch, const long16 d, const long8 y) {
    const long M = d.s0, C = d.s1, tiles = d.s2, TH = d.s3, TW = d.s4, OH = d.s5, OW = d.s6, P = d.s7, GW = d.s8, CS = d.s9;
    const long m_begin = get_group_id(1) * d.sa, m_end = min(M, m_begin + d.sa);
    const long g = get_group_id(2), in_plane = C * ${NR} + 16, out_plane = d.sa * ${NR} + 16, kc = C;
    __global const float* restrict G = grid_p + grid_o + g * C * CS;
    __global const float* restrict A = U_p + U_o + g * 16 * M * C;
    __global float* restrict out = Y_p + Y_o + g * y.s3;
% if BIAS:
    __global const float* restrict bias = bias_p + bias_o + g * M;
% endif
    __global float* restrict vin = scratch + ((g * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0)) * 16 * (in_plane + out_plane);
    __global float* restrict vout = vin + 16 * in_plane;
    int from[${NR}], to[${NR}], count[${NR}];
    long place[${NR}];
    for (long j0 = get_group_id(0) * ${NR}; j0 < tiles; j0 += get_num_groups(0) * ${NR}) {
        int runs = 0, at = 0;
        long tx = j0 % TW, ty = j0 / TW % TH, n = j0 / (TW * TH);
        while (at < ${NR} && j0 + at < tiles) {
            const int run = (int)min(min(TW - tx, (long)${W}), min((long)(${NR} - at), tiles - j0 - at));
            from[runs] = (int)(n * P + 2 * ty * GW + 2 * tx);
            to[runs] = at;
            // outputs in a row of the run; negative where the tiles have one row only
            count[runs] = (int)min(2L * run, OW - 2 * tx) * (2 * ty + 1 < OH ? 1 : -1);
            place[runs++] = n * y.s0 + 2 * ty * y.s1 + 2 * tx;
            at += run;
            tx += run;
            if (tx == TW) { tx = 0; if (++ty == TH) { ty = 0; n++; } }
        }
        for (long c = 0; c < C; c++)
            for (int r = 0; r < runs; r++) {
                __global const float* p = G + c * CS + from[r];
                __global float* v = vin + c * ${NR} + to[r];
% for i in range(4):
                ${V} t${i}0, t${i}1, t${i}2, t${i}3;
                { __global const float* s = p + ${i} * GW;
                  const ${V} a = vload${W}(0, s), b = vload${W}(0, s + ${W}), e = vload${W}(0, s + 2), f = vload${W}(0, s + ${W + 2});
                  const ${V} d0 = (${V})(a.even, b.even), d1 = (${V})(a.odd, b.odd);
                  const ${V} d2 = (${V})(e.even, f.even), d3 = (${V})(e.odd, f.odd);
                  t${i}0 = d0 - d2; t${i}1 = d1 + d2; t${i}2 = d2 - d1; t${i}3 = d1 - d3; }
% endfor
% for j in range(4):
                vstore${W}(t0${j} - t2${j}, 0, v + ${j} * in_plane);
                vstore${W}(t1${j} + t2${j}, 0, v + ${4 + j} * in_plane);
                vstore${W}(t2${j} - t1${j}, 0, v + ${8 + j} * in_plane);
                vstore${W}(t1${j} - t3${j}, 0, v + ${12 + j} * in_plane);
% endfor
            }
        for (int t = 0; t < 16; t++)
            for (long i_new = m_begin; i_new < m_end; i_new += ${MR}) {
                const long i = min(i_new, m_end - ${MR});
                __global const float* b = vin + t * in_plane;
                __global float* o = vout + t * out_plane + (i - m_begin) * ${NR};
% for r in range(MR):
                __global const float* a${r} = A + (t * M + i + ${r}) * C;
% endfor
<%
    rows_ahead = lambda k: " ".join(f"FETCH(a{r} + {MR} * C + {k});" for r in range(MR))
%>\
                ${tile.multiply(MR, NV, V, "float", lambda r: f"a{r}[k]", lambda j: f"vload{W}({j}, b)", f"b += {NR};", rows_ahead, 4)}
% for r in range(MR):
                ${" ".join(f"vstore{W}(c{r}_{j}, 0, o + {r * NR + j * W});" for j in range(NV))}
% endfor
            }
        for (long row = m_begin; row < m_end; row++)
            for (int r = 0; r < runs; r++) {
                __global const float* o = vout + (row - m_begin) * ${NR} + to[r];
% for j in range(4):
                ${V} m0${j}, m1${j};
                { const ${V} q1 = vload${W}(0, o + ${4 + j} * out_plane), q2 = vload${W}(0, o + ${8 + j} * out_plane);
                  m0${j} = vload${W}(0, o + ${j} * out_plane) + q1 + q2; m1${j} = q1 - q2 - vload${W}(0, o + ${12 + j} * out_plane); }
% endfor
                const int n_out = abs(count[r]), rows = count[r] < 0 ? 1 : 2;
                __global float* q = out + row * y.s2 + place[r];
% for i in range(2):
                if (${i} < rows) {
                    ${V} v = m${i}0 + m${i}1 + m${i}2, even, odd;
                    ${finish()} even = v;
                    v = m${i}1 - m${i}2 - m${i}3;
                    ${finish()} odd = v;
                    ${V} lo, hi;
                    lo.even = even.lo; lo.odd = odd.lo; hi.even = even.hi; hi.odd = odd.hi;
                    if (n_out == ${2 * W}) { vstore${W}(lo, 0, q); vstore${W}(hi, 1, q); }
                    else {
                        float e[${2 * W}];
                        vstore${W}(lo, 0, e); vstore${W}(hi, 1, e);
                        int x = 0;
                        for (; x + 4 <= n_out; x += 4) vstore4(vload4(0, e + x), 0, q + x);
                        for (; x < n_out; x++) q[x] = e[x];
                    }
                    q += y.s1;
                }
% endfor
            }
    }
}
<%def name="finish()">
% if BIAS:
v += bias[row];
% endif
% if EPI:
v = ${EPI.replace("VT", f"float{W}")};
% endif
</%def>
