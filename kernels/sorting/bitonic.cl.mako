<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
## Sorts rows of up to SIZE elements, one work-group per row, in local memory. Stable: equal keys are ordered by position. Made for GPUs.
##
## x, values (rows, L) and indices (rows, L) int64, contiguous. Geometry: global (rows * local), any local size.
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
## SIZE       power of two >= L; SIZE * (key bytes + 4) must fit local memory
<% UK = "ulong" if T.itemsize == 8 else "uint" %>\
${order.key(T, DESC)}
__kernel void bitonic(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), const long L) {
    __local ${UK} k[${SIZE}];
    __local int p[${SIZE}];
    const int l = get_local_id(0), step = get_local_size(0);
    const long row = get_group_id(0);
    __global const ${T.c}* restrict from = x_p + x_o + row * L;
    for (int i = l; i < ${SIZE}; i += step) { k[i] = i < L ? clnn_key(from[i]) : (${UK})-1; p[i] = i; }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int size = 2; size <= ${SIZE}; size <<= 1)
        for (int half_ = size >> 1; half_ > 0; half_ >>= 1) {
            for (int t = l; t < ${SIZE // 2}; t += step) {
                const int a = 2 * t - (t & (half_ - 1)), b = a + half_;
                const int up = (a & size) == 0;
                const ${UK} ka = k[a], kb = k[b];
                const int pa = p[a], pb = p[b];
                const int greater = ka > kb || (ka == kb && pa > pb);
                if (greater == up) { k[a] = kb; k[b] = ka; p[a] = pb; p[b] = pa; }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    __global ${T.c}* restrict to = values_p + values_o + row * L;
    __global long* restrict at = indices_p + indices_o + row * L;
    for (int i = l; i < L; i += step) { to[i] = from[p[i]]; at[i] = p[i]; }
}
