<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, n, r] = (b * D + index[b, n, r]) * R + r: where element (b, n, r) of a scatter goes, as a flat position in (B, D, R).
##
## index and out (B, N, R), contiguous. Geometry: global (N * R, B), any local size.
##
## Parameter  legal values
## TI         dtype row of the index
## WRAP       bool: negative indices count from the end
${ix.row(WRAP)}
__kernel void flat_index(IN(${TI.c}, index), OUT(long, out), const long D, const long N, const long R, __global int* err, const int code) {
    const long i = get_global_id(0), b = get_global_id(1);
    if (i >= N * R) return;
    PTR_IN(${TI.c}, index); PTR_OUT(long, out);
    const long at = b * N * R + i, r = R == 1 ? 0 : i % R;
    out[at] = (b * D + clnn_row(index[at], D, err, code)) * R + r;
}
