## clnn_sin, clnn_cos and clnn_tan: built-ins, or branch-free code where CLNN_OWN_MATH is defined.
## Arguments up to 2^15 are reduced with pi/2 in three parts (Cody & Waite). Larger ones, with doubles, are first multiplied by
## (2^e mod 2 pi) / 2^e, which changes them by a multiple of 2 pi, then reduced with pi/2 in two parts; without doubles, with the bits of 2/pi
## that matter (Payne & Hanek, 1983) in integers. The scalar form computes both and selects, as a branch would stop vectorisation; the
## vector forms turn to it, lane by lane, only where a lane is large. Largest errors: sin and cos 2, tan 4 ulp.
<%!
    import math
    from fractions import Fraction

    VECTORS = [("float", "int", "uint"), ("float4", "int4", "uint4"), ("float8", "int8", "uint8"), ("float16", "int16", "uint16")]

    def pi(bits=320):
        """pi as a fraction, by Machin's formula."""
        one = 1 << (bits + 16)
        def arctan(n):
            total = term = one // n
            k, sign = 3, -1
            while term:
                term //= n * n
                total += sign * (term // k)
                k, sign = k + 2, -sign
            return total
        return Fraction(4 * (4 * arctan(5) - arctan(239)), one)

    def turns():
        """(hi, lo) of (2^e mod 2 pi) / 2^e for e = 0 ... 104; hi has 28 bits, so that its product with a float is exact."""
        whole, rows = 2 * pi(), []
        for e in range(105):
            rest = Fraction(2 ** e)
            rest -= whole * round(rest / whole)
            share = rest / 2 ** e if e else Fraction(1)
            _, exponent = math.frexp(float(share))
            unit = Fraction(2) ** (exponent - 28)
            hi = round(share / unit) * unit
            rows.append((float(hi).hex(), float(share - hi).hex()))
        return rows

    def halves():
        """pi/2 as the sum of two doubles."""
        hi = Fraction(float(pi() / 2))
        return float(hi).hex(), float(pi() / 2 - hi).hex()
%>
//@ clnn_trig_ clnn_sin clnn_cos clnn_tan
#ifdef CLNN_OWN_MATH
#ifdef cl_khr_fp64
<% rows, (half_hi, half_lo) = turns(), halves() %>\
__constant double clnn_turn_[${len(rows)}] = {${", ".join(hi for hi, _ in rows)}};
__constant double clnn_turn_rest_[${len(rows)}] = {${", ".join(lo for _, lo in rows)}};
static inline float clnn_far_(float x, int* quadrant) {
    const int e = clamp((int)((as_uint(x) >> 23) & 255) - 150, 0, ${len(rows) - 1});
    const double p = x * clnn_turn_[e], k = (p * 0.63661977236758134 + 0x1.8p52) - 0x1.8p52;   /* rounded; rint is no instruction in PoCL */
    *quadrant = (int)k;
    return (float)fma((double)x, clnn_turn_rest_[e], fma(k, -(${half_lo}), fma(k, -(${half_hi}), p)));
}
#else
/* 32 zero bits, then the fraction bits of 2/pi. */
__constant uint clnn_two_over_pi_[10] = {0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
                                         0xfe5163abu, 0xdebbc561u, 0xb7246e3au};
static inline ulong clnn_word_(int bit) {  /* 32 bits of the table from this bit on */
    uint i = (uint)bit >> 5;
    return ((((ulong)clnn_two_over_pi_[i] << 32) | clnn_two_over_pi_[i + 1]) >> (32 - (bit & 31))) & 0xffffffffu;
}
static inline float clnn_far_(float x, int* quadrant) {
    uint u = as_uint(x) & 0x7fffffffu;
    int bit = clamp((int)(u >> 23) - 120, 0, 134), sign = (int)as_uint(x) < 0;
    ulong m = (u & 0x7fffffu) | 0x800000u;
    ulong p = ((m * clnn_word_(bit)) << 32) + m * clnn_word_(bit + 32) + ((m * clnn_word_(bit + 64)) >> 32);
    int q = (int)((p + 0x2000000000000000ul) >> 62);
    float far = (float)(long)(p << 2) * 0x1.921fb6p-64f;
    *quadrant = sign ? -q : q;
    return sign ? -far : far;
}
#endif
% for F, I, U in VECTORS:
#define FN static inline __attribute__((overloadable))
/* x = quadrant * pi/2 + r with |r| <= pi/4, for |x| <= 2^15 */
FN ${F} clnn_near_(${F} x, ${I}* quadrant) {
    const ${F} t = fma(x, (${F})0.636619772f, (${F})12582912.0f), k = t - 12582912.0f;  /* rounded; rint is no instruction in PoCL */
    *quadrant = as_${I}(t);                  /* its low bits */
    const ${F} r = fma(k, (${F})0x1.ee59dap-50f, fma(k, (${F})0x1.777a5cp-25f, fma(k, (${F})-0x1.921fb6p+0f, x)));
    return select(r, x, (${I})(k == 0.0f));  /* keeps -0 */
}
FN ${F} clnn_sin_part_(${F} r) {
    const ${F} z = r * r;
    return copysign(fma(r * z, fma(fma((${F})-1.951677630e-4f, z, (${F})8.332174406e-3f), z, (${F})-1.6666654887e-1f), r), r);
}
FN ${F} clnn_cos_part_(${F} r) {
    const ${F} z = r * r;
    return fma(z * z, fma(fma((${F})2.443786582e-5f, z, (${F})-1.388736259e-3f), z, (${F})4.1666646770e-2f), fma(z, (${F})-0.5f, (${F})1.0f));
}
FN ${F} clnn_turned_(${F} r, ${I} q) {       /* sin(r + q pi/2) */
    const ${F} v = select(clnn_sin_part_(r), clnn_cos_part_(r), (${I})((q & 1) != 0));
    return as_${F}(as_${U}(v) ^ (as_${U}(q & 2) << 30));
}
FN ${F} clnn_slope_(${F} r, ${I} q) {        /* tan(r + q pi/2) */
    const ${F} s = clnn_sin_part_(r), c = clnn_cos_part_(r);
    const ${I} odd = (${I})((q & 1) != 0);
    return select(s, -c, odd) / select(c, s, odd);
}
#undef FN
% endfor
/* The part of a quarter turn of any x. */
static inline float clnn_trig_(float x, int* quadrant) {
    int near_q, far_q;
    const float near = clnn_near_(x, &near_q), far = clnn_far_(x, &far_q);
    const int big = fabs(x) > 32768.0f;
    *quadrant = big ? far_q : near_q;
    const float r = big ? far : near;
    return fabs(x) < INFINITY ? r : NAN;
}
#endif
% for name, turned in [("sin", "clnn_turned_(r, q)"), ("cos", "clnn_turned_(r, q + 1)"), ("tan", "clnn_slope_(r, q)")]:
//@ clnn_${name}
#ifdef CLNN_OWN_MATH
static inline __attribute__((overloadable)) float clnn_${name}(float x) {
    int q;
    const float r = clnn_trig_(x, &q);
    return ${turned};
}
% for n in (4, 8, 16):
static inline __attribute__((overloadable)) float${n} clnn_${name}(float${n} x) {
    if (any(!(fabs(x) <= 32768.0f))) return (float${n})(${", ".join(f"clnn_{name}(x.s{i:x})" for i in range(n))});
    int${n} q;
    const float${n} r = clnn_near_(x, &q);
    return ${turned};
}
% endfor
#else
#define clnn_${name} ${name}
#endif
% endfor
