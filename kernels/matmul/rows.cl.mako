<%inherit file="/base.cl.mako"/>\
## Rows of a matrix with zeros after them: Y[z][s][e] = X[z, s, e] for e < E, 0 for the other columns up to P.
##
## X (B, heads, S, E) by strides d = (S, E, heads, batch, head, row, P, rows per work-item), unit stride along E; Y contiguous.
## Geometry: global (ceil(S / d.s7), B * heads), local (1, 1).
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_rows(IN(float, X), OUT(float, Y), const long8 d) {
    const long S = d.s0, E = d.s1, P = d.s6, z = get_group_id(1), first = get_group_id(0) * d.s7;
    __global const float* restrict X = X_p + X_o + z / d.s2 * d.s3 + z % d.s2 * d.s4;
    __global float* restrict Y = Y_p + Y_o + z * S * P;
    for (long s = first; s < min(S, first + d.s7); s++)
        for (long e = 0; e < P; e++) Y[s * P + e] = e < E ? X[s * d.s5 + e] : 0;
}
