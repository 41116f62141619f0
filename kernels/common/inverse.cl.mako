## Inverse trigonometric and hyperbolic functions, exp2, erfc, hypot, lgamma: clnn_<name> as in math.cl.mako, the built-in or branch-free code that can
## be vectorised where CLNN_OWN_MATH is defined (PoCL calls a scalar library function for each, 20 to 100 times slower).
## Largest errors in ulp, each within the limits of OpenCL C:
##   exp2 2, asin acos 3, atan 4, atan2 5, asinh acosh atanh 3, sinh cosh 3, hypot 2, erfc 6 (16 allowed)
## Coefficients were fitted for this file by reweighted least squares (Lawson): atan over tan(pi/8), asin over 1/2, exp(x*x)*erfc(x) in 1/(1 + x/2).
<%namespace name="math" file="/common/math.cl.mako"/>
<%!
    ATAN = (-0.33333287, 0.19991328, -0.14025514, 0.08525777)
    ASIN = (0.16666673, 0.074988127, 0.045009974, 0.026498985, 0.038196962)
    EXP = (0.50000001, 0.16666513, 0.04166619, 0.00836959, 0.00139517)
    LGAMMA = (0.422784335, 0.3224670347, -0.06735228225, 0.0205807344, -0.00738615864, 0.002891732627, -0.001185959277, 0.000501516986, -0.0002536186955, 0.0001223635899)
    STIRLING = (0.0833333333, -0.00277777778, 0.000793650794, -0.000595238095)
    SINE = (1.0, -1.644934061, 0.8117421707, -0.1907476227, 0.02611620531, -0.002235224023)
    ERFC = (0.28209013, 0.28221476, 0.24556035, 0.1834071, 0.062775932, 0.016618619, 0.0079457760, -0.32113525, 0.40257344, -0.19919877, 0.037147913)
%>
//@ clnn_exp2
<%math:own names="exp2">
CLNN_FN F clnn_exp2(F x) {
    F c = select(x, (F)(129.0f), (I)(x > 129.0f));
    c = select(c, (F)(-152.0f), (I)(c < -152.0f));
    F t = c + 12582912.0f, k = t - 12582912.0f, r = (c - k) * 0.693147181f;        /* rounded: rint is a call in PoCL */
    F p = fma(r * r, ${math.module.horner("r", EXP)}, r) + 1.0f;
    I i = as_I(t) - 0x4b400000, h = i >> 1;  /* in two factors: 2^k alone may be no float */
    return p * as_F((h + 127) << 23) * as_F((i - h + 127) << 23);
}
</%math:own>
//@ clnn_atan_ clnn_atan clnn_atan2
#ifdef CLNN_OWN_MATH
% for F, I in (("float", "int"), ("float4", "int4"), ("float8", "int8"), ("float16", "int16")):
/* the arcus tangent of low / high, 0 <= low <= high */
static inline __attribute__((overloadable)) ${F} clnn_atan_(${F} low, ${F} high) {
    ${I} big = (${I})(low > 0.414213562f * high);
    ${F} r = select(low, low - high, big) / select(high, low + high, big);
    ${F} z = r * r;
    return fma(r * z, ${math.module.horner("z", ATAN, F=F)}, r) + select((${F})(0.0f), (${F})(0.785398163f), big);
}
% endfor
#endif
//@ clnn_atan
<%math:own names="atan">
CLNN_FN F clnn_atan(F x) {
    F a = fabs(x);
    I big = (I)(a > 1.0f), end = (I)(a > 1e30f);
    F p = clnn_atan_(select(a, (F)(1.0f), big), select((F)(1.0f), a, big));
    p = select(p, (F)(0.0f), end);
    p = select(p, 1.57079633f - p, big);
    return copysign(select(p, x, (I)(x != x)), x);
}
</%math:own>
//@ clnn_atan2
<%math:own names="atan2" operands="${2}">
CLNN_FN F clnn_atan2(F y, F x) {
    F a = fabs(x), b = fabs(y);
    I steep = (I)(b > a);
    F high = select(a, b, steep), low = select(b, a, steep);
    F scale = select((F)(1.0f), (F)(0.0625f), (I)(high > 1e37f));
    scale = select(scale, (F)(16777216.0f), (I)(high < 1e-30f));
    I same = (I)(low == high);  /* also both infinite; 0 / 0 is 0 here */
    F l = select(low * scale, select((F)(1.0f), (F)(0.0f), (I)(high == 0.0f)), same);
    F p = clnn_atan_(l, select(high * scale, (F)(1.0f), same));
    p = select(p, 1.57079633f - p, steep);
    p = select(p, 3.14159265f - p, (I)(as_I(x) < 0));
    p = copysign(p, y);
    return select(select(p, x, (I)(x != x)), y, (I)(y != y));
}
</%math:own>
//@ clnn_asin_ clnn_asin clnn_acos
#ifdef CLNN_OWN_MATH
% for F, I in (("float", "int"), ("float4", "int4"), ("float8", "int8"), ("float16", "int16")):
/* the arcus sine of a where a <= 1/2, else that of sqrt((1 - a) / 2) */
static inline __attribute__((overloadable)) ${F} clnn_asin_(${F} a) {
    ${I} big = (${I})(a > 0.5f);
    ${F} half_rest = fma(a, (${F})(-0.5f), (${F})(0.5f));
    ${F} z = select(a * a, half_rest, big), s = select(a, sqrt(half_rest), big);
    return fma(s * z, ${math.module.horner("z", ASIN, F=F)}, s);
}
% endfor
#endif
//@ clnn_asin
<%math:own names="asin">
CLNN_FN F clnn_asin(F x) {
    F a = fabs(x), p = clnn_asin_(a);
    return copysign(select(p, fma(p, (F)(-2.0f), (F)(1.57079633f)), (I)(a > 0.5f)), x);
}
</%math:own>
//@ clnn_acos
<%math:own names="acos" wide="CLNN_INTEL_CPU">
CLNN_FN F clnn_acos(F x) {
    F a = fabs(x), p = clnn_asin_(a);
    F small = 1.57079633f - (copysign(p, x) - -4.37113883e-8f);
    F large = select(p + p, fma(p, (F)(-2.0f), (F)(3.14159265f)), (I)(x < 0.0f));
    return select(small, large, (I)(a > 0.5f));
}
</%math:own>
//@ clnn_asinh
<%math:own names="asinh">
CLNN_FN F clnn_asinh(F x) {
    F a = fabs(x);
    I big = (I)(a > 1e15f);
    F c = select(a, (F)(1.0f), big), p = clnn_log1p(select(c + c * c / (1.0f + sqrt(fma(c, c, (F)(1.0f)))), a, big));
    return copysign(select(p, p + 0.693147181f, big), x);
}
</%math:own>
//@ clnn_acosh
<%math:own names="acosh">
CLNN_FN F clnn_acosh(F x) {
    I big = (I)(x > 1e15f);
    F t = x - 1.0f, p = clnn_log1p(select(t + sqrt(fma(t, t, t + t)), x, big));
    return select(select(p, p + 0.693147181f, big), (F)(NAN), (I)(x < 1.0f));
}
</%math:own>
//@ clnn_atanh
<%math:own names="atanh">
CLNN_FN F clnn_atanh(F x) {
    F a = fabs(x);
    return copysign(0.5f * clnn_log1p((a + a) / (1.0f - a)), x);
}
</%math:own>
//@ clnn_sinh
<%math:own names="sinh">
CLNN_FN F clnn_sinh(F x) {
    F a = fabs(x);
    I big = (I)(a > 40.0f);
    F t = clnn_expm1(select(a, a * 0.5f, big)), e = t + 1.0f;
    return copysign(select(0.5f * (t + t / e), 0.5f * e * e, big), x);
}
</%math:own>
//@ clnn_cosh
<%math:own names="cosh">
CLNN_FN F clnn_cosh(F x) {
    F a = fabs(x);
    I big = (I)(a > 40.0f);
    F e = clnn_exp(select(a, a * 0.5f, big));
    return select(0.5f * (e + 1.0f / e), 0.5f * e * e, big);
}
</%math:own>
//@ clnn_hypot
<%math:own names="hypot" operands="${2}" also="CLNN_INTEL_CPU" wide="CLNN_INTEL_CPU">
CLNN_FN F clnn_hypot(F x, F y) {
    F a = fabs(x), b = fabs(y);
    I steep = (I)(b > a);
    F high = select(a, b, steep), low = select(b, a, steep);
    F r = low / select(high, (F)(1.0f), (I)(high == 0.0f));
    F p = high * sqrt(fma(r, r, (F)(1.0f)));
    p = select(p, a + b, (I)(a + b != a + b));
    return select(p, (F)(INFINITY), (I)((a == INFINITY) | (b == INFINITY)));
}
</%math:own>
## These also for Intel's runtime, as hypot: its compiler dies of the built-ins where one operand is the same for all work-items of a group.
% for name, lines in math.module.BY_BITS.items():
<% also = math.module.MESA_TOO if name == "copysign" else "CLNN_INTEL_CPU" %>\
//@ clnn_${name}
<%math:own names="${name}" operands="${2}" also="${also}" wide="${also}">
CLNN_FN F clnn_${name}(F x, F y) {
    ${"\n    ".join(lines)}
}
</%math:own>
% endfor
//@ clnn_erfc
<%math:own names="erfc">
CLNN_FN F clnn_erfc(F x) {
    F a = fabs(x);
    a = select(a, (F)(11.0f), (I)(a > 11.0f));
    F t = 1.0f / fma(a, (F)(0.5f), (F)(1.0f));
    F s = a * a;
    F p = t * ${math.module.horner("t", ERFC)} * clnn_exp(-s);
    p = fma(-p, fma(a, a, -s), p);  /* what the square lost */
    p = select(p, 2.0f - p, (I)(x < 0.0f));
    return select(p, x, (I)(x != x));
}
</%math:own>
//@ clnn_lgamma
<%math:own names="lgamma" also="${math.module.MESA_TOO}" wide="CLNN_INTEL_CPU">
/* log |Gamma|: a polynomial around 2, to which up to two steps of the recurrence lead, Stirling's series from 4.5 on, reflection below 0 */
CLNN_FN F clnn_lgamma(F x) {
    I below = (I)(x < 0.0f);
    F size = fabs(x), a = select(size, size + 1.0f, below);        /* Gamma(-s) s = -Gamma(1 - s) ..., without what may underflow */
    I large = (I)(a >= 4.5f), up = (I)(a < 1.5f), up2 = (I)(a < 0.5f), down = (I)(a >= 2.5f), down2 = (I)(a >= 3.5f);
    F t = a - select(select(select(select((F)(2.0f), (F)(1.0f), up), (F)(0.0f), up2), (F)(3.0f), down), (F)(4.0f), down2);
    t = select(t, (F)(0.0f), large);
    F steps = select(select((F)(1.0f), a, up), a - 1.0f, down);
    steps = select(select(steps, a * (a + 1.0f), up2), (a - 1.0f) * (a - 2.0f), down2);
    F l = clnn_log(select(steps, a, large));
    F small = fma(t, ${math.module.horner("t", LGAMMA)}, select(l, -l, up));
    F r = 1.0f / a, z = r * r;
    F series = fma(a - 0.5f, l - 1.0f, fma(r, ${math.module.horner("z", STIRLING)}, (F)(0.418938533f)));
    F result = select(small, series, large);
    /* sin(pi s) / pi from the distance to the nearest whole number, by which all above 2^23 are met */
    F whole = (size + 8388608.0f) - 8388608.0f, g = select(fabs(size - whole), (F)(0.0f), (I)(size >= 8388608.0f));
    F y = g * g, sine = g * ${math.module.horner("y", SINE)};
    result = select(result, -clnn_log(sine) - result, below);
    return select(result, (F)(INFINITY), (I)(size == INFINITY) | (below & (I)(g == 0.0f)));      /* at the poles, too, however far */
}
</%math:own>
