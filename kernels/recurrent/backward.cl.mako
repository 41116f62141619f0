<%inherit file="/base.cl.mako"/>\
## Gradient of one time step of a recurrent layer.
##   act    what forward kept (see recurrent/forward); y  the step's output; h, c  the state before it; cy  the cell state after it
##   dy     gradient of the step's output; dh  gradient that came back through time, overwritten by the part that does not pass the weights (gru)
##   gc     gradient of the new cell state; dc  out: of the cell state before (lstm); they may be the same memory
##   dg     out: gradient of the pre-activations of the input part; du  out: of the hidden part (gru)
## Parameters as in recurrent/forward, and
## ONE        1: a step by itself: nothing came back through time, dh is written only
## GC         0: gc is zero and not read
<%
    A = T.acc
    ld = lambda p, i: f"{T.load}({p}, {i})"
    st = lambda p, i, v: f"{T.store}({p}, {i}, {v});"
    K = dict(lstm=4, gru=3).get(MODE, 1)
%>\
__kernel void cell(IN(${T.c}, act), IN(${T.c}, y), IN(${T.c}, h), IN(${T.c}, c), IN(${T.c}, cy), IN(${T.c}, dy), OUT(${T.c}, dh),
        __global const ${T.c}* gc_p, const long gc_o, __global ${T.c}* dc_p, const long dc_o, OUT(${T.c}, dg), OUT(${T.c}, du), const long rows, const long H) {
    const long n = get_global_id(${0 if LOOP else 1});
    if (n >= rows) return;
    __global const ${T.c}* restrict dy = dy_p + dy_o + n * H;
    __global ${T.c}* restrict dh = dh_p + dh_o + n * H;
    __global ${T.c}* restrict dg = dg_p + dg_o + n * ${K} * H;
% if MODE == "lstm":
    __global const ${T.c}* restrict a = act_p + act_o + n * 4 * H;
    __global const ${T.c}* restrict c = c_p + c_o + n * H;
    __global const ${T.c}* restrict cy = cy_p + cy_o + n * H;
    __global const ${T.c}* gc = gc_p + gc_o + n * H;
    __global ${T.c}* dc = dc_p + dc_o + n * H;
% elif MODE == "gru":
    __global const ${T.c}* restrict a = act_p + act_o + n * 4 * H;
    __global const ${T.c}* restrict h = h_p + h_o + n * H;
    __global ${T.c}* restrict du = du_p + du_o + n * 3 * H;
% else:
    __global const ${T.c}* restrict y = y_p + y_o + n * H;
% endif
% if LOOP:
    for (int j = 0; j < (int)H; j++) {
% else:
    const long j = get_global_id(0);
    if (j >= H) return;
    {
% endif
        const ${A} d = ${ld("dy", "j")}${"" if ONE else " + " + ld("dh", "j")};
% if MODE == "lstm":
        const ${A} i = ${ld("a", "j")}, f = ${ld("a", "H + j")}, g = ${ld("a", "2 * H + j")}, o = ${ld("a", "3 * H + j")};
        const ${A} t = clnn_tanh(${ld("cy", "j")}), e = ${ld("gc", "j") + " + " if GC else ""}d * o * (1 - t * t);
        ${st("dg", "j", "e * g * i * (1 - i)")}
        ${st("dg", "H + j", "e * " + ld("c", "j") + " * f * (1 - f)")}
        ${st("dg", "2 * H + j", "e * i * (1 - g * g)")}
        ${st("dg", "3 * H + j", "d * t * o * (1 - o)")}
        ${st("dc", "j", "e * f")}
% elif MODE == "gru":
        const ${A} r = ${ld("a", "j")}, z = ${ld("a", "H + j")}, m = ${ld("a", "2 * H + j")}, q = ${ld("a", "3 * H + j")};
        const ${A} dm = d * (1 - z) * (1 - m * m), dz = d * (${ld("h", "j")} - m) * z * (1 - z), dr = dm * q * r * (1 - r);
        ${st("dg", "j", "dr")} ${st("dg", "H + j", "dz")} ${st("dg", "2 * H + j", "dm")}
        ${st("du", "j", "dr")} ${st("du", "H + j", "dz")} ${st("du", "2 * H + j", "dm * r")}
        ${st("dh", "j", "d * z")}
% else:
        const ${A} v = ${ld("y", "j")};
        ${st("dg", "j", "d * (1 - v * v)" if MODE == "tanh" else "v > 0 ? d : 0")}
% endif
    }
}
