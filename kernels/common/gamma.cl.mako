## Incomplete gamma functions, gamma-distributed random numbers and their derivative, Hurwitz zeta. Overloaded for float and double.
##   P(a, x) by its power series below a + 1, Q(a, x) by its continued fraction above (Abramowitz & Stegun 6.5.29, 6.5.31); both take some sqrt(a) steps, so
##   that of a large a they are Temme's uniform expansion near x = a, of which TEMME has the coefficients by powers of 1 / a and of eta (DLMF 8.12)
##   gamma numbers: Marsaglia & Tsang, "A simple method for generating gamma variables" (2000)
##   derivatives of gamma and beta numbers by the shape a at a fixed probability: -(dP/da) / p(x), "implicit reparameterisation" (Figurnov et al., 2018)
<%!
    OV = "static inline __attribute__((overloadable))"
    TEMME = ((-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515, -571 / 261273600, -281 / 151559100, 8.29671134095308601e-7),
             (-1 / 540, -1 / 288, 25 / 9450, -0.000990226337448559671, 0.000205761316872427984, -4.01877572016460905e-7),
             (0.00413359788359788360, -0.00268132716049382716, 0.000771604938271604938), (0.000649434156378600823,))
%>
% for F, s in [("float", "f")] + ([("double", "")] if USE_FP64 else []):
<% big, large, near = (400, 200, "0.3f") if F == "float" else (4000, 100000, "0.03") %>
//@ clnn_gamma_front_ clnn_igamma_sum_ clnn_igamma_fraction_ clnn_igamma clnn_igammac
/* x^a exp(-x) / Gamma(a + 1); near x = a through log1p, where the logarithms would cancel */
${OV} ${F} clnn_gamma_front_(${F} a, ${F} x) {
    const ${F} mu = (x - a) / a;
    if (a > 10 && fabs(mu) < (${F})0.5${s}) {
        const ${F} z = 1 / (a * a), tail = (1 - z * ((${F})0.0333333333333333333${s} - z * (${F})0.00952380952380952381${s})) / (12 * a);
        return clnn_exp(a * (clnn_log1p(mu) - mu) - tail) / sqrt(2 * (${F})3.14159265358979323846${s} * a);
    }
    return clnn_exp(a * clnn_log(x) - x - clnn_lgamma(a + 1));
}
//@ clnn_igamma_sum_ clnn_igamma clnn_igammac
${OV} ${F} clnn_igamma_sum_(${F} a, ${F} x) {
    ${F} term = 1, sum = 1;
    for (int n = 1; n < ${big} && term > sum * ${"1e-8f" if F == "float" else "1e-17"}; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return sum * clnn_gamma_front_(a, x);
}
//@ clnn_igamma_fraction_ clnn_igamma clnn_igammac
${OV} ${F} clnn_igamma_fraction_(${F} a, ${F} x) {
    const ${F} tiny = ${"1e-30f" if F == "float" else "1e-300"};
    ${F} b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int n = 1; n < ${big}; n++) {
        const ${F} an = -n * (n - a);
        b += 2;
        d = an * d + b;
        d = fabs(d) < tiny ? tiny : d;
        c = b + an / c;
        c = fabs(c) < tiny ? tiny : c;
        d = 1 / d;
        h *= d * c;
        if (fabs(d * c - 1) < ${"1e-7f" if F == "float" else "1e-16"}) break;
    }
    return h * a * clnn_gamma_front_(a, x);
}
//@ clnn_igamma_near_ clnn_igamma clnn_igammac
/* P (sign -1) or Q (sign 1) for x near a large a; log(1 + mu) - mu by the series of atanh, as the logarithm would cancel */
${OV} ${F} clnn_igamma_near_(${F} a, ${F} mu, ${F} sign) {
    const ${F} q = mu / (2 + mu), z = q * q;
    const ${F} fall = mu * q - 2 * q * z * (1 / (${F})3 + z * (1 / (${F})5 + z * (1 / (${F})7 + z * (1 / (${F})9 + z * (1 / (${F})11 + z / 13)))));
    const ${F} eta = copysign(sqrt(2 * fall), mu);
    ${F} sum = 0, part;
% for row in TEMME[::-1]:
    part = ${repr(row[-1])}${s};
% for c in row[-2::-1]:
    part = fma(part, eta, (${F})${repr(c)}${s});
% endfor
    sum = sum / a + part;
% endfor
    return (${F})0.5${s} * clnn_erfc(sign * eta * sqrt(a / 2)) + sign * clnn_exp(-a * fall) * sum / sqrt(2 * (${F})3.14159265358979323846${s} * a);
}
//@ clnn_igamma
${OV} ${F} clnn_igamma(${F} a, ${F} x) {
    if (a < 0 || x < 0) return NAN;
    if (a == 0) return x > 0 ? 1 : NAN;
    if (x == 0) return 0;
    if (isinf(a)) return isinf(x) ? (${F})NAN : (${F})0;
    if (isinf(x)) return 1;
    if (a > ${large} && fabs(x - a) < ${near} * a) return clnn_igamma_near_(a, (x - a) / a, -1);
    return x < a + 1 ? clnn_igamma_sum_(a, x) : 1 - clnn_igamma_fraction_(a, x);
}
//@ clnn_igammac
${OV} ${F} clnn_igammac(${F} a, ${F} x) {
    if (a < 0 || x < 0) return NAN;
    if (a == 0) return x > 0 ? 0 : NAN;
    if (x == 0) return 1;
    if (isinf(a)) return isinf(x) ? (${F})NAN : (${F})1;
    if (isinf(x)) return 0;
    if (a > ${large} && fabs(x - a) < ${near} * a) return clnn_igamma_near_(a, (x - a) / a, 1);
    return x < a + 1 ? 1 - clnn_igamma_sum_(a, x) : clnn_igamma_fraction_(a, x);
}
//@ clnn_gamma_grad
/* dx/da of a gamma number x of shape a: the sums of the power series (or the fraction, in a fixed number of steps) carry their derivatives along */
${OV} ${F} clnn_gamma_grad(${F} a, ${F} x) {
    if (a > ${150 if F == "float" else 2000}) {                    /* Wilson & Hilferty: (x / a)^(1/3) is nearly normal */
        const ${F} w = cbrt(x / a), z = (w - 1 + 1 / (9 * a)) * 3 * sqrt(a);
        return w * w * w + 3 * a * w * w * (1 / (9 * a * a) - z / (6 * a * sqrt(a)));
    }
    const ${F} known = clnn_log(x) - clnn_digamma(a);
    if (x < a + 1) {
        ${F} term = 1, sum = 1, inverse = 1 / a, weighted = inverse;
        for (int n = 1; n < ${big} && term > sum * ${"1e-8f" if F == "float" else "1e-17"}; n++) {
            term *= x / (a + n);
            inverse += 1 / (a + n);
            sum += term;
            weighted += term * inverse;
        }
        return -x / a * (known * sum - weighted);
    }
    ${F} r = 0, dr = 0;
    for (int n = ${100 if F == "float" else 400}; n > 0; n--) {
        const ${F} an = n * (a - n), b = x + 2 * n + 1 - a + r, q = an / b;
        dr = (n - q * (dr - 1)) / b;
        r = q;
    }
    const ${F} b = x + 1 - a + r, h = 1 / b;
    return x * (h * known - (dr - 1) * h * h);
}
//@ clnn_digamma_step_ clnn_dirichlet_grad
/* digamma(a + b) - digamma(a) without cancellation: a few steps of the recurrence, then the asymptotic series */
${OV} ${F} clnn_digamma_step_(${F} a, ${F} b) {
    ${F} step = 0;
    for (int n = 0; n < ${6 if F == "float" else 12}; n++, a += 1) step += b / (a * (a + b));
    const ${F} c = a + b, p = 1 / (a * a), q = 1 / (c * c);
    const ${F} bend = (p - q) * ((${F})0.0833333333333333333${s} - (p + q) * (${F})0.00833333333333333333${s}
                                 + (p * p + p * q + q * q) * (${F})0.00396825396825396825${s});
    return step + clnn_log1p(b / a) + b / (2 * a * c) + bend;
}
//@ clnn_dirichlet_grad
/* dx/da / (1 - x) of a beta number x of shapes a and total - a: the power series of the incomplete beta function carries its derivative along (DLMF 8.17.8),
   that of x below the mean and that of 1 - x above, which there has no cancellation; near both ends the one that needs few terms */
${OV} ${F} clnn_dirichlet_grad(${F} x, ${F} a, ${F} total) {
    if (x == 0) return 0;
    const ${F} b = total - a, y = 1 - x;
    const bool below = x * (total + 2) <= a + 1 ? x < (${F})0.5${s} || y * a > 2 : x < (${F})0.5${s} && x * b < 2;
    const ${F} z = below ? x : y, c = below ? a : b;
    ${F} term = 1, sum = 1, rate = 0, weighted = 0;
    for (int n = 1; n < 20000 && (n < 3 || term > sum * ${"1e-8f" if F == "float" else "1e-17"}); n++) {
        term *= z * (total + n - 1) / (c + n);
        rate += below ? (1 - b) / ((total + n - 1) * (a + n)) : 1 / (total + n - 1);
        sum += term;
        weighted += term * rate;
    }
    if (below) return -x / a * (sum * (clnn_log(x) + clnn_digamma_step_(a + 1, b - 1)) + weighted);
    return x / b * (sum * (clnn_log1p(-y) + clnn_digamma_step_(a, b)) + weighted);
}
//@ clnn_gamma
/* element i uses the blocks first + 32 i ... first + 32 i + 31 of clnn_normal and clnn_uniform; 15 tries fail once in 10^19 draws */
#define clnn_gamma(seed, first, i, a) clnn_gamma_draw_(seed, (first) + 32 * (i), a)
${OV} ${F} clnn_gamma_draw_(long seed, long block, ${F} a) {
    ${F} boost = 1;
    if (a < 1) {
        boost = log(clnn_uniform(clnn_word_${F}(seed, block + 31, 0), ${24 if F == "float" else 53}) + ${"0x1p-25f" if F == "float" else "0x1p-54"}) / a;
        a += 1;
    }
    const ${F} d = a - (${F})0.333333333333333333${s}, c = 1 / sqrt(9 * d);
    ${F} v = 1;
    for (int t = 0; t < 15; t++) {
        const ${F} x = clnn_normal_${F}(seed, block + t, 0), u = clnn_uniform(clnn_word_${F}(seed, block + 15 + t, 0), ${24 if F == "float" else 53});
        const ${F} w = 1 + c * x;
        if (w > 0 && log(u) < (${F})0.5${s} * x * x + d - d * w * w * w + 3 * d * log(w)) {
            v = w * w * w;
            break;
        }
    }
    return boost == 1 ? d * v : d * v * exp(boost);
}
//@ clnn_zeta
/* sum of (q + k)^-x: nine terms, then Euler's and Maclaurin's formula */
${OV} ${F} clnn_zeta(${F} x, ${F} q) {
    if (x == 1) return INFINITY;
    if (x < 1) return NAN;
    if (q <= 0) {
        if (q == floor(q)) return INFINITY;
        if (x != floor(x)) return NAN;
    }
    if (isnan(x) || !(q < INFINITY)) return NAN;
    ${F} sum = 0;
    for (; q <= 0; q += 1) sum += clnn_pow(q, -x);
    for (int k = 0; k < 9; k++) sum += clnn_pow(q + k, -x);
    q += 9;
    const ${F} power = clnn_pow(q, -x);
    if (power == 0) return sum == 0 && isinf(x) ? NAN : sum;            /* NaN as in PyTorch */
    ${F} total = sum + power * q / (x - 1) + power / 2, factor = power * x / q;
    const ${F} z = 1 / (q * q);
    int k = 1;
% for d in ("12.0", "-720.0", "30240.0", "-1209600.0", "47900160.0", "-1307674368000.0 / 691.0", "74724249600.0"):
    total += factor / (${F})(${d.replace(".0", ".0" + s)});
    factor *= (x + k) * (x + k + 1) * z;
    k += 2;
% endfor
    return total;
}
% endfor
//@
