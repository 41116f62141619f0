<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, index[n], :] = fold(out[b, index[n], :], src[b, n, :]), in the order of n for each destination, so every run gives equal bits.
##
## out (B, D, R) and index (N) contiguous; src walks with strides (sb, sn, sr). Each work-item owns `own` destinations of one b and reads
## all indices: no two write to the same place. Made for drivers with few work-items at a time (CPUs).
## ONE: R is 1, and index and source are walked without a branch per element: those of other owners leave the first own destination as it is.
## Geometry: global (ceil(D / own), B), local (1, 1).
##
## Parameter  legal values
## T TI       dtype rows of out/src and of the index
## OP         add mul max min set
## complex    OP in ("add", "mul", "set")
## WRAP       bool: negative indices count from the end
## ONE        bool
${ix.row(WRAP, -1)}
<% VEC = OP == "add" and T.c == T.acc and not T.is_complex %>\
__kernel void scatter_rows(OUT(${T.c}, out), IN(${TI.c}, index), IN(${T.c}, src), const long D, const long N, const long R, const long own,
                           const long sb, const long sn, const long sr, __global int* err, const int code) {
    PTR_OUT(${T.c}, out); PTR_IN(${TI.c}, index); PTR_IN(${T.c}, src);
    const long b = get_global_id(1), lo = get_global_id(0) * own, hi = min(D, lo + own);
    if (lo >= hi) return;
% if ONE:
    __global ${T.c}* to = out + b * D + lo;
    __global const ${T.c}* from = src + b * sb;
    const ulong mine = (ulong)(hi - lo);
    for (long n = 0; n < N; n++) {
        const ulong row = (ulong)(clnn_row(index[n], D, err, code) - lo);
        const int owner = row < mine;
        const ulong at = owner ? row : 0;
        const ${T.acc} d = ${T.load}(to, at), s = ${T.load}(from, n * sn);
        ${T.store}(to, at, owner ? (${ix.fold(OP, T)}) : d);
    }
% else:
    for (long n = 0; n < N; n++) {
        const long row = clnn_row(index[n], D, err, code);
        if (row < lo || row >= hi) continue;
        __global ${T.c}* to = out + (b * D + row) * R;
        __global const ${T.c}* from = src + b * sb + n * sn;
        long r = 0;
% if VEC:
        if (sr == 1) for (; r + 16 <= R; r += 16) vstore16(vload16(0, to + r) + vload16(0, from + r), 0, to + r);
% endif
        for (; r < R; r++) {
            const ${T.acc} d = ${T.load}(to, r), s = ${T.load}(from, r * sr);
            ${T.store}(to, r, (${ix.fold(OP, T)}));
        }
    }
% endif
}
