## clnn_fmod, clnn_remainder, clnn_floor_divide: of float, float4, float8, float16 and, with doubles, of double and double8.
## Exact like fmod of OpenCL C. Where CLNN_OWN_MATH is defined (PoCL: its fmod takes a bit per step) or by Intel's CPU driver (slow for large quotients),
## each step takes 20 or 50 bits of the quotient: the rest a - q * b is exact where q is a whole number with a few bits less than they have.
## clnn_idiv, clnn_imod, clnn_ifloor, clnn_irem of whole numbers: quotients towards zero and down, remainders with the sign of the divisor and of the dividend;
## a divisor of 0 counts as 1. The least number by -1 is itself, as in PyTorch. CPUs divide 64 bits one by one: where they convert vectors to doubles, these give the nearest quotient in two steps, the
## second from what the first left.
<%!
    VECTORS = [("float", "int", 23, 20), ("float4", "int4", 23, 20), ("float8", "int8", 23, 20), ("float16", "int16", 23, 20)]
    DOUBLES = [("double", "long", 52, 50), ("double8", "long8", 52, 50)]

    def divisor(I):     # processors stop a program that divides the least number by -1
        return f"const {I} e = b ? b : 1;" if I == "ulong" else f"const {I} e = b == 0 | b == -1 ? 1 : b;"
%>\
//@ clnn_fmod clnn_remainder clnn_floor_divide
% for F, I, digits, step in VECTORS + (DOUBLES if USE_FP64 else []):
<% lanes, s = int(F.lstrip("floatdube") or 1), "f" if digits == 23 else "" %>\
static inline __attribute__((overloadable)) ${F} clnn_fmod(${F} x, ${F} y) {
#if defined(CLNN_OWN_MATH) || defined(CLNN_INTEL_CPU)
    const ${F} a = fabs(x), b = fabs(y);
    const ${I} tiny = (${I})((b > 0) & (b < ${"1.17549435e-38f" if s else "2.2250738585072014e-308"}));      /* its exponent does not tell its size */
    const ${I} less = (${I})(a < b), work = (${I})((a < INFINITY) & (b > 0)) & ~less & ~tiny;
    const ${F} d = select((${F})1, b, work);
    ${F} r = select((${F})0, a, work);
    ${I} k;
    do {
        k = (as_${I}(r) >> ${digits}) - (as_${I}(d) >> ${digits}) - ${step};
        k = select(k, (${I})0, (${I})(k < 0));
        const ${F} c = as_${F}(as_${I}(d) + (k << ${digits}));          /* d 2^k */
        const ${F} q = (r / c + 0x1.8p${digits}${s}) - 0x1.8p${digits}${s}, t = fma(-q, c, r);        /* the quotient rounded to nearest */
        r = select(t, t + c, (${I})(t < 0));
    } while (${"any" if lanes > 1 else ""}(k > 0));
    const ${F} got = copysign(select(select((${F})NAN, r, work), a, less), x);
    if (${"any(tiny)" if lanes > 1 else "tiny"})          /* at the end: a return ahead of the loop crashes Intel's compiler in some kernels */
        return ${"fmod(x, y)" if lanes == 1 else f"({F})(" + ", ".join(f"fmod(x.s{i:x}, y.s{i:x})" for i in range(lanes)) + ")"};
    return got;
#else
    return fmod(x, y);
#endif
}
% endfor
% for F, I in [row[:2] for row in VECTORS + (DOUBLES if USE_FP64 else [])]:
//@ clnn_remainder
static inline __attribute__((overloadable)) ${F} clnn_remainder(${F} x, ${F} y) {
    const ${F} r = clnn_fmod(x, y);
    return select(r, r + y, (${I})((r != 0) & ((r < 0) != (y < 0))));
}
//@ clnn_floor_divide
static inline __attribute__((overloadable)) ${F} clnn_floor_divide(${F} x, ${F} y) {
    const ${F} r = clnn_fmod(x, y), v = (x - r) / y;
<% half = "4503599627370496.0" if "double" in F else "8388608.0f" %>\
    const ${F} m = copysign((${F})${half}, v), t = select((v + m) - m, v, (${I})!(fabs(v) < (${F})${half}));   /* rint(v) */
    const ${F} q = select(t, t - 1, (${I})(t - v >= ${"0.5" if "double" in F else "0.5f"}));                /* but ties go down */
    const ${F} down = select(q, q - 1, (${I})((r != 0) & ((r < 0) != (y < 0))));
    return select(select(down, copysign((${F})0, x / y), (${I})(down == 0)), x / y, (${I})(y == 0));
}
% endfor
//@ clnn_nearest clnn_idiv clnn_imod clnn_ifloor clnn_irem
#if defined(__AVX512DQ__) && defined(cl_khr_fp64)      /* PoCL; Intel's compiler makes calls of these conversions */
#define CLNN_NEAREST
/* q with a - q * b in the middle between -b and b */
static inline long clnn_nearest(long a, long b) {
    const double d = (double)b, m = 0x1.8p52;      /* adding m rounds; a quotient too large for that is mended by the second step */
    const ulong q = (ulong)(long)fmin(((double)a / d + m) - m, 0x1.fffffffffffffp62);
    const long r = (long)((ulong)a - q * (ulong)b);
    return (long)(q + (ulong)(long)(((double)r / d + m) - m));
}
#endif
% for I, near in (("int", False), ("long", True), ("ulong", False)):
static inline __attribute__((overloadable)) ${I} clnn_ifloor(${I} a, ${I} b) {
% if near:
#ifdef CLNN_NEAREST
    const long d = b ? b : 1;
    const long n = clnn_nearest(a, d), rest = (long)((ulong)a - (ulong)n * (ulong)d);
    return n - ((rest != 0) & ((rest ^ d) < 0));
#endif
% endif
    ${divisor(I)}
    const ${I} q = a / e;
    return ${"q" if I == "ulong" else f"b == -1 ? ({I})(0 - (u{I})a) : q - (((a ^ e) < 0) & (q * e != a))"};
}
static inline __attribute__((overloadable)) ${I} clnn_imod(${I} a, ${I} b) {
% if near:
#ifdef CLNN_NEAREST
    const long d = b ? b : 1;
    const long rest = (long)((ulong)a - (ulong)clnn_nearest(a, d) * (ulong)d);
    return rest + ((rest != 0) & ((rest ^ d) < 0) ? d : 0);
#endif
% endif
    ${divisor(I)}
    const ${I} r = a % e;
    return ${"r" if I == "ulong" else "(e > 0 ? r < 0 : r > 0) ? r + e : r"};
}
static inline __attribute__((overloadable)) ${I} clnn_idiv(${I} a, ${I} b) {
% if near:
#ifdef CLNN_NEAREST
    const long d = b ? b : 1;
    const long n = clnn_nearest(a, d), rest = (long)((ulong)a - (ulong)n * (ulong)d);
    return n - ((rest != 0) & ((rest ^ a) < 0) ? ((a ^ d) < 0 ? -1 : 1) : 0);
#endif
% endif
    ${divisor(I)}
    return ${"a / e" if I == "ulong" else f"b == -1 ? ({I})(0 - (u{I})a) : a / e"};
}
static inline __attribute__((overloadable)) ${I} clnn_irem(${I} a, ${I} b) {
% if near:
#ifdef CLNN_NEAREST
    const long d = b ? b : 1;
    const long rest = (long)((ulong)a - (ulong)clnn_nearest(a, d) * (ulong)d);
    return rest + ((rest != 0) & ((rest ^ a) < 0) ? ((a ^ d) < 0 ? -d : d) : 0);
#endif
% endif
    ${divisor(I)}
    return a % e;
}
% endfor
