<%inherit file="/base.cl.mako"/>\
<%namespace name="lanes" file="/linalg/lanes.cl.mako"/>\
## Q and R of many small matrices by Householder's reflections, with the signs of LAPACK; W matrices in the lanes of vectors.
##
## A (count, m, n) with strides batch, rs and cs; column by column: Q (count, m, few), R (count, few, n), where few is min(m, n), or m for all of Q.
## packed: R is as LAPACK has it, (count, m, n) with the reflections below the diagonal, and Q their factors (count, min(m, n)); few is m.
##
## Geometry: one work-item per W matrices; alone in its group where W > 1.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         matrices of a work-item
## ROOM       number         most elements of A and of Q
## LEAST      number         most rows or columns, whichever are fewer
<% C, V = T.c, lanes.attr.vector(T, W) %>\
${lanes.copies(T, W)}
${lanes.reflections(T, W)}
__kernel ${lanes.attr.attribute(W)}
void linalg_qr_lanes(IN(${C}, A), OUT(${C}, Q), OUT(${C}, R), const long count, const long rows, const long columns, const long few, const long batch,
                     const long rs, const long cs, const long q, const long packed) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, Q);
    PTR_OUT(${C}, R);
    const long z = get_global_id(0) * ${W};
    if (z >= count) return;
    ${V} w[${ROOM}], tau[${LEAST}];
    const int m = (int)rows, n = (int)columns, wide = (int)few;
    lanes_read(w, m, A, z, count, batch, rs, cs, m, n);
    lanes_factor(w, tau, m, n);
    lanes_write(w, R, z, count, few * n, m, wide, n, !packed);
    if (packed) lanes_write_vectors(tau, Q, z, count, min(m, n));
    if (!q) return;
    ${V} x[${ROOM}];
    for (int j = 0; j < wide; j++)
        for (int i = 0; i < m; i++) x[j * m + i] = (${C})(i == j);
    for (int k = min(m, n) - 1; k >= 0; k--) lanes_reflect(w + k * m + k, tau[k], x + k * m + k, m - k, wide - k, m);
    lanes_write(x, Q, z, count, m * few, m, m, wide, 0);
}
