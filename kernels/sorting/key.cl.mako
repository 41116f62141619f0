## Sort keys: unsigned integers that order like the values. NaN is the greatest and -0 equals 0, as in PyTorch.
##
## key(T, DESC)  defines clnn_key(v) for a stored value v of dtype row T; DESC reverses the order (so NaN comes first).
<%def name="key(T, DESC)">
<%
    bits = 8 * T.itemsize
    wide = bits == 64
    U = "ulong" if wide else "uint"
    top = f"0x{1 << (bits - 1):x}u{'l' if wide else ''}"
    mask = f"0x{(1 << bits) - 1:x}u{'l' if wide else ''}"
    inf = dict(float16="0x7c00u", bfloat16="0x7f80u", float32="0x7f800000u", float64="0x7ff0000000000000ul").get(T.name)
%>
static inline ${U} clnn_key(${T.c} v) {
% if T.name == "bool":
    ${U} k = v != 0;
% elif T.name == "uint8":
    ${U} k = v;
% elif inf:
    ${U} k = ${"v" if T.itemsize == 2 else "as_" + U + "(v)"};
    const ${U} size = k & (${top} - 1);
    k = size == 0 ? 0 : k;
    k = (k & ${top}) ? (~k & ${mask}) : (k | ${top});
    k = size > ${inf} ? ${mask} : k;
% else:
    ${U} k = ((${U})v ^ ${top}) & ${mask};
% endif
    return ${f"~k & {mask}" if DESC else "k"};
}
</%def>
