<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
## LU of small matrices by Gauss elimination, with the largest element of each column as pivot: A = P L U, L and U in one matrix.
##
## A (count, m, n) with strides batch, rs and cs; LU (count, m, n), column by column; pivots (count, min(m, n)), row numbers counted from 1;
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
    NB = 4
    INT = f"{'int' if T.itemsize == 4 else 'long'}{W}"
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
% if not G:
    __local ${C} panel[${NB * (MOST + W)}];         // of the columns that are worked on, one after the other
% endif
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
    int k = 0;
% if not G:
    // Columns k..k + ${NB - 1} first; what is right of them is read and written once for all.
    for (; k + ${NB} <= few; k += ${NB}) {
        for (int i = k; i < rows; i++) {
% for t in range(NB):
            panel[${t * (MOST + W)} + i] = w[i * s + k + ${t}];
% endfor
        }
        for (int t = k; t < k + ${NB}; t++) {
            __local ${C}* own = panel + (t - k) * ${MOST + W};
            int p = t, i = t;
            ${C} best = 0;
            if (pivot && own[t] == own[t]) {         // no number in the first place stays the pivot, as in LAPACK
                ${V} most = 0;
                for (; i + ${W} <= rows; i += ${W}) most = fmax(most, fabs(vload${W}(0, own + i)));
                for (; i < rows; i++) best = fmax(best, fabs(own[i]));
                ${C} each[${W}];
                vstore${W}(most, 0, each);
                for (int c = 0; c < ${W}; c++) best = fmax(best, each[c]);
                while (p < rows - 1 && fabs(own[p]) < best) p++;
                if (p == rows - 1 && fabs(own[p]) < best) p = t;        // no number was there
            }
            const ${C} d = own[p];
            bad = bad || d != 0 ? bad : t + 1;
            pivots[z * few + t] = p + 1;
            if (p != t) {
                for (int j = 0; j < s; j += ${W}) {
                    const ${V} v = vload${W}(0, w + t * s + j);
                    vstore${W}(vload${W}(0, w + p * s + j), 0, w + t * s + j);
                    vstore${W}(v, 0, w + p * s + j);
                }
% for u in range(NB):
                const ${C} v${u} = panel[${u * (MOST + W)} + t];
                panel[${u * (MOST + W)} + t] = panel[${u * (MOST + W)} + p];
                panel[${u * (MOST + W)} + p] = v${u};
% endfor
            }
            if (d != 0) {
                for (i = t + 1; i + ${W} <= rows; i += ${W}) vstore${W}(vload${W}(0, own + i) / d, 0, own + i);
                for (; i < rows; i++) own[i] /= d;
            }
            for (__local ${C}* next = own + ${MOST + W}; next < panel + ${NB * (MOST + W)}; next += ${MOST + W}) {
                const ${C} c = next[t];
                for (i = t + 1; i + ${W} <= rows; i += ${W}) vstore${W}(vload${W}(0, next + i) - c * vload${W}(0, own + i), 0, next + i);
                for (; i < rows; i++) next[i] -= c * own[i];
            }
        }
        for (int i = k; i < rows; i++) {
% for t in range(NB):
            w[i * s + k + ${t}] = panel[${t * (MOST + W)} + i];
% endfor
        }
        for (int j = (k + ${NB}) / ${W} * ${W}; j < s; j += ${W}) {
            const ${INT} right = ${mat.attr.lanes(T, W)} >= (${INT})(k + ${NB} - j);      // lanes up to the columns that are done hold L
% for t in range(NB):
            const ${V} u${t} = right ? vload${W}(0, w + (k + ${t}) * s + j)${"".join(f" - w[(k + {t}) * s + k + {q}] * u{q}" for q in range(t))} : (${V})0;
            if (j >= k + ${NB}) vstore${W}(u${t}, 0, w + (k + ${t}) * s + j);
            else vstore${W}(right ? u${t} : vload${W}(0, w + (k + ${t}) * s + j), 0, w + (k + ${t}) * s + j);
% endfor
            for (int i = k + ${NB}; i < rows; i++) {
                vstore${W}(vload${W}(0, w + i * s + j)${"".join(f" - panel[{t * (MOST + W)} + i] * u{t}" for t in range(NB))}, 0, w + i * s + j);
            }
        }
    }
% endif
    for (; k < few; k++) {
        // Every work-item of a group looks for the pivot itself: reads of one place cost less than a barrier.
        int p = k;
        ${C} best = fabs(w[k * s + k]);         // nothing is larger than no number: it stays the pivot, as in LAPACK
        for (int i = k${" + 1" if G else ""}; i < rows; i++) {
            const ${C} v = fabs(w[i * s + k]);
% if not G:
            head[i] = w[i * s + k];
% endif
            p = pivot && v > best ? i : p;
            best = v > best ? v : best;
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
