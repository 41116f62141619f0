## Random numbers of whole vectors, for CPU drivers: one walk of Philox over 8 blocks gives 32 elements, and the same bits as common/random.cl.mako.
//@ clnn_philox_8_ clnn_words clnn_normals
/* A lane holds one word of a block in its low half; the products ignore what is in the other, as do the callers. */
static inline void clnn_philox_8_(ulong seed, ulong first, ulong8* w0, ulong8* w1, ulong8* w2, ulong8* w3) {
    const ulong8 block = (ulong8)(first) + (ulong8)(0, 1, 2, 3, 4, 5, 6, 7), low = 0xffffffffUL;
    ulong8 a = block, b = block >> 32, c = 0, d = 0;
    uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
% for n in range(10):
    {
        const ulong8 p = (a & low) * 0xD2511F53UL, q = (c & low) * 0xCD9E8D57UL;
        a = (q >> 32) ^ b ^ (ulong)k0;
        b = q;
        c = (p >> 32) ^ d ^ (ulong)k1;
        d = p;
% if n < 9:
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
% endif
    }
% endfor
    *w0 = a; *w1 = b; *w2 = c; *w3 = d;
}
#define CLNN_PAIR_(low, high) (((low) & 0xffffffffUL) | ((high) << 32))
//@ clnn_words
/* The words of 8 blocks in the order of elements: 32 elements of one word, or 16 of two. */
static inline void clnn_words(long seed, long first, uint16* x, uint16* y) {
    ulong8 a, b, c, d;
    clnn_philox_8_((ulong)seed, (ulong)first, &a, &b, &c, &d);
    const ulong8 u = CLNN_PAIR_(a, b), v = CLNN_PAIR_(c, d);
    *x = as_uint16((ulong8)(u.s0, v.s0, u.s1, v.s1, u.s2, v.s2, u.s3, v.s3));
    *y = as_uint16((ulong8)(u.s4, v.s4, u.s5, v.s5, u.s6, v.s6, u.s7, v.s7));
}
//@ clnn_normals
/* 32 elements of clnn_normal: a point of the plane for each pair of words */
static inline void clnn_normals(long seed, long first, float16* x, float16* y) {
    ulong8 a, b, c, d;
    clnn_philox_8_((ulong)seed, (ulong)first, &a, &b, &c, &d);
    const uint16 w = as_uint16(CLNN_PAIR_(a, c)), v = as_uint16(CLNN_PAIR_(b, d));
    float16 sine, cosine;
    clnn_random_turn_(v, &sine, &cosine);
    const float16 r = clnn_random_sqrt_(-2.0f * clnn_random_log_(fma(convert_float16(w), (float16)0x1p-32f, (float16)0x1p-33f)));
    const float16 p = r * cosine, q = r * sine;
    *x = (float16)(p.s0, q.s0, p.s1, q.s1, p.s2, q.s2, p.s3, q.s3, p.s4, q.s4, p.s5, q.s5, p.s6, q.s6, p.s7, q.s7);
    *y = (float16)(p.s8, q.s8, p.s9, q.s9, p.sa, q.sa, p.sb, q.sb, p.sc, q.sc, p.sd, q.sd, p.se, q.se, p.sf, q.sf);
}
