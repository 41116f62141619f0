## clnn_sin and clnn_cos: built-ins, or branch-free code where CLNN_OWN_MATH is defined.
## With doubles, x is first multiplied by (2^e mod 2 pi) / 2^e, which changes it by a multiple of 2 pi (e = 0 up to 2^24, where it changes nothing), then
## reduced with pi/2 in two parts. Without doubles, arguments up to 2^15 are reduced with pi/2 in three parts (Cody & Waite), larger ones with the
## bits of 2/pi that matter (Payne & Hanek, 1983) in integers; both are computed and one is selected, as a branch would stop vectorisation.
<%!
    import math
    from fractions import Fraction

    def pi(bits=320):
        """pi as a fraction, by Machin's formula."""
        one = 1 << (bits + 16)
        def arctan(n):
            total = term = one // n
            k, sign = 3, -1
            while term:
                term //= n * n
                total += sign * (term // k)
                k, sign = k + 2, -sign
            return total
        return Fraction(4 * (4 * arctan(5) - arctan(239)), one)

    def turns():
        """(hi, lo) of (2^e mod 2 pi) / 2^e for e = 0 ... 104; hi has 28 bits, so that its product with a float is exact."""
        whole, rows = 2 * pi(), []
        for e in range(105):
            rest = Fraction(2 ** e)
            rest -= whole * round(rest / whole)
            share = rest / 2 ** e if e else Fraction(1)
            _, exponent = math.frexp(float(share))
            unit = Fraction(2) ** (exponent - 28)
            hi = round(share / unit) * unit
            rows.append((float(hi).hex(), float(share - hi).hex()))
        return rows

    def halves():
        """pi/2 as the sum of two doubles."""
        hi = Fraction(float(pi() / 2))
        return float(hi).hex(), float(pi() / 2 - hi).hex()
%>
//@ clnn_trig_ clnn_sin clnn_cos
#ifdef CLNN_OWN_MATH
% if USE_FP64:
<% rows, (half_hi, half_lo) = turns(), halves() %>\
__constant double clnn_turn_[${len(rows)}] = {${", ".join(hi for hi, _ in rows)}};
__constant double clnn_turn_rest_[${len(rows)}] = {${", ".join(lo for _, lo in rows)}};
/* x = quadrant * pi/2 + r with |r| <= pi/4 */
static inline float clnn_trig_(float x, int* quadrant) {
    const int e = clamp((int)((as_uint(x) >> 23) & 255) - 150, 0, ${len(rows) - 1});
    const double p = x * clnn_turn_[e], k = (p * 0.63661977236758134 + 0x1.8p52) - 0x1.8p52;   /* rounded; rint is no instruction in PoCL */
    *quadrant = (int)k;
    const float r = (float)fma((double)x, clnn_turn_rest_[e], fma(k, -(${half_lo}), fma(k, -(${half_hi}), p)));
    return k == 0 ? x : r;              /* keeps -0; up to pi/4 x was not changed */
}
% else:
/* 32 zero bits, then the fraction bits of 2/pi. */
__constant uint clnn_two_over_pi_[10] = {0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
                                         0xfe5163abu, 0xdebbc561u, 0xb7246e3au};
static inline ulong clnn_word_(int bit) {  /* 32 bits of the table from this bit on */
    uint i = (uint)bit >> 5;
    return ((((ulong)clnn_two_over_pi_[i] << 32) | clnn_two_over_pi_[i + 1]) >> (32 - (bit & 31))) & 0xffffffffu;
}
/* x = quadrant * pi/2 + r with |r| <= pi/4 */
static inline float clnn_trig_(float x, int* quadrant) {
    float k = rint(clamp(x, -65536.0f, 65536.0f) * 0.636619772f);
    float near = fma(k, -0x1.921fb6p+0f, x);
    near = fma(k, 0x1.777a5cp-25f, near);
    near = fma(k, 0x1.ee59dap-50f, near);
    uint u = as_uint(x) & 0x7fffffffu;
    int bit = clamp((int)(u >> 23) - 120, 0, 134);
    ulong m = (u & 0x7fffffu) | 0x800000u;
    ulong p = ((m * clnn_word_(bit)) << 32) + m * clnn_word_(bit + 32) + ((m * clnn_word_(bit + 64)) >> 32);
    int q = (int)((p + 0x2000000000000000ul) >> 62);
    float far = (float)(long)(p << 2) * 0x1.921fb6p-64f;
    int big = u > 0x47000000u, sign = (int)as_uint(x) < 0;
    *quadrant = big ? (sign ? -q : q) : (int)k;
    return big ? (sign ? -far : far) : near;
}
% endif
static inline float clnn_sincos_(float x, int turn) {
    int q;
    float r = clnn_trig_(x, &q), z = r * r;
    float s = fma(r * z, fma(fma(-1.951677630e-4f, z, 8.332174406e-3f), z, -1.6666654887e-1f), r);
    float c = fma(z * z, fma(fma(2.443786582e-5f, z, -1.388736259e-3f), z, 4.1666646770e-2f), fma(z, -0.5f, 1.0f));
    q += turn;
    float v = (q & 1) ? c : s;
    v = (q & 2) ? -v : v;
    return (as_uint(x) & 0x7fffffffu) < 0x7f800000u ? v : NAN;
}
#endif
% for name, turn in [("sin", 0), ("cos", 1)]:
//@ clnn_${name}
#ifdef CLNN_OWN_MATH
static inline __attribute__((overloadable)) float clnn_${name}(float x) { return clnn_sincos_(x, ${turn}); }
% for n in (4, 8, 16):  # lane by lane: PoCL's own vector sin and cos lose all accuracy near zero
static inline __attribute__((overloadable)) float${n} clnn_${name}(float${n} x) {
    return (float${n})(${", ".join(f"clnn_{name}(x.s{i:x})" for i in range(n))});
}
% endfor
% if USE_FP64:
static inline __attribute__((overloadable)) double clnn_${name}(double x) { return ${name}(x); }
% endif
#else
#define clnn_${name} ${name}
#endif
% endfor
