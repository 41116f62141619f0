<%inherit file="/base.cl.mako"/>\
## The numbers below n in random order (Fisher & Yates): the i-th changes places with one of those from i on. A swap needs the ones before it, so one work-item
## makes them all.
##
## words (n - 1) uint32, one per swap; order (n) int64
## geometry: one work-item
__kernel void permutation(IN(uint, words), OUT(long, order), const long n) {
    PTR_IN(uint, words); PTR_OUT(long, order);
    for (long i = 0; i < n; i++) order[i] = i;
    for (long i = 0; i < n - 1; i++) {
        const long j = i + words[i] % (uint)(n - i), v = order[j];
        order[j] = order[i];
        order[i] = v;
    }
}
