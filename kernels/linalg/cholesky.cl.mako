<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
## Cholesky factors of small matrices: A = L L^T, from the lower triangle of A.
##
## A (count, n, n) with strides batch, rs and cs; L (count, n, n), by_rows or column by column; info (count), 0 or the order of the first leading minor
## that is not positive definite, where L is NaN.
##
## Geometry: one work-group per matrix; of one work-item where W > 1, of any size where W is 1.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         lanes of a vector along rows
## MOST       number         most rows, a multiple of W
## LARGE      bool           matrices are worked on in global memory (room: count matrices with rows rounded up to a multiple of W), not in local
<%
    C, V = T.c, T.c + (str(W) if W > 1 else "")
    G = W == 1
    NB = 4
    barrier = "barrier(CLK_LOCAL_MEM_FENCE);" if G else ""
%>\
__kernel ${mat.attr.alone(W)}
void linalg_cholesky(IN(${C}, A), OUT(${C}, L), OUT(int, info)${", OUT(%s, room)" % C if LARGE else ""}, const long order, const long batch, const long rs, const long cs,
                     const long by_rows) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, L);
    PTR_OUT(int, info);
    const long z = get_group_id(0);
    const int n = (int)order, s = (n + ${W - 1}) / ${W} * ${W}, l = get_local_id(0), all = get_local_size(0);
    // Row k of w is column k of L from its diagonal on: elimination goes along rows.
% if LARGE:
    PTR_OUT(${C}, room);
    __global ${C}* w = room + z * n * s;
% else:
    __local ${C} w[${MOST * MOST}];
% endif
    __global const ${C}* p = A + z * batch;
    __global ${C}* q = L + z * n * n;
    for (int j = 0; j < n; j++)
        for (int i = ${"l" if G else "j / %d * %d" % (W, W)}; i < s; i += all) w[j * s + i] = i < n && i >= j ? p[i * rs + j * cs] : 0;
    ${barrier}
    int bad = 0, k = 0;
% if not G:
    // ${NB} rows first; what lies below them is read and written once for all.
    for (; k + ${NB} <= n && !bad; k += ${NB}) {
        for (int t = k; t < k + ${NB} && !bad; t++) {
            const ${C} d = w[t * s + t], root = sqrt(d);
            if (!(d > 0)) bad = t + 1;
            for (int j = t / ${W} * ${W}; j < s; j += ${W}) {
                const ${V} own = vload${W}(0, w + t * s + j) / root;
                vstore${W}(own, 0, w + t * s + j);
                for (int i = t + 1; i < k + ${NB}; i++) vstore${W}(vload${W}(0, w + i * s + j) - w[t * s + i] * own, 0, w + i * s + j);
            }
            w[t * s + t] = root;
        }
        if (bad) break;
        for (int j = (k + ${NB}) / ${W} * ${W}; j < s; j += ${W}) {
% for t in range(NB):
            const ${V} own${t} = vload${W}(0, w + (k + ${t}) * s + j);
% endfor
            const int end = min(n, j + ${W});
            ${"__global" if LARGE else "__local"} const ${C}* head = w + k * s;
            for (int i = k + ${NB}; i < end; i++)
                vstore${W}(vload${W}(0, w + i * s + j)${"".join(f" - head[{t} * s + i] * own{t}" for t in range(NB))}, 0, w + i * s + j);
        }
    }
% endif
    for (; k < n && !bad; k++) {
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
            ${"__global" if LARGE else "__local"} const ${C}* head = w + k * s;
${mat.subtract(W, "k + 1", "end")}
        }
% endif
    }
    if (l == 0) info[z] = bad;
    for (int j = 0; j < n; j++)
        for (int i = l; i < n; i += all) q[by_rows ? i * n + j : j * n + i] = bad ? NAN : i >= j ? w[j * s + i] : 0;
}
