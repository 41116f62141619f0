<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
<%namespace name="blk" file="/linalg/blocks.cl.mako"/>\
<%namespace name="hh" file="/linalg/reflect.cl.mako"/>\
## Q (count, m, k), column by column, from what linalg/qr_blocks leaves of (count, m, n) in V and turned; room: count matrices of m rows of
## (blocks of Q * B + W) elements.
##
## Geometry: global (blocks of Q, count), local 1
##
## parameter  values         meaning
## T          float32 float64
## W NV R P   as in linalg/qr_blocks
<%
    C, V, B = T.c, f"{T.c}{W}", NV * W
%>\
${blk.functions(T, W, NV, R, P)}
${hh.functions(T, W, NV, R, P)}
__kernel ${mat.attr.alone(W)}
void linalg_q_blocks(IN(${C}, V), IN(${C}, turned), OUT(${C}, Q), OUT(${C}, room), const long m, const long n, const long k) {
    PTR_IN(${C}, V);
    PTR_IN(${C}, turned);
    PTR_OUT(${C}, Q);
    PTR_OUT(${C}, room);
    const long z = get_global_id(1), s = ${blk.attr.room("k", B, W)}, vs = ${blk.attr.room("n", B, W)};
    const int rows = (int)m, blocks = (int)((n + ${B - 1}) / ${B}), mine = (int)get_global_id(0), first = mine * ${B}, width = min(${B}, (int)k - first);
    __global ${C}* w = room + z * m * s + first;
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < ${B}; c++) w[i * s + c] = i == first + c;
    // Later reflections leave the first columns of an identity matrix as they are.
    for (int p = min(mine, ((int)min(m, n) - 1) / ${B}); p >= 0; p--) {
        const int at = p * ${B};
        block_apply(w + at * s, s, V + (z * m + at) * vs + at, vs, turned + (z * blocks + p) * ${B * B}, rows - at, 1);
    }
    int order[${B}];
    for (int c = 0; c < ${B}; c++) order[c] = first + c;
    block_write(w, s, Q + z * m * k, m, order, rows, width);
}
