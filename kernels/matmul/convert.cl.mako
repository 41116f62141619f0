<%inherit file="/base.cl.mako"/>\
## Y[z0, z1, i, j] = X[z0, z1, i, j]: a strided matrix (two batch dimensions) made contiguous in the compute type.
##
## Geometry: global (columns, rows, batch), any local size. T: dtype row of X; Y holds its compute type.
__kernel void matmul_convert(IN(${T.c}, X), OUT(${T.acc}, Y), const long16 d, const long8 z) {
    const long M = d.s0, K = d.s2, j = get_global_id(0), i = get_global_id(1), b = get_global_id(2);
    if (i >= M || j >= K) return;
    PTR_IN(${T.c}, X);
    PTR_OUT(${T.acc}, Y);
    Y[(b * M + i) * K + j] = ${T.load}(X, (b / z.s0) * z.s1 + (b % z.s0) * z.s4 + i * d.s3 + j * d.s4);
}
