<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## Convolution with few output channels on a CPU: too few rows to pay for packing the patches, so vectors are read from the grid in place.
##
## Operands and d, y as in conv/cpu. Here a column is a position of the grid, not a pixel: neighbours in memory whatever the row, at the price
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
${vec.vector_io(TC, W)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_few(IN(${ACC}, wt), IN(${ACC}, grid), OUT(${TC.c}, Y), IN(${TB.c}, bias), __global const int* restrict koff, const long16 d, const long8 y) {
    const long M = d.s0, kc = d.s1, positions = d.s2, OD = d.s3, OH = d.s4, OW = d.s5, P = d.s6, GHW = d.s7, GW = d.s8, rcs = y.s4;
    const long g = get_group_id(2);
    __global const ${ACC}* restrict A = wt_p + wt_o + g * d.sa;
    __global const ${ACC}* restrict G = grid_p + grid_o + g * d.sb;
    __global ${TC.c}* restrict out = Y_p + Y_o + g * y.s5;
% if BIAS:
    __global const ${TB.c}* restrict bias = bias_p + bias_o + g * M;
% endif
    const long begin = get_group_id(0) * d.s9 * ${NR}, p_end = min(positions, begin + d.s9 * ${NR});
    for (long p0 = begin; p0 < p_end; p0 += ${NR}) {
        int from[${NR}], count[${NR}], runs = 0;             // the parts of the panel that are output: lane, length, place
        long place[${NR}];
        long w = p0 % GW, h = p0 % GHW / GW, z = p0 % P / GHW, n = p0 / P;
        for (long q = 0; q < ${NR} && p0 + q < positions;) {
            const long step = min(GW - w, ${NR} - q), use = min(step, OW - w);
            if (use > 0 && h < OH && z < OD) {
                from[runs] = (int)q;
                count[runs] = (int)use;
                place[runs++] = n * y.s0 + z * y.s1 + h * y.s2 + w * y.s3;
            }
            q += step;
            w += step;
            if (w == GW) { w = 0; if ((++h) * GW == GHW) { h = 0; if ((++z) * GHW == P) { z = 0; n++; } } }
        }
        if (runs == 0) continue;
        for (long i = 0; i < M; i += ${MR}) {
            const long top = min(i, M - ${MR});
% for r in range(MR):
            __global const ${ACC}* a${r} = A + (top + ${r}) * kc;
% endfor
            __global const ${ACC}* s = G + p0;
            ${tile.multiply(MR, NV, V, ACC, lambda r: f"a{r}[k]", lambda j: f"vload{W}(0, s + koff[k] + {j * W})")}
            ${V} t[${MR * NV}];
% for r in range(MR):
            ${" ".join(f"t[{r * NV + j}] = c{r}_{j};" for j in range(NV))}
% endfor
            for (int r = 0; r < ${MR}; r++) {
                const long row = top + r;
% for j in range(NV):
                { ${V} v = t[r * ${NV} + ${j}]; ${finish()} t[r * ${NV} + ${j}] = v; }
% endfor
                const ${ACC}* e = (const ${ACC}*)(t + r * ${NV});
                __global ${TC.c}* o = out + row * rcs;
                for (int q = 0; q < runs; q++) {
                    int x = 0;
% if TC.c == ACC:
                    if (y.s3 == 1)
                        for (; x + 4 <= count[q]; x += 4) vstore4(vload4(0, e + from[q] + x), 0, o + place[q] + x);
% endif
                    for (; x < count[q]; x++) ${TC.store}(o, place[q] + x * y.s3, e[from[q] + x]);
                }
            }
        }
    }
}
<%def name="finish()">
% if BIAS:
v += ${TB.load}(bias, row);
% endif
% if EPI:
v = ${EPI.replace("VT", V)};
% endif
</%def>
