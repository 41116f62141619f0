## Functions that OpenCL C lacks: integer powers, parts of a number, digamma, trigamma, the inverse error function. Overloaded for float and double.
## digamma and its derivatives trigamma, tetragamma: recurrence up to x >= 6 or 10, then the asymptotic series (Abramowitz & Stegun 6.3.18, 6.4.11; of doubles
## coefficients that were fitted to it), reflection below 0.
## erfinv: Giles, "Approximating the erfinv function" (2010), refined by Halley's method.
<%namespace name="math" file="/common/math.cl.mako"/>
<%!
    OV = "static inline __attribute__((overloadable))"
    DIGAMMA = dict(float=(0.0833333333, -0.00833333333, 0.00396825397, -0.00416666667, 0.00757575758),
                   double=(0.08333333333333298, -0.008333333332919194, 0.0039682537990109535, -0.004166633038815801, 0.007572025082856321,
                           -0.020846951886962353, 0.07357940134616674, -0.21479230050331183))
    # coefficients of erfinv(y) / y in its middle, in w - 5/2, and in its tail, in the root of w, less 3 for floats and less 4 for doubles
    MIDDLE = ("2.81022636e-08", "3.43273939e-07", "-3.5233877e-06", "-4.39150654e-06", "0.00021858087", "-0.00125372503", "-0.00417768164", "0.246640727", "1.50140941")
    TAIL = dict(float=("-0.000200214257", "0.000100950558", "0.00134934322", "-0.00367342844", "0.00573950773", "-0.0076224613", "0.00943887047", "1.00167406",
                       "2.83297682"),
                double=("1.7986198619001027e-05", "-7.88584578632996e-05", "8.941620758511236e-05", "-2.8151387622013794e-05", "0.00025851235996550914",
                        "-0.000941164454476608", "0.0012915591798381115", "1.0095105163577331", "3.8397816009266386"))
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
//@ clnn_digamma
% for types in math.module.VECTORS + (math.module.DOUBLES if USE_FP64 else []):
<% s, series = ("f", DIGAMMA["float"]) if "float" in types[0] else ("", DIGAMMA["double"]) %>\
<%math:typed types="${types}">
/* without a branch: six steps up where the series needs them, two to a division; doubles have more of the series */
${OV} F clnn_digamma(F x) {
    const F whole = floor(x), part = x - whole, t = select(part, x - (whole + 1), (I)(part > (F)0.5${s}));
    const I below = (I)(x < 0);
    const F a = select(x, 1 - x, below);
    const I up = (I)(a < 6);
    const F b = select((F)6, a, up), y = select(a, a + 6, up), z = 1 / (y * y);
    const F steps = (2 * b + 1) / (b * (b + 1)) + (2 * b + 5) / ((b + 2) * (b + 3)) + (2 * b + 9) / ((b + 4) * (b + 5));
    F sum = (F)${repr(series[-1])}${s};
% for c in series[-2::-1]:
    sum = fma(sum, z, (F)${repr(c)}${s});
% endfor
    const F slope = (F)3.14159265358979323846${s} / clnn_tan((F)3.14159265358979323846${s} * select((F)0.25${s}, t, below));
    const F r = clnn_log(y) - (F)0.5${s} / y - z * sum - select((F)0, steps, up) - select((F)0, slope, below);
    return select(select(r, (F)NAN, below & (I)(x == whole)), copysign((F)INFINITY, -x), (I)(x == 0));
}
</%math:typed>
% endfor
//@ clnn_erfinv
% for types in math.module.VECTORS + (math.module.DOUBLES if USE_FP64 else []):
<% kind, s = ("float", "f") if "float" in types[0] else ("double", "") %>\
<%math:typed types="${types}">
${OV} F clnn_erfinv(F y) {
    const F size = fabs(y), l = -clnn_log((1 - y) * (1 + y));
    const I tail = (I)(l >= 5);
    const F w = select(l - (F)2.5${s}, sqrt(l) - ${3 if s else 4}, tail);
    F p = select((F)${MIDDLE[0]}${s}, (F)${TAIL[kind][0]}${s}, tail);
% for c, t in zip(MIDDLE[1:], TAIL[kind][1:]):
    p = fma(p, w, select((F)${c}${s}, (F)${t}${s}, tail));
% endfor
    F x = p * y;
% if not s:
    /* one step of Halley's, as the second derivative of erf is -2 x times the first; what is left of 1 tells more than what there is */
    const F a = fabs(x), e = select(clnn_erf(a) - size, (1 - size) - clnn_erfc(a), (I)(size > 0.5)), step = e * 0.88622692545275801 * clnn_exp(a * a);
    x = copysign(a - step / fma(a, step, (F)1), y);
% endif
    return select(select((F)NAN, x, (I)(size < 1)), y * (F)INFINITY, (I)(size == 1));
}
</%math:typed>
% endfor
% for F, s in [("float", "f")] + ([("double", "")] if USE_FP64 else []):
//@ clnn_trigamma
${OV} ${F} clnn_trigamma(${F} x) {
    ${F} sign = 1, sum = 0;
    if (x < (${F})0.5${s}) {
        const ${F} t = (${F})3.14159265358979323846${s} / clnn_sin((${F})3.14159265358979323846${s} * (x - rint(x)));    /* exact near the poles */
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
    if (x <= 0 && x == floor(x)) return -INFINITY;              /* as PyTorch's zeta has it: sin(pi x) is not exactly 0 there */
    ${F} sum = 0;
    if (x < (${F})0.5${s}) {
        const ${F} pi = (${F})3.14159265358979323846${s}, r = x - rint(x), t = clnn_sin(pi * r);
        sum = -2 * pi * pi * pi * clnn_cos(pi * r) / (t * t * t);
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
% endfor
% for F, I, digits, least, low, mask, half in [("float", "int", 23, "0x1p-126f", "0x1p24f", "0x807fffff", "0x3f000000")] + \
        ([("double", "long", 52, "0x1p-1022", "0x1p54", "0x800fffffffffffffL", "0x3fe0000000000000L")] if USE_FP64 else []):
<% bias, shift = (126, 24) if F == "float" else (1022, 54) %>\
//@ clnn_exponent
${OV} int clnn_exponent(${F} x) {
    const int tiny = fabs(x) < ${least};
    const int e = (int)((as_${I}(fabs(tiny ? x * ${low} : x)) >> ${digits}) - ${bias}) - (tiny ? ${shift} : 0);
    return x == 0 || !(fabs(x) < INFINITY) ? 0 : e;
}
//@ clnn_mantissa
${OV} ${F} clnn_mantissa(${F} x) {
    const ${F} v = as_${F}((as_${I}(fabs(x) < ${least} ? x * ${low} : x) & (${I})${mask}) | ${half});
    return x == 0 || !(fabs(x) < INFINITY) ? x : v;
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
    far /= sqrt(large) * (${F})2.50662827463100050242${s};        /* sqrt(2 pi), apart from what would overflow */
% if scaled:
    near *= clnn_exp(-small);
% else:
    const ${F} half_way = clnn_exp(large / 2);
    far = far * half_way * half_way;
% endif
    return x != x ? x : a <= ${limit} ? near : far;
}
% endfor
% endfor
% endfor
