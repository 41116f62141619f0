## Sort keys: unsigned integers that order like the values. NaN is the greatest and -0 equals 0, as in PyTorch.
##
## def              gives
## key(T, DESC, W)  clnn_key(v) for a stored value v of dtype row T; DESC reverses the order (so NaN comes first). W > 1: clnn_keys(p), the keys of
##                  the W values from p on
## unkey(T, DESC)   clnn_unkey(k, p): the value at p, which has the key k. Memory is read only where the key does not tell it all
<%!
def facts(T, W=1):
    bits = 8 * T.itemsize
    wide, n = bits == 64, str(W) if W > 1 else ""
    suffix = "ul" if wide else "u"
    inf = dict(float16="0x7c00u", bfloat16="0x7f80u", float32="0x7f800000u", float64="0x7ff0000000000000ul").get(T.name)
    return ("ulong" if wide else "uint") + n, n, f"0x{1 << (bits - 1):x}{suffix}", f"0x{(1 << bits) - 1:x}{suffix}", inf
%>
<%def name="key(T, DESC, W=1)">
<%
    U, N, top, mask, inf = facts(T, W)
    raw = f"as_{U}(v)" if inf and T.itemsize > 2 else f"convert_{U}(v)" if inf or T.c[0] == "u" else f"as_{U}(convert_{U[1:]}(v))"
%>
% if W > 1:
static inline ${U} clnn_keys(__global const ${T.c}* p) {
    const ${T.c}${N} v = vload${N}(0, p);
% else:
static inline ${U} clnn_key(${T.c} v) {
% endif
% if T.name == "bool":
    ${U} k = min(${raw}, (${U})1);
% elif not T.is_signed:
    ${U} k = ${raw};
% elif inf:
    ${U} k = ${raw};
    const ${U} size = k & (${top} - 1);
    k = size == 0 ? (${U})0 : k;
    k = (k & ${top}) != 0 ? (~k & ${mask}) : (k | ${top});
    k = size > ${inf} ? (${U})${mask} : k;
% else:
    ${U} k = (${raw} ^ ${top}) & ${mask};
% endif
    return ${f"~k & {mask}" if DESC else "k"};
}
</%def>
<%def name="unkey(T, DESC)">
<% U, N, top, mask, inf = facts(T) %>
static inline ${T.c} clnn_unkey(${U} k, __global const ${T.c}* p) {
% if DESC:
    k = ~k & ${mask};
% endif
% if not T.is_signed:
    return (${T.c})k;
% elif inf:
    if (k == ${top} || k == ${mask}) return *p;               /* zeros of both signs, every NaN */
    k = (k & ${top}) ? k ^ ${top} : ~k & ${mask};
    return ${"(ushort)k" if T.itemsize == 2 else f"as_{T.c}(k)"};
% else:
    return (${T.c})(k ^ ${top});
% endif
}
</%def>
