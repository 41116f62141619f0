<%inherit file="/base.cl.mako"/>\
## The next words of a Mersenne Twister, MT19937 (Matsumoto & Nishimura 1998): each number depends on the ones before, so one work-item draws them all,
## sixteen at a time.
##
## state (625) uint32: 624 words, and how many of them were given out; n >= 0
## Kernel         result
## twister        out (n) uint32: the words
## twister_coins  out (n) uchar: 1 where a pair of words, as a number in steps of 2^-53, is below limit / 2^53, else 0
## geometry: one work-item
% for V in ("", "16"):
static inline __attribute__((overloadable)) uint${V} clnn_twist(uint${V} u, uint${V} v) {
    return (((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1) ^ ((0u - (v & 1u)) & 0x9908b0dfu);
}
static inline __attribute__((overloadable)) uint${V} clnn_temper(uint${V} y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}
% endfor
#define NEXT(k, far) (vload16(0, s + (far)) ^ clnn_twist(vload16(0, s + (k)), vload16(0, s + (k) + 1)))
static void clnn_next_words(uint* s) {
    for (int k = 0; k < 224; k += 16) vstore16(NEXT(k, k + 397), 0, s + k);
    for (int k = 224; k < 227; k++) s[k] = s[k + 397] ^ clnn_twist(s[k], s[k + 1]);
    for (int k = 227; k < 611; k += 16) vstore16(NEXT(k, k - 227), 0, s + k);
    for (int k = 611; k < 623; k++) s[k] = s[k - 227] ^ clnn_twist(s[k], s[k + 1]);
    s[623] = s[396] ^ clnn_twist(s[623], s[0]);
}
static uint clnn_next_word(uint* s, uint* at) {
    if (*at == 624) { clnn_next_words(s); *at = 0; }
    return clnn_temper(s[(*at)++]);
}
__kernel void twister(OUT(uint, state), OUT(uint, out), const long n) {
    PTR_OUT(uint, state); PTR_OUT(uint, out);
    uint s[624], at = state[624];
    for (int k = 0; k < 624; k++) s[k] = state[k];
    for (long i = 0; i < n;) {
        if (at == 624 && n - i >= 624) {
            clnn_next_words(s);
% for k in range(0, 624, 16):
            vstore16(clnn_temper(vload16(0, s + ${k})), 0, out + i + ${k});
% endfor
            i += 624;
        } else out[i++] = clnn_next_word(s, &at);
    }
    for (int k = 0; k < 624; k++) state[k] = s[k];
    state[624] = at;
}
#define BELOW(hi, lo) (((((ulong)(hi) << 32) | (lo)) & 0x1fffffffffffffUL) < (ulong)limit)
__kernel void twister_coins(OUT(uint, state), OUT(uchar, out), const long n, const long limit) {
    PTR_OUT(uint, state); PTR_OUT(uchar, out);
    uint s[624], at = state[624];
    for (int k = 0; k < 624; k++) s[k] = state[k];
    for (long i = 0; i < n;) {
        if (at == 624 && n - i >= 312) {
            clnn_next_words(s);
            for (int k = 0; k < 624; k += 16) {
                const ulong8 pairs = rotate(as_ulong8(clnn_temper(vload16(0, s + k))), (ulong8)32) & 0x1fffffffffffffUL;
                vstore8(convert_uchar8(as_ulong8(pairs < (ulong8)(ulong)limit) & 1UL), 0, out + i + k / 2);
            }
            i += 312;
        } else {
            const uint hi = clnn_next_word(s, &at), lo = clnn_next_word(s, &at);
            out[i++] = BELOW(hi, lo);
        }
    }
    for (int k = 0; k < 624; k++) state[k] = s[k];
    state[624] = at;
}
