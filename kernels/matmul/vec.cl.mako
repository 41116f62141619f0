## Vectors of a dtype's compute type: how W neighbouring elements are read, written and transposed.
##
## def                      gives
## vector_io(T, W)          ldv_<dtype>(p) and stv_<dtype>(p, v): W elements at p, converted to and from the compute type
## transpose(V, W, names)   an in-place W x W transpose of the W vectors called names + "0".. (a butterfly of lane swaps)
## lane_sums(V, W, names)   the sums of the lanes of the W vectors called names + "0"..: names + "0" becomes the vector of them
<%def name="vector_io(T, W)">
% if T.name == "float16":
#if defined(CLNN_POCL) || defined(CLNN_INTEL_CPU)   /* conversions are instructions there */
#define ldv_float16(p) clnn_load_float16_${W}(p)
#define stv_float16(p, v) clnn_store_float16_${W}(p, v)
#else
inline float${W} ldv_float16(__global const ushort* p) {
    ushort${W} h = vload${W}(0, p);
    uint${W} em = convert_uint${W}(h & (ushort)0x7fff) << 13;
    float${W} f = as_float${W}(em) * 0x1p112f;
    uint${W} u = em >= (uint${W})0x0f800000u ? (em | 0x7f800000u) : as_uint${W}(f);
    return as_float${W}(u | (convert_uint${W}(h & (ushort)0x8000) << 16));
}
inline void stv_float16(__global ushort* p, float${W} f) {
    uint${W} u = as_uint${W}(f), s = u & 0x80000000u, a = u ^ s;
    uint${W} normal = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13;
    uint${W} tiny = as_uint${W}(as_float${W}(a) + 0.5f) - 0x3f000000u;
    uint${W} r = a < (uint${W})0x38800000u ? tiny : normal;
    r = a >= (uint${W})0x47800000u ? (uint${W})0x7c00u : r;
    r = a > (uint${W})0x7f800000u ? (uint${W})0x7e00u : r;
    vstore${W}(convert_ushort${W}(r | (s >> 16)), 0, p);
}
#endif
% elif T.name == "bfloat16":
#define ldv_bfloat16(p) clnn_load_bfloat16_${W}(p)
#define stv_bfloat16(p, v) clnn_store_bfloat16_${W}(p, v)
% elif T.c == T.acc and T.c in ("float", "double") and W in (2, 4, 8, 16):
#define ldv_${T.name}(p) clnn_read_${T.c}_${W}(p)
#define stv_${T.name}(p, v) clnn_write_${T.c}_${W}(v, p)
% elif T.c == T.acc:
#define ldv_${T.name}(p) vload${W}(0, p)
#define stv_${T.name}(p, v) vstore${W}(v, 0, p)
% else:
#define ldv_${T.name}(p) convert_${T.acc}${W}(vload${W}(0, p))
#define stv_${T.name}(p, v) vstore${W}(convert_${T.c}${W}(v), 0, p)
% endif
</%def>
##
<%def name="transpose(V, W, t)">
<%
    lane = "0123456789abcdef"
    def runs(first, second, h, shift):
        """Lanes of one result: blocks of h lanes taken in turn from both, `shift` lanes further where the block starts."""
        parts = []
        for block in range(0, W, 2 * h):
            s = lane[block + shift:block + shift + h]
            parts += [f"{first}.s{s}", f"{second}.s{s}"]
        return ", ".join(parts)
    stages = [W >> n for n in range(1, W.bit_length())]
%>\
% for h in stages:
% for i in range(W):
% if not i & h:
{ ${V} lo = (${V})(${runs(f"{t}{i}", f"{t}{i + h}", h, 0)}), hi = (${V})(${runs(f"{t}{i}", f"{t}{i + h}", h, h)}); ${t}${i} = lo; ${t}${i + h} = hi; }
% endif
% endfor
% endfor
</%def>
##
<%def name="lane_sums(V, W, t)">
<%
    def lanes(h, odd):
        """Lanes l with bit h of l equal to `odd`, in order."""
        return "s" + "".join("0123456789abcdef"[l] for l in range(W) if bool(l & h) == odd)
    h = W // 2
%>\
% while h:
% for n in range(h):
            ${t}${n} = (${V})(${", ".join(f"{t}{q}.{lanes(h, False)} + {t}{q}.{lanes(h, True)}" for q in (2 * n, 2 * n + 1))});
% endfor
<% h //= 2 %>\
% endwhile
</%def>
