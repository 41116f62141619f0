<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## A padded image with its channels innermost: X (N, groups * C, IH, IW) -> Y (groups, N, GH, GW, pitch), zeros around the image.
##
## pitch: C rounded up to 16; channels past the last repeat it. Row y, column x of the image go to (y + d.s6, x + d.s7), as far as they fit.
## Geometry: global (pitch / 16, N, groups), any local size: 16 channels of an image per work-item, turned 16 x 16 elements at a time. CPU, float32.
<% W = 16 %>\
__kernel void conv_channels(IN(float, X), OUT(float, Y), const long16 d) {
    const long N = d.s0, C = d.s1, IH = d.s2, IW = d.s3, GH = d.s4, GW = d.s5, top = d.s6, edge = d.s7, pitch = d.s8, groups = d.s9;
    const long c0 = get_global_id(0) * 16, n = get_global_id(1), g = get_global_id(2), left = C - c0 - 1, size = IH * IW;
    if (c0 >= C || n >= N) return;
    const long at = ((n * groups + g) * C + c0) * size, end = N * groups * C * size;
    __global const float* restrict src = X_p + X_o;
    __global float* restrict dst = Y_p + Y_o + (g * N + n) * GH * GW * pitch + c0;
    for (long y = 0; y < GH; y++) {
        const bool inside = y >= top && y < top + IH;
        for (long x = 0; x < (inside ? min(edge, GW) : GW); x++) vstore16((float16)0, 0, dst + (y * GW + x) * pitch);
        for (long x = edge + IW; inside && x < GW; x++) vstore16((float16)0, 0, dst + (y * GW + x) * pitch);
    }
    long x = edge, y = top;
    for (long p = 0; p < size; p += 16) {
        float16 ${", ".join(f"t{q}" for q in range(W))};
        if (at + min(15L, left) * size + p + 16 <= end) {
% for q in range(W):
            t${q} = vload16(0, src + at + min(${q}L, left) * size + p);
% endfor
        } else {
            float e[${W * W}];             /* a loop, as this serves the last pixels alone and would else be most of the code */
            #pragma clang loop unroll(disable)
            for (int q = 0; q < ${W}; q++)
                #pragma clang loop unroll(disable)
                for (int k = 0; k < ${W}; k++) {
                    const long s = at + min((long)q, left) * size + p + k;
                    e[q * ${W} + k] = s < end ? src[s] : 0;
                }
% for q in range(W):
            t${q} = vload16(${q}, e);
% endfor
        }
        ${vec.transpose("float16", W, "t")}
% for q in range(W):
        if (p + ${q} < size) {
            if (x >= 0 && y >= 0 && x < GW && y < GH) vstore16(t${q}, 0, dst + (y * GW + x) * pitch);
            if (++x == edge + IW) { x = edge; y++; }
        }
% endfor
    }
}
