<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="runs" file="/conv/runs.cl.mako"/>\
## Convolution with few output channels on a CPU: too few rows to pay for packing the patches, so vectors are read from the grid in place.
##
## Operands, phases and d, y as in conv/cpu. Here a column is a position of the grid, not a pixel: neighbours in memory whatever the row, at the price
## of computing the positions between the rows of the output too, which are not stored.
## Geometry: global (ceil(d.s2 / (d.s9 * NV * W)), 1, groups), local (1, 1, 1); d.s2 = N * P positions, d.s9 panels per work-item.
##
## Parameter  legal values
## TC TB W NV MR BIAS EPI  as in conv/cpu; M >= MR. The grid must not be the image itself (it is read up to NV * W elements past its end).
<%
    ACC = TC.acc
    V = f"{ACC}{W}"
    NR = NV * W
%>\
${tile.macros(ACC)}
% if TC.c == ACC:
${runs.moves(ACC)}
% endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_few(IN(${ACC}, wt), IN(${ACC}, grid), OUT(${TC.c}, Y), IN(${TB.c}, bias), __global const int* restrict koff, const long16 d, const long8 y) {
    const long M = d.s0, K = d.s1, positions = d.s2, P = d.s6, GHW = d.s7, GW = d.s8, rcs = y.s4, step = y.s3;
    const long g = get_group_id(2);
    __global const ${ACC}* restrict A = wt_p + wt_o + g * d.sa;
    __global const ${ACC}* restrict G = grid_p + grid_o + g * d.sb;
% if BIAS:
    __global const ${TB.c}* restrict bias = bias_p + bias_o + g * M;
% endif
    const long begin = get_group_id(0) * d.s9 * ${NR}, p_end = min(positions, begin + d.s9 * ${NR});
    const bool first = true, last = true;
    for (long p0 = begin; p0 < p_end; p0 += ${NR}) {
        __global const int* phase = koff + K;
        for (int f = 0; f < (int)d.sf; f++, phase += 6) {
        const long OD = phase[3], OH = phase[4], OW = phase[5], k_begin = phase[0], kc = phase[1] - k_begin;
        __global ${TC.c}* out = Y_p + Y_o + g * y.s5 + phase[2];
        int lane[${NR}], count[${NR}], runs = 0;             // the parts of the panel that are output: first lane, length, place
        long place[${NR}];
        long w = p0 % GW, h = p0 % GHW / GW, z = p0 % P / GHW, n = p0 / P;
        for (long q = 0; q < ${NR} && p0 + q < positions;) {
            const long part = min(GW - w, ${NR} - q), use = min(part, OW - w);
            if (use > 0 && h < OH && z < OD) {
                lane[runs] = (int)q;
                count[runs] = (int)use;
                place[runs++] = n * y.s0 + z * y.s1 + h * y.s2 + w * step;
            }
            q += part;
            w += part;
            if (w == GW) { w = 0; if ((++h) * GW == GHW) { h = 0; if ((++z) * GHW == P) { z = 0; n++; } } }
        }
        if (runs == 0) continue;
        for (long i_new = 0; i_new < M; i_new += ${MR}) {
            const long i = min(i_new, M - ${MR});
% for r in range(MR):
            __global const ${ACC}* a${r} = A + (i + ${r}) * K + k_begin;
% endfor
            __global const ${ACC}* s = G + p0;
            __global const int* table = koff + k_begin;
            ${tile.multiply(MR, NV, V, ACC, lambda r: f"a{r}[k]", lambda j: f"vload{W}(0, s + table[k] + {j * W})")}
            ${runs.store(MR, NV, W, V, ACC, TC, TB, BIAS, EPI)}
        }
        }
    }
}
