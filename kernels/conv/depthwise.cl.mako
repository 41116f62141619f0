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
## ROWS       rows of the output at a time, which share what they read; more than 1 only where the row stride and dilation are 1
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
    __global const ${T.c}* x_end = X_p + X_o + get_num_groups(0) / O * (O / mult) * IH * IW;
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
        const int stop = min(OH, y0 + band);
        int oh = y0;
% if ROWS > 1:
        if (stop - y0 >= ${ROWS})
            for (; oh < stop; oh += ${ROWS}) {
                oh = min(oh, stop - ${ROWS});           // the last rows again rather than fewer
                for (int from = 0; from < OW; from += ${W}) { ${outputs(ROWS)} }
            }
% endif
        for (; oh < stop; oh++)
            for (int from = 0; from < OW; from += ${W}) { ${outputs(1)} }
    }
}
<%def name="outputs(R)">
                // One row at a time may overrun into the next one, which is written after it. The last vectors of several rows start so that
                // they end with the rows.
                const int ow = ${f"max(0, min(from, OW - {W}))" if R > 1 else "from"};
                __local const ${ACC}* l = slab + (oh - y0) * SH * pitch + ow * ${STRIDE};
                ${V} ${", ".join(f"v{r} = 0" for r in range(R))};
% for ih in range(KH + R - 1):
                { __local const ${ACC}* p = l + ${f"{ih} * dh" if R == 1 else ih} * pitch;
% for kw in range(KW):
                  { const ${V} x = ${band.pixels(f"p + {kw} * dw", V, W, STRIDE)};
% for r in range(R):
% if 0 <= ih - r < KH:
                    v${r} = fma((${V})w${(ih - r) * KW + kw}, x, v${r});
% endif
% endfor
                  }
% endfor
                }
% endfor
% for r in range(R):
                { ${V} v = v${r};
% if BIAS:
                  v += b;
% endif
% if EPI:
                  v = ${EPI.replace("VT", V)};
% endif
                  const int at = (oh + ${r}) * OW + ow;
                  if (at + ${W} <= OH * OW) stv_${T.name}(out + at, v);
                  else {
                    ${ACC} t[${W}];
                    vstore${W}(v, 0, t);
                    for (int q = 0; q < OW - ow && q < ${W}; q++) ${T.store}(out, at + q, t[q]);
                  } }
% endfor
</%def>
