<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## key[n] = the row that index[n] means, as int32, D where there is none: what gets sorted before `segments`.
##
## index, key (N), contiguous. Geometry: global (N), any local size. Limit: D < 2^31.
##
## Parameter  legal values
## TI         dtype row of the index
## WRAP       bool: negative indices count from the end
${ix.row(WRAP, "size")}
__kernel void keys(IN(${TI.c}, index), OUT(int, key), const long D, const long N, __global int* err, const int code) {
    const long n = get_global_id(0);
    if (n >= N) return;
    PTR_IN(${TI.c}, index); PTR_OUT(int, key);
    key[n] = (int)clnn_row(index[n], D, err, code);
}
