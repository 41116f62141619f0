## Orthogonal polynomials by their three-term recurrences, up to the degree or to the first NaN, which a value that left the numbers becomes. Overloaded for
## float and double. Those of a negative degree are 0; of Chebyshev's, high ones inside (-1, 1) are sines and cosines.
<%!
    OV = "static inline __attribute__((overloadable))"
    # kind: the first degree, the values at 1 and -1, and of t = acos(x)
    CHEBYSHEV = dict(
        t=("x", "1", "odd ? -1 : 1", "clnn_cos(n * t)"),
        u=("x + x", "n + 1", "odd ? -(n + 1) : n + 1", "clnn_sin(t) == 0 ? (n + 1) * clnn_cos((n + 1) * t) / x : clnn_sin((n + 1) * t) / clnn_sin(t)"),
        v=("x + x - 1", "1", "odd ? -(n + n + 1) : n + n + 1", "clnn_cos((n + (F)0.5f) * t) / clnn_cos(t / 2)"),
        w=("x + x + 1", "n + n + 1", "odd ? -1 : 1", "clnn_sin((n + (F)0.5f) * t) / clnn_sin(t / 2)"))
    # name: the highest degree of floats, the first degree, a step
    OTHERS = dict(
        hermite_h=(128, "x + x", "(x + x) * now - (k + k) * before"), hermite_he=(128, "x", "x * now - k * before"),
        laguerre_l=(0, "1 - x", "((k + k + (1 - x)) * now - k * before) / (k + 1)"), legendre_p=(0, "x", "((k + k + 1) * x * now - k * before) / (k + 1)"))
%>
% for F, s in [("float", "f")] + ([("double", "")] if USE_FP64 else []):
% for kind, (first, at_one, at_minus_one, inside) in CHEBYSHEV.items():
//@ clnn_chebyshev_${kind}
${OV} ${F} clnn_chebyshev_${kind}(${F} x, ${F} degree) {
    const ${F} n = trunc(degree);
    if (!(n >= 0 && n < 9e18${s})) return 0;                                             /* also NaN and infinity, as in PyTorch */
    const int odd = fmod(n, 2) != 0;
    if (x == 1) return ${at_one};
    if (x == -1) return ${at_minus_one};
    if (n > ${6 if kind == "t" else 8} && fabs(x) < 1) {
        const ${F} t = clnn_acos(x);
        return ${inside.replace("(F)", f"({F})")};
    }
    ${F} before = 1, now = n < 1 ? 1 : ${first};
    for (long k = 2, last = (long)n; k <= last && !isnan(now); k++) {
        const ${F} next = (x + x) * now - before;
        before = now;
        now = next;
    }
    return now;
}
% endfor
% for name, (most, first, step) in OTHERS.items():
//@ clnn_${name}
${OV} ${F} clnn_${name}(${F} x, ${F} degree) {
    const ${F} n = trunc(degree);
    if (!(n >= 0 && n < 9e18${s})) return 0;                                             /* also NaN and infinity, as in PyTorch */
% if most:
    if (n > ${most if s else 4 * most}) return NAN;                                      /* PyTorch goes no further */
% elif name == "laguerre_l":
    if (x == 0) return 1;
% else:
    if (fabs(x) == 1) return x > 0 || fmod(n, 2) == 0 ? 1 : -1;
% endif
    ${F} before = 1, now = n < 1 ? 1 : ${first};
    for (long i = 1, last = (long)n; i < last && !isnan(now); i++) {
        const ${F} k = i, next = ${step};
        before = now;
        now = next;
    }
    return now;
}
% endfor
% endfor
//@
