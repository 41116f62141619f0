## Instructions of x86 processors that multiply words of neighbouring numbers and add the products: 2 bfloat16 (AVX512-BF16) or 4 int8 (AVX512-VNNI).
##
## def                      gives
## instruction(T, W, USE)   dot_words(c, x, y): in each lane c plus the sum of the products of both words; of bytes x holds 0 to 255, y -128 to 127
## reading(T, W)            WORD(p), word(p, step, n), words(p, step, n): a word of neighbours; of n numbers `step` elements apart, zeros behind them; of W
##                          columns side by side; join_rows(p, step, to): of G W columns, G vectors
##
## USE  asm: inline assembly, as PoCL takes it; intrinsic: the name that LLVM has for it, as Intel's runtime takes it (it gives vectors no registers
##      in assembly); plain: what the instruction does, in OpenCL C
<%!
    def within(n, half):
        """Places of the elements of two vectors in turn, n per lane of 16 bytes, from the lower or the upper half of each lane."""
        each = range(half * n // 2, (half + 1) * n // 2)
        return ", ".join(f"{lane * n + i}, {4 * n + lane * n + i}" for lane in range(4) for i in each)

    def lanes(*chosen):
        """Places of the elements of four lanes of two vectors of words."""
        return ", ".join(str(4 * lane + i) for lane in chosen for i in range(4))
%>\
<%def name="instruction(T, W, USE)">
<%
    bfloat = T.name == "bfloat16"
    V, NAME = (f"float{W}", "vdpbf16ps") if bfloat else (f"int{W}", "vpdpbusd")
    LLVM = f"llvm.x86.avx512bf16.dpbf16ps.{32 * W}" if bfloat else f"llvm.x86.avx512.vpdpbusd.{32 * W}"
    PART, COUNT = ("__bf16", 2 * W) if bfloat else ("char", 4 * W)
%>\
% if USE == "asm":
inline ${V} dot_words(${V} c, const uint${W} x, const uint${W} y) {
    __asm__("${NAME} %2, %1, %0" : "+v"(c) : "v"(x), "v"(y));
    return c;
}
% elif USE == "intrinsic":
typedef ${PART} word_parts __attribute__((ext_vector_type(${COUNT})));
${V} dot_parts(${V} c, word_parts x, word_parts y) __asm("${LLVM}");
#define dot_words(c, x, y) dot_parts(c, __builtin_astype(x, word_parts), __builtin_astype(y, word_parts))
% elif bfloat:
inline ${V} dot_words(const ${V} c, const uint${W} x, const uint${W} y) {
    return fma(as_${V}(x << 16), as_${V}(y << 16), fma(as_${V}(x & 0xffff0000u), as_${V}(y & 0xffff0000u), c));
}
% else:
inline ${V} dot_words(${V} c, const uint${W} x, const uint${W} y) {
% for g in range(4):
    c += as_${V}((x >> ${8 * g}) & 0xffu) * (as_${V}(y << ${24 - 8 * g}) >> 24);
% endfor
    return c;
}
% endif
</%def>
##
<%def name="reading(T, W)">
<%
    G, BITS, U = 4 // T.itemsize, 8 * T.itemsize, "ushort" if T.itemsize == 2 else "uchar"
%>\
typedef uint loose_word __attribute__((aligned(1)));
#define WORD(p) (*(__global const loose_word*)(p))
inline uint word(__global const ${T.c}* p, const long step, const int n) {
    uint w = (${U})p[0];
    for (int g = 1; g < n; g++) w |= (uint)(${U})p[g * step] << (${BITS} * g);
    return w;
}
inline uint${W} words(__global const ${T.c}* p, const long step, const int n) {
    uint${W} w = convert_uint${W}(as_${U}${W}(vload${W}(0, p)));
% for g in range(1, G):
    if (n > ${g}) w |= convert_uint${W}(as_${U}${W}(vload${W}(0, p + ${g} * step))) << ${BITS * g};
% endfor
    return w;
}
% if G == 4:
typedef ushort pair_part __attribute__((ext_vector_type(${2 * W})));
% endif
typedef ${U} row_part __attribute__((ext_vector_type(${G * W})));
typedef row_part loose_part __attribute__((aligned(1)));
inline void join_rows(__global const ${T.c}* p, const long step, __local uint${W}* to) {
% for g in range(G):
    const row_part r${g} = *(__global const loose_part*)(p + ${g} * step);
% endfor
% if G == 2:
% for part in range(2):
    to[${part}] = __builtin_astype(__builtin_shufflevector(r0, r1, ${", ".join(f"{part * W + c}, {(part + 2) * W + c}" for c in range(W))}), uint${W});
% endfor
% else:
## Within lanes of 16 bytes first: bytes to pairs, pairs to words; then the lanes of four such vectors are turned.
% for half in range(2):
    const pair_part x${half} = __builtin_astype(__builtin_shufflevector(r0, r1, ${within(16, half)}), pair_part),
                    y${half} = __builtin_astype(__builtin_shufflevector(r2, r3, ${within(16, half)}), pair_part);
% for part in range(2):
    const uint${W} w${2 * half + part} = __builtin_astype(__builtin_shufflevector(x${half}, y${half}, ${within(8, part)}), uint${W});
% endfor
% endfor
% for part in range(2):
    const uint${W} t${part}0 = __builtin_shufflevector(w0, w1, ${lanes(2 * part, 2 * part + 1, 4 + 2 * part, 5 + 2 * part)}),
                   t${part}1 = __builtin_shufflevector(w2, w3, ${lanes(2 * part, 2 * part + 1, 4 + 2 * part, 5 + 2 * part)});
    to[${2 * part}] = __builtin_shufflevector(t${part}0, t${part}1, ${lanes(0, 2, 4, 6)});
    to[${2 * part + 1}] = __builtin_shufflevector(t${part}0, t${part}1, ${lanes(1, 3, 5, 7)});
% endfor
% endif
}
</%def>
