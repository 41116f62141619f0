<%inherit file="/base.cl.mako"/>\
## Adds the partial weight gradients of conv/depthwise_gpu_gradient or conv/planes_gradient in their order: dW[i] = P[0, i] + P[1, i] + ...
##
## P (splits, n) in the compute type of T, dW (n). Geometry: global (n), any local size.
##
## T  dtype row of dW
__kernel void conv_depthwise_gpu_sum(IN(${T.acc}, P), OUT(${T.c}, dW), const long n, const long splits) {
    PTR_IN(${T.acc}, P);
    PTR_OUT(${T.c}, dW);
    const long i = get_global_id(0);
    if (i >= n) return;
    ${T.acc} sum = 0;
#if defined(CLNN_NVIDIA) || defined(CLNN_AMD)   /* loads on their way at a time */
#pragma unroll 8
#endif
    for (long s = 0; s < splits; s++) sum += P[s * n + i];
    ${T.store}(dW, i, sum);
}
