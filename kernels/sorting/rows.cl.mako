<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
## Sorts rows, one work-item per row at a time: radix sort by bytes (bytes that are equal in the whole row are skipped), insertion sort
## for short rows. Stable. Made for CPUs.
##
## x, values (rows, L) and indices (rows, L) int64, contiguous. keys, places: scratch of 2 L elements per work-item.
## Geometry: global (items), local (1); work-item w sorts rows w, w + items, ... Limit: L < 2^31.
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
<% UK = "ulong" if T.itemsize == 8 else "uint" %>\
${order.key(T, DESC)}
__kernel void sort_rows(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), OUT(${UK}, keys), OUT(int, places), const long rows,
                        const long L, const long items) {
    const long w = get_global_id(0);
    if (w >= items) return;
    for (long row = w; row < rows; row += items) {
        __global const ${T.c}* restrict from = x_p + x_o + row * L;
        __global ${UK}* k = keys_p + keys_o + w * 2 * L;
        __global int* p = places_p + places_o + w * 2 * L;
        __global ${UK}* k2 = k + L;
        __global int* p2 = p + L;
        for (int i = 0; i < L; i++) { k[i] = clnn_key(from[i]); p[i] = i; }
        if (L <= 40) {
            for (int i = 1; i < L; i++) {
                const ${UK} mine = k[i];
                int j = i - 1;
                for (; j >= 0 && k[j] > mine; j--) { k[j + 1] = k[j]; p[j + 1] = p[j]; }
                k[j + 1] = mine; p[j + 1] = i;
            }
        } else {
            for (int shift = 0; shift < ${8 * T.itemsize if T.name != "bool" else 8}; shift += 8) {
                int count[256];
                for (int d = 0; d < 256; d++) count[d] = 0;
                for (int i = 0; i < L; i++) count[(k[i] >> shift) & 255]++;
                if (count[(k[0] >> shift) & 255] == L) continue;
                int sum = 0;
                for (int d = 0; d < 256; d++) { const int c = count[d]; count[d] = sum; sum += c; }
                for (int i = 0; i < L; i++) {
                    const ${UK} mine = k[i];
                    const int at = count[(mine >> shift) & 255]++;
                    k2[at] = mine; p2[at] = p[i];
                }
                __global ${UK}* tk = k; k = k2; k2 = tk;
                __global int* tp = p; p = p2; p2 = tp;
            }
        }
        __global ${T.c}* restrict to = values_p + values_o + row * L;
        __global long* restrict at = indices_p + indices_o + row * L;
        for (int i = 0; i < L; i++) { to[i] = from[p[i]]; at[i] = p[i]; }
    }
}
