<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Y[z0, z1, i, j] = X[z0, z1, i, j]: a strided matrix (two batch dimensions) made contiguous in the compute type, on a CPU.
##
## Geometry: global (columns / CHUNK, rows / d.s9, batch), local (1, 1, 1).
##
## Parameter  legal values
## T          dtype row of X; Y holds its compute type
## W          lanes of a vector
## CHUNK      columns of a work-item
${vec.vector_io(T, W)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_convert(IN(${T.c}, X), OUT(${T.acc}, Y), const long16 d, const long8 z) {
    const long M = d.s0, K = d.s2, b = get_global_id(2);
    const long begin = get_global_id(0) * ${CHUNK}, end = min(K, begin + ${CHUNK}), row_end = min(M, (long)(get_global_id(1) + 1) * d.s9);
    __global const ${T.c}* restrict X = X_p + X_o + (b / z.s0) * z.s1 + (b % z.s0) * z.s4;
    __global ${T.acc}* restrict Y = Y_p + Y_o + b * M * K;
    for (long i = get_global_id(1) * d.s9; i < row_end; i++) {
        long j = begin;
        if (d.s4 == 1) for (; j + ${W} <= end; j += ${W}) vstore${W}(ldv_${T.name}(X + i * d.s3 + j), 0, Y + i * K + j);
        for (; j < end; j++) Y[i * K + j] = ${T.load}(X, i * d.s3 + j * d.s4);
    }
}
