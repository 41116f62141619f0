<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="band" file="/conv/band.cl.mako"/>\
## Weight gradient of a depthwise 2-d convolution on a CPU: dW[o, tap] = sum over images and pixels of dY[n, o, pixel] * X[n, o / mult, pixel at tap].
##
## X (N, C, IH, IW), dY (N, O, OH, OW) with O = C * mult, dW (O, KH, KW). Bands of padded input rows in local memory, as in conv/depthwise; a vector
## of partial sums per tap. Geometry: global (O), local (1): a work-item takes one channel of all images, in order.
##
## Parameter  legal values
## T W KH KW STRIDE SLAB   as in conv/depthwise
<%
    ACC, V, I = T.acc, f"{T.acc}{W}", f"{'long' if T.acc == 'double' else 'int'}{W}"
    TAPS = [(kh, kw) for kh in range(KH) for kw in range(KW)]
%>\
${vec.vector_io(T, W)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_depthwise_gradient(IN(${T.c}, X), IN(${T.c}, dY), OUT(${T.c}, dW), const long16 d, const long8 e) {
    __local ${ACC} slab[${SLAB}];
    const long o = get_group_id(0), O = e.s0, mult = e.s1, N = e.s2;
    ${band.sizes(KH)}
    const ${I} lane = (${I})(${", ".join(map(str, range(W)))});
    const long end = N * O * OH * OW;
    __global const ${T.c}* restrict G = dY_p + dY_o;
    __global const ${T.c}* x_end = X_p + X_o + N * (O / mult) * IH * IW;
% for t in range(len(TAPS)):
    ${V} t${t} = 0;
% endfor
    for (long n = 0; n < N; n++) {
        __global const ${T.c}* restrict src = X_p + X_o + (n * (O / mult) + o / mult) * IH * IW;
        for (int y0 = 0; y0 < OH; y0 += band) {
            ${band.fill(T, W)}
            for (int oh = y0; oh < min(OH, y0 + band); oh++) {
                const long at = ((n * O + o) * OH + oh) * OW;
                __local const ${ACC}* l = slab + (oh - y0) * SH * pitch;
                int ow = 0;
                for (; ow + ${W} <= OW; ow += ${W}) {
                    const ${V} g = ldv_${T.name}(G + at + ow);
                    ${add("{}")}
                }
                if (ow < OW) {  // the last columns: what lies past them must not count, not even as 0 * Inf
                    const ${I} inside = lane < (${I})(OW - ow);
                    ${V} g = 0;
                    if (at + ow + ${W} <= end) g = select((${V})0, ldv_${T.name}(G + at + ow), inside);
                    else {
                        ${ACC} r[${W}];
                        for (int q = 0; q < ${W}; q++) r[q] = q < OW - ow ? ${T.load}(G, at + ow + q) : 0;
                        g = vload${W}(0, r);
                    }
                    ${add(f"select(({V})0, {{}}, inside)")}
                }
            }
        }
    }
% for t in range(len(TAPS)):
    { ${ACC} r[${W}], sum = 0;
      vstore${W}(t${t}, 0, r);
      for (int q = 0; q < ${W}; q++) sum += r[q];
      ${T.store}((dW_p + dW_o), o * ${len(TAPS)} + ${t}, sum); }
% endfor
}
<%def name="add(form)">
% for t, (kh, kw) in enumerate(TAPS):
                    t${t} = fma(g, ${form.format(capture(lambda: band.pixels(f"l + {kh} * dh * pitch + ow * {STRIDE} + {kw} * dw", V, W, STRIDE)))}, t${t});
% endfor
</%def>
