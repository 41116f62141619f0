## Functions that OpenCL C lacks: integer powers, digamma, trigamma, the inverse error function. Overloaded for float and double.
## digamma and its derivatives trigamma, tetragamma: recurrence up to x >= 6 or 10, then the asymptotic series (Abramowitz & Stegun 6.3.18, 6.4.11), reflection below 0.
## erfinv: Giles, "Approximating the erfinv function" (2010), refined by Newton's method.
<%!
    OV = "static inline __attribute__((overloadable))"
    # coefficients of erfinv in its middle and in its tail
    ERFINV = [("3.43273939e-07", "0.000100950558"), ("-3.5233877e-06", "0.00134934322"), ("-4.39150654e-06", "-0.00367342844"), ("0.00021858087", "0.00573950773"),
              ("-0.00125372503", "-0.0076224613"), ("-0.00417768164", "0.00943887047"), ("0.246640727", "1.00167406"), ("1.50140941", "2.83297682")]
%>
//@ clnn_ipow
% for I in ("int", "long"):
${OV} ${I} clnn_ipow(${I} base, ${I} exponent) {
    ${I} r = 1;
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) ? -1 : 1) : 0;
    while (exponent) {
        if (exponent & 1) r *= base;
        base *= base;
        exponent >>= 1;
    }
    return r;
}
% endfor
% for F, s in [("float", "f")] + ([("double", "")] if USE_FP64 else []):
<% own = "clnn_" if F == "float" else "" %>\
//@ clnn_digamma
% if F == "float":
/* without a branch: six steps up where the series needs them, two to a division */
static inline __attribute__((overloadable)) float clnn_digamma(float x) {
    const float whole = floor(x), part = x - whole, t = part > 0.5f ? part - 1 : part, a = x < 0 ? 1 - x : x;
    const int up = a < 6;
    const float s = up ? a : 6.0f, y = up ? a + 6 : a, z = 1 / (y * y);
    const float steps = (2 * s + 1) / (s * (s + 1)) + (2 * s + 5) / ((s + 2) * (s + 3)) + (2 * s + 9) / ((s + 4) * (s + 5));
    const float r = clnn_log(y) - 0.5f / y - z * (0.0833333333f - z * (0.00833333333f - z * (0.00396825397f - z * (0.00416666667f - z * 0.00757575758f))))
        - (up ? steps : 0.0f) - (x < 0 ? 3.14159265f / clnn_tan(3.14159265f * (x < 0 ? t : 0.25f)) : 0.0f);
    return x == 0 ? copysign(INFINITY, -x) : x < 0 && x == whole ? NAN : r;
}
% else:
${OV} ${F} clnn_digamma(${F} x) {
    if (x == 0) return copysign((${F})INFINITY, -x);
    ${F} shift = 0;
    if (x < 0) {
        if (x == floor(x)) return NAN;
        shift = -(${F})3.14159265358979323846${s} / ${own}tan((${F})3.14159265358979323846${s} * (x - floor(x)));
        x = 1 - x;
    }
    for (int i = 0; i < 10; i++) {
        if (x < 10) {
            shift -= 1 / x;
            x += 1;
        }
    }
    ${F} z = 1 / (x * x);
    return shift + ${own}log(x) - (${F})0.5${s} / x - z * ((${F})0.0833333333333333333${s} - z * ((${F})0.00833333333333333333${s}
        - z * ((${F})0.00396825396825396825${s} - z * ((${F})0.00416666666666666667${s} - z * (${F})0.00757575757575757576${s}))));
}
% endif
//@ clnn_trigamma
${OV} ${F} clnn_trigamma(${F} x) {
    ${F} sign = 1, sum = 0;
    if (x < (${F})0.5${s}) {
        ${F} t = (${F})3.14159265358979323846${s} / ${own}sin((${F})3.14159265358979323846${s} * x);
        sign = -1;
        sum = -t * t;
        x = 1 - x;
    }
    for (int i = 0; i < 6; i++) {
        sum += 1 / (x * x);
        x += 1;
    }
    ${F} z = 1 / (x * x);
    sum += (1 + 1 / (2 * x) + z * ((${F})0.166666666666666667${s} - z * ((${F})0.0333333333333333333${s}
        - z * ((${F})0.0238095238095238095${s} - z * (${F})0.0333333333333333333${s})))) / x;
    return sign * sum;
}
//@ clnn_tetragamma
${OV} ${F} clnn_tetragamma(${F} x) {
    ${F} sum = 0;
    if (x < (${F})0.5${s}) {
        const ${F} pi = (${F})3.14159265358979323846${s}, t = ${own}sin(pi * x);
        sum = -2 * pi * pi * pi * ${own}cos(pi * x) / (t * t * t);
        x = 1 - x;
    }
    for (int i = 0; i < 8; i++) {
        sum -= 2 / (x * x * x);
        x += 1;
    }
    ${F} z = 1 / (x * x);
    return sum - z * (1 + 1 / x + z * ((${F})0.5${s} - z * ((${F})0.166666666666666667${s} - z * ((${F})0.166666666666666667${s}
        - z * ((${F})0.3${s} - z * (${F})0.833333333333333333${s})))));
}
//@ clnn_erfinv
${OV} ${F} clnn_erfinv(${F} y) {
    ${F} w = -${"clnn_log" if F == "float" else "log"}((1 - y) * (1 + y));
    const int tail = w >= 5;
    w = tail ? sqrt(w) - 3 : w - (${F})2.5${s};
    ${F} p = tail ? (${F})-0.000200214257${s} : (${F})2.81022636e-08${s};
% for c, t in ERFINV:
    p = fma(p, w, tail ? (${F})${t}${s} : (${F})${c}${s});
% endfor
    ${F} x = p * y;
% if F == "double":
    for (int i = 0; i < 3; i++) x -= (erf(x) - y) * 0.88622692545275801 * exp(x * x);
% endif
    x = fabs(y) < 1 ? x : (${F})NAN;
    return fabs(y) == 1 ? y * (${F})INFINITY : x;
}
% endfor
//@ clnn_gcd
% for I in ("int", "long"):
${OV} ${I} clnn_gcd(${I} a, ${I} b) {
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        const ${I} r = a % b;
        a = b;
        b = r;
    }
    return a;
}
% endfor
## Bessel I0, I1 and the scaled exp(-|x|) I: the power series in x*x/4 up to 12 (30 for double), else Hankel's asymptotic series (Abramowitz &
## Stegun 9.6.10, 9.7.1). Both are computed without a branch, so that loops around them can be vectorised.
<%!
    from fractions import Fraction
    from math import factorial

    def power_series(order, terms):
        return [float(Fraction(1, factorial(k) * factorial(k + order))) for k in range(terms)]

    def hankel_series(order, terms):
        out = [Fraction(1)]
        for k in range(1, terms):
            out.append(-out[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
        return [float(c) for c in out]
%>
% for F, s in [("float", "f")] + ([("double", "")] if USE_FP64 else []):
<% own = "clnn_" if F == "float" else "" %>\
<% limit, near_terms, far_terms = (12, 21, 12) if F == "float" else (30, 80, 20) %>\
% for order in (0, 1):
<% near, far = power_series(order, near_terms - order), hankel_series(order, far_terms) %>\
% for name, scaled in ((f"clnn_i{order}", False), (f"clnn_i{order}e", True)):
//@ ${name}
${OV} ${F} ${name}(${F} x) {
    const ${F} a = fabs(x), small = min(a, (${F})${limit}), large = max(a, (${F})${limit}), q = small * small / 4, u = 1 / large;
    ${F} near = (${F})${repr(near[-1])}${s}, far = (${F})${repr(far[-1])}${s};
% for c in near[-2::-1]:
    near = fma(near, q, (${F})${repr(c)}${s});
% endfor
% for c in far[-2::-1]:
    far = fma(far, u, (${F})${repr(c)}${s});
% endfor
% if order == 1:
    near *= (x < 0 ? -small : x > 0 ? small : x) / 2;        /* keeps -0 */
    far = x < 0 ? -far : far;
% endif
    far /= sqrt(2 * (${F})3.14159265358979323846${s} * large);
% if scaled:
    near *= ${"clnn_exp" if F == "float" else "exp"}(-small);
% else:
    const ${F} half_way = ${"clnn_exp" if F == "float" else "exp"}(large / 2);
    far = far * half_way * half_way;
% endif
    return x != x ? x : a <= ${limit} ? near : far;
}
% endfor
% endfor
% endfor
