## clnn_fmod, clnn_remainder, clnn_floor_divide: of float, float4, float8, float16 and, with doubles, of double and double8.
## Exact like fmod of OpenCL C. Where CLNN_OWN_MATH is defined (PoCL: its fmod takes a bit per step) or by Intel's CPU driver (slow for large quotients),
## and doubles exist, each step takes 50 bits of the quotient: the rest a - q * b is exact where q is a whole number below 2^52.
<%!
    VECTORS = [("float", "int", "double"), ("float4", "int4", "double4"), ("float8", "int8", "double8"), ("float16", "int16", "double16")]
    DOUBLES = [("double", "long"), ("double4", "long4"), ("double8", "long8"), ("double16", "long16")]
%>\
//@ clnn_fmod clnn_remainder clnn_floor_divide
#if (defined(CLNN_OWN_MATH) || defined(CLNN_INTEL_CPU)) && defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define CLNN_OWN_FMOD
% for D, L in DOUBLES:
/* the rest of a >= b, both finite and b no subnormal number; where a < b, it stays */
static inline __attribute__((overloadable)) ${D} clnn_rest_(${D} a, ${D} b) {
    ${L} k;
    do {
        k = (as_${L}(a) >> 52) - (as_${L}(b) >> 52) - 50;
        k = select(k, (${L})0, (${L})(k < 0));
        const ${D} c = as_${D}(as_${L}(b) + (k << 52));          /* b 2^k */
        const ${D} q = (a / c + 0x1.8p52) - 0x1.8p52, s = fma(-q, c, a);        /* the quotient rounded to nearest */
        a = select(s, s + c, (${L})(s < 0));
    } while (${"any" if D[6:] else ""}(k > 0));
    return a;
}
% endfor
% for F, _, D in VECTORS:
static inline __attribute__((overloadable)) ${F} clnn_rest_(${F} a, ${F} b) { return convert_${F}(clnn_rest_(convert_${D}(a), convert_${D}(b))); }
% endfor
#endif
% for F, I, _ in VECTORS:
static inline __attribute__((overloadable)) ${F} clnn_fmod(${F} x, ${F} y) {
#ifdef CLNN_OWN_FMOD
    const ${F} a = fabs(x), b = fabs(y);
    const ${I} less = (${I})(a < b), work = (${I})((a < INFINITY) & (b > 0)) & ~less;
    const ${F} r = clnn_rest_(select((${F})0, a, work), select((${F})1, b, work));
    return copysign(select(select((${F})NAN, r, work), a, less), x);
#else
    return fmod(x, y);
#endif
}
% endfor
% if USE_FP64:
% for D, L in DOUBLES[::2]:
static inline __attribute__((overloadable)) ${D} clnn_fmod(${D} x, ${D} y) {
#ifdef CLNN_OWN_FMOD
    const ${D} a = fabs(x), b = fabs(y);
    if (${"any" if D[6:] else ""}((b > 0) & (b < 2.2250738585072014e-308))) return ${"(double8)(" + ", ".join(f"fmod(x.s{i}, y.s{i})" for i in range(8)) + ")" if D[6:] else "fmod(x, y)"};
    const ${L} less = (${L})(a < b), work = (${L})((a < INFINITY) & (b > 0)) & ~less;
    const ${D} r = clnn_rest_(select((${D})0, a, work), select((${D})1, b, work));
    return copysign(select(select((${D})NAN, r, work), a, less), x);
#else
    return fmod(x, y);
#endif
}
% endfor
% endif
% for F, I in [(F, I) for F, I, _ in VECTORS] + ([("double", "long"), ("double8", "long8")] if USE_FP64 else []):
//@ clnn_remainder
static inline __attribute__((overloadable)) ${F} clnn_remainder(${F} x, ${F} y) {
    const ${F} r = clnn_fmod(x, y);
    return select(r, r + y, (${I})((r != 0) & ((r < 0) != (y < 0))));
}
//@ clnn_floor_divide
static inline __attribute__((overloadable)) ${F} clnn_floor_divide(${F} x, ${F} y) {
    const ${F} r = clnn_fmod(x, y), v = (x - r) / y;
<% half = "4503599627370496.0" if "double" in F else "8388608.0f" %>\
    const ${F} m = copysign((${F})${half}, v), t = select((v + m) - m, v, (${I})!(fabs(v) < (${F})${half}));   /* rint(v) */
    const ${F} q = select(t, t - 1, (${I})(t - v >= ${"0.5" if "double" in F else "0.5f"}));                /* but ties go down */
    const ${F} down = select(q, q - 1, (${I})((r != 0) & ((r < 0) != (y < 0))));
    return select(select(down, copysign((${F})0, x / y), (${I})(down == 0)), x / y, (${I})(y == 0));
}
% endfor
