## clnn_fmod, clnn_remainder, clnn_floor_divide: of float, float4, float8, float16 and, with doubles, of double and double8.
## Exact like fmod of OpenCL C. Where CLNN_OWN_MATH is defined (PoCL: its fmod takes a bit per step) or by Intel's CPU driver (slow for large quotients),
## each step takes 20 or 50 bits of the quotient: the rest a - q * b is exact where q is a whole number with a few bits less than they have.
<%!
    VECTORS = [("float", "int", 23, 20), ("float4", "int4", 23, 20), ("float8", "int8", 23, 20), ("float16", "int16", 23, 20)]
    DOUBLES = [("double", "long", 52, 50), ("double8", "long8", 52, 50)]
%>\
//@ clnn_fmod clnn_remainder clnn_floor_divide
% for F, I, digits, step in VECTORS + (DOUBLES if USE_FP64 else []):
<% lanes, s = int(F.lstrip("floatdube") or 1), "f" if digits == 23 else "" %>\
static inline __attribute__((overloadable)) ${F} clnn_fmod(${F} x, ${F} y) {
#if defined(CLNN_OWN_MATH) || defined(CLNN_INTEL_CPU)
    const ${F} a = fabs(x), b = fabs(y);
    const ${I} tiny = (${I})((b > 0) & (b < ${"1.17549435e-38f" if s else "2.2250738585072014e-308"}));      /* its exponent does not tell its size */
    const ${I} less = (${I})(a < b), work = (${I})((a < INFINITY) & (b > 0)) & ~less & ~tiny;
    const ${F} d = select((${F})1, b, work);
    ${F} r = select((${F})0, a, work);
    ${I} k;
    do {
        k = (as_${I}(r) >> ${digits}) - (as_${I}(d) >> ${digits}) - ${step};
        k = select(k, (${I})0, (${I})(k < 0));
        const ${F} c = as_${F}(as_${I}(d) + (k << ${digits}));          /* d 2^k */
        const ${F} q = (r / c + 0x1.8p${digits}${s}) - 0x1.8p${digits}${s}, t = fma(-q, c, r);        /* the quotient rounded to nearest */
        r = select(t, t + c, (${I})(t < 0));
    } while (${"any" if lanes > 1 else ""}(k > 0));
    const ${F} got = copysign(select(select((${F})NAN, r, work), a, less), x);
    if (${"any(tiny)" if lanes > 1 else "tiny"})          /* at the end: a return ahead of the loop crashes Intel's compiler in some kernels */
        return ${"fmod(x, y)" if lanes == 1 else f"({F})(" + ", ".join(f"fmod(x.s{i:x}, y.s{i:x})" for i in range(lanes)) + ")"};
    return got;
#else
    return fmod(x, y);
#endif
}
% endfor
% for F, I in [row[:2] for row in VECTORS + (DOUBLES if USE_FP64 else [])]:
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
