<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, index[b, n, r], r] = fold(that, src[b, n, r]), in the order of n for each column (b, r), so every run gives equal bits.
##
## out (B, D, R) and index (B, N, R), with SHARED (N), contiguous; src walks with strides (sb, sn, sr).
## A work-item owns `width` columns and, of each, the destinations [own * k, own * (k + 1)): no two write to the same place.
## Geometry: global (ceil(R / width), B, ceil(D / own)), any local size.
##
## Parameter  legal values
## T TI       dtype rows of out/src and of the index
## OP         add mul max min set
## complex    OP in ("add", "mul", "set")
## WRAP       bool: negative indices count from the end
## SHARED     bool: one index per n for all columns
## WIDE ROWS  numbers: where ROWS is not 0, `width` is WIDE, `own` is D, up to ROWS, and columns are worked on in memory of their own: rows that
##            are a power of 2 apart share few places of the caches
__kernel void scatter_columns(OUT(${T.c}, out), IN(${TI.c}, index), IN(${T.c}, src), const long D, const long N, const long R,
                              const long width, const long own, const long sb, const long sn, const long sr, __global int* err, const int code) {
    PTR_OUT(${T.c}, out); PTR_IN(${TI.c}, index); PTR_IN(${T.c}, src);
    const long b = get_global_id(1), r0 = get_global_id(0) * width, r1 = min(R, r0 + width);
    const long lo = get_global_id(2) * own, hi = min(D, lo + own);
    const ulong mine = hi > lo ? (ulong)(hi - lo) : 0;
% if not SHARED:
    if (R == 1) {           /* one column: nothing but the element itself is left in the loop */
        __global ${T.c}* to = out + b * D + lo;
        __global const ${T.c}* from = src + b * sb;
        __global const ${TI.c}* at = index + b * N;
        for (long n = 0; n < N; n++) {
            const long v = at[n], row = ${"v < 0 ? v + D : v" if WRAP else "v"};
            const ulong place = (ulong)(row - lo);
            if (place < mine) {
                const ${T.acc} d = ${T.load}(to, place), s = ${T.load}(from, n * sn);
                ${T.store}(to, place, (${ix.fold(OP, T)}));
            } else if ((ulong)row >= (ulong)D) CLNN_FAIL(err, code, v);
        }
        return;
    }
% endif
% if ROWS:
    ${T.c} near[${ROWS * WIDE}];
    const int columns = (int)(r1 - r0);
    __global ${T.c}* to = out + b * D * R + r0;
    for (int d = 0; d < D; d++)
        for (int c = 0; c < columns; c++) near[d * ${WIDE} + c] = to[d * R + c];
    for (long n = 0; n < N; n++) {
        __global const ${TI.c}* ask = index + (b * N + n) * R + r0;
        __global const ${T.c}* from = src + b * sb + n * sn + r0 * sr;
        for (int c = 0; c < columns; c++) {
            const long v = ask[c], row = ${"v < 0 ? v + D : v" if WRAP else "v"};
            if ((ulong)row >= (ulong)D) { CLNN_FAIL(err, code, v); continue; }
            const int at = (int)row * ${WIDE} + c;
            const ${T.acc} d = ${T.load}(near, at), s = ${T.load}(from, c * sr);
            ${T.store}(near, at, (${ix.fold(OP, T)}));
        }
    }
    for (int d = 0; d < D; d++)
        for (int c = 0; c < columns; c++) to[d * R + c] = near[d * ${WIDE} + c];
    return;
% endif
    for (long n = 0; n < N; n++)
        for (long r = r0; r < r1; r++) {
            const long v = index[${"n" if SHARED else "(b * N + n) * R + r"}], row = ${"v < 0 ? v + D : v" if WRAP else "v"};
            if ((ulong)(row - lo) >= mine) {
                if ((ulong)row >= (ulong)D) CLNN_FAIL(err, code, v);
                continue;
            }
            const long at = (b * D + row) * R + r;
            const ${T.acc} d = ${T.load}(out, at), s = ${T.load}(src, b * sb + n * sn + r * sr);
            ${T.store}(out, at, (${ix.fold(OP, T)}));
        }
}
