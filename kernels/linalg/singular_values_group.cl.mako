<%inherit file="/base.cl.mako"/>\
<%namespace name="group" file="/linalg/group.cl.mako"/>\
## Singular values in descending order: pairs of columns, of which several are turned at a time, are rotated against each other until all are orthogonal
## (one-sided Jacobi; Hestenes, 1958, in the order of Brent and Luk, 1985).
##
## A (count, m, n) with m >= n and strides batch, rs and cs; values (count, n); failed (count): 1 where A holds what is not finite, or the method does not
## converge.
##
## Geometry: a work-group per matrix, of 8 to 256 work-items: TEAM of them to a pair, which divides their number.
##
## parameter  values         meaning
## T          float32 float64
## ROOM       number         most numbers of a matrix of S x E, where S is m, or m + 1 of an even one, and E is n, rounded up to an even number
## LEAST      number         most columns
<%
    C, TEAM = T.c, 8
    eps = "1.2e-7f" if C == "float" else "2.2e-16"
%>\
${group.scale(T)}
${group.pairs()}
__kernel void linalg_singular_values_group(IN(${C}, A), OUT(${C}, values), OUT(int, failed), const long rows, const long columns, const long batch,
                                           const long rs, const long cs) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, values);
    PTR_OUT(int, failed);
    __local ${C} w[${ROOM}], part[768], size[${LEAST}];
    __local int turned[1];
    const long z = get_group_id(0);
    const int m = (int)rows, n = (int)columns, s = m | 1, even = n + n % 2, l = get_local_id(0), all = get_local_size(0);
    const int lane = l % ${TEAM}, team = l - lane, teams = all / ${TEAM};
    const ${C} least = ${eps} * ${eps} / 64;                                  // of what is of size 1
    for (int e = l; e < even * s; e += all) {
        const int j = e / s, i = e - j * s;
        w[e] = j < n && i < m ? A[z * batch + i * rs + j * cs] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ${C} back;
    const int bad = group_scale(w, even * s, part, &back);
    int on = 1;
    for (int sweep = 0; sweep < 40 && on; sweep++) {
        if (l == 0) turned[0] = 0;
        for (int round = 0; round < even - 1; round++)
            for (int first = 0; first < even / 2; first += teams) {
                const int k = first + team / ${TEAM}, live = k < even / 2;
                int p, q;
                group_pair(live ? k : 0, round, even, &p, &q);
                __local ${C}* a = w + p * s;
                __local ${C}* b = w + q * s;
                ${C} aa = 0, bb = 0, ab = 0;
                for (int i = lane; i < m; i += ${TEAM}) {
                    const ${C} x = a[i], y = b[i];
                    aa = fma(x, x, aa);
                    bb = fma(y, y, bb);
                    ab = fma(x, y, ab);
                }
                part[l] = aa;
                part[256 + l] = bb;
                part[512 + l] = ab;
                barrier(CLK_LOCAL_MEM_FENCE);
                aa = bb = ab = 0;
                for (int i = 0; i < ${TEAM}; i++) {
                    aa += part[team + i];
                    bb += part[256 + team + i];
                    ab += part[512 + team + i];
                }
                const ${C} product = ab * ab, bound = least * fmax(aa * bb, fmax(aa, bb));
                if (live && product > bound) {
                    const ${C} h = (bb - aa) / (2 * ab), r = 1 / (fabs(h) + sqrt(fma(h, h, (${C})1))), t = h < 0 ? -r : r;
                    const ${C} c = 1 / sqrt(fma(t, t, (${C})1)), o = c * t, f = o / (1 + c);     // Rutishauser's form: what rotates little errs little
                    for (int i = lane; i < m; i += ${TEAM}) {
                        const ${C} x = a[i], y = b[i];
                        a[i] = fma(-o, fma(f, x, y), x);
                        b[i] = fma(o, fma(-f, y, x), y);
                    }
                    if (lane == 0 && product > 256 * bound) atomic_or(turned, 1);               // smaller ones are turned for the last time
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        on = turned[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int j = l; j < n; j += all) {
        ${C} large = 0, sum = 0;
        for (int i = 0; i < m; i++) large = fmax(large, fabs(w[j * s + i]));
        const ${C} unit = large > 0 ? large : (${C})1;          // squares of small ones may be none
        for (int i = 0; i < m; i++) sum = fma(w[j * s + i] / unit, w[j * s + i] / unit, sum);
        size[j] = sqrt(sum) * large;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = l; j < n; j += all) {
        int place = 0;
        for (int k = 0; k < n; k++) place += size[k] > size[j] || (size[k] == size[j] && k < j);
        values[z * n + place] = size[j] * back;
    }
    if (l == 0) failed[z] = bad | on;
}
