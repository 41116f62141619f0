<%inherit file="/base.cl.mako"/>\
<%namespace name="lanes" file="/linalg/lanes.cl.mako"/>\
## Eigenvalues of many small symmetric matrices, in ascending order: reflections make them tridiagonal, rotations diagonal (the implicit QL method of
## Dubrulle, Martin and Wilkinson, 1968); W matrices in the lanes of vectors.
##
## A (count, n, n) with strides batch, rs and cs, of which the triangle i >= j is used; values (count, n); failed (count): 1 where A holds what is not finite,
## or the method does not converge.
##
## Geometry: one work-item per W matrices; alone in its group where W > 1.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         matrices of a work-item
## ROOM       number         most elements of A
## LEAST      number         most rows
<%
    C, V, I = T.c, lanes.attr.vector(T, W), lanes.attr.conditions(T, W)
    some = lanes.attr.some(W)
    eps = "6e-8f" if C == "float" else "1.1e-16"
%>\
${lanes.copies(T, W)}
${lanes.reflections(T, W)}
${lanes.scales(T, W)}
/* w of n rows becomes tridiagonal: its diagonal d, what is below that e */
static void lanes_tridiagonal(${V}* w, ${V}* d, ${V}* e, const int n) {
    ${V} p[${LEAST}];
    for (int k = 0; k + 1 < n; k++) {
        const int r = n - k - 1;
        ${V}* v = w + k * n + k + 1;
        ${V}* a = v + n;
        const ${V} tau = lanes_reflection(v, r), part = tau / 2;
        d[k] = w[k * n + k];
        e[k] = v[0];
        v[0] = 1;
        ${V} s = 0;
        int j = 0;
        for (; j < r; j++) {
            ${V} t = 0, u = 0;
            int i = 0;
            for (; i + 2 <= r; i += 2) {
                t = fma(a[j * n + i], v[i], t);
                u = fma(a[j * n + i + 1], v[i + 1], u);
            }
            if (i < r) t = fma(a[j * n + i], v[i], t);
            p[j] = tau * (t + u);
            s = fma(p[j], v[j], s);
        }
        for (j = 0; j < r; j++) p[j] -= part * s * v[j];
        for (j = 0; j < r; j++)
            for (int i = 0; i < r; i++) a[j * n + i] -= v[i] * p[j] + p[i] * v[j];
    }
    d[n - 1] = w[n * n - 1];
    e[n - 1] = 0;
}
/* d becomes the eigenvalues; lanes that did not converge are given back */
static ${I} lanes_rotations(${V}* d, ${V}* e, const int n) {
    ${I} failed = 0;
    for (int l = 0; l + 1 < n; l++) {
        for (int turn = 0;; turn++) {
            // Lanes work on the rows up to the first negligible e each, `last`; those where it is that of row l wait.
            ${I} end = n - 1;
            ${V} last = d[n - 1];
            for (int i = n - 2; i >= l; i--) {
                const ${I} small = fabs(e[i]) <= ${eps} * (fabs(d[i]) + fabs(d[i + 1]) + 0.0625f);
                end = small ? (${I})i : end;
                last = small ? d[i] : last;
            }
            const ${I} on = end > l;
            if (!${some}(on)) break;
            if (turn == 60) {
                failed |= on;
                break;
            }
            ${V} g = (d[l + 1] - d[l]) / (2 * e[l]), r = sqrt(fma(g, g, (${V})1)), s = 1, c = 1, p = 0;
            g = last - d[l] + e[l] / (g < 0 ? g - r : g + r);
            for (int i = n - 2; i >= l; i--) {
                const ${I} now = on && i < end;
                if (!${some}(now)) continue;
                const ${V} f = s * e[i], b = c * e[i], next = d[i];
                r = sqrt(fma(f, f, g * g));
                s = now ? (r == 0 ? (${V})0 : f / r) : s;
                c = now ? (r == 0 ? (${V})1 : g / r) : c;
                e[i + 1] = now && i + 1 < end ? r : now ? (${V})0 : e[i + 1];
                const ${V} h = d[i + 1] - p, t = (next - h) * s + 2 * c * b;
                p = now ? s * t : p;
                d[i + 1] = now ? h + p : d[i + 1];
                g = now ? c * t - b : g;
            }
            d[l] = on ? d[l] - p : d[l];
            e[l] = on ? g : e[l];
        }
    }
    return failed;
}
__kernel ${lanes.attr.attribute(W)}
void linalg_eigenvalues_lanes(IN(${C}, A), OUT(${C}, values), OUT(int, failed), const long count, const long order, const long batch, const long rs, const long cs) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, values);
    PTR_OUT(int, failed);
    const long z = get_global_id(0) * ${W};
    if (z >= count) return;
    ${V} w[${ROOM}], d[${LEAST}], e[${LEAST}], back;
    const int n = (int)order;
    lanes_read(w, n, A, z, count, batch, rs, cs, n, n);
    const ${I} bad = lanes_scale(w, n * n, &back);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < j; i++) w[j * n + i] = w[i * n + j];
    lanes_tridiagonal(w, d, e, n);
    const ${I} lost = lanes_rotations(d, e, n);
    for (int i = 0; i < n; i++) d[i] *= back;
    lanes_sort(d, n);
    lanes_write_vectors(d, values, z, count, n);
    lanes_write_numbers(bad | lost, failed, z, count);
}
