<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="band" file="/conv/band.cl.mako"/>\
## Depthwise 2-d convolution on a CPU: every output channel reads one input channel. Memory decides its speed, so nothing is
## laid out beforehand: a work-item keeps a band of padded input rows in local memory.
##
## X (N, C, IH, IW), k (O, KH, KW) with O = C * mult, Y (N, O, OH, OW). flip reads the taps from the end, which with the
## matching padding is the input gradient of stride 1. Geometry: global (N * O), local (1).
##
## Parameter  legal values
## T          dtype row
## W          lanes of a vector (16; 8 for double)
## KH KW      taps, unrolled
## STRIDE     column stride: 1 or 2
## SLAB       elements of the band; the launcher sees to it that `band` output rows fit
## BIAS       True: one value per output channel; EPI: as in matmul/tile, valid on vectors
<%
    ACC, V = T.acc, f"{T.acc}{W}"
%>\
${vec.vector_io(T, W)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_depthwise(IN(${T.c}, X), IN(${T.c}, k), OUT(${T.c}, Y), IN(${T.c}, bias), const long16 d, const long8 e) {
    __local ${ACC} slab[${SLAB}];
    ${band.sizes(KH)}
    const int flip = d.sd;
    const long plane = get_group_id(0), O = e.s0, mult = e.s1, o = plane % O;
    __global const ${T.c}* restrict src = X_p + X_o + ((plane / O) * (O / mult) + o / mult) * IH * IW;
    __global ${T.c}* restrict out = Y_p + Y_o + plane * OH * OW;
    __global const ${T.c}* restrict taps = k_p + k_o + o * ${KH * KW};
% for t in range(KH * KW):
    const ${ACC} w${t} = ${T.load}(taps, flip ? ${KH * KW - 1 - t} : ${t});
% endfor
% if BIAS:
    const ${ACC} b = ${T.load}(bias_p + bias_o, o);
% endif
    for (int y0 = 0; y0 < OH; y0 += band) {
        ${band.fill(T, W)}
        for (int oh = y0; oh < min(OH, y0 + band); oh++)
            for (int ow = 0; ow < OW; ow += ${W}) {
                __local const ${ACC}* l = slab + (oh - y0) * SH * pitch + ow * ${STRIDE};
                ${V} v = 0;
% for kh in range(KH):
                { __local const ${ACC}* p = l + ${kh} * dh * pitch;
% for kw in range(KW):
                  v = fma((${V})w${kh * KW + kw}, ${band.pixels(f"p + {kw} * dw", V, W, STRIDE)}, v);
% endfor
                }
% endfor
% if BIAS:
                v += b;
% endif
% if EPI:
                v = ${EPI.replace("VT", V)};
% endif
                const int at = oh * OW + ow;
                // A vector may overrun into the next row of this plane, which is written after it.
                if (at + ${W} <= OH * OW) stv_${T.name}(out + at, v);
                else {
                    ${ACC} t[${W}];
                    vstore${W}(v, 0, t);
                    for (int q = 0; q < OW - ow && q < ${W}; q++) ${T.store}(out, at + q, t[q]);
                }
            }
    }
}
