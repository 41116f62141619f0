## Random numbers of element i of a draw: Philox4x32-10 (Salmon et al. 2011), the same bits on every device.
##   32-bit use   element i has word i % 4 of block first + i / 4; a normal number takes the pair of words its element lies in
##   64-bit use   element i has words 2 * (i % 2) and the next of block first + i / 2 (float64, wide integers)
## All float steps are +, *, fma or conversions, which OpenCL rounds correctly; no built-in logarithm, root or sine, whose last bits
## differ between drivers. What finds words or their places is scalar: compilers vectorise the loop or the work-items around it; what words become
## is overloaded for float8, float16 and double8 (common/draws.cl.mako draws for whole vectors).
<%!
    OV = "static inline __attribute__((overloadable))"
    FLOATS = [("", "float", "int", "uint"), ("8", "float8", "int8", "uint8"), ("16", "float16", "int16", "uint16")]
%>\
//@ clnn_philox_ clnn_random_word clnn_random_wide clnn_normal clnn_word clnn_word_float clnn_word_double clnn_log_normal clnn_cauchy clnn_block_words clnn_block_wide clnn_block_normals
#pragma OPENCL FP_CONTRACT OFF
static inline void clnn_philox_(ulong seed, ulong block, uint* w0, uint* w1, uint* w2, uint* w3) {
    uint a = (uint)block, b = (uint)(block >> 32), c = 0, d = 0, k0 = (uint)seed, k1 = (uint)(seed >> 32);
% for n in range(10):
    {
        const ulong p = (ulong)a * 0xD2511F53u, q = (ulong)c * 0xCD9E8D57u;
        a = (uint)(q >> 32) ^ b ^ k0;
        b = (uint)q;
        c = (uint)(p >> 32) ^ d ^ k1;
        d = (uint)p;
% if n < 9:
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
% endif
    }
% endfor
    *w0 = a; *w1 = b; *w2 = c; *w3 = d;
}
//@ clnn_random_word clnn_word clnn_word_float clnn_cauchy
static inline uint clnn_random_word(long seed, long first, long i) {
    uint a, b, c, d;
    clnn_philox_((ulong)seed, (ulong)first + ((ulong)i >> 2), &a, &b, &c, &d);
    const uint low = (i & 1) ? b : a, high = (i & 1) ? d : c;
    return (i & 2) ? high : low;
}
//@ clnn_random_wide clnn_word clnn_word_double clnn_cauchy
static inline ulong clnn_random_wide(long seed, long first, long i) {
    uint a, b, c, d;
    clnn_philox_((ulong)seed, (ulong)first + ((ulong)i >> 1), &a, &b, &c, &d);
    return (i & 1) ? (((ulong)d << 32) | c) : (((ulong)b << 32) | a);
}
//@ clnn_word clnn_word_float clnn_word_double
/* the word that a number of type T takes */
#define clnn_word(T, seed, first, i) clnn_word_##T(seed, first, i)
#define clnn_word_float clnn_random_word
#define clnn_word_double clnn_random_wide
//@ clnn_keep clnn_coin
/* x, or 1, with probability limit / 2^32, else 0 */
% for n, F, I, U in FLOATS:
${OV} ${F} clnn_keep(${U} w, long limit, ${F} x) {
    return ${"(ulong)w < (ulong)limit ? x : 0.0f" if not n else f"limit ? select(({F})0.0f, x, w <= ({U})(uint)(limit - 1)) : ({F})0.0f"};
}
${OV} ${I} clnn_coin(${U} w, long limit) {
    return ${"(ulong)w < (ulong)limit" if not n else f"limit ? (w <= ({U})(uint)(limit - 1)) & 1 : ({I})0"};
}
% endfor
% if USE_FP64:
${OV} double clnn_keep(uint w, long limit, double x) { return (ulong)w < (ulong)limit ? x : 0.0; }
${OV} double8 clnn_keep(uint8 w, long limit, double8 x) {
    return limit ? select((double8)0.0, x, convert_long8(w <= (uint8)(uint)(limit - 1))) : (double8)0.0;
}
% endif
//@ clnn_less
% for n, F, I, U in FLOATS:
${OV} ${F} clnn_less(${F} a, ${F} b) { return ${"a < b" if not n else f"select(({F})0.0f, ({F})1.0f, a < b)"}; }
% endfor
//@ clnn_scaled
/* a whole number below range < 2^32 */
${OV} long clnn_scaled(uint w, long range) { return (long)(((ulong)w * (ulong)range) >> 32); }
${OV} long8 clnn_scaled(uint8 w, long8 range) { return as_long8((convert_ulong8(w) * (as_ulong8(range) & 0xffffffffUL)) >> 32); }
//@ clnn_random_log_ clnn_normal clnn_normals clnn_block_normals clnn_sequence_normals clnn_exponential clnn_log_normal
/* log(x) for 2^-40 < x <= 1, about 1 ulp */
% for n, F, I, U in FLOATS:
${OV} ${F} clnn_random_log_(${F} x) {
    const ${I} u = as_int${n}(x), k = (u - 0x3f3504f3) >> 23;
    const ${F} f = as_${F}(u - (k << 23)) - 1.0f, e = convert_${F}(k), z = f * f;
    ${F} p = -0.07635651384f;
% for c in (0.1276332564, -0.1316058322, 0.1420155330, -0.1662329832, 0.2000123337, -0.2500082272, 0.3333333166):
    p = fma(p, f, (${F})${c}f);
% endfor
    p = fma(f * z, p, -0.5f * z);
    return fma(e, (${F})0.693359375f, f + fma(e, (${F})-2.12194440e-4f, p));
}
% endfor
//@ clnn_random_sqrt_ clnn_normal clnn_normals clnn_block_normals clnn_sequence_normals clnn_log_normal
/* sqrt(x) for 0 <= x < 2^100: Newton steps for 1 / sqrt(x), then one correction */
% for n, F, I, U in FLOATS:
${OV} ${F} clnn_random_sqrt_(${F} x) {
    ${F} y = as_${F}(0x5f375a86 - (as_${I}(x) >> 1));
    const ${F} h = 0.5f * x;
% for step in range(3):
    y = y * fma(-h * y, y, (${F})1.5f);
% endfor
    const ${F} s = x * y;
    return fma(fma(-s, s, x), 0.5f * y, s);
}
% endfor
//@ clnn_random_turn_ clnn_normal clnn_normals clnn_block_normals clnn_sequence_normals clnn_log_normal clnn_cauchy
/* sine and cosine of w / 2^32 of a full turn */
% for n, F, I, U in FLOATS:
${OV} void clnn_random_turn_(${U} w, ${F}* sine, ${F}* cosine) {
    const ${U} k = (w + 0x20000000u) >> 30;
    const ${F} r = convert_${F}(as_${I}(w - (k << 30))) * 1.46291807926716e-9f, z = r * r;
    const ${F} s = fma(r * z, fma(fma((${F})-0.0001951677630f, z, (${F})0.008332174406f), z, (${F})-0.16666654887f), r);
    const ${F} c = fma(z * z, fma(fma((${F})0.00002443786582f, z, (${F})-0.001388736259f), z, (${F})0.041666646770f), fma((${F})-0.5f, z, (${F})1.0f));
    const ${I} odd = as_${I}(k << 31) >> 31;
    const ${F} a = select(s, c, odd), b = select(c, s, odd);
    *sine = as_${F}(as_${U}(a) ^ ((k & 2u) << 30));
    *cosine = as_${F}(as_${U}(b) ^ (((k + 1u) & 2u) << 30));
}
% endfor
//@ clnn_normal clnn_log_normal
/* Box & Muller (1958): elements 2j and 2j + 1 are the two coordinates of one random point */
#define clnn_normal(T, seed, first, i) clnn_normal_##T(seed, first, i)
static inline float clnn_normal_float(long seed, long first, long i) {
    uint a, b, c, d;
    clnn_philox_((ulong)seed, (ulong)first + ((ulong)i >> 2), &a, &b, &c, &d);
    const uint w = (i & 2) ? c : a, v = (i & 2) ? d : b;
    float sine, cosine;
    clnn_random_turn_(v, &sine, &cosine);
    const float u = fma((float)w, 0x1p-32f, 0x1p-33f);
    return clnn_random_sqrt_(-2.0f * clnn_random_log_(u)) * ((i & 1) ? sine : cosine);
}
//@ clnn_block_words clnn_block_wide clnn_block_normals
/* All elements of the block that element i is the first of: kernels of GPUs walk once per block. */
static inline void clnn_block_words(long seed, long first, long i, uint* w) {
    clnn_philox_((ulong)seed, (ulong)first + ((ulong)i >> 2), w, w + 1, w + 2, w + 3);
}
static inline void clnn_block_wide(long seed, long first, long i, ulong* w) {
    uint a, b, c, d;
    clnn_philox_((ulong)seed, (ulong)first + ((ulong)i >> 1), &a, &b, &c, &d);
    w[0] = ((ulong)b << 32) | a;
    w[1] = ((ulong)d << 32) | c;
}
//@ clnn_block_normals
static inline void clnn_block_normals(long seed, long first, long i, float* z) {
    uint w[4];
    clnn_philox_((ulong)seed, (ulong)first + ((ulong)i >> 2), w, w + 1, w + 2, w + 3);
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
        float sine, cosine;
        clnn_random_turn_(w[k + 1], &sine, &cosine);
        const float r = clnn_random_sqrt_(-2.0f * clnn_random_log_(fma((float)w[k], 0x1p-32f, 0x1p-33f)));
        z[k] = r * cosine;
        z[k + 1] = r * sine;
    }
}
//@ clnn_uniform
/* [0, 1) in steps of 2^-bits */
% for n, F, I, U in FLOATS:
${OV} ${F} clnn_uniform(${U} w, long bits) { return convert_${F}(w >> (uint)(32 - bits)) * as_float((127 - (int)bits) << 23); }
% endfor
//@ clnn_exponential
/* -log(u) for u in (0, 1] */
% for n, F, I, U in FLOATS:
${OV} ${F} clnn_exponential(${U} w) { return -clnn_random_log_(fma(convert_${F}(w), (${F})0x1p-32f, (${F})0x1p-33f)); }
% endfor
//@ clnn_random_exp_ clnn_log_normal
static inline float clnn_random_exp_(float x) {
    const float c = clamp(x, -100.0f, 88.7f), k = rint(c * 1.44269504f);
    const float r = fma(k, 2.12194440e-4f, fma(k, -0.693359375f, c));
    const float q = fma(fma(fma(fma(1.394644786e-3f, r, 8.366582376e-3f), r, 4.166628206e-2f), r, 0.1666654300f), r, 0.5000000062f);
    const int n = (int)k, m = n >> 1;
    return fma(r * r, q, r + 1.0f) * as_float((m + 127) << 23) * as_float((n - m + 127) << 23);
}
//@ clnn_log_normal
#define clnn_log_normal(T, seed, first, i, mean, std) clnn_log_normal_##T(seed, first, i, mean, std)
static inline float clnn_log_normal_float(long seed, long first, long i, float mean, float std) {
    return clnn_random_exp_(fma(clnn_normal_float(seed, first, i), std, mean));
}
//@ clnn_cauchy
/* tangent of a random angle */
#define clnn_cauchy(T, seed, first, i) clnn_cauchy_##T(seed, first, i)
static inline float clnn_cauchy_float(long seed, long first, long i) {
    float s, c;
    clnn_random_turn_(clnn_random_word(seed, first, i) >> 1, &s, &c);
    return s / c;
}
% if USE_FP64:
//@ clnn_normal clnn_log_normal clnn_exponential
#pragma OPENCL FP_CONTRACT OFF
/* division and sqrt of doubles are correctly rounded by the standard */
% for D, L in (("double", "long"), ("double8", "long8")):
${OV} ${D} clnn_random_logd_(${D} x) {
    const ${L} u = as_${L}(x), k = (u - 0x3fe6a09e667f3bcdL) >> 52;
    const ${D} m = as_${D}(u - (k << 52)), s = (m - 1.0) / (m + 1.0), z = s * s, e = convert_${D}(k);
    ${D} p = 1.0 / 23.0;
% for n in range(21, 0, -2):
    p = fma(p, z, (${D})(1.0 / ${n}.0));
% endfor
    return fma(e, (${D})0.693147180559945309, 2.0 * s * p);
}
% endfor
//@ clnn_exponential
% for D, L in (("double", "ulong"), ("double8", "ulong8")):
${OV} ${D} clnn_exponential(${L} w) { return -clnn_random_logd_(fma(convert_${D}(w >> 11), (${D})0x1p-53, (${D})0x1p-54)); }
% endfor
//@ clnn_normal clnn_log_normal
static inline double clnn_normal_double(long seed, long first, long i) {
    uint a, b, c, d;
    clnn_philox_((ulong)seed, (ulong)first + ((ulong)i >> 1), &a, &b, &c, &d);
    const double u = fma((double)((((ulong)b << 32) | a) >> 11), 0x1p-53, 0x1p-54);
    const ulong w = ((ulong)d << 32) | c;
    const ulong k = (w + 0x2000000000000000UL) >> 62;
    const double r = (double)(long)(w - (k << 62)) * 3.4061215800304724e-19, z = r * r;
    double p = 1.0, q = 1.0;
% for n in range(18, 0, -2):
    p = fma(p * z, -1.0 / ${n * (n + 1)}.0, 1.0);
    q = fma(q * z, -1.0 / ${n * (n - 1)}.0, 1.0);
% endfor
    const double sine = r * p, x = (k & 1) ? q : sine, y = (k & 1) ? sine : q;
    return sqrt(-2.0 * clnn_random_logd_(u)) * ((i & 1) ? ((k & 2) ? -x : x) : (((k + 1) & 2) ? -y : y));
}
//@ clnn_uniform
% for D, L in (("double", "ulong"), ("double8", "ulong8")):
${OV} ${D} clnn_uniform(${L} w, long bits) { return convert_${D}(w >> (ulong)(64 - bits)) * as_double((1023 - bits) << 52); }
% endfor
//@ clnn_log_normal
static inline double clnn_log_normal_double(long seed, long first, long i, double mean, double std) {
    return exp(fma(clnn_normal_double(seed, first, i), std, mean));
}
//@ clnn_cauchy
static inline double clnn_cauchy_double(long seed, long first, long i) {
    return tan(((double)(clnn_random_wide(seed, first, i) >> 11) * 0x1p-53 - 0.5) * 3.14159265358979324);
}
% endif
//@
