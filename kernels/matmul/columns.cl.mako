<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Rows of a matrix as lanes of vectors, for register tiles: Y[z][panel][e][j][lane] = X[z, panel * d.s6 + j * d.s7 + lane, e].
##
## X (B, heads, S, E) by strides d = (S, E, heads, batch, head, row), unit stride along E; Y contiguous, j counts NK vectors; rows from S on
## are zeros. Geometry: global (panels, B * heads), local (1, 1). NK: 1 to 4.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_columns(IN(float, X), OUT(float, Y), const long8 d) {
    const long S = d.s0, E = d.s1, z = get_group_id(1), p = get_group_id(0), ss = d.s5;
    __global const float* restrict X = X_p + X_o + z / d.s2 * d.s3 + z % d.s2 * d.s4;
    __global float* restrict Y = Y_p + Y_o + (z * get_num_groups(0) + p) * E * ${NK * 16};
    for (int j = 0; j < ${NK}; j++) {
        const long first = p * d.s6 + j * d.s7, n = S - first;
        __global const float* s = X + first * ss;
        long e = 0;
        for (; e + 16 <= E; e += 16, s += 16) {
% for c in range(16):
            float16 t${c} = ${c} < n ? vload16(0, s + ${c} * ss) : (float16)0;
% endfor
            ${vec.transpose("float16", 16, "t")}
% for c in range(16):
            vstore16(t${c}, j, Y + (e + ${c}) * ${NK * 16});
% endfor
        }
        for (; e < E; e++, s++)
            for (int c = 0; c < 16; c++) Y[e * ${NK * 16} + j * 16 + c] = c < n ? s[c * ss] : 0;
    }
}
