<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
## Sorts rows, one work-item per row at a time: radix sort by bytes (bytes that are equal in the whole row are skipped); in short rows each
## element counts those before it, many at once in the lanes of a vector. Stable. Made for CPUs.
##
## x, values (rows, L) and indices (rows, L) int64, contiguous. keys, places: scratch of 2 L elements per work-item.
## Geometry: global (items), local (1); work-item w sorts rows w, w + items, ... Limit: L < 2^31.
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
<%
    UK, K, W = ("ulong", "long", 8) if T.itemsize == 8 else ("uint", "int", 16)
    FEW = 64
%>\
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
        __global ${T.c}* restrict to = values_p + values_o + row * L;
        __global long* restrict at = indices_p + indices_o + row * L;
        if (L <= ${FEW}) {
            ${UK} all[${FEW}];
            ${K} before[${FEW}];
            for (int i = 0; i < ${FEW}; i++) all[i] = i < L ? clnn_key(from[i]) : 0;
            const ${K}${W} lane = (${K}${W})(${", ".join(map(str, range(W)))});
            for (int i = 0; i < L; i += ${W}) {
                const ${UK}${W} mine = vload${W}(0, all + i);
                ${K}${W} larger = 0;                              // less the number of those before it: a true lane is -1
                for (int j = 0; j < L; j++) {
                    const ${UK}${W} other = all[j];
                    larger += (other < mine) | ((other == mine) & (lane > (${K}${W})(j - i)));
                }
                vstore${W}(-larger, 0, before + i);
            }
            for (int i = 0; i < L; i++) { to[before[i]] = from[i]; at[before[i]] = i; }
            continue;
        }
        for (int i = 0; i < L; i++) { k[i] = clnn_key(from[i]); p[i] = i; }
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
        for (int i = 0; i < L; i++) { to[i] = from[p[i]]; at[i] = p[i]; }
    }
}
