<%inherit file="/base.cl.mako"/>\
## Equal keys that a stable sort left in their former order, put into random order (Fisher & Yates): what makes any order of all elements as likely as another.
##
## keys (n) int32 sorted, order (n) int64 in the same order, in fresh memory; draws (n) the keys as they were drawn, of which two are the seed.
## Geometry: global (n), any local size; the work-item at the start of a run of equal keys does the run. Few are equal.
__kernel void untie(IN(int, keys), OUT(long, order), IN(int, draws), const long n) {
    const long i = get_global_id(0);
    if (i + 1 >= n) return;
    PTR_IN(int, keys); PTR_OUT(long, order); PTR_IN(int, draws);
    const int mine = keys[i];
    if (keys[i + 1] != mine || (i > 0 && keys[i - 1] == mine)) return;
    const long seed = (long)((ulong)(uint)draws[0] << 32 | (uint)draws[1]);
    long count = 2;
    while (i + count < n && keys[i + count] == mine) count++;
    for (long j = count - 1; j > 0; j--) {
        const long k = (long)((ulong)clnn_random_word(seed, 0, 4 * (i + j)) * (ulong)(j + 1) >> 32), v = order[i + j];
        order[i + j] = order[i + k];
        order[i + k] = v;
    }
}
