<%inherit file="/base.cl.mako"/>\
## out[row, i] = where values[row, i] would be inserted into the sorted row of `sorted` so that it stays sorted (binary search).
##
## sorted (rows or 1, L), values and out (rows, n), contiguous. Geometry: global (n, rows), any local size.
##
## Parameter  legal values
## T TO       dtype rows of sorted/values and of out
## RIGHT      bool: after equal elements instead of before
__kernel void search(IN(${T.c}, sorted), IN(${T.c}, values), OUT(${TO.c}, out), const long L, const long n, const long step) {
    const long i = get_global_id(0), row = get_global_id(1);
    if (i >= n) return;
    __global const ${T.c}* restrict s = sorted_p + sorted_o + row * step;
    const ${T.acc} v = ${T.load}((values_p + values_o), row * n + i);
    long lo = 0, hi = L;
    while (lo < hi) {
        const long mid = (lo + hi) >> 1;
        if (!(${T.load}(s, mid) ${">" if RIGHT else ">="} v)) lo = mid + 1; else hi = mid;
    }
    out_p[out_o + row * n + i] = (${TO.c})lo;
}
