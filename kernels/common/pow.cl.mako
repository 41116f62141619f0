## clnn_pow: the built-in, or, where CLNN_OWN_MATH is defined and doubles exist (PoCL on x86), 2^(y*log2(x)) with the logarithm
## in double, which leaves about one ulp. Follows C99 for zeros, infinities, NaN and negative bases.
//@ clnn_pow
#if defined(CLNN_OWN_MATH) && defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
static inline __attribute__((overloadable)) float clnn_pow(float x, float y) {
    float a = fabs(x);
    int tiny = a < 1.17549435e-38f;
    int u = as_int(tiny ? a * 8388608.0f : a);
    int e = (u - 0x3f3504f3) >> 23;
    double m = (double)as_float(u - (e << 23));
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    /* log2(m) = 2/ln(2) * atanh(s) */
    double p = fma(fma(fma(fma(fma(0.0909090909 + 0.0847 * z, z, 0.1111111111), z, 0.142857142857), z, 0.2), z, 0.333333333333333), z, 1.0);
    double t = (double)y * (fma(s * 2.8853900817779268, p, (double)(tiny ? e - 23 : e)));
    t = a == 0.0f || a == INFINITY ? ((y > 0.0f) == (a != 0.0f) ? 512.0 : -512.0) : t;
    t = clamp(t, -512.0, 512.0);
    float k = clamp(rint((float)t), -200.0f, 200.0f);
    float r = (float)(t - (double)k) * 0.693147181f;
    r = clamp(r, -0.36f, 0.36f);
    float v = fma(r * r, fma(fma(fma(fma(1.394644786e-3f, r, 8.366582376e-3f), r, 4.166628206e-2f), r, 1.66665430e-1f), r, 0.5f), r) + 1.0f;
    int q = (int)k, h = q >> 1;
    v = v * as_float((h + 127) << 23) * as_float((q - h + 127) << 23);
    int whole = rint(y) == y, odd = whole && fabs(y) < 16777216.0f && ((int)clamp(y, -16777216.0f, 16777216.0f) & 1);
    v = as_int(x) < 0 && odd ? -v : v;
    v = x < 0.0f && !whole && a != INFINITY ? NAN : v;
    v = isnan(x) || isnan(y) ? NAN : v;
    return x == 1.0f || y == 0.0f || (a == 1.0f && fabs(y) == INFINITY) ? 1.0f : v;
}
% for n in (4, 8, 16):
static inline __attribute__((overloadable)) float${n} clnn_pow(float${n} x, float${n} y) {
    return (float${n})(${", ".join(f"clnn_pow(x.s{i:x}, y.s{i:x})" for i in range(n))});
}
% endfor
% if USE_FP64:
static inline __attribute__((overloadable)) double clnn_pow(double x, double y) { return pow(x, y); }
% endif
#else
#define clnn_pow pow
#endif
