<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
## LU of small matrices by Gauss elimination, with the largest element of each column as pivot: A = P L U, L and U in one matrix.
##
## A (count, m, n) with strides batch, rs and cs; LU (count, m, n); pivots (count, min(m, n)), row numbers counted from 1;
## info (count), 0 or the number of the first zero on the diagonal of U. room: where LARGE, memory for
## count matrices with rows rounded up to a multiple of W.
##
## Geometry: one work-group per matrix; of one work-item where W > 1, of any size where W is 1.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         lanes of a vector along rows
## MOST       number         most rows and columns, a multiple of W
## LARGE      bool           matrices are worked on in global memory, not in local
## limits: of equal candidates the first becomes the pivot; a column of zeros is left as it is
<%
    C, V = T.c, T.c + (str(W) if W > 1 else "")
    G = W == 1
    barrier = "barrier(CLK_LOCAL_MEM_FENCE%s);" % (" | CLK_GLOBAL_MEM_FENCE" if LARGE else "") if G else ""
%>\
__kernel ${mat.attr.alone(W)}
void linalg_lu(IN(${C}, A), OUT(${C}, LU), OUT(int, pivots), OUT(int, info)${", OUT(%s, room)" % C if LARGE else ""}, const long m, const long n, const long batch,
                  const long rs, const long cs, const long pivot) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, LU);
    PTR_OUT(int, pivots);
    PTR_OUT(int, info);
    __local ${C} head[${MOST + W}];
% if not LARGE:
    __local ${C} w[${MOST * MOST}];
% endif
    const long z = get_group_id(0), few = min(m, n);
    const int s = (int)((n + ${W - 1}) / ${W} * ${W}), rows = (int)m, l = get_local_id(0), all = get_local_size(0);
    int bad = 0;
% if LARGE:
    PTR_OUT(${C}, room);
    __global ${C}* w = room + z * m * s;
% endif
${mat.read(T, W, "A + z * batch", "rows", "(int)n")}
    ${barrier}
    for (int k = 0; k < few; k++) {
        // Every work-item of a group looks for the pivot itself: reads of one place cost less than a barrier.
        int p = k;
        ${C} best = -1;
        for (int i = k; i < rows; i++) {
            const ${C} v = fabs(w[i * s + k]);
% if not G:
            head[i] = w[i * s + k];
% endif
            p = pivot && v > best ? i : p;
            best = fmax(best, v);
        }
        const ${C} d = w[p * s + k];
        bad = bad || d != 0 ? bad : k + 1;
        ${barrier}
        if (l == 0) pivots[z * few + k] = p + 1;
% if G:
        if (p != k)
            for (int j = l; j < n; j += all) {
                const ${C} t = w[k * s + j];
                w[k * s + j] = w[p * s + j];
                w[p * s + j] = t;
            }
        ${barrier}
        for (int i = k + 1 + l; i < rows; i += all) {
            const ${C} t = w[i * s + k];
            head[i] = d != 0 ? t / d : t;
        }
        ${barrier}
        const int wide = (int)n - k;
        for (int e = l; e < (rows - k - 1) * wide; e += all) {
            const int i = k + 1 + e / wide, j = k + e % wide;
            w[i * s + j] = j == k ? head[i] : w[i * s + j] - head[i] * w[k * s + j];
        }
        ${barrier}
% else:
        head[p] = head[k];
        if (p != k)
            for (int j = 0; j < s; j += ${W}) {
                const ${V} t = vload${W}(0, w + k * s + j);
                vstore${W}(vload${W}(0, w + p * s + j), 0, w + k * s + j);
                vstore${W}(t, 0, w + p * s + j);
            }
        if (d != 0)
            for (int i = k + 1; i < rows; i += ${W}) vstore${W}(vload${W}(0, head + i) / d, 0, head + i);
        for (int i = k + 1; i < rows; i++) w[i * s + k] = head[i];
        // Lanes up to the diagonal hold L: nothing is taken from them.
        int j = (k + 1) / ${W} * ${W};
        if (j < s) {
            const ${V} own = ${mat.attr.lanes(T, W)} > (${"int" if T.itemsize == 4 else "long"}${W})(k - j) ? vload${W}(0, w + k * s + j) : (${V})0;
${mat.subtract(W, "k + 1", "rows")}
            for (j += ${W}; j < s; j += ${W}) {
                const ${V} own = vload${W}(0, w + k * s + j);
${mat.subtract(W, "k + 1", "rows")}
            }
        }
% endif
    }
    if (l == 0) info[z] = bad;
${mat.write(T, W, "LU + z * m * n", "rows", "(int)n")}
}
