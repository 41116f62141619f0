<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
<%namespace name="radix" file="/sorting/digits.cl.mako"/>\
## Stable radix sort of long rows, which few work-items share: each does a chunk of the row. Made for CPUs.
##
## x, values (rows, L), indices (rows, L) int64; keys, keys2 (rows, L) ulong; places, places2 (rows, L) int32, used by wide keys only;
## range (rows, chunks, 3) of keys; table (rows, chunks, 2048) int32. Chunk c is elements [c * chunk, (c + 1) * chunk). Limit: L < 2^31.
## Kernel      geometry                  what it does
## long_range  (chunks, rows)            the smallest and the greatest key of each chunk and the bits that differ from the row's first key
## long_count  (chunks, rows)            how often each digit of pass `pass` occurs in each chunk
## long_move   (chunks, rows)            keys and places to where the digits' counts put them; pass 0 makes them from x
## long_emit   (chunks, rows)            values and indices from the sorted keys
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
<%
    U, W = ("ulong", 8) if T.itemsize == 8 else ("uint", 16)
    D = 2048
%>\
${order.key(T, DESC)}
${order.key(T, DESC, W)}
${order.unkey(T, DESC)}
${radix.functions(T, 11)}
static inline int plan_of(__global const ${U}* range, const long chunks, ${U}* low, int* shift, int* narrow) {
    ${U} high = range[1], differ = range[2];
    *low = range[0];
    for (long c = 1; c < chunks; c++) { *low = min(*low, range[3 * c]); high = max(high, range[3 * c + 1]); differ |= range[3 * c + 2]; }
    return clnn_plan(*low, high, differ, shift, narrow);
}

__kernel void long_range(IN(${T.c}, x), OUT(${U}, range), const long L, const long chunk, const long chunks) {
    const long c = get_global_id(0), row = get_global_id(1);
    if (c >= chunks) return;
    __global const ${T.c}* restrict from = x_p + x_o + row * L;
    ${U} r[3];
    clnn_range(from, clnn_key(from[0]), c * chunk, min(L, (c + 1) * chunk), r);
    for (int j = 0; j < 3; j++) range_p[range_o + 3 * (row * chunks + c) + j] = r[j];
}

__kernel void long_count(IN(${T.c}, x), IN(ulong, keys), IN(${U}, range), OUT(int, table), const long L, const long chunk, const long chunks,
                         const long pass) {
    const long c = get_global_id(0), row = get_global_id(1);
    if (c >= chunks) return;
    ${U} low;
    int shift, narrow;
    const int passes = plan_of(range_p + range_o + 3 * row * chunks, chunks, &low, &shift, &narrow);
    if (pass >= passes) return;
    int count[${D}];
    clnn_count(x_p + x_o + row * L, keys_p + keys_o + row * L, c * chunk, min(L, (c + 1) * chunk), low, shift, narrow, (int)pass, count);
    __global int* restrict t = table_p + table_o + (row * chunks + c) * ${D};
    for (int d = 0; d < ${D}; d++) t[d] = count[d];
}

__kernel void long_move(IN(${T.c}, x), IN(ulong, keys), IN(int, places), OUT(ulong, keys2), OUT(int, places2), IN(${U}, range), IN(int, table),
                        const long L, const long chunk, const long chunks, const long pass) {
    const long c = get_global_id(0), row = get_global_id(1), at0 = row * L;
    if (c >= chunks) return;
    ${U} low;
    int shift, narrow;
    const int passes = plan_of(range_p + range_o + 3 * row * chunks, chunks, &low, &shift, &narrow);
    if (pass >= passes) return;
    int at[${D}], all[${D}];
    for (int d = 0; d < ${D}; d++) at[d] = all[d] = 0;
    for (long o = 0; o < chunks; o++) {
        __global const int* restrict q = table_p + table_o + (row * chunks + o) * ${D};
        for (int d = 0; d < ${D}; d++) all[d] += q[d];
        if (o < c) for (int d = 0; d < ${D}; d++) at[d] += q[d];
    }
    int sum = 0;
    for (int d = 0; d < ${D}; d++) { at[d] += sum; sum += all[d]; }
    clnn_move(x_p + x_o + at0, keys_p + keys_o + at0, places_p + places_o + ${"at0" if T.itemsize == 8 else "0"}, keys2_p + keys2_o + at0,
              places2_p + places2_o + ${"at0" if T.itemsize == 8 else "0"}, c * chunk, min(L, (c + 1) * chunk), low, shift, narrow, (int)pass, at);
}

__kernel void long_emit(IN(${T.c}, x), IN(ulong, keys), IN(int, places), IN(ulong, keys2), IN(int, places2), IN(${U}, range), OUT(${T.c}, values),
                        OUT(long, indices), const long L, const long chunk, const long chunks) {
    const long c = get_global_id(0), row = get_global_id(1), at0 = row * L;
    if (c >= chunks) return;
    ${U} low;
    int shift, narrow;
    const int passes = plan_of(range_p + range_o + 3 * row * chunks, chunks, &low, &shift, &narrow);
    const int odd = passes & 1;
    clnn_emit(x_p + x_o + at0, (odd ? keys2_p + keys2_o : keys_p + keys_o) + at0, (odd ? places2_p + places2_o : places_p + places_o)
              + ${"at0" if T.itemsize == 8 else "0"}, values_p + values_o + at0, indices_p + indices_o + at0,
              c * chunk, min(L, (c + 1) * chunk), low, shift, narrow,
              passes);
}
