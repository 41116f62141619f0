## Functions that OpenCL C lacks: integer powers, digamma, trigamma, the inverse error function. Overloaded for float and double.
## digamma and its derivatives trigamma, tetragamma: recurrence up to x >= 6 or 10, then the asymptotic series (Abramowitz & Stegun 6.3.18, 6.4.11), reflection below 0.
## erfinv: Giles, "Approximating the erfinv function" (2010), refined by Newton's method.
<%! OV = "static inline __attribute__((overloadable))" %>
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
//@ clnn_digamma
${OV} ${F} clnn_digamma(${F} x) {
    if (x == 0) return copysign((${F})INFINITY, -x);
    ${F} shift = 0;
    if (x < 0) {
        if (x == floor(x)) return NAN;
        shift = -(${F})3.14159265358979323846${s} / tan((${F})3.14159265358979323846${s} * (x - floor(x)));
        x = 1 - x;
    }
    for (int i = 0; i < 10; i++) {
        if (x < 10) {
            shift -= 1 / x;
            x += 1;
        }
    }
    ${F} z = 1 / (x * x);
    return shift + log(x) - (${F})0.5${s} / x - z * ((${F})0.0833333333333333333${s} - z * ((${F})0.00833333333333333333${s}
        - z * ((${F})0.00396825396825396825${s} - z * ((${F})0.00416666666666666667${s} - z * (${F})0.00757575757575757576${s}))));
}
//@ clnn_trigamma
${OV} ${F} clnn_trigamma(${F} x) {
    ${F} sign = 1, sum = 0;
    if (x < (${F})0.5${s}) {
        ${F} t = (${F})3.14159265358979323846${s} / sin((${F})3.14159265358979323846${s} * x);
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
        const ${F} pi = (${F})3.14159265358979323846${s}, t = sin(pi * x);
        sum = -2 * pi * pi * pi * cos(pi * x) / (t * t * t);
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
    if (!(fabs(y) < 1)) return fabs(y) == 1 ? copysign((${F})INFINITY, y) : (${F})NAN;
    ${F} w = -log((1 - y) * (1 + y)), p;
    if (w < 5) {
        w -= (${F})2.5${s};
        p = (${F})2.81022636e-08${s};
% for c in ("3.43273939e-07", "-3.5233877e-06", "-4.39150654e-06", "0.00021858087", "-0.00125372503", "-0.00417768164", "0.246640727", "1.50140941"):
        p = fma(p, w, (${F})${c}${s});
% endfor
    } else {
        w = sqrt(w) - 3;
        p = (${F})-0.000200214257${s};
% for c in ("0.000100950558", "0.00134934322", "-0.00367342844", "0.00573950773", "-0.0076224613", "0.00943887047", "1.00167406", "2.83297682"):
        p = fma(p, w, (${F})${c}${s});
% endfor
    }
    ${F} x = p * y;
% if F == "double":
    for (int i = 0; i < 3; i++) x -= (erf(x) - y) * 0.88622692545275801 * exp(x * x);
% endif
    return x;
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
## Bessel I0, I1: power series for small arguments, else Abramowitz & Stegun 9.8 asymptotics with refined terms.
% for F, s in [("float", "f")] + ([("double", "")] if USE_FP64 else []):
% for order in (0, 1):
//@ clnn_i${order}
${OV} ${F} clnn_i${order}(${F} x) {
    const ${F} a = fabs(x);
    if (a < ${"12" if F == "float" else "30"}) {
        const ${F} q = a * a / 4;
        ${F} term = ${"1" if order == 0 else "a / 2"}, sum = term;
        for (int k = 1; k < ${"40" if F == "float" else "90"}; k++) {
            term *= q / ((${F})k * (k + ${order}));
            sum += term;
        }
        return ${"sum" if order == 0 else "copysign(sum, x)"};
    }
    ${F} term = 1, sum = 1;
    for (int k = 1; k < 20; k++) {
        term *= -((${F})(${4 * order * order}) - (2 * k - 1) * (2 * k - 1)) / (8 * a * k);
        sum += term;
    }
    const ${F} r = exp(a / 2) * (exp(a / 2) / sqrt(2 * (${F})3.14159265358979323846${s} * a)) * sum;
    return ${"r" if order == 0 else "copysign(r, x)"};
}
% endfor
% endfor
