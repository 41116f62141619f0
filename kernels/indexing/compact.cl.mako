<%inherit file="/base.cl.mako"/>\
## Finding the elements that are not zero, or that differ from the one before, in order: count them per chunk, add the counts up (sorting/scan), then write.
##
## x (n) contiguous; counts (chunks) int32. Geometry: global (chunks), any local size.
## Kernel         what it does
## count_nonzero  counts[c] = how many in chunk c
## find_nonzero   out[d, k] = index of the k-th along dimension d, int64; counts were added up
## rank_nonzero   out[i] = how many in x[0..i], int64, one less where CHANGED; counts were added up
## find_runs      values[k] = the k-th, out[k] = its position, where PLACES; CHANGED, RANK 1
## run_lengths    from each position to the next, the last to n; global (count), any local size
##
## Parameter  legal values
## T          dtype row of x
## RANK       dimensions of x, whose sizes s0.. find_nonzero takes; 1: positions in flat x
## CHANGED    False: what is not zero, True: the first element and what is not equal to the one before. PLACES True | False: of find_runs
<% HIT = f"(i == 0 || {T.load}(x, i) != {T.load}(x, i - 1))" if CHANGED else f"({T.load}(x, i) != 0)" %>\
__kernel void count_nonzero(IN(${T.c}, x), OUT(int, counts), const long n, const long chunk, const long chunks) {
    const long c = get_global_id(0);
    if (c >= chunks) return;
    PTR_IN(${T.c}, x);
    const long hi = min(n, (c + 1) * chunk);
    int k = 0;
% if CHANGED:
    k = c == 0;
    for (long i = max(1L, c * chunk); i < hi; i++) k += ${T.load}(x, i) != ${T.load}(x, i - 1);
% else:
    for (long i = c * chunk; i < hi; i++) k += ${T.load}(x, i) != 0;
% endif
    counts_p[counts_o + c] = k;
}

__kernel void find_nonzero(IN(${T.c}, x), IN(int, counts), IN(int, total), OUT(long, out), const long chunk, const long chunks,
                           ${", ".join(f"const long s{d}" for d in range(RANK))}) {
    const long c = get_global_id(0);
    if (c >= chunks) return;
    PTR_IN(${T.c}, x); PTR_OUT(long, out);
    const long end = c + 1 < chunks ? counts_p[counts_o + c + 1] : total_p[total_o];
    long k = counts_p[counts_o + c], i = c * chunk;
% if RANK == 1:
    for (; k < end; i++) { out[k] = i; k += ${T.load}(x, i) != 0; }    /* no branch to mispredict */
% else:
    const long count = total_p[total_o];
    long i0 = i;
% for d in range(RANK - 1, 0, -1):
    long i${d} = i0 % s${d};
    i0 /= s${d};
% endfor
    while (k < end) {
        for (; k < end && i${RANK - 1} < s${RANK - 1}; i++) {
            ${" ".join(f"out[count * {d} + k] = i{d};" if d else "out[k] = i0;" for d in range(RANK))}
            i${RANK - 1}++;
            k += ${T.load}(x, i) != 0;
        }
% for d in range(RANK - 1, 0, -1):
        if (i${d} == s${d}) { i${d} = 0; i${d - 1}++; }
% endfor
    }
% endif
}

__kernel void rank_nonzero(IN(${T.c}, x), IN(int, counts), OUT(long, out), const long n, const long chunk, const long chunks) {
    const long c = get_global_id(0);
    if (c >= chunks) return;
    PTR_IN(${T.c}, x); PTR_OUT(long, out);
    const long hi = min(n, (c + 1) * chunk);
    long k = counts_p[counts_o + c];
    for (long i = c * chunk; i < hi; i++) { k += ${HIT}; out[i] = k${" - 1" if CHANGED else ""}; }
}
% if CHANGED:

__kernel void find_runs(IN(${T.c}, x), IN(int, counts), IN(int, total), OUT(${T.c}, values), OUT(long, out), const long chunk, const long chunks) {
    const long c = get_global_id(0);
    if (c >= chunks) return;
    PTR_IN(${T.c}, x); PTR_OUT(${T.c}, values); PTR_OUT(long, out);
    const long end = c + 1 < chunks ? counts_p[counts_o + c + 1] : total_p[total_o];
    long k = counts_p[counts_o + c], i = c * chunk;
    for (; k < end; i++) {                                             /* no branch to mispredict */
        values[k] = x[i];
% if PLACES:
        out[k] = i;
% endif
        k += ${HIT};
    }
}

__kernel void run_lengths(IN(long, at), OUT(long, lengths), const long count, const long n) {
    const long k = get_global_id(0);
    if (k >= count) return;
    PTR_IN(long, at);
    lengths_p[lengths_o + k] = (k + 1 < count ? at[k + 1] : n) - at[k];
}
% endif
