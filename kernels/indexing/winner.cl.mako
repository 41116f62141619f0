<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## win[index[n]] = the largest n + 1 that goes to this destination: the last write wins, in every run.
##
## index (N) contiguous; win (D), int32, starts as zeros. Geometry: global (N), any local size. Integer atomics give one result in any order.
##
## Parameter  legal values
## TI         dtype row of the index
## WRAP       bool: negative indices count from the end
${ix.row(WRAP, -1)}
__kernel void winner(IN(${TI.c}, index), OUT(int, win), const long D, const long N, __global int* err, const int code) {
    const long n = get_global_id(0);
    if (n >= N) return;
    PTR_IN(${TI.c}, index);
    const long row = clnn_row(index[n], D, err, code);
    if (row >= 0) atomic_max((volatile __global int*)(win_p + win_o + row), (int)(n + 1));
}
