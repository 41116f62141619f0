<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
## Cholesky factors of small matrices: A = L L^T, from the lower triangle of A.
##
## A (count, n, n) with strides batch, rs and cs; L (count, n, n); info (count), 0 or the order of the first leading minor that is not positive
## definite, where L is NaN.
##
## Geometry: one work-group per matrix; of one work-item where W > 1, of any size where W is 1.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         lanes of a vector along rows
## MOST       number         most rows, a multiple of W
<%
    C, V = T.c, T.c + (str(W) if W > 1 else "")
    G = W == 1
    barrier = "barrier(CLK_LOCAL_MEM_FENCE);" if G else ""
%>\
__kernel ${mat.attr.alone(W)}
void linalg_cholesky(IN(${C}, A), OUT(${C}, L), OUT(int, info), const long order, const long batch, const long rs, const long cs) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, L);
    PTR_OUT(int, info);
    // Row k of w is column k of L from its diagonal on: elimination goes along rows.
    __local ${C} w[${MOST * MOST}];
    const long z = get_group_id(0);
    const int n = (int)order, s = (n + ${W - 1}) / ${W} * ${W}, l = get_local_id(0), all = get_local_size(0);
    __global const ${C}* p = A + z * batch;
    __global ${C}* q = L + z * n * n;
    for (int j = 0; j < n; j++)
        for (int i = ${"l" if G else "j / %d * %d" % (W, W)}; i < s; i += all) w[j * s + i] = i < n && i >= j ? p[i * rs + j * cs] : 0;
    ${barrier}
    int bad = 0;
    for (int k = 0; k < n; k++) {
        const ${C} d = w[k * s + k], root = sqrt(d);
        bad = bad || d > 0 ? bad : k + 1;
        ${barrier}
% if G:
        for (int i = k + l; i < n; i += all) w[k * s + i] = i == k ? root : w[k * s + i] / root;
        ${barrier}
        const int wide = n - k - 1;
        for (int e = l; e < wide * wide; e += all) {
            const int i = k + 1 + e / wide, j = k + 1 + e % wide;
            if (j >= i) w[i * s + j] -= w[k * s + i] * w[k * s + j];
        }
        ${barrier}
% else:
        if (bad) break;
        for (int j = k / ${W} * ${W}; j < s; j += ${W}) vstore${W}(vload${W}(0, w + k * s + j) / root, 0, w + k * s + j);
        w[k * s + k] = root;
        // One vector of columns j at a time: rows up to the last of them have elements there.
        for (int j = (k + 1) / ${W} * ${W}; j < s; j += ${W}) {
            const ${V} own = vload${W}(0, w + k * s + j);
            const int end = min(n, j + ${W});
            __local const ${C}* head = w + k * s;
${mat.subtract(W, "k + 1", "end")}
        }
% endif
    }
    if (l == 0) info[z] = bad;
    for (int i = 0; i < n; i++)
        for (int j = l; j < n; j += all) q[i * n + j] = bad ? NAN : j <= i ? w[j * s + i] : 0;
}
