<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, index[n], :] = src[b, n, :], one work-item per element; for indices that are all different, or with the winners of `winner`.
##
## out (B, D, R) and index (N) contiguous; src walks with strides (sb, sn, sr); win (D) int32 or unused.
## Geometry: global (R, N, B), any local size.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong
## TI         dtype row of the index
## WRAP WIN   bool: negative indices count from the end; only the winner of a destination writes
${ix.row(WRAP, -1)}
__kernel void write_rows(OUT(${U}, out), IN(${TI.c}, index), IN(${U}, src), IN(int, win), const long D, const long N, const long R,
                         const long sb, const long sn, const long sr, __global int* err, const int code) {
    const long r = get_global_id(0), n = get_global_id(1), b = get_global_id(2);
    if (r >= R || n >= N) return;
    PTR_OUT(${U}, out); PTR_IN(${TI.c}, index); PTR_IN(${U}, src); PTR_IN(int, win);
    const long row = clnn_row(index[n], D, err, code);
    if (row < 0) return;
% if WIN:
    if (win[row] != (int)(n + 1)) return;
% endif
    out[(b * D + row) * R + r] = src[b * sb + n * sn + r * sr];
}
