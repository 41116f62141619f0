<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, key[n], :] = fold over the run of equal keys of src[b, order[n], :]: a scatter over indices that were sorted first (stably, so
## that each destination folds in the order of the source and every run gives equal bits).
##
## out (B, D, R) contiguous; key, order (N) int32, where APART (B, N); src walks with strides (sb, sn, sr). The work-item at the start of a run does the run.
## Geometry: global (R, N, B), any local size. Limits: D, N < 2^31.
##
## Parameter  legal values
## T          dtype row of out and src
## OP         add mul max min set
## APART      bool: keys of each b
## complex    OP in ("add", "mul", "set")
__kernel void segments(OUT(${T.c}, out), IN(int, key), IN(int, order), IN(${T.c}, src), const long D, const long N, const long R,
                       const long sb, const long sn, const long sr) {
    const long r = get_global_id(0), n = get_global_id(1), b = get_global_id(2);
    if (r >= R || n >= N) return;
    PTR_OUT(${T.c}, out); PTR_IN(int, key); PTR_IN(int, order); PTR_IN(${T.c}, src);
% if APART:
    key += b * N; order += b * N;
% endif
    const int mine = key[n], row = mine & 0x7fffffff;         /* sort keys of int32 have their sign bit flipped */
    if (row >= D || (n > 0 && key[n - 1] == mine)) return;
    const long at = (b * D + row) * R + r;
    ${T.acc} d = ${T.load}(out, at);
    for (long m = n; m < N && key[m] == mine; m++) {
        const ${T.acc} s = ${T.load}(src, b * sb + order[m] * sn + r * sr);
        d = ${ix.fold(OP, T)};
    }
    ${T.store}(out, at, d);
}
