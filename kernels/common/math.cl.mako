## Functions clnn_<name>: the driver's built-ins, or, where CLNN_OWN_MATH is defined (PoCL: its scalar log, erf, sin...
## are library calls, 10 to 60 times slower than the loop around them), branch-free code that a compiler can vectorise.
## They are overloaded for float, float4, float8 and float16, and when USE_FP64 for double and double8: here the former, in double*.cl.mako the latter.
## Largest errors against exact values, in ulp, each within the limits of OpenCL C:
##   exp 2, expm1 2, log 1, log1p 2, log2 2, log10 2, tanh 3, erf 7 (16 allowed)
## Reductions and polynomials: Cody & Waite (1980); coefficients were fitted for this file by reweighted least squares
## (Lawson), erf as x*P(x*x)/Q(x*x). NaN goes in, NaN comes out; subnormals and infinities are kept.
<%!
    VECTORS = [("float", "int", "uint"), ("float4", "int4", "uint4"), ("float8", "int8", "uint8"), ("float16", "int16", "uint16")]
    DOUBLES = [("double", "long", "ulong"), ("double8", "long8", "ulong8")]

    def horner(var, coefficients, s="f", F="F"):
        """A polynomial in ``var``, lowest coefficient first, of numbers of type ``F``; ``s`` ends literals: f, or nothing for doubles."""
        text = f"({F})({coefficients[-1]!r}{s})"
        for c in reversed(coefficients[:-1]):
            text = f"fma({text}, {var}, ({F})({c!r}{s}))"
        return text

    LOG = (0.3333333166, -0.2500082272, 0.2000123337, -0.1662329832, 0.1420155330, -0.1316058322, 0.1276332564, -0.07635651384)
    EXP = (0.5000000062, 0.1666654300, 0.04166628206, 0.008366582376, 0.001394644786)
    ERF_P = (1.1283791393, 0.1935453970, 0.05310179431, 0.003883360140, 0.0002845665845, 0.000001986783663)
    ERF_Q = (1.0, 0.5048576976, 0.1153501425, 0.01520728232, 0.001185575706, 0.00003742022495)

    def defined(*names):
        """A condition of the preprocessor: one of the macros, several to a string, is there."""
        return " || ".join(f"defined({n})" for n in " ".join(names).split())

    # libclc's lgamma(-INFINITY) is -INFINITY. Of a choice that follows bits put together with AND and OR, as in a built-in copysign, LLVM 19 to 22 makes
    # something else for llvmpipe on processors with AVX-512.
    MESA_TOO = "CLNN_INTEL_CPU CLNN_RUSTICL"

    # Functions x, y -> F that choose among bits, for floats and doubles: of a choice of floats a compiler makes the built-in again. In nextafter ``away``
    # is a step from zero, to the next larger number of bits.
    BY_BITS = {
        "fmax": ("return as_F(select(as_I(x), as_I(y), (I)((y > x) | (x != x))));",),
        "fmin": ("return as_F(select(as_I(x), as_I(y), (I)((y < x) | (x != x))));",),
        "copysign": ("const I sign = as_I((F)(-0.0f));", "return as_F(as_I(fabs(x)) ^ (as_I(y) & sign));"),
        "nextafter": ("const I away = (I)(((y > x) & (x > 0)) | ((y < x) & (x < 0)));",
                      "F r = as_F(as_I(x) + select((I)(-1), (I)(1), away));",
                      "r = select(r, as_F((as_I(y) & as_I((F)(-0.0f))) | (I)(1)), (I)(x == 0));",
                      "r = select(r, y, (I)(x == y));",
                      "return select(r, x + y, (I)((x != x) | (y != y)));")}
%>
## A function's own code for floats, F and I in the caller's body. It is used where CLNN_OWN_MATH or one of ``also`` is defined; for doubles there is own code
## where CLNN_OWN_MATH or ``wide`` is.
<%def name="own(names, operands=1, also='CLNN_OWN_MATH', wide='CLNN_OWN_MATH')">
#if ${defined("CLNN_OWN_MATH", also)}
#define CLNN_FN static inline __attribute__((overloadable))
% for types in VECTORS:
<%self:typed types="${types}">
${caller.body()}
</%self:typed>
% endfor
% if USE_FP64 and also != wide:
#if !(${defined("CLNN_OWN_MATH", wide)})
${forward(names, operands, ("double", "double8"))}
#endif
% endif
% if wide != "CLNN_OWN_MATH" and wide != also:
#elif ${defined(wide)}
#define CLNN_FN static inline __attribute__((overloadable))
${forward(names, operands, [F for F, _, _ in VECTORS])}
% endif
#else
% for name in names.split():
#define clnn_${name} ${name}
% endfor
#endif
</%def>
## The same for doubles.
<%def name="own_double(also='CLNN_OWN_MATH')">
% if USE_FP64:
#if ${defined("CLNN_OWN_MATH", also)}
#define CLNN_FN static inline __attribute__((overloadable))
% for types in DOUBLES:
<%self:typed types="${types}">
${caller.body()}
</%self:typed>
% endfor
#endif
% endif
</%def>
## The caller's body with F, I and U as a type of numbers and the integers of its size.
<%def name="typed(types)">
% for name, type in zip("FIU", types):
#define ${name} ${type}
#define as_${name} as_${type}
#define to_${name} convert_${type}
% endfor
${caller.body()}
% for name in "FIU":
#undef ${name}
#undef as_${name}
#undef to_${name}
% endfor
</%def>
<%def name="forward(names, operands, types)">
% for name in names.split():
% for F in types:
CLNN_FN ${F} clnn_${name}(${f"{F} x" if operands == 1 else f"{F} x, {F} y"}) { return ${name}(${"x" if operands == 1 else "x, y"}); }
% endfor
% endfor
</%def>
//@ floor ceil trunc rint
#if (defined(CLNN_POCL) || defined(CLNN_INTEL_CPU)) && defined(__has_builtin)    /* their own are calls or several instructions */
% for name, builtin in (("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("rint", "roundeven")):
#if __has_builtin(__builtin_elementwise_${builtin})
#define ${name} __builtin_elementwise_${builtin}
#endif
% endfor
#endif
//@ clnn_exp
<%self:own names="exp">
CLNN_FN F clnn_exp(F x) {
    F c = select(x, (F)(89.0f), (I)(x > 89.0f));
    c = select(c, (F)(-104.0f), (I)(c < -104.0f));
    F t = c * 1.44269504f + 12582912.0f, k = t - 12582912.0f;        /* rounded: rint is a call in PoCL */
    F r = fma(k, (F)(-0.693359375f), c);
    r = fma(k, (F)(2.12194440e-4f), r);
    I i = as_I(t) - 0x4b400000, h = i >> 1;
    F p = fma(r * r, ${horner("r", EXP)}, r) + 1.0f;
    return p * as_F((h + 127) << 23) * as_F((i - h + 127) << 23);   /* in two steps: 2^128 and 2^-149 are no normal floats */
}
</%self:own>
//@ clnn_expm1 clnn_tanh
<%self:own names="expm1">
CLNN_FN F clnn_expm1(F x) {
    F c = select(x, (F)(89.0f), (I)(x > 89.0f));
    c = select(c, (F)(-20.0f), (I)(c < -20.0f));
    F j = c * 1.44269504f + 12582912.0f, k = j - 12582912.0f;        /* rounded: rint is a call in PoCL */
    F r = fma(k, (F)(-0.693359375f), c);
    r = fma(k, (F)(2.12194440e-4f), r);
    F q = fma(r * r, ${horner("r", EXP)}, r);
    F t = as_F((as_I(j) - 0x4b400000 + 126) << 23);  /* 2^(k-1): 2^128 is no float */
    return select(2.0f * fma(t, q, t - 0.5f), x, (I)(x == 0.0f));
}
</%self:own>
//@ clnn_tanh
## Intel's tanh of doubles takes twice the time
<%self:own names="tanh" wide="CLNN_INTEL_CPU">
CLNN_FN F clnn_tanh(F x) {
    F a = fabs(x);
    a = select(a, (F)(10.0f), (I)(a > 10.0f));
    F t = clnn_expm1(a + a);
    return copysign(t / (t + 2.0f), x);
}
</%self:own>
//@ clnn_logparts_ clnn_log clnn_log2 clnn_log10 clnn_log1p
#ifdef CLNN_OWN_MATH
% for F, I, U in VECTORS:
/* x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); returns log(1 + f) - f, exact zeros and specials are fixed by the caller. */
static inline __attribute__((overloadable)) ${F} clnn_logparts_(${F} x, ${F}* e, ${F}* f) {
    ${I} tiny = (${I})(x < 1.17549435e-38f);
    ${I} u = as_${I}(select(x, x * 8388608.0f, tiny));
    ${I} k = (u - 0x3f3504f3) >> 23;
    *f = as_${F}(u - (k << 23)) - 1.0f;
    *e = convert_${F}(k) - select((${F})(0.0f), (${F})(23.0f), tiny);
    return fma(*f * *f * *f, ${horner("*f", LOG, F=F)}, -0.5f * *f * *f);
}
static inline __attribute__((overloadable)) ${F} clnn_logfix_(${F} r, ${F} x) {
    r = select(r, x, (${I})(x == INFINITY));
    r = select(r, (${F})(-INFINITY), (${I})(x == 0.0f));
    return select(r, (${F})(NAN), (${I})!(x >= 0.0f));
}
% endfor
#endif
//@ clnn_log clnn_log1p
<%self:own names="log">
CLNN_FN F clnn_log(F x) {
    F e, f, p = clnn_logparts_(x, &e, &f);
    return clnn_logfix_(fma(e, (F)(0.693359375f), f + fma(e, (F)(-2.12194440e-4f), p)), x);
}
</%self:own>
//@ clnn_log2
<%self:own names="log2">
CLNN_FN F clnn_log2(F x) {
    F e, f, p = clnn_logparts_(x, &e, &f);
    return clnn_logfix_(fma(f + p, (F)(1.44269504f), fma(f, (F)(1.92596299e-8f), e)), x);
}
</%self:own>
//@ clnn_log10
<%self:own names="log10">
CLNN_FN F clnn_log10(F x) {
    F e, f, p = clnn_logparts_(x, &e, &f);
    F s = fma(e, (F)(3.01029996e-1f), fma(f + p, (F)(4.34294482e-1f), e * -1.4320989e-8f));
    return clnn_logfix_(s, x);
}
</%self:own>
//@ clnn_log1p
## Intel's log1p is several times slower than its log
<%self:own names="log1p" also="CLNN_INTEL_CPU">
CLNN_FN F clnn_log1p(F x) {
    F u = 1.0f + x;
    F d = u - 1.0f;  /* what of x survived the addition; x/d puts the rest back */
    F r = clnn_log(u) * (x / d);
    r = select(r, x, (I)(d == 0.0f));
    return select(r, u, (I)(x == INFINITY));
}
</%self:own>
//@ clnn_erf
<%self:own names="erf" also="CLNN_INTEL_CPU">
CLNN_FN F clnn_erf(F x) {
    F a = select(x, (F)(4.0f), (I)(x > 4.0f));
    a = select(a, (F)(-4.0f), (I)(a < -4.0f));
    F z = a * a;
    F y = a * ${horner("z", ERF_P)} / ${horner("z", ERF_Q)};
    y = select(y, (F)(1.0f), (I)(y > 1.0f));
    return select(y, (F)(-1.0f), (I)(y < -1.0f));
}
</%self:own>

