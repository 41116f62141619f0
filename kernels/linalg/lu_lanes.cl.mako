<%inherit file="/base.cl.mako"/>\
<%namespace name="lanes" file="/linalg/lanes.cl.mako"/>\
## LU of many small matrices by Gauss elimination, with the largest element of each column as pivot, or what follows from it; W matrices in the lanes of vectors.
##
## A (count, m, n) with strides batch, rs and cs; info (count), 0 or the number of the first zero on the diagonal of U, counted from 1.
## factors: LU (count, m, n), column by column; pivots (count, min(m, n)), row numbers counted from 1
## solve: X (count, n, k), column by column, with A X = B; B (count, n, k) with strides bb (0: one for all), rb and cb, or identity matrices where eye
## determinant: sign (count), the determinant; log: its sign (-1, 0, 1) and in size (count) the logarithm of its size
##
## Geometry: one work-item per W matrices; alone in its group where W > 1.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         matrices of a work-item
## FORM       factors solve determinant log
## ROOM       number         most elements of A, and of B at a time
## LEAST      number         most rows or columns, whichever are fewer
## limits: of equal candidates the first becomes the pivot, as does a NaN in the first place; a column of zeros is left as it is
<%
    C, V, I = T.c, lanes.attr.vector(T, W), lanes.attr.conditions(T, W)
    S, some = "int" if I[0] == "i" else "long", lanes.attr.some(W)
    outputs = dict(factors=f"OUT({C}, LU), OUT(int, pivots)", solve=f"IN({C}, B), OUT({C}, X)", determinant=f"OUT({C}, sign)", log=f"OUT({C}, sign), OUT({C}, size)")
%>\
${lanes.copies(T, W)}
/* rows k and p of n columns change places, p another row in each lane */
static void lanes_exchange(${V}* w, const int m, const int n, const int k, const ${I} p) {
    for (int r = 0; r < m; r++) {
        const ${I} on = p == r;
        if (r == k || !${some}(on)) continue;
        for (int j = 0; j < n; j++) {
            const ${V} u = w[j * m + k], v = w[j * m + r];
            w[j * m + k] = on ? v : u;
            w[j * m + r] = on ? u : v;
        }
    }
}
static ${I} lanes_eliminate(${V}* w, ${I}* pivots, const int m, const int n, const int pivot) {
    ${I} bad = 0;
    for (int k = 0; k < min(m, n); k++) {
        ${V}* own = w + k * m;
        ${I} p = k;
        ${V} best = fabs(own[k]);
        for (int i = k + 1; i < m && pivot; i++) {
            const ${V} size = fabs(own[i]);
            p = size > best ? (${I})i : p;
            best = size > best ? size : best;
        }
        pivots[k] = p + 1;
        lanes_exchange(w, m, n, k, p);
        const ${V} d = own[k];
        bad = bad == 0 && d == 0 ? (${I})(k + 1) : bad;
        for (int i = k + 1; i < m; i++) own[i] = d != 0 ? own[i] / d : own[i];
        for (int j = k + 1; j < n; j++) {
            ${V}* next = w + j * m;
            const ${V} u = next[k];
            for (int i = k + 1; i < m; i++) next[i] = fma(-own[i], u, next[i]);
        }
    }
    return bad;
}
__kernel ${lanes.attr.attribute(W)}
void linalg_lu_lanes(IN(${C}, A), OUT(int, info), ${outputs[FORM]}, const long count, const long rows, const long columns, const long batch, const long rs,
                     const long cs, const long pivot${", const long k, const long bb, const long rb, const long cb, const long eye" if FORM == "solve" else ""}) {
    PTR_IN(${C}, A);
    PTR_OUT(int, info);
    const long z = get_global_id(0) * ${W};
    if (z >= count) return;
    ${V} w[${ROOM}];
    ${I} p[${LEAST}];
    const int m = (int)rows, n = (int)columns, few = min(m, n), live = (int)min((long)${W}, count - z);
    lanes_read(w, m, A, z, count, batch, rs, cs, m, n);
    ${I} bad = lanes_eliminate(w, p, m, n, pivot);
    const ${S}* numbers = (const ${S}*)&bad;
    for (int c = 0; c < live; c++) info[z + c] = numbers[c];
% if FORM == "factors":
    PTR_OUT(${C}, LU);
    PTR_OUT(int, pivots);
    lanes_write(w, LU, z, count, m * n, m, m, n, 0);
    numbers = (const ${S}*)p;
    for (int c = 0; c < live; c++)
        for (int i = 0; i < few; i++) pivots[(z + c) * few + i] = numbers[i * ${W} + c];
% elif FORM == "solve":
    PTR_IN(${C}, B);
    PTR_OUT(${C}, X);
    ${V} x[${ROOM}];
    const int part = ${ROOM} / n;
    for (int first = 0; first < k; first += part) {
        const int wide = min(part, (int)k - first);
        if (eye)
            for (int j = 0; j < wide; j++)
                for (int i = 0; i < n; i++) x[j * n + i] = (${C})(i == first + j);
        else lanes_read(x, n, B + first * cb, z, count, bb, rb, cb, n, wide);
        for (int i = 0; i < n; i++) lanes_exchange(x, n, wide, i, p[i] - 1);
        for (int j = 0; j < wide; j++) {
            ${V}* own = x + j * n;
            for (int i = 0; i < n; i++)
                for (int q = i + 1; q < n; q++) own[q] = fma(-w[i * n + q], own[i], own[q]);
            for (int i = n - 1; i >= 0; i--) {
                own[i] /= w[i * n + i];
                for (int q = 0; q < i; q++) own[q] = fma(-w[i * n + q], own[i], own[q]);
            }
        }
        lanes_write(x, X + first * n, z, count, n * k, n, n, wide, 0);
    }
% else:
    PTR_OUT(${C}, sign);
    const ${C}* e = (const ${C}*)w;
    numbers = (const ${S}*)p;
    for (int c = 0; c < live; c++) {
        ${C} product = 1, sum = 0;
        for (int i = 0; i < n; i++) {
            const ${C} d = e[(i * n + i) * ${W} + c], turned = numbers[i * ${W} + c] == i + 1 ? d : -d;
% if FORM == "log":
            product *= d != d ? d : (${C})((turned > 0) - (turned < 0));
            sum += ${"clnn_log" if C == "float" else "log"}(fabs(d));
% else:
            product *= turned;
% endif
        }
        sign[z + c] = product;
% if FORM == "log":
        PTR_OUT(${C}, size);
        size[z + c] = sum;
% endif
    }
% endif
}
