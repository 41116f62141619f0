<%inherit file="/base.cl.mako"/>\
## How often each of 0 .. D - 1 occurs among the indices of chunk c, and the smallest and the greatest of them: whole numbers, so chunks may be
## counted apart. Made for CPUs.
##
## index (N); counts (chunks, D + 1) int32, whose last column counts what is none of these; ends (chunks, 2) int64. All contiguous.
## Geometry: global (chunks), local (1); each work-item counts `chunk` indices, at least one. Limit: N < 2^31.
##
## Parameter  legal values
## TI         dtype row of the index
__kernel void count(IN(${TI.c}, index), OUT(int, counts), OUT(long, ends), const long N, const long D, const long chunk) {
    PTR_IN(${TI.c}, index);
    __global int* mine = counts_p + counts_o + get_global_id(0) * (D + 1);
    const long lo = get_global_id(0) * chunk, hi = min(N, lo + chunk);
    ${TI.c} low = index[lo], high = low;
    for (long d = 0; d <= D; d++) mine[d] = 0;
    long n = lo;
% for many in (8, 1):
    for (; n + ${many} <= hi; n += ${many}) {
% for q in range(many):
        const ${TI.c} v${q} = index[n + ${q}];
% endfor
% for q in range(many):
        low = v${q} < low ? v${q} : low; high = v${q} > high ? v${q} : high;
% endfor
% for q in range(many):
        mine[min((ulong)(long)v${q}, (ulong)D)]++;
% endfor
    }
% endfor
    ends_p[ends_o + 2 * get_global_id(0)] = low;
    ends_p[ends_o + 2 * get_global_id(0) + 1] = high;
}
