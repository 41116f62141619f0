## Complex numbers as vectors of two: (real part, imaginary part). Each function exists for float2 (suffix _f) and, when USE_FP64, double2 (_d); in the
## operator table they are called c_<name>, and codegen adds the prefix and the suffix of the compute type.
## Division is Smith's (1962), scaled so that nothing overflows on the way; square root, inverse functions and tanh follow Kahan, "Branch cuts for complex
## elementary functions" (1987). Branch cuts and signs of zero are those of C.
<%!
    PARTS = [("f", "float", "float2", "f", "0x1p120f", "0x1p-100f", "87.0f", "10.0f"), ("d", "double", "double2", "", "0x1p1000", "0x1p-960", "708.0", "20.0")]
%>
% for S, R, C, F, HUGE, TINY, LIMIT, FLAT in PARTS:
% if S == "f" or USE_FP64:
//@ clnn_c_mul_${S}
static inline ${C} clnn_c_mul_${S}(${C} a, ${C} b) {
#pragma OPENCL FP_CONTRACT OFF
    return (${C})(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
//@ clnn_c_cube_${S}
static inline ${C} clnn_c_cube_${S}(${C} a) { return clnn_c_mul_${S}(clnn_c_mul_${S}(a, a), a); }
//@ clnn_c_zero_${S}
static inline int clnn_c_zero_${S}(${C} a) { return a.x == 0 && a.y == 0; }
//@ clnn_c_conj_${S}
static inline ${C} clnn_c_conj_${S}(${C} a) { return (${C})(a.x, -a.y); }
//@ clnn_c_div_${S}
static inline ${C} clnn_c_div_${S}(${C} a, ${C} b) {
#pragma OPENCL FP_CONTRACT OFF
    const int turned = fabs(b.x) < fabs(b.y);
    const ${R} big = turned ? b.y : b.x, small = turned ? b.x : b.y;
    const ${R} p = turned ? a.y : a.x, q = turned ? -a.x : a.y;
    const ${R} ratio = small / big, scale = 1.0${F} / (big + small * ratio);
    const ${R} sign = turned ? -1.0${F} : 1.0${F};
    const ${C} r = (${C})((p + sign * q * ratio) * scale, (q - sign * p * ratio) * scale);
    return b.x == 0 && b.y == 0 ? (${C})(a.x / fabs(b.x), a.y / fabs(b.y)) : r;
}
//@ clnn_c_reciprocal_${S}
static inline ${C} clnn_c_reciprocal_${S}(${C} a) { return clnn_c_div_${S}((${C})(1.0${F}, 0.0${F}), a); }
//@ clnn_c_abs_${S}
static inline ${R} clnn_c_abs_${S}(${C} a) { return clnn_hypot(a.x, a.y); }
//@ clnn_c_angle_${S}
static inline ${R} clnn_c_angle_${S}(${C} a) { return clnn_atan2(a.y, a.x); }
//@ clnn_c_sgn_${S}
static inline ${C} clnn_c_sgn_${S}(${C} a) {
    const ${R} size = clnn_c_abs_${S}(a);
    return size == 0 ? (${C})(0.0${F}) : a / size;
}
//@ clnn_c_exp_${S}
static inline ${C} clnn_c_exp_${S}(${C} a) {
    const int large = a.x > ${LIMIT};                       /* exp(x) may overflow where its products do not */
    const ${R} size = clnn_exp(large ? a.x - 1.0${F} : a.x), rest = large ? 2.718281828459045${F} : 1.0${F};
    const ${R} s = clnn_sin(a.y), c = clnn_cos(a.y);
    return a.y == 0 ? (${C})(size * rest, a.y) : a.x == -INFINITY ? (${C})(0.0${F}) : (${C})((size * c) * rest, (size * s) * rest);
}
//@ clnn_c_exp2_${S}
static inline ${C} clnn_c_exp2_${S}(${C} a) { return clnn_c_exp_${S}(a * 0.6931471805599453${F}); }
//@ clnn_c_expm1_${S}
static inline ${C} clnn_c_expm1_${S}(${C} a) {
    const ${R} half_sin = clnn_sin(a.y * 0.5${F}), m = clnn_expm1(a.x);
    return (${C})(m * clnn_cos(a.y) - 2.0${F} * half_sin * half_sin, (m + 1.0${F}) * clnn_sin(a.y));
}
//@ clnn_c_polar_${S}
static inline ${C} clnn_c_polar_${S}(${R} size, ${R} angle) { return (${C})(size * clnn_cos(angle), size * clnn_sin(angle)); }
//@ clnn_c_log_${S}
static inline ${C} clnn_c_log_${S}(${C} a) {
    const ${R} x = fmax(fabs(a.x), fabs(a.y)), y = fmin(fabs(a.x), fabs(a.y)), size = clnn_c_abs_${S}(a);
    const int near = size > 0.5${F} && size < 2.0${F};      /* near 1, where the logarithm of a rounded size has few right digits */
    const ${R} shift = near ? (x - 1.0${F}) * (x + 1.0${F}) + y * y : 0.0${F};
    return (${C})(near ? 0.5${F} * clnn_log1p(shift) : clnn_log(size), clnn_atan2(a.y, a.x));
}
//@ clnn_c_log2_${S}
static inline ${C} clnn_c_log2_${S}(${C} a) { return clnn_c_log_${S}(a) * 1.4426950408889634${F}; }
//@ clnn_c_log10_${S}
static inline ${C} clnn_c_log10_${S}(${C} a) { return clnn_c_log_${S}(a) * 0.4342944819032518${F}; }
//@ clnn_c_log1p_${S}
static inline ${C} clnn_c_log1p_${S}(${C} a) {
    const ${R} x = a.x + 1.0${F}, size = clnn_hypot(x, a.y);
    const int near = size > 0.5${F} && size < 2.0${F};
    const ${R} shift = near ? a.x * (2.0${F} + a.x) + a.y * a.y : 0.0${F};
    return (${C})(near ? 0.5${F} * clnn_log1p(shift) : clnn_log(size), clnn_atan2(a.y, x));
}
//@ clnn_c_logaddexp_${S}
static __attribute__((noinline)) ${C} clnn_c_logaddexp_${S}(${C} a, ${C} b) {
    const int turned = a.x < b.x;                           /* the one with the greater size is taken out */
    const ${C} big = turned ? b : a, small = turned ? a : b;
    if (a.x != a.x || a.y != a.y) return a;
    if (b.x != b.x || b.y != b.y) return b;
    if (isinf(a.x) && a.x == b.x) return a.x < 0 ? small : clnn_c_log_${S}(clnn_c_exp_${S}(a) + clnn_c_exp_${S}(b));
    return big + clnn_c_log1p_${S}(clnn_c_exp_${S}(small - big));
}
//@ clnn_c_sqrt_${S}
static inline ${C} clnn_c_sqrt_${S}(${C} z) {
    const ${R} m = fmax(fabs(z.x), fabs(z.y));
    const ${C} a = m > ${HUGE} ? z * 0.0625${F} : m < ${TINY} ? z * 0x1p60${F} : z;
    const ${R} back = m > ${HUGE} ? 4.0${F} : m < ${TINY} ? 0x1p-30${F} : 1.0${F};
    const ${R} t = sqrt(0.5${F} * (fabs(a.x) + clnn_c_abs_${S}(a))) * back, u = 0.5${F} * (fabs(a.y) * back * back / t);
    const ${C} r = a.x >= 0 ? (${C})(t, clnn_copysign(u, z.y)) : (${C})(u, clnn_copysign(t, z.y));
    return z.x == 0 && z.y == 0 ? (${C})(0.0${F}, z.y) : isinf(z.y) ? (${C})(INFINITY, z.y) : r;
}
//@ clnn_c_rsqrt_${S}
static inline ${C} clnn_c_rsqrt_${S}(${C} a) { return clnn_c_div_${S}((${C})(1.0${F}, 0.0${F}), clnn_c_sqrt_${S}(a)); }
//@ clnn_c_pow_${S}
static inline ${C} clnn_c_pow_${S}(${C} a, ${C} b) {
    const ${C} r = clnn_c_exp_${S}(clnn_c_mul_${S}(b, clnn_c_log_${S}(a)));
    return b.x == 0 && b.y == 0 ? (${C})(1.0${F}, 0.0${F}) : a.x == 0 && a.y == 0 && b.x > 0 ? (${C})(0.0${F}) : r;
}
//@ clnn_c_sigmoid_${S}
static inline ${C} clnn_c_sigmoid_${S}(${C} a) {
    return clnn_c_div_${S}((${C})(1.0${F}, 0.0${F}), (${C})(1.0${F}, 0.0${F}) + clnn_c_exp_${S}(-a));
}
//@ clnn_c_sinh_${S}
static inline ${C} clnn_c_sinh_${S}(${C} a) {
    const int turn = !isfinite(a.y);        /* a part that is 0 stays that where the other has no bounds, as C asks */
    return (${C})(turn && a.x == 0 ? a.x : clnn_sinh(a.x) * clnn_cos(a.y), a.y == 0 ? a.y : clnn_cosh(a.x) * clnn_sin(a.y));
}
//@ clnn_c_cosh_${S}
static inline ${C} clnn_c_cosh_${S}(${C} a) {
    const ${R} s = clnn_sinh(a.x);
    const int none = !isfinite(s) && a.y == 0 || !isfinite(a.y) && a.x == 0;
    return (${C})(clnn_cosh(a.x) * clnn_cos(a.y), none ? 0.0${F} : s * clnn_sin(a.y));
}
//@ clnn_c_tanh_${S}
static inline ${C} clnn_c_tanh_${S}(${C} a) {
    const int flat = fabs(a.x) > ${FLAT};
    const ${R} t = clnn_tan(a.y), s = clnn_sinh(flat ? clnn_copysign(${FLAT}, a.x) : a.x), b = 1.0${F} + t * t, d = 1.0${F} + b * s * s;
    const ${R} far = 4.0${F} * clnn_sin(a.y) * clnn_cos(a.y) * clnn_exp(-2.0${F} * fabs(a.x));
    return flat ? (${C})(clnn_copysign(1.0${F}, a.x), far) : (${C})(a.x == 0 ? a.x : b * sqrt(1.0${F} + s * s) * s / d, a.y == 0 ? a.y : t / d);
}
## f(z) = -i g(iz)
% for name, other in [("sin", "sinh"), ("tan", "tanh")]:
//@ clnn_c_${name}_${S}
static inline ${C} clnn_c_${name}_${S}(${C} a) { const ${C} w = clnn_c_${other}_${S}((${C})(-a.y, a.x)); return (${C})(w.y, -w.x); }
% endfor
//@ clnn_c_cos_${S}
static inline ${C} clnn_c_cos_${S}(${C} a) { return clnn_c_cosh_${S}((${C})(-a.y, a.x)); }
//@ clnn_c_sinc_${S}
static inline ${C} clnn_c_sinc_${S}(${C} a) {
    const ${C} p = a * 3.14159265358979323846${F};
    return a.x == 0 && a.y == 0 ? (${C})(1.0${F}, 0.0${F}) : clnn_c_div_${S}(clnn_c_sin_${S}(p), p);
}
//@ clnn_c_asin_${S}
static inline ${C} clnn_c_asin_${S}(${C} a) {
    const ${C} p = clnn_c_sqrt_${S}((${C})(1.0${F} - a.x, -a.y)), q = clnn_c_sqrt_${S}((${C})(1.0${F} + a.x, a.y));
    return (${C})(clnn_atan2(a.x, isinf(a.x) && isfinite(a.y) ? 0.0${F} : p.x * q.x - p.y * q.y), clnn_asinh(p.x * q.y - p.y * q.x));
}
//@ clnn_c_acos_${S}
static inline ${C} clnn_c_acos_${S}(${C} a) {
    const ${C} p = clnn_c_sqrt_${S}((${C})(1.0${F} - a.x, -a.y)), q = clnn_c_sqrt_${S}((${C})(1.0${F} + a.x, a.y));
    return (${C})(2.0${F} * clnn_atan2(p.x, q.x), clnn_asinh(q.x * p.y - q.y * p.x));
}
//@ clnn_c_acosh_${S}
static inline ${C} clnn_c_acosh_${S}(${C} a) {
    const ${C} p = clnn_c_sqrt_${S}((${C})(a.x - 1.0${F}, a.y)), q = clnn_c_sqrt_${S}((${C})(a.x + 1.0${F}, a.y));
    return (${C})(clnn_asinh(p.x * q.x + p.y * q.y), 2.0${F} * clnn_atan2(p.y, q.x));
}
//@ clnn_c_atanh_${S}
static inline ${C} clnn_c_atanh_${S}(${C} a) {
    const ${R} x = fabs(a.x), below = 1.0${F} - x, square = a.y * a.y;            /* odd in a.x: log1p of what is almost -1 would be of no use */
    const int end = isinf(x) || isinf(a.y);
    return (${C})(clnn_copysign(end ? 0.0${F} : 0.25${F} * clnn_log1p(4.0${F} * x / (below * below + square)), a.x),
                  0.5${F} * (end ? clnn_copysign(3.14159265358979323846${F}, a.y) : clnn_atan2(2.0${F} * a.y, below * (1.0${F} + x) - square)));
}
% for name, other in [("asinh", "asin"), ("atan", "atanh")]:
//@ clnn_c_${name}_${S}
static inline ${C} clnn_c_${name}_${S}(${C} a) { const ${C} w = clnn_c_${other}_${S}((${C})(-a.y, a.x)); return (${C})(w.y, -w.x); }
% endfor
% endif
% endfor
