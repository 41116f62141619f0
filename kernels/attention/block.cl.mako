## What the attention kernels for CPUs share: exponentials and reductions of 16 lanes, the mask, parameters of mask and dropout.
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%def name="functions(MASK)">
constant float16 LANES = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

/* exp for x <= 0, within 2 ulp; 0 where the result would be subnormal. NaN stays NaN. */
static inline float16 exp16(float16 x) {
    const float16 c = x < -88.0f ? (float16)-88.0f : x;
    const float16 m = fma(c, (float16)1.44269504f, (float16)12582912.0f);  /* adding 1.5 * 2^23 rounds to an integer in the low bits */
    const float16 k = m - 12582912.0f;
    float16 r = fma(k, (float16)-0.693359375f, c);
    r = fma(k, (float16)2.12194440e-4f, r);
    float16 q = fma((float16)0.001394644786f, r, (float16)0.008366582376f);
    q = fma(q, r, (float16)0.04166628206f);
    q = fma(q, r, (float16)0.1666654300f);
    q = fma(q, r, (float16)0.5000000062f);
    q = fma(q, r * r, r);
    const float16 t = as_float16((as_int16(m) + 127) << 23);
    return x < -87.3f ? (float16)0.0f : fma(t, q, t);
}
static inline float max16(float16 x) {
    const float8 a = x.lo > x.hi ? x.lo : x.hi;
    const float4 b = a.lo > a.hi ? a.lo : a.hi;
    const float2 c = b.lo > b.hi ? b.lo : b.hi;
    return c.x > c.y ? c.x : c.y;
}
static inline float sum16(float16 x) {
    const float8 a = x.lo + x.hi;
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}
% if MASK:
${vec.vector_io(MASK, 16)}
/* Scores x of keys j.. of a query, masked; m points at the query's row of the mask, whose keys lie m3 apart and end at S. */
static inline float16 masked(float16 x, __global const ${MASK.c}* m, long m3, long j, long S) {
<% kind = "int" if MASK.name == "bool" else "float" %>\
    ${kind}16 t;
    if (m3 == 1 && j + 16 <= S) t = ldv_${MASK.name}(m + j);
    else {
        ${kind} e[16];
        for (int q = 0; q < 16; q++) e[q] = ${MASK.load}(m, min(j + q, S - 1) * m3);
        t = vload16(0, e);
    }
% if MASK.name == "bool":
    return t != 0 ? x : (float16)-INFINITY;
% else:
    return x + t;
% endif
}
% endif
</%def>
<%def name="parameters(MASK, DROP)">
% if MASK:
        , IN(${MASK.c}, mask), const long m0, const long m1, const long m2, const long m3
% endif
% if DROP:
        , const long seed, const long draw, const long limit, const float gain
% endif
</%def>
