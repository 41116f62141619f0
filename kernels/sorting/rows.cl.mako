<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
<%namespace name="radix" file="/sorting/digits.cl.mako"/>\
## Sorts rows, one work-item per row at a time. Stable. Made for CPUs.
##
## x, values (rows, L) and indices (rows, L) int64, contiguous. Work-item w does rows w, w + items, ... Limit: L < 2^31.
## Kernel     geometry                   what it does
## sort_few   global (items), local (1)  up to FEW elements: each counts those before it, many at once in the lanes of a vector
## sort_rows  global (items), local (1)  radix sort by bytes. Integers: by as few as their range needs (`sorting/digits`); floats: bytes that
##                                       are equal in the whole row are skipped. keys, places: scratch of 2 L per work-item, places int32
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
## FEW        multiple of 16: the kernel sort_few | 0: the kernel sort_rows
<%
    UK, K, W = ("ulong", "long", 8) if T.itemsize == 8 else ("uint", "int", 16)
    INTEGERS = not T.is_floating_point
    KEPT = "ulong" if INTEGERS else UK
    LANES = f"({K}{W})({', '.join(map(str, range(W)))})"
%>\
${order.key(T, DESC)}
% if FEW or INTEGERS:
${order.key(T, DESC, W)}
% endif
% if INTEGERS and not FEW:
${order.unkey(T, DESC)}
${radix.functions(T, 8)}
% endif
% if FEW:
__kernel void sort_few(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), const long rows, const long L, const long items) {
    const long w = get_global_id(0);
    if (w >= items) return;
    ${UK} all[${FEW}];
    int before[${FEW}];
    for (long row = w; row < rows; row += items) {
        __global const ${T.c}* restrict from = x_p + x_o + row * L;
        int i = 0;
        for (; i + ${W} <= L; i += ${W}) vstore${W}(clnn_keys(from + i), 0, all + i);
        if (i < L) {
            vstore${W}(~(${UK}${W})0, 0, all + i);            /* the rest of the last vector comes last */
            for (; i < L; i++) all[i] = clnn_key(from[i]);
        }
        for (i = 0; i < L; i += ${W}) {
            const ${UK}${W} mine = vload${W}(0, all + i);
            ${K}${W} less = 0;                                /* less the number of those before it: a true lane is -1 */
            for (int j = 0; j < i; j++) less += (${UK}${W})(all[j]) <= mine;
            for (int j = i; j < min((int)L, i + ${W}); j++) {
                const ${UK}${W} other = all[j];               /* of equal elements the earlier one comes first */
                less += (other < mine) | ((other == mine) & (${LANES} > (${K}${W})(j - i)));
            }
            for (int j = i + ${W}; j < L; j++) less += (${UK}${W})(all[j]) < mine;
            vstore${W}(${"-less" if W == 16 else "convert_int8(-less)"}, 0, before + i);
        }
        __global ${T.c}* restrict to = values_p + values_o + row * L;
        __global long* restrict at = indices_p + indices_o + row * L;
        for (i = 0; i < L; i++) { to[before[i]] = from[i]; at[before[i]] = i; }
    }
}
% else:
__kernel void sort_rows(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), OUT(${KEPT}, keys), OUT(int, places), const long rows,
                        const long L, const long items) {
    const long w = get_global_id(0);
    if (w >= items) return;
    int count[256];
    for (long row = w; row < rows; row += items) {
        __global const ${T.c}* restrict from = x_p + x_o + row * L;
        __global ${T.c}* restrict to = values_p + values_o + row * L;
        __global long* restrict at = indices_p + indices_o + row * L;
        __global ${KEPT}* k = keys_p + keys_o + w * 2 * L;
        __global ${KEPT}* k2 = k + L;
        __global int* p = places_p + places_o + w * 2 * L;
        __global int* p2 = p + L;
% if INTEGERS:
        ${UK} r[3];
        clnn_range(from, clnn_key(from[0]), 0, L, r);
        int shift, narrow;
        const int passes = clnn_plan(r[0], r[1], r[2], &shift, &narrow);
        for (int pass = 0; pass < passes; pass++) {
            clnn_count(from, k, 0, L, r[0], shift, narrow, pass, count);
% else:
        for (int i = 0; i < L; i++) { k[i] = clnn_key(from[i]); p[i] = i; }
        for (int shift = 0; shift < ${8 * T.itemsize}; shift += 8) {
            for (int d = 0; d < 256; d++) count[d] = 0;
            for (int i = 0; i < L; i++) count[(k[i] >> shift) & 255]++;
            if (count[(k[0] >> shift) & 255] == L) continue;
% endif
            int sum = 0;
            for (int d = 0; d < 256; d++) { const int c = count[d]; count[d] = sum; sum += c; }
% if INTEGERS:
            clnn_move(from, k, p, k2, p2, 0, L, r[0], shift, narrow, pass, count);
% else:
            for (int i = 0; i < L; i++) {
                const ${UK} mine = k[i];
                const int at = count[(mine >> shift) & 255]++;
                k2[at] = mine; p2[at] = p[i];
            }
% endif
            __global ${KEPT}* tk = k; k = k2; k2 = tk;
            __global int* tp = p; p = p2; p2 = tp;
        }
% if INTEGERS:
        clnn_emit(from, k, p, to, at, 0, L, r[0], shift, narrow, passes);
% else:
        for (int i = 0; i < L; i++) { to[i] = from[p[i]]; at[i] = p[i]; }
% endif
    }
}
% endif
