## Storage: how each dtype is read from and written to memory, parameter macros, the error word.
## load_<dtype>(p, i) gives element i in the compute type; store_<dtype>(p, i, v) rounds and stores. Both are macros for the
## dtypes whose storage type is a C type, so p may lie in any address space; the 16-bit floats work on their ushort bits.
% if USE_FP64:
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
% endif
#define IN(ctype, x) __global const ctype* restrict x##_p, const long x##_o
#define OUT(ctype, x) __global ctype* restrict x##_p, const long x##_o
#define PTR_IN(ctype, x) __global const ctype* restrict x = x##_p + x##_o
#define PTR_OUT(ctype, x) __global ctype* restrict x = x##_p + x##_o

/* The first failure of a launch wins: err = {code, low and high half of the offending value, spare}. */
#define CLNN_FAIL(err, code, value) do { if (atomic_cmpxchg((volatile __global int*)(err), 0, (int)(code)) == 0) { ${"\\"}
    (err)[1] = (int)(uint)(ulong)(long)(value); (err)[2] = (int)(uint)(((ulong)(long)(value)) >> 32); } } while (0)

% for name, ctype, bits in [("int8", "char", 24), ("int16", "short", 16)]:
#ifdef CLNN_RUSTICL     /* Mesa 22 gives constants that stand in for a widened ${ctype} its width, even floats: 1.0f becomes 0x3c00, a half */
#define wrap_${name}(v) ((int)((uint)(v) << ${bits}) >> ${bits})
#else
#define wrap_${name}(v) ((int)(${ctype})(v))
#endif
#define load_${name}(p, i) wrap_${name}((p)[i])
#define store_${name}(p, i, v) ((p)[i] = (${ctype})(v))
% endfor
% for name, ctype, acc in [("uint8", "uchar", "int"), ("int32", "int", "int"), \
        ("int64", "long", "long"), ("float32", "float", "float"), ("uint16", "ushort", "int"), ("uint32", "uint", "long"), ("uint64", "ulong", "ulong")]:
#define load_${name}(p, i) ((${acc})(p)[i])
#define store_${name}(p, i, v) ((p)[i] = (${ctype})(v))
% endfor
#define load_bool(p, i) ((int)((p)[i] != 0))
#define store_bool(p, i, v) ((p)[i] = (uchar)((v) != 0))
#define load_complex64(p, i) ((p)[i])
#define store_complex64(p, i, v) ((p)[i] = (v))
% if USE_FP64:
#define load_complex128(p, i) ((p)[i])
#define store_complex128(p, i, v) ((p)[i] = (v))
#define load_float64(p, i) ((double)(p)[i])
#define store_float64(p, i, v) ((p)[i] = (double)(v))
% endif

//@ load_bfloat16 clnn_bf2f
static inline float clnn_bf2f(ushort b) { return as_float((uint)b << 16); }
#define load_bfloat16(p, i) clnn_bf2f((p)[i])
//@ store_bfloat16 round_bfloat16 clnn_f2bf
/* Round to nearest even by adding half a unit (ties by the last kept bit); a NaN keeps its sign and becomes quiet. */
static inline ushort clnn_f2bf(float f) {
    uint u = as_uint(f);
    uint r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (ushort)((u & 0x7fffffffu) > 0x7f800000u ? ((u >> 16) | 0x40u) : r);
}
#define store_bfloat16(p, i, v) ((p)[i] = clnn_f2bf((float)(v)))
static inline float round_bfloat16(float f) { return as_float((uint)clnn_f2bf(f) << 16); }
//@ load_float16 clnn_h2f round_float16
/* Exact for all 65536 patterns, without fp16 hardware and without float subnormals (some GPUs flush them). */
#ifdef CLNN_NVIDIA   /* the same, in one instruction */
static inline float clnn_h2f(ushort h) { return vload_half(0, (const half*)&h); }
#else
static inline float clnn_h2f(ushort h) {
    uint em = (uint)(h & 0x7fff) << 13;
    uint normal = em + (em >= 0x0f800000u ? 0x70000000u : 0x38000000u);
    float tiny = as_float(em + 0x38800000u) - 0x1p-14f;
    uint u = em < 0x00800000u ? as_uint(tiny) : normal;
    return as_float(u | ((uint)(h & 0x8000) << 16));
}
#endif
#define load_float16(p, i) clnn_h2f((p)[i])
//@ store_float16 clnn_f2h round_float16
/* Round to nearest even, gradual underflow, overflow to Inf, NaN stays NaN. Adding 0.5 lets the float adder round the
   subnormals: the sum's last bits then are the half's mantissa. */
#ifdef CLNN_NVIDIA
static inline ushort clnn_f2h(float f) { ushort h; vstore_half_rte(f, 0, (half*)&h); return h; }
#else
static inline ushort clnn_f2h(float f) {
    uint u = as_uint(f), s = u & 0x80000000u, a = u ^ s;
    uint normal = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13;
    uint tiny = as_uint(as_float(a) + 0.5f) - 0x3f000000u;
    uint r = a < 0x38800000u ? tiny : normal;
    r = a >= 0x47800000u ? 0x7c00u : r;
    r = a > 0x7f800000u ? 0x7e00u : r;
    return (ushort)(r | (s >> 16));
}
#endif
#define store_float16(p, i, v) ((p)[i] = clnn_f2h((float)(v)))
//@ round_float16
#ifdef CLNN_NVIDIA
#define round_float16(f) clnn_h2f(clnn_f2h(f))
#else
static inline float round_float16(float f) {
    uint u = as_uint(f), s = u & 0x80000000u, a = u ^ s;
    uint normal = (a + 0xfffu + ((a >> 13) & 1u)) & 0xffffe000u;
    float tiny = (as_float(a) + 0.5f) - 0.5f;
    uint r = a < 0x38800000u ? as_uint(tiny) : normal;
    r = (r >= 0x47800000u && a <= 0x7f800000u) ? 0x7f800000u : r;
    r = a > 0x7f800000u ? (a | 0x400000u) : r;
    return as_float(r | s);
}
#endif
## Vectors of 16-bit floats, for kernels of CPU drivers, whose built-in conversions are instructions.
% for W in (2, 4, 8, 16):
//@ clnn_read_ushort_${W} clnn_write_ushort_${W}
#ifdef CLNN_POCL    /* its vload and vstore of short elements go one by one */
typedef ushort${W} __attribute__((aligned(2))) clnn_ushort_${W};
#define clnn_read_ushort_${W}(p) (*(__global const clnn_ushort_${W}*)(p))
#define clnn_write_ushort_${W}(v, p) (*(__global clnn_ushort_${W}*)(p) = (v))
#else
#define clnn_read_ushort_${W}(p) vload${W}(0, p)
#define clnn_write_ushort_${W}(v, p) vstore${W}(v, 0, p)
#endif
//@ clnn_load_float16_${W} clnn_store_float16_${W}
#ifdef CLNN_POCL    /* that of PoCL 7 takes addresses for those of whole vectors, which shows where a compiler does not fold the load */
static inline float${W} clnn_load_float16_${W}(__global const ushort* p) {
    const ushort${W} h = clnn_read_ushort_${W}(p);
    return vload_half${W}(0, (const half*)&h);
}
static inline void clnn_store_float16_${W}(__global ushort* p, float${W} v) {
    ushort${W} h;
    vstore_half${W}_rte(v, 0, (half*)&h);
    clnn_write_ushort_${W}(h, p);
}
#else
static inline float${W} clnn_load_float16_${W}(__global const ushort* p) { return vload_half${W}(0, (__global const half*)p); }
static inline void clnn_store_float16_${W}(__global ushort* p, float${W} v) { vstore_half${W}_rte(v, 0, (__global half*)p); }
#endif
//@ clnn_round_float16_${W}
static inline float${W} clnn_round_float16_${W}(float${W} v) {
    ushort${W} h;
    vstore_half${W}_rte(v, 0, (half*)&h);
    return vload_half${W}(0, (const half*)&h);
}
% for C in ("float", "double") if USE_FP64 else ("float",):
//@ clnn_read_${C}_${W} clnn_write_${C}_${W}
#ifdef CLNN_POCL    /* a product of two loads stays in the pairs that its vload is made of */
typedef ${C}${W} __attribute__((aligned(${4 if C == "float" else 8}))) clnn_${C}_${W};
#define clnn_read_${C}_${W}(p) (*(__global const clnn_${C}_${W}*)(p))
#define clnn_write_${C}_${W}(v, p) (*(__global clnn_${C}_${W}*)(p) = (v))
#else
#define clnn_read_${C}_${W}(p) vload${W}(0, p)
#define clnn_write_${C}_${W}(v, p) vstore${W}(v, 0, p)
#endif
% endfor
//@ clnn_load_bfloat16_${W}
static inline float${W} clnn_load_bfloat16_${W}(__global const ushort* p) { return as_float${W}(convert_uint${W}(clnn_read_ushort_${W}(p)) << 16); }
//@ clnn_round_bfloat16_${W} clnn_store_bfloat16_${W}
static inline uint${W} clnn_bfloat16_bits_${W}(float${W} v) {
    uint${W} u = as_uint${W}(v), r = u + 0x7fffu + ((u >> 16) & 1u);
    return (u & 0x7fffffffu) > (uint${W})0x7f800000u ? (u | 0x400000u) : r;
}
static inline float${W} clnn_round_bfloat16_${W}(float${W} v) { return as_float${W}(clnn_bfloat16_bits_${W}(v) & 0xffff0000u); }
static inline void clnn_store_bfloat16_${W}(__global ushort* p, float${W} v) { clnn_write_ushort_${W}(convert_ushort${W}(clnn_bfloat16_bits_${W}(v) >> 16), p); }
% endfor
//@ FETCH
#if defined(CLNN_POCL) || defined(CLNN_INTEL_CPU)
#define FETCH(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)     /* into the second cache, ahead of use */
#else
#define FETCH(p)
#endif
//@ clnn_f2ul
static inline ulong clnn_f2ul(float v) { return v < 0.0f ? (ulong)(long)v : (ulong)v; }
% if USE_FP64:
//@ clnn_d2ul
static inline ulong clnn_d2ul(double v) { return v < 0.0 ? (ulong)(long)v : (ulong)v; }
% endif
//@ clnn_f2l
#ifdef CLNN_INTEL_CPU
/* Its conversion to long is scalar: high and low 32 bits apart instead. What does not fit becomes LONG_MIN, as on x86. */
static inline long clnn_f2l(float v) {
    const float high = trunc(v * 0x1p-32f), low = fma(high, -0x1p32f, v);
    const long size = (long)(uint)fabs(low), whole = ((long)(int)high << 32) + (v < 0.0f ? -size : size);
    return fabs(v) < 0x1p63f ? whole : LONG_MIN;
}
#else
#define clnn_f2l(v) ((long)(v))
#endif
% if USE_FP64:
//@ clnn_d2l
#ifdef CLNN_INTEL_CPU
static inline long clnn_d2l(double v) {
    const double whole = trunc(v), high = floor(whole * 0x1p-32), low = fma(high, -0x1p32, whole);
    const long all = ((long)(int)high << 32) + (long)(int)(low - 0x1p31) + 0x80000000L;
    return fabs(v) < 0x1p63 ? all : LONG_MIN;
}
#else
#define clnn_d2l(v) ((long)(v))
#endif
% endif
//@ clnn_l2d
#ifdef CLNN_INTEL_CPU
/* Likewise from long: both parts are exact in double, their sum is rounded once. */
static inline double clnn_l2d(long v) { return (double)(int)(v >> 32) * 0x1p32 + (double)(uint)v; }
#else
#define clnn_l2d(v) ((double)(v))
#endif
//@ clnn_l2f
#ifdef CLNN_INTEL_CPU
/* What double cannot hold gives up its last bits for one that says whether they were 0, so that rounding twice is rounding once. */
static inline float clnn_l2f(long v) {
    const long large = (v ^ (v >> 63)) >> 53, odd = (v & ~2047L) | ((v & 2047L) ? 1024L : 0L);
    return (float)clnn_l2d(large ? odd : v);
}
#else
#define clnn_l2f(v) ((float)(v))
#endif
//@ CLNN_SHUFFLE
#define CLNN_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)     /* one instruction, which (float16)(a.s0, b.s0, ...) may not become */
