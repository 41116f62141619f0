<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
## The k first elements of each row in sort order (ties: the lower position first), in that order, for small k.
##
## x (rows, L); values (rows, k), indices (rows, k) int64, all contiguous. Limit: L < 2^31.
## LOOP: one work-item per chunk of a row at a time keeps the best k in scratch (items, k) and compares each element with the worst of them.
##       Results are those of each chunk, (rows, chunks, k); the last chunk takes the rest of the row. Geometry: global (items), local (1).
## else: one work-group per row; k rounds find the first element after the one found before. Geometry: global (rows * LOCAL), local (LOCAL).
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
## LOOP       bool
## LOCAL      power of two, the work-group size of the other form
<% UK, W = ("ulong", 8) if T.itemsize == 8 else ("uint", 16) %>\
${order.key(T, DESC)}
% if LOOP:
${order.key(T, DESC, W)}
% endif
__kernel void topk(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), OUT(${UK}, keys), OUT(int, places), const long rows,
                   const long L, const long k, const long items, const long chunk, const long chunks) {
% if LOOP:
    const long w = get_global_id(0);
    if (w >= items) return;
    __global ${UK}* best = keys_p + keys_o + w * k;
    __global int* place = places_p + places_o + w * k;
    for (long part = w; part < rows * chunks; part += items) {
        __global const ${T.c}* restrict from = x_p + x_o + part / chunks * L;
        const int lo = (int)(part % chunks * chunk), hi = part % chunks == chunks - 1 ? (int)L : lo + (int)chunk;
        int have = 0, i = lo;
        ${UK} worst = (${UK})-1;
        while (i < hi) {
            /* Most elements are worse than those kept: whole vectors of them are passed over. */
            if (have == k) {
                for (; i + ${4 * W} <= hi; i += ${4 * W})
                    if (any((clnn_keys(from + i) < worst) | (clnn_keys(from + i + ${W}) < worst) | (clnn_keys(from + i + ${2 * W}) < worst)
                            | (clnn_keys(from + i + ${3 * W}) < worst))) break;
                for (; i + ${W} <= hi; i += ${W}) if (any(clnn_keys(from + i) < worst)) break;
            }
            for (const int end = min(hi, i + ${W}); i < end; i++) {
                const ${UK} mine = clnn_key(from[i]);
                if (have == k && mine >= worst) continue;
                int j = have < k ? have++ : have - 1;
                for (; j > 0 && best[j - 1] > mine; j--) { best[j] = best[j - 1]; place[j] = place[j - 1]; }
                best[j] = mine; place[j] = i;
                worst = best[have - 1];
            }
        }
        for (int j = 0; j < k; j++) {
            values_p[values_o + part * k + j] = from[place[j]];
            indices_p[indices_o + part * k + j] = place[j];
        }
    }
% else:
    __local ${UK} lk[${LOCAL}];
    __local int lp[${LOCAL}];
    const int l = get_local_id(0);
    const long row = get_group_id(0);
    __global const ${T.c}* restrict from = x_p + x_o + row * L;
    ${UK} last = 0;
    int lastp = -1;
    for (int j = 0; j < k; j++) {
        ${UK} mine = (${UK})-1;
        int place = 0x7fffffff;
        for (int i = l; i < L; i += ${LOCAL}) {
            const ${UK} v = clnn_key(from[i]);
            const int after = v > last || (v == last && i > lastp);
            if (after && (v < mine || (v == mine && i < place))) { mine = v; place = i; }
        }
        lk[l] = mine; lp[l] = place;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int s = ${LOCAL // 2}; s > 0; s >>= 1) {
            if (l < s && (lk[l + s] < lk[l] || (lk[l + s] == lk[l] && lp[l + s] < lp[l]))) { lk[l] = lk[l + s]; lp[l] = lp[l + s]; }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        last = lk[0]; lastp = lp[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l == 0) { values_p[values_o + row * k + j] = from[lastp]; indices_p[indices_o + row * k + j] = lastp; }
    }
% endif
}
