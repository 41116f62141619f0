<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## counts[c, v] = how often v occurs among the indices of chunk c: whole numbers, so chunks may be counted apart. Made for CPUs.
##
## index (N), counts (chunks, D) int32, zeros at first; both contiguous. Each work-item counts `chunk` indices.
## Geometry: global (chunks), local (1). Limit: N < 2^31.
##
## Parameter  legal values
## TI         dtype row of the index
${ix.row(False)}
__kernel void count(IN(${TI.c}, index), OUT(int, counts), const long N, const long D, const long chunk, __global int* err, const int code) {
    PTR_IN(${TI.c}, index);
    __global int* mine = counts_p + counts_o + get_global_id(0) * D;
    const long lo = get_global_id(0) * chunk, hi = min(N, lo + chunk);
    for (long n = lo; n < hi; n++) mine[clnn_row(index[n], D, err, code)]++;
}
