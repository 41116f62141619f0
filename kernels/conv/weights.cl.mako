<%inherit file="/base.cl.mako"/>\
## Weights in the order that a product needs: Y[g, m, k] = X[g * d.s3 + m * d.s4 + index[k]], in the compute type.
##
## Geometry: global (K, M, groups), any local size. T: dtype row of X.
__kernel void conv_weights(IN(${T.c}, X), OUT(${T.acc}, Y), __global const int* restrict index, const long8 d) {
    const long K = d.s0, M = d.s1, k = get_global_id(0), m = get_global_id(1), g = get_global_id(2);
    if (k >= K || m >= M) return;
    PTR_IN(${T.c}, X);
    PTR_OUT(${T.acc}, Y);
    Y[(g * M + m) * K + k] = ${T.load}(X, g * d.s3 + m * d.s4 + index[k]);
}
