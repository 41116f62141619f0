## Exponentials and reductions of vectors of 16 floats, for kernels that work on whole vectors on every driver.
##
## def           gives
## functions()   LANES (0, 1, .. 15); exp16(x) for x <= 0; sigmoid16(x); max16(x) and sum16(x) over the lanes
## ends(TAIL)    LOAD16(p) and STORE16(v, p) of vectors in global memory; TAIL: of those of the first `left` elements (a variable of the caller), zeros behind
<%def name="functions()">
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
static inline float16 sigmoid16(float16 x) {
    const float16 e = exp16(-fabs(x)), s = 1.0f / (1.0f + e);
    return x < 0.0f ? e * s : s;
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
</%def>
##
<%def name="ends(TAIL)">
% if TAIL:
static inline float16 load_part(__global const float* p, long left) {
    if (left >= 16) return vload16(0, p);
    float e[16];
    for (int q = 0; q < 16; q++) e[q] = q < left ? p[q] : 0;
    return vload16(0, e);
}
static inline void store_part(float16 v, __global float* p, long left) {
    if (left >= 16) { vstore16(v, 0, p); return; }
    float e[16];
    vstore16(v, 0, e);
    for (int q = 0; q < left; q++) p[q] = e[q];
}
#define LOAD16(p) load_part(p, left)
#define STORE16(v, p) store_part(v, p, left)
% else:
#define LOAD16(p) vload16(0, p)
#define STORE16(v, p) vstore16(v, 0, p)
% endif
</%def>
