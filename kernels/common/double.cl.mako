## Exponentials, logarithms and hyperbolic functions of doubles: what math.cl.mako and inverse.cl.mako have for floats, without a branch, overloaded for
## double and double8 where CLNN_OWN_MATH is defined (PoCL: its functions of doubles are scalar library calls, 5 to 50 times slower).
## Largest errors against exact values, in ulp: exp exp2 1, expm1 1.5, log log2 log10 log1p 1, tanh sinh cosh 2.5, asinh acosh atanh 3
## Reductions: Cody & Waite (1980); polynomials by the exchange algorithm (Remez), fitted for this file.
<%namespace name="math" file="/common/math.cl.mako"/>
<%!
    # (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2, (2^r - 1) / r for |r| <= 1/2, 2 atanh(s) / s^3 - 2 / s^2 in s^2 for s <= 3 - sqrt(8)
    EXP = (0.5, 0.16666666666666677, 0.041666666666666505, 0.008333333333321655, 0.0013888888888962565, 0.00019841269886071363, 2.480158717230619e-05,
           2.755724425616459e-06, 2.7557402718045896e-07, 2.5109023812730992e-08, 2.08753443208944e-09)
    EXP2 = (0.6931471805599453, 0.24022650695910072, 0.05550410866482169, 0.00961812910762833, 0.0013333558146392693, 0.00015403530393640576,
            1.5252733854316296e-05, 1.3215486595007983e-06, 1.0178051942934393e-07, 7.054974448243679e-09, 4.45657034385385e-10, 2.5625457047037132e-11)
    LOG = (0.6666666666666735, 0.39999999999411184, 0.2857142874324467, 0.22222198477807414, 0.1818356964142491, 0.1531390591044236, 0.14797479445198433)
%>
//@ clnn_expparts_ clnn_scaled_
<%math:own_double also="CLNN_INTEL_CPU">
/* x = k log(2) + r; q = exp(r) - 1, and 1.5 * 2^52 + k, whose low bits are the integer k */
CLNN_FN F clnn_expparts_(F x, F* q) {
    const F t = fma(x, (F)(1.4426950408889634), (F)(0x1.8p52)), k = t - 0x1.8p52;
    const F r = fma(k, (F)(-2.3190468138462996e-17), fma(k, (F)(-0.6931471805599453), x));
    *q = fma(r * r, ${math.module.horner("r", EXP, "")}, r);
    return t;
}
/* v * 2^k from such a sum, in two factors: 2^1024 and 2^-1074 are no normal numbers */
CLNN_FN F clnn_scaled_(F v, F t) {
    const I i = as_I(t) - 0x4338000000000000L, h = i >> 1;
    return v * as_F((h + 1023) << 52) * as_F((i - h + 1023) << 52);
}
</%math:own_double>
//@ clnn_exp
<%math:own_double>
CLNN_FN F clnn_exp(F x) {
    F c = select(x, (F)(710.0), (I)(x > 710.0)), q;
    c = select(c, (F)(-746.0), (I)(c < -746.0));
    const F t = clnn_expparts_(c, &q);
    return clnn_scaled_(q + 1.0, t);
}
</%math:own_double>
//@ clnn_exp2_part_
<%math:own_double>
/* 2^r for |r| <= 1/2 */
CLNN_FN F clnn_exp2_part_(F r) { return fma(r, ${math.module.horner("r", EXP2, "")}, (F)(1.0)); }
</%math:own_double>
//@ clnn_exp2
<%math:own_double>
CLNN_FN F clnn_exp2(F x) {
    F c = select(x, (F)(1025.0), (I)(x > 1025.0));
    c = select(c, (F)(-1076.0), (I)(c < -1076.0));
    const F t = c + 0x1.8p52;
    return clnn_scaled_(clnn_exp2_part_(c - (t - 0x1.8p52)), t);
}
</%math:own_double>
//@ clnn_expm1_quarter_
<%math:own_double also="CLNN_INTEL_CPU">
/* (exp(x) - 1) / 4, which does not overflow before sinh does */
CLNN_FN F clnn_expm1_quarter_(F x) {
    F c = select(x, (F)(710.6), (I)(x > 710.6)), q;
    c = select(c, (F)(-40.0), (I)(c < -40.0));
    const F t = clnn_expparts_(c, &q);
    const F p = as_F((as_I(t) - 0x4338000000000000L + 1021) << 52);
    return fma(p, q, p - 0.25);
}
</%math:own_double>
//@ clnn_expm1
<%math:own_double>
CLNN_FN F clnn_expm1(F x) { return select(clnn_expm1_quarter_(x) * 4.0, x, (I)(fabs(x) < 0x1p-54)); }
</%math:own_double>
//@ clnn_tanh
<%math:own_double also="CLNN_INTEL_CPU">
CLNN_FN F clnn_tanh(F x) {
    F a = fabs(x);
    a = select(a, (F)(22.0), (I)(a > 22.0));
    const F t = clnn_expm1_quarter_(a + a);
    return select(copysign(t / (t + 0.5), x), x, (I)(a < 0x1p-28));
}
</%math:own_double>
//@ clnn_sinh
<%math:own_double>
CLNN_FN F clnn_sinh(F x) {
    const F a = fabs(x), t = clnn_expm1_quarter_(a);
    return select(copysign(2.0 * (t + t / fma(t, (F)(4.0), (F)(1.0))), x), x, (I)(a < 0x1p-28));
}
</%math:own_double>
//@ clnn_cosh
<%math:own_double>
CLNN_FN F clnn_cosh(F x) {
    F a = fabs(x), q;
    a = select(a, (F)(712.0), (I)(a > 712.0));
    const F t = clnn_expparts_(a, &q), e = clnn_scaled_(q + 1.0, t - 1.0);      /* exp(a) / 2 */
    return e + 0.25 / e;
}
</%math:own_double>
//@ clnn_logparts_ clnn_logfix_
<%math:own_double>
/* x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); returns log(1 + f) - f, exact zeros and specials are fixed by the caller. */
CLNN_FN F clnn_logparts_(F x, F* e, F* f) {
    const I tiny = (I)(x < 2.2250738585072014e-308);
    const I u = as_I(select(x, x * 0x1p54, tiny)), k = (u - 0x3fe6a09e667f3bcdL) >> 52;
    *f = as_F(u - (k << 52)) - 1.0;
    *e = (as_F(k + 0x4338000000000000L) - 0x1.8p52) - select((F)(0.0), (F)(54.0), tiny);
    const F s = *f / (*f + 2.0), z = s * s, h = *f * *f * 0.5;
    return fma(s, fma(z, ${math.module.horner("z", LOG, "")}, h), -h);
}
CLNN_FN F clnn_logfix_(F r, F x) {
    r = select(r, x, (I)(x == INFINITY));
    r = select(r, (F)(-INFINITY), (I)(x == 0.0));
    return select(r, (F)(NAN), (I)!(x >= 0.0));
}
</%math:own_double>
//@ clnn_log
<%math:own_double>
CLNN_FN F clnn_log(F x) {
    F e, f, p = clnn_logparts_(x, &e, &f);
    return clnn_logfix_(fma(e, (F)(0.6931471805599453), f + fma(e, (F)(2.3190468138462996e-17), p)), x);
}
</%math:own_double>
% for base, one, one_rest, two, two_rest in (("2", 1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0), \
        ("10", 0.4342944819032518, 1.098319650216765e-17, 0.3010299956639812, -2.8037281277851704e-18)):
//@ clnn_log${base}
<%math:own_double>
/* in two parts up to the last sum, so that powers of ${base} come out exactly */
CLNN_FN F clnn_log${base}(F x) {
    F e, f, p = clnn_logparts_(x, &e, &f);
    const F l = f + p, rest = p - (l - f), t = l * ${one}, w = e * ${two};
    F low = fma(rest, (F)(${one}), fma(l, (F)(${one_rest}), fma(l, (F)(${one}), -t)));
% if base == "10":
    low += fma(e, (F)(${two_rest}), fma(e, (F)(${two}), -w));
% endif
    const F s = w + t;
    return clnn_logfix_(s + ((t - (s - w)) + low), x);
}
</%math:own_double>
% endfor
//@ clnn_log1p
<%math:own_double>
CLNN_FN F clnn_log1p(F x) {
    const F u = x + 1.0, one = u - x, d = (1.0 - one) + (x - (u - one));       /* what the addition lost */
    F e, f, p = clnn_logparts_(u, &e, &f);
    const F r = fma(e, (F)(0.6931471805599453), f + (fma(e, (F)(2.3190468138462996e-17), p) + d / u));
    return select(clnn_logfix_(r, u), x, (I)(fabs(x) < 0x1p-54));
}
</%math:own_double>
//@ clnn_asinh
<%math:own_double>
CLNN_FN F clnn_asinh(F x) {
    const F a = fabs(x);
    const I big = (I)(a > 0x1p60);
    const F c = select(a, (F)(1.0), big), t = clnn_log1p(select(c + c * c / (1.0 + sqrt(fma(c, c, (F)(1.0)))), a, big));
    return copysign(select(t, t + 0.6931471805599453, big), x);
}
</%math:own_double>
//@ clnn_acosh
<%math:own_double>
CLNN_FN F clnn_acosh(F x) {
    const I big = (I)(x > 0x1p60);
    const F s = x - 1.0, t = clnn_log1p(select(s + sqrt(fma(s, s, s + s)), x, big));
    return select(select(t, t + 0.6931471805599453, big), (F)(NAN), (I)(x < 1.0));
}
</%math:own_double>
//@ clnn_atanh
<%math:own_double>
CLNN_FN F clnn_atanh(F x) {
    const F a = fabs(x);
    return copysign(0.5 * clnn_log1p((a + a) / (1.0 - a)), x);
}
</%math:own_double>
