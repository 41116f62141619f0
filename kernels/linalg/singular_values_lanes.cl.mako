<%inherit file="/base.cl.mako"/>\
<%namespace name="lanes" file="/linalg/lanes.cl.mako"/>\
## Singular values of many small matrices, in descending order: columns of the triangle that reflections leave are rotated against each other until they are
## orthogonal (one-sided Jacobi; Drmac and Veselic, 2008); W matrices in the lanes of vectors.
##
## A (count, m, n) with m >= n and strides batch, rs and cs; values (count, n); failed (count): 1 where A holds what is not finite, or the method does not
## converge.
##
## Geometry: one work-item per W matrices; alone in its group where W > 1.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         matrices of a work-item
## ROOM       number         most elements of A
## LEAST      number         most columns
<%
    C, V, I = T.c, lanes.attr.vector(T, W), lanes.attr.conditions(T, W)
    some = lanes.attr.some(W)
    eps = "1.2e-7f" if C == "float" else "2.2e-16"
%>\
${lanes.copies(T, W)}
${lanes.reflections(T, W)}
${lanes.scales(T, W)}
/* n columns of n rows become orthogonal; lanes that did not converge are given back */
static ${I} lanes_orthogonal(${V}* w, const int n) {
    const ${C} least = ${eps} * ${eps} / 64;                                  // of what is of size 1
    ${I} turned = 0;
    for (int sweep = 0; sweep < 30; sweep++) {
        turned = 0;
        for (int p = 0; p + 1 < n; p++)
            for (int q = p + 1; q < n; q++) {
                ${V}* a = w + p * n;
                ${V}* b = w + q * n;
                ${V} aa = 0, bb = 0, ab = 0;
                for (int i = 0; i < n; i++) {
                    const ${V} x = a[i], y = b[i];
                    aa = fma(x, x, aa);
                    bb = fma(y, y, bb);
                    ab = fma(x, y, ab);
                }
                const ${V} size = ab * ab, bound = least * fmax(aa * bb, fmax(aa, bb));
                const ${I} on = size > bound;
                if (!${some}(on)) continue;
                turned |= size > 256 * bound;           // smaller ones are turned for the last time
                const ${V} z = (bb - aa) / (2 * ab), r = 1 / (fabs(z) + sqrt(fma(z, z, (${V})1))), t = on ? (z < 0 ? -r : r) : (${V})0;
                const ${V} c = 1 / sqrt(fma(t, t, (${V})1)), s = c * t, h = s / (1 + c);     // Rutishauser's form: what rotates little errs little
                for (int i = 0; i < n; i++) {
                    const ${V} x = a[i], y = b[i];
                    a[i] = fma(-s, fma(h, x, y), x);
                    b[i] = fma(s, fma(-h, y, x), y);
                }
            }
        if (!${some}(turned)) break;
    }
    return turned;
}
__kernel ${lanes.attr.attribute(W)}
void linalg_singular_values_lanes(IN(${C}, A), OUT(${C}, values), OUT(int, failed), const long count, const long rows, const long columns, const long batch,
                                  const long rs, const long cs) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, values);
    PTR_OUT(int, failed);
    const long z = get_global_id(0) * ${W};
    if (z >= count) return;
    ${V} w[${ROOM}], x[${LEAST * LEAST}], s[${LEAST}], back;
    const int m = (int)rows, n = (int)columns;
    lanes_read(w, m, A, z, count, batch, rs, cs, m, n);
    const ${I} bad = lanes_scale(w, m * n, &back);
    lanes_factor(w, s, m, n);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) x[j * n + i] = i < j ? (${V})0 : w[i * m + j];
    const ${I} lost = lanes_orthogonal(x, n);
    for (int j = 0; j < n; j++) {
        ${V} large = 0, sum = 0;
        for (int i = 0; i < n; i++) large = fmax(large, fabs(x[j * n + i]));
        const ${V} unit = large > 0 ? large : (${V})1;          // squares of small ones may be none
        for (int i = 0; i < n; i++) sum = fma(x[j * n + i] / unit, x[j * n + i] / unit, sum);
        s[j] = -(sqrt(sum) * large);
    }
    lanes_sort(s, n);
    for (int j = 0; j < n; j++) s[j] *= -back;
    lanes_write_vectors(s, values, z, count, n);
    lanes_write_numbers(bad | lost, failed, z, count);
}
