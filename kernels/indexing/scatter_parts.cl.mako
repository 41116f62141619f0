<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, index[n], :] = fold(out[b, index[n], :], src[b, n, :]) for many more n than destinations: chunks of the source fold into destinations of
## their own, which are folded in the chunks' order at the end. The chunks depend on sizes alone, so every run gives equal bits. Made for CPUs.
##
## out (B, D, R) and index (N) contiguous; src walks with strides (sb, sn, sr); parts (chunks - 1, B, D, R), of chunk 1 and on; chunk 0 folds into out.
## Kernel         geometry             what it does
## scatter_parts  (chunks, B), (1, 1)  folds elements [c * chunk, (c + 1) * chunk)
## scatter_join   (ceil(n / per)), (1) out[i] = fold(out[i], parts[:, i]); n = B * D * R, `per` of them per work-item
##
## Parameter  legal values
## T TI       dtype rows of out/src, whose C type is its compute type, and of the index
## OP         add mul max min
## complex    OP in ("add", "mul")
## WRAP       bool: negative indices count from the end
## ONE        bool: R is 1
${ix.row(WRAP, -1)}
<% START = dict(add=T.zero, mul=T.one, max=T.lowest, min=T.highest)[OP] %>\
__kernel void scatter_parts(OUT(${T.c}, out), OUT(${T.c}, parts), IN(${TI.c}, index), IN(${T.c}, src), const long D, const long N, const long R,
                            const long chunk, const long sb, const long sn, const long sr, __global int* err, const int code) {
    const long c = get_global_id(0), b = get_global_id(1), size = D * R, lo = c * chunk, hi = min(N, lo + chunk);
    if (lo >= N) return;
    __global ${T.c}* mine = c == 0 ? out_p + out_o + b * size : parts_p + parts_o + ((c - 1) * get_global_size(1) + b) * size;
    if (c > 0) for (long i = 0; i < size; i++) mine[i] = ${START};
    __global const ${TI.c}* restrict at = index_p + index_o;
    __global const ${T.c}* restrict from = src_p + src_o + b * sb;
    for (long n = lo; n < hi; n++) {
        const long to_row = clnn_row(at[n], D, err, code);
        if (to_row < 0) continue;
% if ONE:
        __global ${T.c}* to = mine + to_row;
        const ${T.c} d = *to, s = from[n * sn];
        *to = ${ix.fold(OP, T)};
% else:
        __global ${T.c}* restrict to = mine + to_row * R;
        __global const ${T.c}* restrict row = from + n * sn;
        long r = 0;
% if OP == "add" and not T.is_complex:
        if (sr == 1) for (; r + 16 <= R; r += 16) vstore16(vload16(0, to + r) + vload16(0, row + r), 0, to + r);
% endif
        for (; r < R; r++) { const ${T.c} d = to[r], s = row[r * sr]; to[r] = ${ix.fold(OP, T)}; }
% endif
    }
}

__kernel void scatter_join(OUT(${T.c}, out), IN(${T.c}, parts), const long n, const long chunks, const long per) {
    const long lo = get_global_id(0) * per, hi = min(n, lo + per);
    if (lo >= n) return;
    PTR_OUT(${T.c}, out);
    for (long c = 1; c < chunks; c++) {
        __global const ${T.c}* restrict part = parts_p + parts_o + (c - 1) * n;
        for (long i = lo; i < hi; i++) { const ${T.c} d = out[i], s = part[i]; out[i] = ${ix.fold(OP, T)}; }
    }
}
