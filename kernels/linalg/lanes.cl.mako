## Parts of kernels that have W small matrices side by side in the lanes of vectors, element (i, j) of each in w[j * m + i].
<%!
    def conditions(T, W):
        return ("int" if T.itemsize == 4 else "long") + str(W) if W > 1 else "int"

    def vector(T, W):
        return T.c + (str(W) if W > 1 else "")

    def some(W):
        return "any" if W > 1 else ""

    def attribute(W):
        return "__attribute__((reqd_work_group_size(1, 1, 1)))" if W > 1 else ""
%>\
## copies: between lanes and matrices z..z + W - 1 of `count`, of strides batch, rs, cs; lanes without a matrix hold the last one; `far`: rows that
## a column of w has room for
<%def name="copies(T, W)">\
<% C, V = T.c, vector(T, W) %>\
static void lanes_read(${V}* w, const int far, __global const ${C}* p, const long z, const long count, const long batch, const long rs, const long cs, const int m,
                       const int n) {
    ${C}* e = (${C}*)w;
% if W > 1:
    if (m * n <= 256 && z + ${W} <= count) {               // elements of larger ones would compete for places in caches
        p += z * batch;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                __global const ${C}* a = p + i * rs + j * cs;
                w[j * far + i] = (${V})(${", ".join(f"a[{c} * batch]" for c in range(W))});
            }
        return;
    }
% endif
    for (int c = 0; c < ${W}; c++) {
        __global const ${C}* a = p + min(z + c, count - 1) * batch;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) e[(j * far + i) * ${W} + c] = a[i * rs + j * cs];
    }
}
/* `rows` of m rows, column by column, matrices `batch` apart, with zeros below the diagonal where `upper` */
static void lanes_write(const ${V}* w, __global ${C}* p, const long z, const long count, const long batch, const int m, const int rows, const int n, const int upper) {
    const ${C}* e = (const ${C}*)w;
% if W > 1:
    if (m * n <= 256 && z + ${W} <= count) {               // elements of larger ones would compete for places in caches
        for (int j = 0; j < n; j++)
            for (int i = 0; i < rows; i++) {
                __global ${C}* a = p + z * batch + j * rows + i;
                ${C} t[${W}];
                vstore${W}(upper && i > j ? (${V})0 : w[j * m + i], 0, t);
                ${" ".join(f"a[{c} * batch] = t[{c}];" for c in range(W))}
            }
        return;
    }
% endif
    for (int c = 0; c < min((long)${W}, count - z); c++) {
        __global ${C}* a = p + (z + c) * batch;
        for (int j = 0; j < n; j++)
            for (int i = 0; i < rows; i++) a[j * rows + i] = upper && i > j ? 0 : e[(j * m + i) * ${W} + c];
    }
}
static void lanes_write_vectors(const ${V}* w, __global ${C}* p, const long z, const long count, const int n) {
    const ${C}* e = (const ${C}*)w;
    for (int c = 0; c < min((long)${W}, count - z); c++)
        for (int i = 0; i < n; i++) p[(z + c) * n + i] = e[i * ${W} + c];
}
static void lanes_write_numbers(const ${conditions(T, W)} bad, __global int* p, const long z, const long count) {
% if W > 1:
    ${"int" if T.itemsize == 4 else "long"} e[${W}];
    vstore${W}(bad, 0, e);
    for (int c = 0; c < min((long)${W}, count - z); c++) p[z + c] = e[c] != 0;
% else:
    p[z] = bad != 0;
% endif
}
</%def>
## reflections: Householder's, I - tau v v^T with v[0] = 1, as LAPACK has them (xLARFG), so that signs agree
<%def name="reflections(T, W)">\
<%
    C, V, I = T.c, vector(T, W), conditions(T, W)
    low, high = ("1e-30f", "1e36f") if T.itemsize == 4 else ("1e-280", "1e300")
    q = lambda text: [text.replace("#", str(k)) for k in range(4)]
%>\
/* the product of a[1 .. rows) and b; sums of a few elements first, as long ones err more */
static ${V} lanes_product(const ${V}* a, const ${V}* b, const int rows) {
    ${V} sum = 0;
    for (int i = 1; i < rows;) {
        ${V} s = 0;
        for (const int end = min(rows, i + 16); i < end; i++) s = fma(a[i], b[i], s);
        sum += s;
    }
    return sum;
}
/* a[0 .. rows) becomes its reflection onto the first element, which is given back in a[0]; v without its 1 takes the others' place */
static ${V} lanes_reflection(${V}* a, const int rows) {
    if (rows < 2) return (${V})0;
    const ${V} alpha = a[0];
    ${V} s = lanes_product(a, a, rows);
    ${V} size = sqrt(fma(alpha, alpha, s));
    ${I} none = 0;
    if (${some(W)}(!(s > ${low} && s < ${high} && size * size < ${high}))) {        // squares may be too small or too large
        ${V} unit = 0;
        for (int i = 1; i < rows; i++) unit = fmax(unit, fabs(a[i]));
        unit = unit > 0 ? unit : (${V})1;
        s = 0;
        for (int i = 1; i < rows; i++) s = fma(a[i] / unit, a[i] / unit, s);
        none = s == 0;
        size = hypot(alpha, sqrt(s) * unit);
    }
    const ${V} beta = none ? alpha : signbit(alpha) ? size : -size, by = none ? (${V})1 : alpha - beta;
    for (int i = 1; i < rows; i++) a[i] /= by;
    a[0] = beta;
    return none ? (${V})0 : (beta - alpha) / beta;
}
/* `columns` of `rows`, `far` apart, reflected by v */
static void lanes_reflect(const ${V}* v, const ${V} tau, ${V}* a, const int rows, const int columns, const int far) {
    int j = 0;
    for (; j + 4 <= columns; j += 4, a += 4 * far) {
        ${V} ${", ".join(q("s# = a[# * far]"))};
        for (int i = 1; i < rows;) {
            ${V} ${", ".join(q("t# = 0"))};
            for (const int end = min(rows, i + 16); i < end; i++) {
                const ${V} u = v[i];
                ${" ".join(q("t# = fma(u, a[# * far + i], t#);"))}
            }
            ${" ".join(q("s# += t#;"))}
        }
        ${" ".join(q("s# *= tau; a[# * far] -= s#;"))}
        for (int i = 1; i < rows; i++) {
            const ${V} u = v[i];
            ${" ".join(q("a[# * far + i] = fma(-s#, u, a[# * far + i]);"))}
        }
    }
    for (; j < columns; j++, a += far) {
        const ${V} s = tau * (a[0] + lanes_product(v, a, rows));
        a[0] -= s;
        for (int i = 1; i < rows; i++) a[i] = fma(-s, v[i], a[i]);
    }
}
/* R on and above the diagonal of w, reflections below it */
static void lanes_factor(${V}* w, ${V}* tau, const int m, const int n) {
    for (int k = 0; k < min(m, n); k++) {
        tau[k] = lanes_reflection(w + k * m + k, m - k);
        lanes_reflect(w + k * m + k, tau[k], w + (k + 1) * m + k, m - k, n - k - 1, m);
    }
}
</%def>
## scales: numbers brought into a range where squares do no harm; order of numbers
<%def name="scales(T, W)">\
<%
    C, V, I = T.c, vector(T, W), conditions(T, W)
    integer = ("int" if T.itemsize == 4 else "long") + (str(W) if W > 1 else "")
    bits, most = (23, 253) if T.itemsize == 4 else (52, 2045)
%>\
/* w times the power of two that brings the largest element to 1..2, undone by `back`; lanes with elements that are not finite become 0 and are given back */
static ${I} lanes_scale(${V}* w, const int size, ${V}* back) {
    ${V} large = 0, sum = 0;
    for (int i = 0; i < size; i++) {
        large = fmax(large, fabs(w[i]));
        sum = fma(w[i], (${V})0, sum);
    }
    const ${I} bad = sum != 0;
    const ${integer} exponent = clamp(as_${integer}(large) >> ${bits}, (${integer})1, (${integer})${most});
    const ${V} by = as_${V}((${most + 1} - exponent) << ${bits});
    *back = as_${V}(exponent << ${bits});
    for (int i = 0; i < size; i++) w[i] = bad ? (${V})0 : w[i] * by;
    return bad;
}
static void lanes_sort(${V}* a, const int n) {
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0; j--) {
            const ${V} low = fmin(a[j - 1], a[j]);
            a[j] = fmax(a[j - 1], a[j]);
            a[j - 1] = low;
        }
}
</%def>
