<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
## Stable radix sort of long rows in passes over DIGIT bits: count the digits of each chunk, add the counts up, move each chunk's elements.
##
## keys (rows, L) UK, places (rows, L) int32, table (rows, 2^DIGIT, chunks) int32. Limit: L < 2^31.
## Kernel      geometry (any local size)          what it does
## radix_keys  global (L, rows)                   keys = order-preserving integers of x (rows, L)
## radix_count global (chunks, rows)              table[row, digit, chunk] = how often
## radix_move  global (chunks, rows)              elements to where the added-up table says; FIRST: places count 0, 1, ...
## radix_emit  global (L, rows)                   values = x[places], indices = places
##
## Parameter   legal values
## T           dtype row of x
## DESC FIRST  bool
## DIGIT       4..8
<%
    UK = "ulong" if T.itemsize == 8 else "uint"
    D = 1 << DIGIT
%>\
${order.key(T, DESC)}
__kernel void radix_keys(IN(${T.c}, x), OUT(${UK}, keys), const long L) {
    const long i = get_global_id(0), at = get_global_id(1) * L + i;
    if (i >= L) return;
    keys_p[keys_o + at] = clnn_key(x_p[x_o + at]);
}

__kernel void radix_count(IN(${UK}, keys), OUT(int, table), const long L, const long chunk, const long chunks, const long shift) {
    const long c = get_global_id(0), row = get_global_id(1);
    if (c >= chunks) return;
    __global const ${UK}* restrict k = keys_p + keys_o + row * L;
    __global int* restrict t = table_p + table_o + row * ${D} * chunks + c;
    const int s = (int)shift;
    int count[${D}];
    for (int d = 0; d < ${D}; d++) count[d] = 0;
    const long hi = min(L, (c + 1) * chunk);
    for (long i = c * chunk; i < hi; i++) count[(k[i] >> s) & ${D - 1}]++;
    for (int d = 0; d < ${D}; d++) t[d * chunks] = count[d];
}

__kernel void radix_move(IN(${UK}, keys), IN(int, places), OUT(${UK}, keys2), OUT(int, places2), IN(int, table), const long L,
                         const long chunk, const long chunks, const long shift) {
    const long c = get_global_id(0), row = get_global_id(1);
    if (c >= chunks) return;
    __global const ${UK}* restrict k = keys_p + keys_o + row * L;
    __global const int* restrict p = places_p + places_o + row * L;
    __global ${UK}* restrict k2 = keys2_p + keys2_o + row * L;
    __global int* restrict p2 = places2_p + places2_o + row * L;
    __global const int* restrict t = table_p + table_o + row * ${D} * chunks + c;
    const int s = (int)shift;
    int at[${D}];
    for (int d = 0; d < ${D}; d++) at[d] = t[d * chunks];
    const long hi = min(L, (c + 1) * chunk);
    for (long i = c * chunk; i < hi; i++) {
        const ${UK} mine = k[i];
        const int to = at[(mine >> s) & ${D - 1}]++;
        k2[to] = mine;
        p2[to] = ${"(int)i" if FIRST else "p[i]"};
    }
}

__kernel void radix_emit(IN(${T.c}, x), IN(int, places), OUT(${T.c}, values), OUT(long, indices), const long L) {
    const long i = get_global_id(0), row = get_global_id(1) * L;
    if (i >= L) return;
    const int at = places_p[places_o + row + i];
    values_p[values_o + row + i] = x_p[x_o + row + at];
    indices_p[indices_o + row + i] = at;
}
