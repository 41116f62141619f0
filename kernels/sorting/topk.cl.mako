<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
## The k first elements of each row in sort order (ties: the lower position first), in that order, for small k.
##
## x (rows, L); values (rows, k), indices (rows, k) int64, all contiguous. Limit: L < 2^31.
## One work-item per chunk of a row at a time keeps the best k in scratch (items, k) and compares each element with the worst of them. Where k is no more than
## there are lanes, the k-th of what is best in each lane of a first part is no better than the k-th of all, so only better ones are looked at. Made for CPUs.
## Results are those of each chunk, (rows, chunks, k); the last chunk takes the rest of the row. Geometry: global (items), local (1).
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
<% UK, I, W, FIRST = ("ulong", "long", 8, 2048) if T.itemsize == 8 else ("uint", "int", 16, 4096) %>\
${order.key(T, DESC)}
${order.key(T, DESC, W)}
__kernel void topk(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), OUT(${UK}, keys), OUT(int, places), const long rows,
                   const long L, const long k, const long items, const long chunk, const long chunks) {
    const long w = get_global_id(0);
    if (w >= items) return;
    __global ${UK}* best = keys_p + keys_o + w * k;
    __global int* place = places_p + places_o + w * k;
    for (long part = w; part < rows * chunks; part += items) {
        __global const ${T.c}* restrict from = x_p + x_o + part / chunks * L;
        const int lo = (int)(part % chunks * chunk), hi = part % chunks == chunks - 1 ? (int)L : lo + (int)chunk;
        int have = 0, i = lo, known = 0;
        ${UK} worst = (${UK})-1;
        if (k <= ${W} && hi - lo >= ${4 * W}) {
            ${UK}${W} low = clnn_keys(from + lo);
            for (int j = lo + ${W}; j + ${W} <= min(hi, lo + ${FIRST}); j += ${W}) low = min(low, clnn_keys(from + j));
            ${UK} lanes[${W}], bound = (${UK})-1;
            ${I}${W} ranks = 0;
            vstore${W}(low, 0, lanes);
            for (int j = 0; j < ${W}; j++) ranks -= (${UK}${W})(lanes[j]) <= low;
            low = select((${UK}${W})((${UK})-1), low, ranks >= (${I}${W})(k));
            vstore${W}(low, 0, lanes);
            for (int j = 0; j < ${W}; j++) bound = min(bound, lanes[j]);
            known = bound != (${UK})-1;
            worst = known ? bound + 1 : worst;
        }
        while (i < hi) {
            /* Most elements are worse than those kept: whole vectors of them are passed over. */
            if (known || have == k) {
                for (; i + ${4 * W} <= hi; i += ${4 * W})
                    if (any((clnn_keys(from + i) < worst) | (clnn_keys(from + i + ${W}) < worst) | (clnn_keys(from + i + ${2 * W}) < worst)
                            | (clnn_keys(from + i + ${3 * W}) < worst))) break;
                for (; i + ${W} <= hi; i += ${W}) if (any(clnn_keys(from + i) < worst)) break;
            }
            for (const int end = min(hi, i + ${W}); i < end; i++) {
                const ${UK} mine = clnn_key(from[i]);
                if (mine >= worst && (known || have == k)) continue;
                int j = have < k ? have++ : have - 1;
                for (; j > 0 && best[j - 1] > mine; j--) { best[j] = best[j - 1]; place[j] = place[j - 1]; }
                best[j] = mine; place[j] = i;
                if (have == k) worst = best[k - 1];
            }
        }
        for (int j = 0; j < k; j++) {
            values_p[values_o + part * k + j] = from[place[j]];
            indices_p[indices_o + part * k + j] = place[j];
        }
    }
}
