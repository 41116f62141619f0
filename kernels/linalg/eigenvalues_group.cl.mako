<%inherit file="/base.cl.mako"/>\
<%namespace name="group" file="/linalg/group.cl.mako"/>\
## Eigenvalues of symmetric matrices in ascending order, by rotations of pairs of rows and columns that share none (Jacobi; Brent and Luk, 1985).
##
## A (count, n, n) with strides batch, rs and cs, of which the triangle i >= j is used; values (count, n); failed (count): 1 where A holds what is not finite,
## or the method does not converge.
##
## Geometry: a work-group per matrix, of any size up to 256.
##
## parameter  values         meaning
## T          float32 float64
## ROOM       number         most numbers of a matrix of E x (E + 1), where E is n, rounded up to an even number
## LEAST      number         most rows
<%
    C = T.c
    eps = "6e-8f" if C == "float" else "1.1e-16"
%>\
${group.scale(T)}
${group.pairs()}
__kernel void linalg_eigenvalues_group(IN(${C}, A), OUT(${C}, values), OUT(int, failed), const long order, const long batch, const long rs, const long cs) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, values);
    PTR_OUT(int, failed);
    __local ${C} w[${ROOM}], part[512], cosine[${LEAST}], sine[${LEAST}];
    __local int turned[1];
    const long z = get_group_id(0);
    const int n = (int)order, even = n + n % 2, s = even + 1, half_n = even / 2, l = get_local_id(0), all = get_local_size(0);
    for (int e = l; e < even * s; e += all) {
        const int j = e / s, i = e - j * s, high = max(i, j), low = min(i, j);
        w[e] = high < n ? A[z * batch + high * rs + low * cs] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ${C} back;
    const int bad = group_scale(w, even * s, part, &back);
    int on = 1;
    for (int sweep = 0; sweep < 30 && on; sweep++) {
        if (l == 0) turned[0] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int round = 0; round < even - 1; round++) {
            for (int k = l; k < half_n; k += all) {
                int p, q;
                group_pair(k, round, even, &p, &q);
                const ${C} a = w[p * s + p], b = w[q * s + q], x = w[p * s + q], bound = ${eps} * (fabs(a) + fabs(b) + 0.0625f);
                const int turn = fabs(x) > bound;
                const ${C} h = (b - a) / (2 * (turn ? x : (${C})1)), r = 1 / (fabs(h) + sqrt(fma(h, h, (${C})1))), t = turn ? (h < 0 ? -r : r) : (${C})0;
                const ${C} c = 1 / sqrt(fma(t, t, (${C})1));
                cosine[k] = c;
                sine[k] = t * c;
                if (turn) {
                    w[p * s + p] = a - t * x;
                    w[q * s + q] = b + t * x;
                    w[p * s + q] = w[q * s + p] = 0;
                }
                if (fabs(x) > 16 * bound) atomic_or(turned, 1);         // smaller ones are turned for the last time
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int e = l; e < half_n * half_n; e += all) {
                const int v = e / half_n, u = e - v * half_n;
                if (u >= v) continue;
                int p, q, f, g;
                group_pair(u, round, even, &p, &q);
                group_pair(v, round, even, &f, &g);
                const ${C} c = cosine[u], t = sine[u], d = cosine[v], o = sine[v];
                const ${C} pf = w[p * s + f], pg = w[p * s + g], qf = w[q * s + f], qg = w[q * s + g];
                const ${C} x = c * pf - t * qf, y = c * pg - t * qg, k = t * pf + c * qf, h = t * pg + c * qg;
                w[p * s + f] = w[f * s + p] = d * x - o * y;
                w[p * s + g] = w[g * s + p] = o * x + d * y;
                w[q * s + f] = w[f * s + q] = d * k - o * h;
                w[q * s + g] = w[g * s + q] = o * k + d * h;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        on = turned[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = l; i < n; i += all) {
        const ${C} own = w[i * s + i];
        int place = 0;
        for (int j = 0; j < n; j++) place += w[j * s + j] < own || (w[j * s + j] == own && j < i);
        values[z * n + place] = own * back;
    }
    if (l == 0) failed[z] = bad | on;
}
