<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
<%namespace name="blk" file="/linalg/blocks.cl.mako"/>\
## Cholesky factors of larger matrices on CPUs, as linalg/cholesky: launches as in linalg/lu_blocks, and one that copies to L after all others.
##
## A (count, n, n) with strides batch, rs and cs; L (count, n, n), by_rows or column by column; info (count); room: count matrices of blocks * B rows of
## (blocks * B + W) elements, an identity matrix behind A.
##
## Geometry: as of linalg/lu_blocks, but that those with little to do have nothing to do
##
## parameter  values         meaning
## T          float32 float64
## W          8 16           lanes of a vector along rows
## NV         number         vectors of a block
## R, P       numbers        rows and vectors of a tile that registers hold; P divides NV
## MOST       number         most rows, a multiple of B
<%
    C, V, B = T.c, f"{T.c}{W}", NV * W
    NB, DEPTH = 8, MOST
    INT = f"{'int' if T.itemsize == 4 else 'long'}{W}"
    lanes = mat.attr.lanes(T, W)
%>\
${blk.functions(T, W, NV, R, P)}
/* the columns of a block factored from row `first` on, ${NB} at a time; what is right of these is read and written once for all.
   The order of a minor that is not positive, or 0. */
static __attribute__((noinline)) int block_factor(__global ${C}* w, const long s, const int first, const int rows) {
    ${C} panel[${NB * DEPTH}];
    int bad = 0;
    for (int c = 0; c < ${B}; c += ${NB}) {
        const int k = first + c, from = k / ${W} * ${W};
        for (int i = from; i < rows; i++) {
% for t in range(NB):
            panel[${t * DEPTH} + i] = w[i * s + c + ${t}];
% endfor
        }
        for (int t = 0; t < ${NB}; t++) {
            ${C}* own = panel + t * ${DEPTH};
            const ${C} d = own[k + t], root = sqrt(d);
            bad = bad || d > 0 ? bad : k + t + 1;
            for (int i = from; i < rows; i += ${W}) vstore${W}(vload${W}(0, own + i) / root, 0, own + i);
            own[k + t] = root;
            for (int q = t + 1; q < ${NB}; q++) {
                ${C}* next = panel + q * ${DEPTH};
                const ${C} h = own[k + q];
                for (int i = from; i < rows; i += ${W}) vstore${W}(vload${W}(0, next + i) - h * vload${W}(0, own + i), 0, next + i);
            }
        }
        for (int i = k; i < rows; i++)
            for (int t = 0; t < ${NB}; t++) w[i * s + c + t] = panel[t * ${DEPTH} + i];
        for (int j = (c + ${NB}) / ${W} * ${W}; j < ${B}; j += ${W}) {
            const ${INT} right = ${lanes} >= (${INT})(c + ${NB} - j);        // lanes up to the columns that are done are not to change
% for t in range(NB):
            const ${V} u${t} = right ? vload${W}(0, panel + ${t * DEPTH} + first + j) : (${V})0;
% endfor
            for (int i = first + max(j, c + ${NB}); i < rows; i++)
                vstore${W}(vload${W}(0, w + i * s + j)${"".join(f" - panel[{t * DEPTH} + i] * u{t}" for t in range(NB))}, 0, w + i * s + j);
        }
    }
    return bad;
}
__kernel ${mat.attr.alone(W)}
void linalg_cholesky_blocks(IN(${C}, A), OUT(${C}, L), OUT(int, info), OUT(${C}, room), const long order, const long batch, const long rs, const long cs,
                            const long by_rows, const long step) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, L);
    PTR_OUT(int, info);
    PTR_OUT(${C}, room);
    const long z = get_global_id(1), s = ${blk.attr.room("order", B, W)};
    const int n = (int)order, blocks = (n + ${B - 1}) / ${B}, rows = blocks * ${B};
    const int g = (int)get_global_id(0), easy = blocks - (int)step + 2, whole = step < 0 || step == blocks;
    if (!whole && g > 0 && g <= easy) return;
    const int mine = whole ? g : (int)step + 1 + max(0, g - easy), first = mine * ${B}, width = min(${B}, n - first);
    __global ${C}* all = room + z * rows * s;
    __global ${C}* w = all + first;
    if (step < 0) {
        block_read(A + z * batch + first * rs + first * cs, rs, cs, w + first * s, s, n - first, width);
        for (int i = n; i < rows; i++)
            for (int c = 0; c < ${B}; c++) w[i * s + c] = i == first + c;
    } else if (mine > step && step < blocks) {
        ${V} u[${B * NV}];
        // The rows of what was factored that stand where own columns do, as columns.
        __global const ${C}* l = all + step * ${B};
        block_columns(l + first * s, s, (${C}*)u);
        block_subtract(w + first * s, s, l + first * s, s, u, rows - first, ${B});
    }
    if (mine == step + 1 && step < blocks) {
        const int bad = block_factor(w, s, first, rows);
        if (!mine || (bad && !info[z])) info[z] = bad;
    }
    if (step < blocks) return;
    const int bad = info[z];
    for (int i = 0; i < (bad ? n : first + width); i++)
        for (int c = 0; c < ${B}; c++)
            if (bad || i < first + c) w[i * s + c] = bad ? (${C})NAN : 0;
    __global ${C}* y = L + z * n * n;
    int place[${B}];
    for (int c = 0; c < ${B}; c++) place[c] = first + c;
    if (!by_rows) block_write(w, s, y, n, place, n, width);
    else
        for (int i = 0; i < n; i++)
            for (int c = 0; c < width; c++) y[(long)i * n + first + c] = w[i * s + c];
}
