<%inherit file="/base.cl.mako"/>\
## One time step of a recurrent layer, after the product of the last state with the hidden weights.
##   pre    input part of the gates (N, K*H); hid  hidden part of the gates (N, K*H)
##   act    out: what backward needs, (N, 4*H): i f g o (lstm), r z n and the hidden part of n (gru); the others need none
##   h, c   last state (N, H); y, cy   new state
## Parameter  legal values
## T          dtype row (float); MODE  lstm | gru | tanh | relu
## LOOP       1: a work-item takes a row; 0: one element per work-item
<%
    A = T.acc
    K = dict(lstm=4, gru=3).get(MODE, 1)
    gate = lambda k: f"({T.load}(x, {k} * H + j) + {T.load}(u, {k} * H + j))"
    sig = lambda x: f"(1 / (1 + exp(-({x}))))"
    ld = lambda p, i: f"{T.load}({p}, {i})"
    st = lambda p, i, v: f"{T.store}({p}, {i}, {v});"
%>\
__kernel void cell(IN(${T.c}, pre), OUT(${T.c}, act), IN(${T.c}, hid), IN(${T.c}, h), IN(${T.c}, c), OUT(${T.c}, y), OUT(${T.c}, cy),
        const long rows, const long H) {
    const long n = get_global_id(${0 if LOOP else 1});
    if (n >= rows) return;
    __global ${T.c}* restrict y = y_p + y_o + n * H;
    __global const ${T.c}* restrict x = pre_p + pre_o + n * ${K} * H;
    __global const ${T.c}* restrict u = hid_p + hid_o + n * ${K} * H;
% if MODE in ("lstm", "gru"):
    __global ${T.c}* restrict a = act_p + act_o + n * 4 * H;
% endif
% if MODE == "lstm":
    __global const ${T.c}* restrict c = c_p + c_o + n * H;
    __global ${T.c}* restrict cy = cy_p + cy_o + n * H;
% elif MODE == "gru":
    __global const ${T.c}* restrict h = h_p + h_o + n * H;
% endif
% if LOOP:
    for (int j = 0; j < (int)H; j++) {
% else:
    const long j = get_global_id(0);
    if (j >= H) return;
    {
% endif
% if MODE == "lstm":
        const ${A} i = ${sig(gate(0))}, f = ${sig(gate(1))}, g = clnn_tanh(${gate(2)}), o = ${sig(gate(3))};
        const ${A} s = f * ${ld("c", "j")} + i * g;
        ${st("a", "j", "i")} ${st("a", "H + j", "f")} ${st("a", "2 * H + j", "g")} ${st("a", "3 * H + j", "o")}
        ${st("cy", "j", "s")}
        ${st("y", "j", "o * clnn_tanh(s)")}
% elif MODE == "gru":
        const ${A} q = ${ld("u", "2 * H + j")};
        const ${A} r = ${sig(gate(0))}, z = ${sig(gate(1))};
        const ${A} m = clnn_tanh(${ld("x", "2 * H + j")} + r * q);
        ${st("a", "j", "r")} ${st("a", "H + j", "z")} ${st("a", "2 * H + j", "m")} ${st("a", "3 * H + j", "q")}
        ${st("y", "j", "m + z * (" + ld("h", "j") + " - m)")}
% else:
        const ${A} v = ${gate(0)};
        ${st("y", "j", "clnn_tanh(v)" if MODE == "tanh" else "v > 0 ? v : 0")}
% endif
    }
}
