<%inherit file="/base.cl.mako"/>\
## Backward of the attention weights of a block of queries, element by element, in place.
##   s      scores (batch * block, n), overwritten by the (dropped) weights p
##   dp     gradient of p, overwritten by the gradient of the unscaled scores: p * (dp - delta) * scale
##   lse, delta   (batch, length): log-sum-exp of the forward pass; sum over the head of dout * out
## Parameter  legal values
## T          dtype row of s: float32 or float64
## LOOP       0 | 1: a work-item takes a row, or an element
## MASK       None, or the dtype row of the mask; CAUSAL 0 | 1; DROP 0 | 1: as in weights
<% ACC = T.acc %>\
__kernel void backward(OUT(${T.c}, s), OUT(${T.c}, dp), IN(${T.c}, lse), IN(${T.c}, delta), const long rows, const long n, const ${ACC} scale,
        const long block, const long first, const long length, const long heads
% if MASK:
        , IN(${MASK.c}, mask), const long m0, const long m1, const long m2, const long m3
% endif
% if DROP:
        , const long seed, const long draw, const long limit, const ${ACC} gain, const long keys
% endif
        ) {
    const long row = get_global_id(${0 if LOOP else 1});
    if (row >= rows) return;
    __global ${T.c}* restrict s = s_p + s_o + row * n;
    __global ${T.c}* restrict dp = dp_p + dp_o + row * n;
    const long z = row / block, query = first + row % block;
    const ${ACC} total = (lse_p + lse_o)[z * length + query], mean = (delta_p + delta_o)[z * length + query];
% if MASK:
    __global const ${MASK.c}* mask = mask_p + mask_o + z / heads * m0 + z % heads * m1 + query * m2;
% endif
% if LOOP:
    for (int i = 0; i < (int)n; i++) {
% else:
    const long i = get_global_id(0);
    if (i >= n) return;
    {
% endif
        ${ACC} x = s[i] * scale;
% if MASK is not None and MASK.name == "bool":
        x = mask[i * m3] ? x : -INFINITY;
% elif MASK:
        x += ${MASK.load}(mask, i * m3);
% endif
% if CAUSAL:
        x = i > query ? -INFINITY : x;
% endif
        const ${ACC} p = exp(x - total);
% if DROP:
        const ${ACC} kept = clnn_random_word(seed, draw, (z * length + query) * keys + i) < (ulong)limit ? gain : 0;
        s[i] = p * kept;
        dp[i] = p * (dp[i] * kept - mean) * scale;
% else:
        s[i] = p;
        dp[i] = p * (dp[i] - mean) * scale;
% endif
    }
}
