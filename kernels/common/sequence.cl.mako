## What the words of the sequence become (clnn/ops/_sequence.py). Words lie in memory as they were drawn and are read as the type of the result; of two words
## that are one number, the upper one comes first. Overloaded for the vectors of elementwise kernels.
<%!
    OV = "static inline __attribute__((overloadable))"
%>\
//@ clnn_unit24 clnn_sequence_normals
/* [0, 1) in steps of 2^-24 */
% for n in ("", "8", "16"):
${OV} float${n} clnn_unit24(float${n} w) { return convert_float${n}(as_uint${n}(w) & 0xffffffu) * 0x1p-24f; }
% endfor
//@ clnn_modulo32
/* a word modulo range < 2^32; a range of 0, which ends a process on CPUs, is taken as 1 */
${OV} long clnn_modulo32(long w, long range) { return (long)((uint)w % max((uint)range, 1u)); }
${OV} long8 clnn_modulo32(long8 w, long8 range) { return convert_long8(convert_uint8(w) % max(convert_uint8(range), (uint8)1u)); }
//@ clnn_modulo64
/* two words modulo range, which is 2^64 where it is 0 */
${OV} long clnn_modulo64(long w, long range) {
    const ulong v = rotate((ulong)w, (ulong)32);
    return (long)(range ? v % (ulong)range : v);
}
//@ clnn_sequence_normals
/* two normal numbers of two words each: the sines and cosines of PyTorch's angle, which it rounds to float */
static inline void clnn_sequence_normals(float8 w, float8 v, float8* x, float8* y) {
    const float8 u = clnn_unit24(v), angle = 6.2831855f * u;
    float8 s, c;
    clnn_random_turn_((as_uint8(v) & 0xffffffu) << 8, &s, &c);
    const float8 off = fma((float8)1.7484555e-7f, u, -fma((float8)6.2831855f, u, -angle));
    const float8 r = clnn_random_sqrt_(-2.0f * clnn_random_log_(1.0f - clnn_unit24(w)));
    *x = r * fma(-off, s, c);
    *y = r * fma(off, c, s);
}
% if USE_FP64:
//@ clnn_unit53
/* [0, 1) in steps of 2^-53 */
% for n in ("", "8"):
${OV} double${n} clnn_unit53(double${n} w) { return convert_double${n}(rotate(as_ulong${n}(w), (ulong${n})32) & 0x1fffffffffffffUL) * 0x1p-53; }
% endfor
% endif
//@
