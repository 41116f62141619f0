## Trigonometric functions of doubles and their inverses, hypot: what trig.cl.mako and inverse.cl.mako have for floats, as in double.cl.mako.
## Arguments up to 2^30 are reduced with pi/2 in three parts and keep what the second left over; where one is larger, the driver's built-in serves it.
## Largest errors in ulp: sin cos 1, tan 2.5, asin acos 1.5, atan 1.5, atan2 2, hypot 2
<%namespace name="math" file="/common/math.cl.mako"/>
<%!
    # (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2 for r <= pi/4; (atan(r) / r - 1) / r^2 up to tan(pi/8); the same of asin up to 1/2
    SIN = (-0.16666666666666632, 0.008333333333322415, -0.00019841269829808938, 2.755731369231637e-06, -2.5050758176750798e-08, 1.5896799110683966e-10)
    COS = (0.041666666666666595, -0.001388888888887304, 2.4801587288842027e-05, -2.755731417643008e-07, 2.087570044292169e-09, -1.1358515385827345e-11)
    ATAN = (-0.33333333333333326, 0.1999999999999767, -0.14285714285388112, 0.11111111088183394, -0.09090908144707288, 0.07692282762285692,
            -0.06666226805705716, 0.05877022226596615, -0.05218406884738326, 0.04503558574201498, -0.0334746476140931, 0.015195325084102566)
    ASIN = (0.16666666666666763, 0.07499999999970265, 0.04464285717511812, 0.03038194268373381, 0.02237221565727817, 0.01735160014225364,
            0.013980960888181558, 0.011397780297118923, 0.010786506376125696, 0.003683122820593159, 0.021763312289817278, -0.02107703907497912,
            0.03267673695538838)
%>
//@ clnn_reduced_ clnn_sin clnn_cos clnn_tan
<%math:own_double>
/* x = quadrant * pi/2 + r + *low with |r| <= pi/4, for |x| <= 2^30 */
CLNN_FN F clnn_reduced_(F x, F* low, I* quadrant) {
    const F t = fma(x, (F)(0.6366197723675814), (F)(0x1.8p52)), k = t - 0x1.8p52;   /* rounded; rint is no instruction in PoCL */
    const F a = fma(k, (F)(-1.5707963267948966), x), h = k * 6.123233995736766e-17, h_low = fma(k, (F)(6.123233995736766e-17), -h), r = a - h;
    *quadrant = as_I(t);                    /* its low bits */
    *low = fma(k, (F)(1.4973849048591698e-33), ((a - r) - h) - h_low);
    return r;
}
CLNN_FN F clnn_sin_part_(F r, F low) {
    const F z = r * r;
    return copysign(r + fma(r * z, ${math.module.horner("z", SIN, "")}, low), r);
}
CLNN_FN F clnn_cos_part_(F r, F low) {
    const F z = r * r, h = z * 0.5, w = 1.0 - h;
    return w + (((1.0 - w) - h) + fma(z * z, ${math.module.horner("z", COS, "")}, -r * low));
}
CLNN_FN F clnn_turned_(F r, F low, I q) {   /* sin(r + low + q pi/2) */
    const F v = select(clnn_sin_part_(r, low), clnn_cos_part_(r, low), (I)((q & 1) != 0));
    return as_F(as_U(v) ^ (as_U(q & 2) << 62));
}
CLNN_FN F clnn_slope_(F r, F low, I q) {    /* tan(r + low + q pi/2) */
    const F s = clnn_sin_part_(r, low), c = clnn_cos_part_(r, low);
    const I odd = (I)((q & 1) != 0);
    return select(s, -c, odd) / select(c, s, odd);
}
</%math:own_double>
% for name, turned in [("sin", "clnn_turned_(r, low, q)"), ("cos", "clnn_turned_(r, low, q + 1)"), ("tan", "clnn_slope_(r, low, q)")]:
//@ clnn_${name}
% if USE_FP64:
#ifdef CLNN_OWN_MATH
static inline __attribute__((overloadable)) double clnn_${name}(double x) {
    if (!(fabs(x) <= 0x1p30)) return ${name}(x);
    long q;
    double low, r = clnn_reduced_(x, &low, &q);
    return ${turned};
}
static inline __attribute__((overloadable)) double8 clnn_${name}(double8 x) {
    if (any(!(fabs(x) <= 0x1p30))) return (double8)(${", ".join(f"clnn_{name}(x.s{i})" for i in range(8))});
    long8 q;
    double8 low, r = clnn_reduced_(x, &low, &q);
    return ${turned};
}
#endif
% endif
% endfor
//@ clnn_atan_ clnn_atan clnn_atan2
<%math:own_double>
/* the arcus tangent of low / high, 0 <= low <= high; at steep places pi/2 less it */
CLNN_FN F clnn_atan_(F low, F high, I steep) {
    const I big = (I)(low > 0.41421356237309503 * high);
    const F q = select(low, low - high, big) / select(high, low + high, big), r = select(q, -q, steep), z = r * r;
    const F turn = select((F)(0.0), (F)(0.5), big), part = select(turn, 1.0 - turn, steep);      /* of pi/2 */
    return fma(part, (F)(1.5707963267948966), r + fma(r * z, ${math.module.horner("z", ATAN, "")}, part * 6.123233995736766e-17));
}
</%math:own_double>
//@ clnn_atan
<%math:own_double>
CLNN_FN F clnn_atan(F x) {
    const F a = fabs(x);
    const I big = (I)(a > 1.0), end = (I)(a > 1e300);
    const F low = select(select(a, (F)(1.0), big), (F)(0.0), end), p = clnn_atan_(low, select((F)(1.0), a, big & ~end), big);
    return copysign(select(p, x, (I)(x != x)), x);
}
</%math:own_double>
//@ clnn_atan2
<%math:own_double>
CLNN_FN F clnn_atan2(F y, F x) {
    const F a = fabs(x), b = fabs(y);
    const I steep = (I)(b > a);
    const F high = select(a, b, steep), low = select(b, a, steep);
    F scale = select((F)(1.0), (F)(0.0625), (I)(high > 1e306));
    scale = select(scale, (F)(0x1p60), (I)(high < 1e-280));
    const I same = (I)(low == high);  /* also both infinite; 0 / 0 is 0 here */
    const F l = select(low * scale, select((F)(1.0), (F)(0.0), (I)(high == 0.0)), same);
    F p = clnn_atan_(l, select(high * scale, (F)(1.0), same), steep);
    p = select(p, 3.141592653589793 - (p - 1.2246467991473532e-16), (I)(as_I(x) < 0));
    p = copysign(p, y);
    return select(select(p, x, (I)(x != x)), y, (I)(y != y));
}
</%math:own_double>
//@ clnn_asin_ clnn_asin clnn_acos
<%math:own_double also="CLNN_INTEL_CPU">
/* the arcus sine of a where a <= 1/2, else that of sqrt((1 - a) / 2): s and what is to be added to it */
CLNN_FN F clnn_asin_(F a, F* s) {
    const I big = (I)(a > 0.5);
    const F half_rest = fma(a, (F)(-0.5), (F)(0.5)), z = select(a * a, half_rest, big);
    *s = select(a, sqrt(half_rest), big);
    return *s * z * ${math.module.horner("z", ASIN, "")};
}
</%math:own_double>
//@ clnn_asin
<%math:own_double>
CLNN_FN F clnn_asin(F x) {
    const F a = fabs(x);
    F s, p = clnn_asin_(a, &s);
    return copysign(select(s + p, 1.5707963267948966 - (2.0 * (s + p) - 6.123233995736766e-17), (I)(a > 0.5)), x);
}
</%math:own_double>
//@ clnn_acos
<%math:own_double also="CLNN_INTEL_CPU">
CLNN_FN F clnn_acos(F x) {
    const F a = fabs(x);
    const I below = (I)(x < 0.0);
    F s, p = clnn_asin_(a, &s);
    const F small = 1.5707963267948966 - (copysign(s, x) - (6.123233995736766e-17 - copysign(p, x)));
    const F large = select(2.0 * (s + p), 3.141592653589793 - (2.0 * (s + p) - 1.2246467991473532e-16), below);
    return select(small, large, (I)(a > 0.5));
}
</%math:own_double>
//@ clnn_hypot
<%math:own_double also="CLNN_INTEL_CPU">
CLNN_FN F clnn_hypot(F x, F y) {
    const F a = fabs(x), b = fabs(y);
    const I steep = (I)(b > a);
    const F high = select(a, b, steep), low = select(b, a, steep), r = low / select(high, (F)(1.0), (I)(high == 0.0));
    F p = high * sqrt(fma(r, r, (F)(1.0)));
    p = select(p, a + b, (I)(a + b != a + b));
    return select(p, (F)(INFINITY), (I)((a == INFINITY) | (b == INFINITY)));
}
</%math:own_double>
% for name, lines in math.module.BY_BITS.items():
//@ clnn_${name}
<%math:own_double also="${math.module.MESA_TOO if name == 'copysign' else 'CLNN_INTEL_CPU'}">
CLNN_FN F clnn_${name}(F x, F y) {
    ${"\n    ".join(lines)}
}
</%math:own_double>
% endfor
