<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="lanes" file="/common/lanes.cl.mako"/>\
<%namespace name="states" file="/recurrent/states.cl.mako"/>\
## All steps of a recurrent layer on a CPU: sequences do not see each other, so a work-item takes some of them through time alone.
##
## pre (T, N, K*H) input part of the gates with their biases; wt: hidden weights (K*H, H) by matmul/columns, so that a vector of the tile is
## one gate of 16 units; bias (K*H) of the hidden part (gru) or unused; h, c (N, H) first state; y (T, N, H) outputs; cells (T, N, H) cell
## states (lstm); act (T, N, A*H) what backward needs: i f g o (lstm), r z n and the hidden part of n (gru), nothing else.
## PACKED: sequences of unequal lengths, the longest first; the rows of step t are starts[t] to starts[t + 1] - 1 of pre, y, cells and act (R, *), and hn, cn (N, H)
## get the last states.
## Geometry: global (ceil(N / d.s3)), local (1). d = (T, N, H, sequences per work-item, reverse).
##
## Parameter  legal values
## MODE       lstm | gru | tanh | relu; MR NV  register tile: rows, vectors (the gates of 16 units; 16 * NV units where there is one gate)
## BIAS       True: bias is added to the hidden part; TAIL  True: H is no multiple of 16; PACKED  True, False
<%
    GATES = dict(lstm=4, gru=3).get(MODE, 1)
    UNITS = 16 if GATES > 1 else 16 * NV
    KEEP = 4 if GATES > 1 else 0
%>\
${tile.macros("float")}
${lanes.functions()}
${lanes.ends(TAIL)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void recurrent_layer(IN(float, pre), IN(float, wt), IN(float, bias), IN(float, h), IN(float, c), OUT(float, y), OUT(float, cells), OUT(float, act),
        ${"IN(long, starts), OUT(float, hn), OUT(float, cn), " if PACKED else ""}const long8 d) {
    const long T = d.s0, N = d.s1, H = d.s2, begin = get_group_id(0) * d.s3, end = min(N, begin + d.s3), kc = H;
    __global const float* restrict wt = wt_p + wt_o;
    __global const float* bias = bias_p + bias_o;
    for (long n = 0; n < T; n++) {
        const long step = d.s4 ? T - 1 - n : n, before = d.s4 ? step + 1 : step - 1;
        ${states.of_step(PACKED)}
% if PACKED:
        const long next = d.s4 ? (step ? N : 0) : n == T - 1 ? 0 : starts_p[starts_o + step + 2] - starts_p[starts_o + step + 1];     // rows that go on
% endif
        for (long u = 0; u < H; u += ${UNITS})
            for (long i = begin; i < live; i += ${MR}) {
                __global const float* b = wt + u * H * ${GATES};
% for r in range(MR):
                __global const float* a${r} = ${states.last(f"min(i + {r}, live - 1)", PACKED)};
% endfor
                ${tile.multiply(MR, NV, "float16", "float", lambda r: f"a{r}[k]", lambda j: f"vload16({j}, b)", f"b += {16 * NV};")}
                float16 t[${MR * NV}];
% for r in range(MR):
                ${" ".join(f"t[{r * NV + j}] = c{r}_{j};" for j in range(NV))}
% endfor
                for (long r = 0; r < ${MR} && i + r < live; r++) {
                    const long row = base + i + r;
                    const float16* g = t + r * ${NV};
                    __global const float* x = pre_p + pre_o + row * ${GATES} * H + u;
                    __global float* o = y_p + y_o + row * H + u;
% if KEEP:
                    __global float* keep = act_p + act_o + row * ${KEEP} * H + u;
% endif
                    const long left = H - u;
                    ${cell()}
% if PACKED:
                    if (i + r >= next) {
                        __global float* h_last = hn_p + hn_o + (i + r) * H + u;
% for j in range(UNITS // 16):
                        { const long at = left, left = at - ${16 * j}; STORE16(LOAD16(o + ${16 * j}), h_last + ${16 * j}); }
% endfor
% if MODE == "lstm":
                        STORE16(LOAD16(cells_p + cells_o + row * H + u), cn_p + cn_o + (i + r) * H + u);
% endif
                    }
% endif
                }
            }
    }
}
<%def name="hidden(j)">g[${j}]${f" + LOAD16(bias + {j} * H + u)" if BIAS else ""}</%def>
<%def name="cell()">
% if MODE == "lstm":
                    const float16 in = sigmoid16(${hidden(0)} + LOAD16(x)), forget = sigmoid16(${hidden(1)} + LOAD16(x + H));
                    const float16 new = clnn_tanh(${hidden(2)} + LOAD16(x + 2 * H)), out = sigmoid16(${hidden(3)} + LOAD16(x + 3 * H));
                    const float16 s = fma(forget, LOAD16(${states.kept("(i + r)", PACKED)} + u), in * new);
                    STORE16(in, keep); STORE16(forget, keep + H); STORE16(new, keep + 2 * H); STORE16(out, keep + 3 * H);
                    STORE16(s, cells_p + cells_o + row * H + u);
                    STORE16(out * clnn_tanh(s), o);
% elif MODE == "gru":
                    const float16 r_ = sigmoid16(${hidden(0)} + LOAD16(x)), z = sigmoid16(${hidden(1)} + LOAD16(x + H)), q = ${hidden(2)};
                    const float16 m = clnn_tanh(fma(r_, q, LOAD16(x + 2 * H)));
                    STORE16(r_, keep); STORE16(z, keep + H); STORE16(m, keep + 2 * H); STORE16(q, keep + 3 * H);
                    STORE16(fma(z, LOAD16(${states.last("(i + r)", PACKED)} + u) - m, m), o);
% else:
% for j in range(NV):
                    { const long at = left, left = at - ${16 * j};
                      const float16 v = g[${j}]${f" + LOAD16(bias + u + {16 * j})" if BIAS else ""} + LOAD16(x + ${16 * j});
                      STORE16(${"clnn_tanh(v)" if MODE == "tanh" else "v < 0.0f ? (float16)0.0f : v"}, o + ${16 * j}); }
% endfor
% endif
</%def>
