<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Weights with output channels in the lanes, as conv/direct reads them: Y[g, panel, step, lane] = X[g * d.s3 + (panel * NV * W + lane) * d.s4 + place].
##
## blocks: runs of up to W steps that are neighbours in X, three ints each: the first one's place, how many, where their numbers start; after the blocks,
## the numbers. What lies in lanes past the last of the M channels is never used.
## Geometry: global (ceil(blocks / d.s6), panels, groups), any local size: a work-item turns d.s6 blocks of W x W elements of each vector of a panel.
##
## Parameter  legal values
## T          dtype row of X and Y
## W NV       lanes of a vector, vectors of a panel
## NEAR       True: channels are neighbours in X, so that vectors are copied
<% V, NR = f"{T.acc}{W}", NV * W %>\
__kernel void conv_lanes(IN(${T.c}, X), OUT(${T.c}, Y), __global const int* restrict blocks, const long8 d) {
    const long K = d.s0, M = d.s1, panels = d.s2, count = d.s5, panel = get_global_id(1), g = get_global_id(2), begin = get_global_id(0) * d.s6;
    if (begin >= count || panel >= panels) return;
    __global const ${T.c}* restrict from = X_p + X_o + g * d.s3;
    __global ${T.c}* restrict to = Y_p + Y_o + (g * panels + panel) * K * ${NR};
    const long end = min(count, begin + d.s6), room = d.s7 - g * d.s3;
    for (long b = begin; b < end; b++) {
        const long place = blocks[3 * b];
        const int some = blocks[3 * b + 1];
        __global const int* step = blocks + 3 * count + blocks[3 * b + 2];
        for (int j = 0; j < ${NV}; j++) {
            const long lane = panel * ${NR} + j * ${W}, left = min((long)${W}, M - lane) - 1;
            if (left < 0) break;
            __global const ${T.c}* s = from + lane * d.s4 + place;
            if (lane * d.s4 + place + left * d.s4 + ${W} > room) {       // the last vector would reach past the end
                for (int k = 0; k < some; k++)
                    for (int q = 0; q < ${W}; q++) to[step[k] * (long)${NR} + j * ${W} + q] = s[min((long)q, left) * d.s4 + k];
                continue;
            }
% if NEAR:
            for (int k = 0; k < some; k++) vstore${W}(vload${W}(0, s + k), 0, to + step[k] * (long)${NR} + j * ${W});
% else:
            ${V} e[${W}];
            {
% for q in range(W):
                ${V} t${q} = vload${W}(0, s + min(${q}L, left) * d.s4);
% endfor
                ${vec.transpose(V, W, "t")}
                ${" ".join(f"e[{q}] = t{q};" for q in range(W))}
            }
            for (int k = 0; k < some; k++) vstore${W}(e[k], 0, to + step[k] * (long)${NR} + j * ${W});
% endif
        }
    }
}
