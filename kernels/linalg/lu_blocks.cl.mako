<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
<%namespace name="blk" file="/linalg/blocks.cl.mako"/>\
## LU of larger matrices on CPUs, as linalg/lu: a launch per block of B = NV * W columns, and one before all others.
##
## In launch `step` the rows of all blocks change places as those of block `step` did, and blocks right of it become part of U and of what is left to do; of
## these the next block is the first, and is factored at once, so that no core waits for it. Launch -1 copies to room and factors the first block, the last
## one copies to LU where `copy`.
##
## A (count, m, n) with strides batch, rs and cs; LU (count, m, n), column by column; pivots (count, min(m, n)), info (count); room: count matrices whose
## rows have (blocks * B + W) elements.
##
## Geometry: global (blocks, count) in the first launch and the last, in others (2 * blocks right of `step` + 3, count); local 1. Of the latter the
## first factors the next block, and three more than those blocks, which have little to do, follow: PoCL gives a core half of what is left, and the
## other what has no factors to wait for.
##
## parameter  values         meaning
## T          float32 float64
## W          8 16           lanes of a vector along rows
## NV         number         vectors of a block
## R, P       numbers        rows and vectors of a tile that registers hold; P divides NV
## MOST       number         most rows
<%
    C, V, B = T.c, f"{T.c}{W}", NV * W
    NB, DEPTH = 8, MOST + W
    INT = f"{'int' if T.itemsize == 4 else 'long'}{W}"
    lanes = mat.attr.lanes(T, W)
%>\
${blk.functions(T, W, NV, R, P)}
/* the place of the largest of own[t .. rows - 1]; t where no number is there, as in LAPACK */
static inline int block_pivot(const ${C}* own, const int t, const int rows) {
    ${V} most = 0;
    ${C} best = 0, each[${W}];
    int i = t, p = t;
    if (own[t] != own[t]) return t;
    for (; i + ${W} <= rows; i += ${W}) most = fmax(most, fabs(vload${W}(0, own + i)));
    for (; i < rows; i++) best = fmax(best, fabs(own[i]));
    vstore${W}(most, 0, each);
    for (int c = 0; c < ${W}; c++) best = fmax(best, each[c]);
    while (p + ${W} <= rows && !any(fabs(vload${W}(0, own + p)) >= best)) p += ${W};
    while (p < rows && !(fabs(own[p]) >= best)) p++;
    return p < rows ? p : t;
}
/* `wide` columns of a block eliminated from row `first` on, ${NB} at a time; what is right of these is read and written once for all.
   The number of the first zero pivot, or 0. */
static __attribute__((noinline)) int block_factor(__global ${C}* w, const long s, const int first, const int wide, const int rows,
                                            __global int* pivots, const int pivot) {
    ${C} panel[${NB * DEPTH}];
    int bad = 0;
    for (int c = 0; c < wide; c += ${NB}) {
        const int k = first + c, some = min(${NB}, wide - c);
        for (int i = k; i < rows; i++) {
% for t in range(NB):
            panel[${t * DEPTH} + i] = ${t} < some ? w[i * s + c + ${t}] : 0;
% endfor
        }
        for (int t = 0; t < some; t++) {
            ${C}* own = panel + t * ${DEPTH};
            const int at = k + t, p = pivot ? block_pivot(own, at, rows) : at;
            const ${C} d = own[p];
            bad = bad || d != 0 ? bad : at + 1;
            pivots[at] = p + 1;
            if (p != at) {
                block_exchange(w, s, at, p);
% for u in range(NB):
                const ${C} v${u} = panel[${u * DEPTH} + at];
                panel[${u * DEPTH} + at] = panel[${u * DEPTH} + p];
                panel[${u * DEPTH} + p] = v${u};
% endfor
            }
            int i = at + 1;
            if (d != 0) {
                for (; i + ${W} <= rows; i += ${W}) vstore${W}(vload${W}(0, own + i) / d, 0, own + i);
                for (; i < rows; i++) own[i] /= d;
            }
            for (${C}* next = own + ${DEPTH}; next < panel + some * ${DEPTH}; next += ${DEPTH}) {
                const ${C} h = next[at];
                for (i = at + 1; i + ${W} <= rows; i += ${W}) vstore${W}(vload${W}(0, next + i) - h * vload${W}(0, own + i), 0, next + i);
                for (; i < rows; i++) next[i] -= h * own[i];
            }
        }
        for (int i = k; i < rows; i++)
            for (int t = 0; t < some; t++) w[i * s + c + t] = panel[t * ${DEPTH} + i];
        for (int j = (c + some) / ${W} * ${W}; j < ${B}; j += ${W}) {
            const ${INT} right = ${lanes} >= (${INT})(c + some - j);        // lanes up to the columns that are done hold L
% for t in range(NB):
            ${V} u${t} = 0;
            if (${t} < some) {
                const ${V} old = vload${W}(0, w + (k + ${t}) * s + j);
                u${t} = right ? old${"".join(f" - panel[{q * DEPTH} + k + {t}] * u{q}" for q in range(t))} : (${V})0;
                vstore${W}(right ? u${t} : old, 0, w + (k + ${t}) * s + j);
            }
% endfor
            for (int i = k + some; i < rows; i++)
                vstore${W}(vload${W}(0, w + i * s + j)${"".join(f" - panel[{t * DEPTH} + i] * u{t}" for t in range(NB))}, 0, w + i * s + j);
        }
    }
    return bad;
}
__kernel ${mat.attr.alone(W)}
void linalg_lu_blocks(IN(${C}, A), OUT(${C}, LU), OUT(int, pivots), OUT(int, info), OUT(${C}, room), const long m, const long n, const long batch,
                      const long rs, const long cs, const long pivot, const long copy, const long step) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, LU);
    PTR_OUT(int, pivots);
    PTR_OUT(int, info);
    PTR_OUT(${C}, room);
    const long z = get_global_id(1), s = ${blk.attr.room("n", B, W)};
    const int rows = (int)m, few = (int)min(m, n), blocks = (int)((n + ${B - 1}) / ${B});
    const int g = (int)get_global_id(0), easy = blocks - (int)step + 2, all = step < 0 || step == (few - 1) / ${B};
    const int begin = all ? g : g == 0 ? (int)step + 1 : g <= easy ? g - 1 : (int)step + 1 + g - easy, end = !all && g > 0 && g <= easy ? (int)step : begin + 1;
    for (int mine = begin; mine < end; mine += easy) {
        const int first = mine * ${B}, width = min(${B}, (int)n - first);
        __global ${C}* w = room + z * m * s + first;
        if (step < 0) block_read(A + z * batch + first * cs, rs, cs, w, s, rows, width);
        else if (mine != step) {
            const int k = (int)step * ${B}, wide = min(${B}, few - k);
            for (int t = 0; t < wide; t++) {
                const int p = pivots[z * few + k + t] - 1;
                if (p != k + t) block_exchange(w, s, k + t, p);
            }
            if (mine > step) {
                ${V} u[${B * NV}];
                __global const ${C}* l = room + z * m * s + k;
                block_solve(w + k * s, s, l + k * s, s, u, wide, 0, 1);
                if (wide == ${B}) block_subtract(w + (k + ${B}) * s, s, l + (k + ${B}) * s, s, u, rows - k - ${B}, ${B});
            }
        }
        if (mine == step + 1 && first < few) {
            const int bad = block_factor(w, s, first, min(${B}, few - first), rows, pivots + z * few, (int)pivot);
            if (!mine || (bad && !info[z])) info[z] = bad;
        }
        if (step == (few - 1) / ${B} && copy) {
            int order[${B}];
            for (int c = 0; c < ${B}; c++) order[c] = first + c;
            block_write(w, s, LU + z * m * n, m, order, rows, width);
        }
    }
}
