<%inherit file="/base.cl.mako"/>\
<%namespace name="lanes" file="/linalg/lanes.cl.mako"/>\
## Least squares with many small matrices of full rank, by Householder's reflections: X of smallest norm with |A X - B| least; W matrices in the lanes of vectors.
##
## A: matrices of m x n, m >= n, with strides batch (0: one for all), rs and cs, or their transposes where `turned`; B (count, m, k), or (count, n, k) where
## turned, with strides bb (0: one for all), rb and cb; X (count, n, k), or (count, m, k), column by column. failed (count): 1 where the condition of A in
## the Frobenius norm, |R| |R^-1|, is not below `limit`, or X is not finite.
##
## Geometry: one work-item per W matrices; alone in its group where W > 1.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         matrices of a work-item
## ROOM       number         most elements of A, and of B at a time
## LEAST      number         most columns of A
<%
    C, V, I = T.c, lanes.attr.vector(T, W), lanes.attr.conditions(T, W)
%>\
${lanes.copies(T, W)}
${lanes.reflections(T, W)}
/* the condition of R in w */
static ${V} lanes_condition(const ${V}* w, const int m, const int n) {
    ${V} x[${LEAST}], size = 0, inverse = 0;
    for (int j = 0; j < n; j++) {
        for (int i = j; i >= 0; i--) {
            ${V} s = i == j;
            for (int q = i + 1; q <= j; q++) s = fma(-w[q * m + i], x[q], s);
            x[i] = s / w[i * m + i];
            inverse = fma(x[i], x[i], inverse);
            size = fma(w[j * m + i], w[j * m + i], size);
        }
    }
    return sqrt(size) * sqrt(inverse);
}
/* x solved with R in w, or with its transpose */
static void lanes_solve(const ${V}* w, ${V}* x, const int m, const int n, const int turned) {
    for (int e = 0; e < n; e++) {
        const int i = turned ? e : n - 1 - e;
        x[i] /= w[i * m + i];
        if (turned)
            for (int q = i + 1; q < n; q++) x[q] = fma(-w[q * m + i], x[i], x[q]);
        else
            for (int q = 0; q < i; q++) x[q] = fma(-w[i * m + q], x[i], x[q]);
    }
}
__kernel ${lanes.attr.attribute(W)}
void linalg_least_squares_lanes(IN(${C}, A), IN(${C}, B), OUT(${C}, X), OUT(int, failed), const long count, const long rows, const long columns, const long k,
                                const long batch, const long rs, const long cs, const long bb, const long rb, const long cb, const long turned,
                                const float limit) {
    PTR_IN(${C}, A);
    PTR_IN(${C}, B);
    PTR_OUT(${C}, X);
    PTR_OUT(int, failed);
    const long z = get_global_id(0) * ${W};
    if (z >= count) return;
    ${V} w[${ROOM}], x[${ROOM}], tau[${LEAST}], sum = 0;
    const int m = (int)rows, n = (int)columns, out = turned ? m : n, some = ${ROOM} / m;
    lanes_read(w, m, A, z, count, batch, rs, cs, m, n);
    lanes_factor(w, tau, m, n);
    const ${I} bad = !(lanes_condition(w, m, n) < limit);
    for (int first = 0; first < k; first += some) {
        const int wide = min(some, (int)k - first);
        for (int j = 0; j < wide; j++)
            for (int i = n; i < m && turned; i++) x[j * m + i] = 0;
        lanes_read(x, m, B + first * cb, z, count, bb, rb, cb, turned ? n : m, wide);
        for (int e = 0; e < n && !turned; e++) lanes_reflect(w + e * m + e, tau[e], x + e, m - e, wide, m);
        for (int j = 0; j < wide; j++) lanes_solve(w, x + j * m, m, n, turned);
        for (int e = n - 1; e >= 0 && turned; e--) lanes_reflect(w + e * m + e, tau[e], x + e, m - e, wide, m);
        for (int j = 0; j < wide; j++)
            for (int i = 0; i < out; i++) sum = fma(x[j * m + i], (${V})0, sum);
        lanes_write(x, X + first * out, z, count, k * out, m, out, wide, 0);
    }
    lanes_write_numbers(bad || sum != 0, failed, z, count);
}
