<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
## The element at one place of each row's sorted order, and its position (of equal ones that which a stable sort would put there), without
## sorting: byte by byte from the top, the keys whose byte is not the wanted one are dropped. One work-item per row at a time. Made for CPUs.
##
## x (rows, L); values (rows), indices (rows) int64, contiguous. keys: scratch of L elements per work-item.
## Geometry: global (items), local (1); work-item w does rows w, w + items, ... Limit: L < 2^31.
##
## The kernel select_top gives the first k of each chunk of a row in sort order, but in the order of their positions: values, indices
## (rows, chunks, k); the last chunk takes the rest of the row. Scratch and geometry are those of the other.
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first; for select_top
## WHAT       top: the kernel select_top | place: number `place` of the row | median: the lower median, or a NaN if there is one |
##            nanmedian: of what is not NaN
<%
    UK = "ulong" if T.itemsize == 8 else "uint"
    BITS = 8 if T.name == "bool" else 8 * T.itemsize
    NAN_KEY = f"0x{(1 << BITS) - 1:x}u{'l' if BITS == 64 else ''}"
%>\
${order.key(T, DESC)}
/* The key at place *want of the sorted keys k[0 .. L), which are overwritten; *want becomes its number among equal keys. */
static inline ${UK} clnn_select(__global ${UK}* k, const int L, int* place) {
    int want = *place;
    int left = L;
    ${UK} found = 0;
    for (int shift = ${BITS - 8}; shift >= 0; shift -= 8) {
        int count[256];
        for (int d = 0; d < 256; d++) count[d] = 0;
        for (int i = 0; i < left; i++) count[(k[i] >> shift) & 255]++;
        int digit = 0;
        for (; want >= count[digit]; digit++) want -= count[digit];
        found |= (${UK})digit << shift;
        int kept = 0;
        if (count[digit] < left)
            for (int i = 0; i < left; i++) {
                const ${UK} mine = k[i];
                k[kept] = mine;
                kept += ((mine >> shift) & 255) == (${UK})digit;
            }
        left = count[digit];
    }
    *place = want;
    return found;
}

% if WHAT == "top":
__kernel void select_top(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), OUT(${UK}, keys), const long rows, const long L, const long count,
                         const long items, const long chunk, const long chunks) {
    const long w = get_global_id(0);
    if (w >= items) return;
    __global ${UK}* k = keys_p + keys_o + w * (L - (chunks - 1) * chunk);
    for (long part = w; part < rows * chunks; part += items) {
        __global const ${T.c}* restrict from = x_p + x_o + part / chunks * L;
        const int lo = (int)(part % chunks * chunk), size = part % chunks == chunks - 1 ? (int)L - lo : (int)chunk;
        for (int i = 0; i < size; i++) k[i] = clnn_key(from[lo + i]);
        int want = (int)count - 1;
        const ${UK} last = clnn_select(k, size, &want);
        int kept = 0;
        for (int i = lo; kept < (int)count; i++) {
            const ${UK} mine = clnn_key(from[i]);
            const int equal = mine == last && want >= 0;
            values_p[values_o + part * count + kept] = from[i];
            indices_p[indices_o + part * count + kept] = i;
            want -= equal;
            kept += mine < last || equal;
        }
    }
}
% else:
__kernel void select_place(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), OUT(${UK}, keys), const long rows, const long L, const long place,
                           const long items) {
    const long w = get_global_id(0);
    if (w >= items) return;
    __global ${UK}* k = keys_p + keys_o + w * L;
    for (long row = w; row < rows; row += items) {
        __global const ${T.c}* restrict from = x_p + x_o + row * L;
        for (int i = 0; i < L; i++) k[i] = clnn_key(from[i]);
% if WHAT == "place":
        int want = (int)place;
% else:
        int nans = 0;
        for (int i = 0; i < L; i++) nans += k[i] == ${NAN_KEY};
        int want = ${"nans ? (int)L - nans : (int)(L - 1) / 2" if WHAT == "median" else "max((int)L - nans - 1, 0) / 2"};
% endif
        const ${UK} found = clnn_select(k, (int)L, &want);
        int at = 0;
        for (; at < L; at++) if (clnn_key(from[at]) == found && want-- == 0) break;
        values_p[values_o + row] = from[at];
        indices_p[indices_o + row] = at;
    }
}
% endif
