## Bessel functions J, Y of orders 0 and 1, scaled K, and the scaled complementary error function. Overloaded for float and double.
##   J, Y of floats, within 3e-7 of the larger of 1 and the value: below 8 polynomials in x x (of Y what Neumann's series leaves beside its
##   logarithm), above in 1 / (x x) for the amplitudes of cosine and sine; fitted for this file at Chebyshev's points. Without a branch.
##   J, Y of doubles below 25: backward recurrence from an order where J vanishes, normalised by 1 = J0 + 2 J2 + 2 J4 + ...; Y by Neumann's series
##   (Abramowitz & Stegun 9.1.88) and its derivative; above 25 Hankel's expansion (9.2.5)
##   K of floats: up to 1 its series with the logarithm, in x x / 4; above in 2 / x - 1. erfcx of floats: in (x - 2) / (x + 2), after Shepherd and
##   Laframboise (1981); both fitted for this file, without a branch, within 4 ulp
##   K of doubles: integral of exp(-x cosh t) cosh(n t) by the trapezoidal rule, which converges like exp(-10 / step) and exp(-20 / (x step^2))
<%!
    OV = "static inline __attribute__((overloadable))"
    # in z = x x / 32 - 1
    J_NEAR = ((0.0458296648, 0.930301247, -0.648469277, -0.808088808, 1.0383794, -0.50746804, 0.145989129, -0.028472738, 0.00405753759, -0.00044351363,
               3.89537976e-05, -2.74355559e-06),
              (-0.058143828, 0.0810586591, 0.151516652, -0.259594839, 0.158583762, -0.0547459631, 0.0124568257, -0.00202870848, 0.000249472777,
               -2.4376281e-05, 1.88781248e-06))
    Y_NEAR = ((-0.362027343, -0.417920742, 1.36094565, -0.212459993, -0.619340679, 0.448246035, -0.154537239, 0.0338028886, -0.00523417423,
               0.000610381931, -5.65758454e-05, 4.16411391e-06),
              (0.0451026621, -0.207608576, 0.090227506, 0.120520314, -0.126419946, 0.0543903407, -0.0141319415, 0.00252662146, -0.000333687587,
               3.45754289e-05, -2.80756431e-06))
    # in u = 64 / (x x); the second ones times 8 / x
    FAR = (((1.0, -0.00109863239, 2.73757235e-05, -2.1601136e-06, 3.09383142e-07, -4.02641559e-08),
            (-0.015625, 0.000143050852, -6.92734097e-06, 8.08163399e-07, -1.46716253e-07, 2.14681279e-08)),
           ((1.0, 0.00183105422, -3.51983088e-05, 2.55479619e-06, -3.52458359e-07, 4.51425397e-08),
            (0.046875, -0.000200271263, 8.4670805e-06, -9.33196128e-07, 1.64647572e-07, -2.37499602e-08)))
    # I0, I1 / x and what the logarithm leaves of K0 and x K1, in x x / 4; then sqrt(x) exp(x) K in 2 / x - 1
    I_NEAR = ((1.0, 1.0, 0.250000008, 0.0277777301, 0.00173624694, 6.92463261e-05, 2.07151094e-06),
              (0.5, 0.25, 0.0416666672, 0.00347221926, 0.000173619554, 5.77471575e-06, 1.46659539e-07))
    K_NEAR = ((-0.577215665, 0.422784334, 0.2306961, 0.034892061, 0.00261506225, 0.000118079955, 3.90044952e-06),
              (1.0, 0.154431344, -0.672784555, -0.181573853, -0.0191859281, -0.00110991341, -4.53301784e-05))
    K_FAR = ((1.19015718, -0.052279062, 0.00806748671, -0.00190743214, 0.000568124305, -0.000202390979, 8.05325592e-05, -2.12133724e-05,
              6.48165633e-06, -1.54245549e-05, 8.79957438e-06),
             (1.46155698, 0.187978967, -0.0158529728, 0.00311084935, -0.00084307483, 0.000282147644, -0.000107534385, 2.8830367e-05,
              -8.97175598e-06, 1.8873528e-05, -1.06075607e-05))
    ERFCX = (1.27697838, -0.0927638225, -0.166030384, 0.164051127, -0.0542202666, -0.00803234488, 0.00872460764, 0.00126329106, -0.00146407091,
             -0.000434387897, 0.00022157155, 0.000124543418, -2.02559894e-05, -1.88227567e-05)

    def horner(var, coefficients):
        text = f"{coefficients[-1]}f"
        for c in reversed(coefficients[:-1]):
            text = f"fma({text}, {var}, {c}f)"
        return text
%>
% for F, s in [("float", "f")] + ([("double", "")] if USE_FP64 else []):
<% pi, gamma = f"({F})3.14159265358979323846{s}", f"({F})0.57721566490153286061{s}" %>
% if F == "double":
//@ clnn_bessel_far_ clnn_bessel_near_ clnn_j0 clnn_j1 clnn_y0 clnn_y1
/* x > 25: order 0 or 1; second kind when second */
${OV} ${F} clnn_bessel_far_(${F} x, int order, int second) {
    const ${F} mu = 4 * order * order;
    ${F} p = 0, q = 0, term = 1;
    for (int k = 0; k < 16; k++) {
        const ${F} signed_ = (k & 2) ? -term : term;
        if (k & 1) q += signed_; else p += signed_;
        term *= (mu - (2 * k + 1) * (2 * k + 1)) / ((k + 1) * 8 * x);
    }
    const ${F} c = clnn_cos(x), t = clnn_sin(x), r = 1 / sqrt(${pi} * x);
    /* cosine and sine of x - pi/4 or x - 3 pi/4, times sqrt 2 */
    const ${F} a = order ? t - c : c + t, b = order ? -(c + t) : t - c;
    return r * (second ? p * b + q * a : p * a - q * b);
}
//@ clnn_bessel_near_ clnn_j0 clnn_j1 clnn_y0 clnn_y1
/* 0 < x <= 25; kind 0..3: J0, J1, Y0, Y1 */
${OV} ${F} clnn_bessel_near_(${F} x, int kind) {
    if (x < ${"1e-3f" if F == "float" else "1e-6"}) {
        const ${F} l = clnn_log(x / 2) + ${gamma};
        return kind == 0 ? 1 - x * x / 4 : kind == 1 ? x / 2 : kind == 2 ? 2 / ${pi} * l : -2 / (${pi} * x) + x / ${pi} * (l - (${F})0.5${s});
    }
    ${F} above = 0, now = ${"1e-30f" if F == "float" else "1e-250"}, norm = 0, y0 = 0, y1 = 0;
    const int start = 2 * ((int)(x + ${"16 + 3 * cbrt(x)" if F == "float" else "30 + 5 * cbrt(x)"}) / 2);
    for (int n = start; n > 0; n--) {                               /* now is J_n, above J_(n + 1) */
        if (n & 1) {
            const int k = n / 2;
            if (k) y1 += ((k & 1) ? -now : now) * (2 * k + 1) / ((${F})k * (k + 1));
        } else {
            const int k = n / 2;
            norm += 2 * now;
            y0 += ((k & 1) ? now : -now) / k;
        }
        const ${F} below = 2 * n / x * now - above;
        above = now;
        now = below;
        if (fabs(now) > ${"1e15f" if F == "float" else "1e100"}) {
            const ${F} small = ${"1e-15f" if F == "float" else "1e-100"};
            above *= small; now *= small; norm *= small; y0 *= small; y1 *= small;
        }
    }
    norm = 1 / (norm + now);
    const ${F} j0 = now * norm, j1 = above * norm, l = clnn_log(x / 2) + ${gamma};
    if (kind < 2) return kind ? j1 : j0;
    return kind == 2 ? 2 / ${pi} * (l * j0 + 2 * y0 * norm) : 2 / ${pi} * ((l - 1) * j1 - j0 / x - y1 * norm);
}
% endif
% for name, order, second in (("j0", 0, 0), ("j1", 1, 0), ("y0", 0, 1), ("y1", 1, 1)):
//@ clnn_${name}
${OV} ${F} clnn_${name}(${F} x) {
% if F == "float":
    const float a = fabs(x), near = a < 8.0f ? a : 8.0f, far = a > 8.0f ? a : 8.0f;
    const float z = fma(near, near * 0.03125f, -1.0f), w = 8.0f / far, u = w * w;
    const float small = ${horner("z", J_NEAR[order])}${" * near" if order else ""};
    const float p = ${horner("u", FAR[order][0])}, q = w * ${horner("u", FAR[order][1])};
    const float c = clnn_cos(far), t = clnn_sin(far), r = 0.564189584f / sqrt(far);
    const float e = ${"t - c, f = -(c + t)" if order else "c + t, f = t - c"};         /* cosine and sine of x - pi/4 or x - 3 pi/4, times sqrt 2 */
% if second:
    const float more = ${horner("z", Y_NEAR[order])}${" * near" if order else ""};
    const float series = fma(0.636619772f * (clnn_log(near) - 0.693147181f), small, ${"more - 0.636619772f / near" if order else "more"});
    const float value = a > 8.0f ? r * (p * f + q * e) : series;
    return x == 0 ? -INFINITY : x > 0 ? value : NAN;
% else:
    const float value = a > 8.0f ? r * (p * e - q * f) : small;
    return x != x ? x : ${"x == 0 ? x : x < 0 ? -value : value" if order else "x == 0 ? 1.0f : value"};
% endif
% elif second:
    if (x == 0) return -INFINITY;
    if (!(x > 0)) return NAN;
    return x > 25 ? clnn_bessel_far_(x, ${order}, 1) : clnn_bessel_near_(x, ${2 + order});
% else:
    const ${F} a = fabs(x);
    if (isnan(x) || x == 0) return x${" == 0 ? 1 : x" if order == 0 else ""};
    const ${F} r = a > 25 ? clnn_bessel_far_(a, ${order}, 0) : clnn_bessel_near_(a, ${order});
    return ${"r" if order == 0 else "x < 0 ? -r : r"};
% endif
}
% endfor
% for order in (0, 1):
//@ clnn_k${order}e
${OV} ${F} clnn_k${order}e(${F} x) {
% if F == "float":
    const float near = x < 1.0f ? x : 1.0f, far = x > 1.0f ? x : 1.0f, z = near * near * 0.25f, u = 2.0f / far - 1.0f;
    const float l = clnn_log(near * 0.5f), i = ${horner("z", I_NEAR[order])}, k = ${horner("z", K_NEAR[order])};
    const float small = clnn_exp(near) * ${"fma(l * near, i, k / near)" if order else "fma(-l, i, k)"};
    const float value = x > 1.0f ? ${horner("u", K_FAR[order])} / sqrt(far) : small;
    return x == 0 ? INFINITY : x > 0 ? value : NAN;
% else:
    if (x == 0) return INFINITY;
    if (!(x > 0)) return NAN;
    if (isinf(x)) return 0;
    const double step = fmin(0.125, 0.7 / sqrt(x));
    /* where the integrand has vanished, by two bounds of acosh(1 + 20 / x) */
    const double end = fmin(clnn_log(2 * (42 / x + 1)) ${"+ 1" if order else ""}, sqrt(100 / x));
    double sum = 0.5;
    for (double t = step; t < end; t += step) {
        const double half_ = clnn_sinh(t / 2);
        sum += clnn_exp(-2 * x * half_ * half_)${" * fma(2 * half_, half_, 1)" if order else ""};
    }
    return sum * step;
% endif
}
% endfor
//@ clnn_erfcx
${OV} ${F} clnn_erfcx(${F} x) {
% if F == "float":
    const float a = fabs(x), b = a < 1e18f ? a : 1e18f, t = (b - 2.0f) / (b + 2.0f);
    const float right = ${horner("t", ERFCX)} / fma(a, 2.0f, 1.0f);
    const float c = a < 10.0f ? a : 10.0f, h = c * c, e = clnn_exp(h);                 /* the square's rounding error, times e, would be seen */
    const float left = e < 1e38f ? fma(2.0f * e, fma(c, c, -h), 2.0f * e - right) : 2.0f * e;
    return x != x ? x : x < 0 ? left : right;
% else:
    const double a = fabs(x), c = a < 28 ? a : 28, h = c * c, right = clnn_erfcx_part_(a < 1e300 ? a : 1e300), e = clnn_exp(h);
    const double left = e < INFINITY ? fma(2 * e, fma(c, c, -h), 2 * e - right) : e;
    return x != x ? x : x < 0 ? left : right;
% endif
}
% endfor
//@
