<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## dW[g, o, m] = Y[0, g, m, o] + Y[1, g, m, o] + ...: adds what conv/gradient left, in order, and turns it, W x W elements per work-item.
##
## Y (splits, groups, M, pitch), pitch a multiple of W and at least O; dW (groups, O, M) contiguous; d = (M, O, pitch, splits).
## Geometry: global (ceil(M / W), ceil(O / W), groups), local (1, 1, 1). T: dtype row of dW; W: lanes of a vector.
<% V = f"{T.acc}{W}" %>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_gradient_sum(IN(${T.acc}, Y), OUT(${T.c}, dW), const long8 d) {
    const long M = d.s0, O = d.s1, pitch = d.s2, splits = d.s3, g = get_group_id(2), m = get_group_id(0) * ${W}, o = get_group_id(1) * ${W};
    const long step = get_num_groups(2) * M * pitch;
    __global const ${T.acc}* restrict y = Y_p + Y_o + (g * M + m) * pitch + o;
    __global ${T.c}* restrict out = dW_p + dW_o + (g * O + o) * M + m;
    const long last = M - 1 - m;        /* rows past the end repeat the last one; they are not stored */
    ${V} ${", ".join(f"t{c} = 0" for c in range(W))};
    for (long s = 0; s < splits; s++) {
% for c in range(W):
        t${c} += vload${W}(0, y + s * step + min(${c}L, last) * pitch);
% endfor
    }
    ${vec.transpose(V, W, "t")}
    ${T.acc} e[${W * W}];
% for c in range(W):
    vstore${W}(t${c}, ${c}, e);
% endfor
    for (int c = 0; c < ${W} && o + c < O; c++)
        for (int r = 0; r < ${W} && m + r < M; r++) ${T.store}(out, c * M + r, e[c * ${W} + r]);
}
