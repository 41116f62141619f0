<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## Gradients of recurrent/layer through all steps, the last first: those of the gates; the weights' follow from them by one product.
##
## act y h c cells as in recurrent/layer; dy (T, N, H) gradient of the outputs; w (K*H, H) hidden weights; dg (T, N, K*H) out: gradient of the
## input part of the gates; du: of the hidden part (gru; else the same memory); dh, dc (N, H) in: gradients of the last state (they may be
## zeros), out: of the first. Geometry and d as in recurrent/layer.
##
## Parameter  legal values
## MODE       lstm | gru | tanh | relu; MR NV  register tile: rows and vectors of units (a divisor of H / 16)
<% GATES = dict(lstm=4, gru=3).get(MODE, 1) %>\
${tile.macros("float")}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void recurrent_layer_backward(IN(float, act), IN(float, y), IN(float, h), IN(float, c), IN(float, cells), IN(float, dy), IN(float, w),
        OUT(float, dg), OUT(float, du), OUT(float, dh), OUT(float, dc), const long8 d) {
    const long T = d.s0, N = d.s1, H = d.s2, begin = get_group_id(0) * d.s3, end = min(N, begin + d.s3), kc = ${GATES} * H;
    __global const float* restrict w = w_p + w_o;
    for (long n = 0; n < T; n++) {
        const long step = d.s4 ? n : T - 1 - n, before = d.s4 ? step + 1 : step - 1;
        const bool first = n == T - 1;
        __global const float* last = first ? h_p + h_o : y_p + y_o + before * N * H;
        __global const float* kept = first ? c_p + c_o : cells_p + cells_o + before * N * H;
        for (long i = begin; i < end; i++) {
            const long row = step * N + i;
            __global float* dg = dg_p + dg_o + row * ${GATES} * H;
            __global float* du = du_p + du_o + row * ${GATES} * H;
            __global const float* a = act_p + act_o + row * 4 * H;
            for (long j = 0; j < H; j += 16) {
                __global float* carry = dh_p + dh_o + i * H + j;
                const float16 g = vload16(0, dy_p + dy_o + row * H + j) + vload16(0, carry);
                ${cell()}
            }
        }
        for (long u = 0; u < H; u += ${NV * 16})
            for (long i = begin; i < end; i += ${MR}) {
                __global const float* b = w + u;
% for r in range(MR):
                __global const float* a${r} = du_p + du_o + (step * N + min(i + ${r}, end - 1)) * kc;
% endfor
                ${tile.multiply(MR, NV, "float16", "float", lambda r: f"a{r}[k]", lambda j: f"vload16({j}, b)", "b += H;")}
                float16 t[${MR * NV}];
% for r in range(MR):
                ${" ".join(f"t[{r * NV + j}] = c{r}_{j};" for j in range(NV))}
% endfor
                for (long r = 0; r < ${MR} && i + r < end; r++) {
                    __global float* o = dh_p + dh_o + (i + r) * H + u;
% for j in range(NV):
                    vstore16(t[r * ${NV} + ${j}]${f" + vload16({j}, o)" if MODE == "gru" else ""}, ${j}, o);
% endfor
                }
            }
    }
}
<%def name="cell()">
% if MODE == "lstm":
                const float16 in = vload16(0, a + j), forget = vload16(0, a + H + j), new = vload16(0, a + 2 * H + j), out = vload16(0, a + 3 * H + j);
                __global float* dc = dc_p + dc_o + i * H + j;
                const float16 t = clnn_tanh(vload16(0, cells_p + cells_o + row * H + j)), e = vload16(0, dc) + g * out * (1 - t * t);
                vstore16(e * new * in * (1 - in), 0, dg + j);
                vstore16(e * vload16(0, kept + i * H + j) * forget * (1 - forget), 0, dg + H + j);
                vstore16(e * in * (1 - new * new), 0, dg + 2 * H + j);
                vstore16(g * t * out * (1 - out), 0, dg + 3 * H + j);
                vstore16(e * forget, 0, dc);
% elif MODE == "gru":
                const float16 r = vload16(0, a + j), z = vload16(0, a + H + j), m = vload16(0, a + 2 * H + j), q = vload16(0, a + 3 * H + j);
                const float16 dm = g * (1 - z) * (1 - m * m), dz = g * (vload16(0, last + i * H + j) - m) * z * (1 - z), dr = dm * q * r * (1 - r);
                vstore16(dr, 0, dg + j); vstore16(dz, 0, dg + H + j); vstore16(dm, 0, dg + 2 * H + j);
                vstore16(dr, 0, du + j); vstore16(dz, 0, du + H + j); vstore16(dm * r, 0, du + 2 * H + j);
                vstore16(g * z, 0, carry);
% else:
                const float16 v = vload16(0, y_p + y_o + row * H + j);
                vstore16(${"g * (1 - v * v)" if MODE == "tanh" else "v > 0.0f ? g : (float16)0.0f"}, 0, dg + j);
% endif
</%def>
