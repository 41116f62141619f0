## clnn_pow of floats: the built-in, or, where CLNN_OWN_MATH is defined and doubles exist (PoCL on x86), 2^(y*log2(x)) with logarithm and power
## in double and without a branch, which leaves 0.51 ulp. Follows C99 for zeros, infinities, NaN and negative bases.
<%namespace name="math" file="/common/math.cl.mako"/>
<%!
    # log2(1 + f) / f for 1 + f between sqrt(1/2) and sqrt(2), within 2^-35; 2^r for |r| <= 1/2, within 2^-28
    LOG2 = (1.4426950408686754, -0.7213475208693302, 0.48089836141213127, -0.36067367473709766, 0.28853729191780714, -0.2404531689150147,
            0.20617541204763704, -0.18030057890691215, 0.15876905519237064, -0.14315598344805414, 0.14475226718104992, -0.14284434379944544,
            0.07736963184352362)
    EXP2 = (1.0000000005541845, 0.6931472057346939, 0.2402264689081764, 0.055503287791879304, 0.009618488942788175, 0.0013399930496088839,
            0.00015345813790019886)
%>
//@ clnn_pow
#if defined(CLNN_OWN_MATH) && defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% for F, I, S, J in (("double", "long", "float", "int"), ("double4", "long4", "float4", "int4"), ("double8", "long8", "float8", "int8")):
#define F ${F}
/* a^y for a > 0, finite, as a sum of exponents that the callers limit */
static inline __attribute__((overloadable)) ${S} clnn_power_(${S} base, ${S} y) {
    const ${F} a = convert_${F}(base);
    const ${I} u = as_${I}(a), k = (u - 0x3fe6a09e667f3bcdL) >> 52;
    const ${F} e = as_${F}(k + 0x4338000000000000L) - 0x1.8p52, f = as_${F}(u - (k << 52)) - 1.0;
    ${F} t = convert_${F}(y) * fma(f, ${math.module.horner("f", LOG2, "")}, e);
    t = select(t, (F)(256.0), (${I})(t > 256.0));
    t = select(t, (F)(-256.0), (${I})(t < -256.0));
    const ${F} n = t + 0x1.8p52, r = t - (n - 0x1.8p52);
    return convert_${S}(${math.module.horner("r", EXP2, "")} * as_${F}((as_${I}(n) << 52) + 0x3ff0000000000000L));
}
#undef F
% endfor
static inline __attribute__((overloadable)) float16 clnn_power_(float16 a, float16 y) { return (float16)(clnn_power_(a.lo, y.lo), clnn_power_(a.hi, y.hi)); }
% for types in math.module.VECTORS:
<%math:typed types="${types}">
static inline __attribute__((overloadable)) I clnn_whole_(F a) {     /* whether a >= 0 is a whole number */
    const F t = a + 8388608.0f;
    return (I)((a >= 8388608.0f) | (t - 8388608.0f == a));
}
static inline __attribute__((overloadable)) F clnn_pow(F x, F y) {
    const F a = fabs(x), big = fabs(y);
    F v = clnn_power_(a, y);
    v = select(v, select((F)(0.0f), (F)(INFINITY), (I)((y > 0.0f) == (a != 0.0f))), (I)((a == 0.0f) | (a == INFINITY)));
    const I whole = clnn_whole_(big), odd = whole & ~clnn_whole_(big * 0.5f) & (I)1;
    v = as_F(as_I(v) ^ (as_I(x) & (odd << 31)));
    v = select(v, (F)(NAN), (I)((x < 0.0f) & (a != INFINITY)) & ~whole);
    v = select(v, x + y, (I)((x != x) | (y != y)));
    return select(v, (F)(1.0f), (I)((x == 1.0f) | (y == 0.0f) | ((a == 1.0f) & (big == INFINITY))));
}
</%math:typed>
% endfor
#else
#define clnn_pow pow
#endif
