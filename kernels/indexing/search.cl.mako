<%inherit file="/base.cl.mako"/>\
## out[row, i] = where values[row, i] would be inserted into the sorted row of `sorted` so that it stays sorted: binary search without a branch
## on the data.
##
## sorted (rows or 1, L), values and out (rows, n), contiguous. Limits: 0 < L < 2^31. Geometry: global (ceil(n / MANY), rows), any local size.
##
## Parameter  legal values
## T TO       dtype rows of sorted/values and of out
## RIGHT      bool: after equal elements instead of before
## MANY       values of a work-item; more than one for drivers that vectorise loops: their searches wait for memory together
__kernel void search(IN(${T.c}, sorted), IN(${T.c}, values), OUT(${TO.c}, out), const long L, const long n, const long step) {
    const long i = get_global_id(0) * ${MANY}, row = get_global_id(1);
    if (i >= n) return;
    __global const ${T.c}* restrict s = sorted_p + sorted_o + row * step;
    const int count = (int)min(n - i, (long)${MANY});
    int lo[${MANY}];
    ${T.acc} v[${MANY}];
    for (int m = 0; m < ${MANY}; m++) { lo[m] = 0; v[m] = ${T.load}((values_p + values_o), row * n + i + (m < count ? m : 0)); }
    int left = (int)L;
    for (; left > 1; left -= left >> 1) {
        const int half_ = left >> 1;
        for (int m = 0; m < ${MANY}; m++) lo[m] += !(${T.load}(s, lo[m] + half_ - 1) ${">" if RIGHT else ">="} v[m]) ? half_ : 0;
    }
    for (int m = 0; m < count; m++)
        out_p[out_o + row * n + i + m] = (${TO.c})(lo[m] + (!(${T.load}(s, lo[m]) ${">" if RIGHT else ">="} v[m]) ? 1 : 0));
}
