## clnn_fmod, clnn_remainder, clnn_floor_divide: of float, float4, float8, float16 and, with doubles, of double and double8.
## Exact like fmod of OpenCL C. Where CLNN_OWN_MATH is defined and doubles exist (PoCL: its fmod takes a bit per step), a quotient below 2^28 is found
## by one division of doubles, and the rest x - q * y is exact.
<%! VECTORS = [("float", "int", "double"), ("float4", "int4", "double4"), ("float8", "int8", "double8"), ("float16", "int16", "double16")] %>\
//@ clnn_fmod clnn_remainder clnn_floor_divide
% for F, I, D in VECTORS:
<% n = F[5:] %>\
static inline __attribute__((overloadable)) ${F} clnn_fmod(${F} x, ${F} y) {
#if defined(CLNN_OWN_MATH) && defined(cl_khr_fp64)
    if (${"all" if n else ""}(fabs(x) < fabs(y) * 0x1p28f)) {
        const ${D} a = convert_${D}(fabs(x)), b = convert_${D}(fabs(y));
        const ${D} q = (a / b + 0x1.8p52) - 0x1.8p52, s = fma(-q, b, a);     /* the quotient rounded to nearest */
        const ${F} r = convert_${F}(s < 0 ? s + b : s);
        return copysign(select(r, fabs(x), (${I})(fabs(x) < fabs(y))), x);  /* also where 0 * infinity would be NaN */
    }
#endif
    return fmod(x, y);
}
% endfor
% if USE_FP64:
static inline __attribute__((overloadable)) double clnn_fmod(double x, double y) { return fmod(x, y); }
static inline __attribute__((overloadable)) double8 clnn_fmod(double8 x, double8 y) { return fmod(x, y); }
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
