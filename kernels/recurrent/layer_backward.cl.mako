<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="lanes" file="/common/lanes.cl.mako"/>\
<%namespace name="states" file="/recurrent/states.cl.mako"/>\
## Gradients of recurrent/layer through all steps, the last first: those of the gates; the weights' follow from them by one product.
##
## act y h c cells as in recurrent/layer; dy (T, N, H) gradient of the outputs; w (K*H, H) hidden weights, rows padded to whole vectors; dg (T, N, K*H) out: gradient of the
## input part of the gates; du: of the hidden part (gru; else the same memory); dh, dc (N, H) in: gradients of the last state (they may be
## zeros), out: of the first. Geometry and d as in recurrent/layer.
## PACKED: as there; earlier (R, H) gets the state before each row.
##
## Parameter  legal values
## MODE       lstm | gru | tanh | relu; MR NV  register tile: rows and vectors of units (a divisor of the vectors of H); TAIL  True: H is no multiple of 16
## PACKED     True, False
<% GATES = dict(lstm=4, gru=3).get(MODE, 1) %>\
${tile.macros("float")}
${lanes.ends(TAIL)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void recurrent_layer_backward(IN(float, act), IN(float, y), IN(float, h), IN(float, c), IN(float, cells), IN(float, dy), IN(float, w),
        OUT(float, dg), OUT(float, du), OUT(float, dh), OUT(float, dc), ${"IN(long, starts), OUT(float, earlier), " if PACKED else ""}const long8 d) {
    const long T = d.s0, N = d.s1, H = d.s2, begin = get_group_id(0) * d.s3, end = min(N, begin + d.s3), kc = ${GATES} * H;
    __global const float* restrict w = w_p + w_o;
    for (long n = 0; n < T; n++) {
        const long step = d.s4 ? n : T - 1 - n, before = d.s4 ? step + 1 : step - 1;
        ${states.of_step(PACKED, "n < T - 1")}
        for (long i = begin; i < live; i++) {
            const long row = base + i;
            __global const float* last = ${states.last("i", PACKED)};
            __global float* dg = dg_p + dg_o + row * ${GATES} * H;
            __global float* du = du_p + du_o + row * ${GATES} * H;
            __global const float* a = act_p + act_o + row * 4 * H;
            for (long j = 0; j < H; j += 16) {
                __global float* carry = dh_p + dh_o + i * H + j;
                const long left = H - j;
% if PACKED:
                STORE16(LOAD16(last + j), earlier_p + earlier_o + row * H + j);
% endif
                const float16 g = LOAD16(dy_p + dy_o + row * H + j) + LOAD16(carry);
                ${cell()}
            }
        }
        for (long u = 0; u < H; u += ${NV * 16})
            for (long i = begin; i < live; i += ${MR}) {
                __global const float* b = w + u;
% for r in range(MR):
                __global const float* a${r} = du_p + du_o + (base + min(i + ${r}, live - 1)) * kc;
% endfor
                ${tile.multiply(MR, NV, "float16", "float", lambda r: f"a{r}[k]", lambda j: f"vload16({j}, b)", "b += (H + 15) / 16 * 16;" if TAIL else "b += H;")}
                float16 t[${MR * NV}];
% for r in range(MR):
                ${" ".join(f"t[{r * NV + j}] = c{r}_{j};" for j in range(NV))}
% endfor
                for (long r = 0; r < ${MR} && i + r < live; r++) {
                    __global float* o = dh_p + dh_o + (i + r) * H + u;
% for j in range(NV):
                    { const long left = H - u - ${16 * j};
                      STORE16(t[r * ${NV} + ${j}]${f" + LOAD16(o + {16 * j})" if MODE == "gru" else ""}, o + ${16 * j}); }
% endfor
                }
            }
    }
}
<%def name="cell()">
% if MODE == "lstm":
                const float16 in = LOAD16(a + j), forget = LOAD16(a + H + j), new = LOAD16(a + 2 * H + j), out = LOAD16(a + 3 * H + j);
                __global float* dc = dc_p + dc_o + i * H + j;
                const float16 t = clnn_tanh(LOAD16(cells_p + cells_o + row * H + j)), e = LOAD16(dc) + g * out * (1 - t * t);
                STORE16(e * new * in * (1 - in), dg + j);
                STORE16(e * LOAD16(${states.kept("i", PACKED)} + j) * forget * (1 - forget), dg + H + j);
                STORE16(e * in * (1 - new * new), dg + 2 * H + j);
                STORE16(g * t * out * (1 - out), dg + 3 * H + j);
                STORE16(e * forget, dc);
% elif MODE == "gru":
                const float16 r = LOAD16(a + j), z = LOAD16(a + H + j), m = LOAD16(a + 2 * H + j), q = LOAD16(a + 3 * H + j);
                const float16 dm = g * (1 - z) * (1 - m * m), dz = g * (LOAD16(last + j) - m) * z * (1 - z), dr = dm * q * r * (1 - r);
                STORE16(dr, dg + j); STORE16(dz, dg + H + j); STORE16(dm, dg + 2 * H + j);
                STORE16(dr, du + j); STORE16(dz, du + H + j); STORE16(dm * r, du + 2 * H + j);
                STORE16(g * z, carry);
% else:
                const float16 v = LOAD16(y_p + y_o + row * H + j);
                STORE16(${"g * (1 - v * v)" if MODE == "tanh" else "v > 0.0f ? g : (float16)0.0f"}, dg + j);
% endif
</%def>
