<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
<%namespace name="blk" file="/linalg/blocks.cl.mako"/>\
<%namespace name="hh" file="/linalg/reflect.cl.mako"/>\
## Q and R of matrices on CPUs, with reflections of B = NV * W columns together (Schreiber, Van Loan, 1989), in launches as those of linalg/lu_blocks.
##
## A (count, m, n) with strides batch, rs and cs; room: count matrices of m rows of (blocks * B + W) elements, R above and on the diagonal in the end;
## V of the same size: the reflections, I - v tau v^T; turned: count x blocks x B x B, the factors T of I - V T V^T, transposed.
##
## Geometry: as of linalg/cholesky_blocks
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
${hh.functions(T, W, NV, R, P)}
static inline ${C} lanes_sum(${V} v) {
    ${C} each[${W}], sum = 0;
    vstore${W}(v, 0, each);
    for (int c = 0; c < ${W}; c++) sum += each[c];
    return sum;
}
/* own[t ..] becomes the vector that reflects it onto its first element, which is given back; its length is measured without overflow */
static __attribute__((noinline)) ${C} reflection(${C}* own, const int t, const int rows, ${C}* tau) {
    ${V} most = 0, sum = 0;
    ${C} large = 0, each[${W}], rest = 0;
    int i = t + 1;
    for (; i + ${W} <= rows; i += ${W}) most = fmax(most, fabs(vload${W}(0, own + i)));
    for (; i < rows; i++) large = fmax(large, fabs(own[i]));
    vstore${W}(most, 0, each);
    for (int c = 0; c < ${W}; c++) large = fmax(large, each[c]);
    const ${C} alpha = own[t];
    own[t] = 1;
    *tau = 0;
    const ${C} unit = large > 0 ? large : 1;
    for (i = t + 1; i + ${W} <= rows; i += ${W}) {
        const ${V} v = vload${W}(0, own + i) / unit;
        sum += v * v;
    }
    for (; i < rows; i++) rest += own[i] / unit * (own[i] / unit);
    const ${C} length = sqrt(lanes_sum(sum) + rest) * unit;
    if (length == 0) return alpha;
    const ${C} beta = -copysign(hypot(alpha, length), alpha);
    *tau = (beta - alpha) / beta;
    for (i = t + 1; i + ${W} <= rows; i += ${W}) vstore${W}(vload${W}(0, own + i) / (alpha - beta), 0, own + i);
    for (; i < rows; i++) own[i] /= alpha - beta;
    return beta;
}
static __attribute__((noinline)) ${C} products(const ${C}* a, const ${C}* b, const int from, const int rows) {
    ${V} sum = 0;
    ${C} rest = 0;
    int i = from;
    for (; i + ${W} <= rows; i += ${W}) sum += vload${W}(0, a + i) * vload${W}(0, b + i);
    for (; i < rows; i++) rest += a[i] * b[i];
    return lanes_sum(sum) + rest;
}
/* `wide` columns of a block reflected from row `first` on, ${NB} at a time; v: the reflections */
static __attribute__((noinline)) void block_reflect(__global ${C}* w, __global ${C}* v, const long s, const int first, const int wide, const int rows, ${C}* tau) {
    ${C} panel[${NB * DEPTH}];
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < ${B}; c++) v[i * s + c] = 0;
    for (int c = 0; c < wide; c += ${NB}) {
        const int k = first + c, some = min(${NB}, wide - c);
        for (int i = k; i < rows; i++) {
% for t in range(NB):
            panel[${t * DEPTH} + i] = ${t} < some ? w[i * s + c + ${t}] : 0;
% endfor
        }
        ${C} turned[${NB * NB}];                                   // T of these columns, transposed
        for (int t = 0; t < ${NB * NB}; t++) turned[t] = 0;
        for (int t = 0; t < some; t++) {
            ${C}* own = panel + t * ${DEPTH};
            const ${C} beta = reflection(own, k + t, rows, tau + c + t), f = tau[c + t];
            w[(k + t) * s + c + t] = beta;
            for (int q = 0; q < t; q++) {
                const ${C} g = products(panel + q * ${DEPTH}, own, k + t, rows);
                for (int r = 0; r <= q; r++) turned[t * ${NB} + r] -= f * turned[q * ${NB} + r] * g;
            }
            turned[t * ${NB} + t] = f;
            for (int q = t + 1; q < some; q++) {
                ${C}* next = panel + q * ${DEPTH};
                const ${C} h = f * products(own, next, k + t, rows);
                int i = k + t;
                for (; i + ${W} <= rows; i += ${W}) vstore${W}(vload${W}(0, next + i) - h * vload${W}(0, own + i), 0, next + i);
                for (; i < rows; i++) next[i] -= h * own[i];
                w[(k + t) * s + c + q] = next[k + t];
            }
            for (int i = k; i < k + t; i++) own[i] = 0;
        }
        for (int i = k; i < rows; i++)
            for (int t = 0; t < some; t++) v[i * s + c + t] = panel[t * ${DEPTH} + i];
        for (int j = (c + some) / ${W} * ${W}; j < ${B}; j += ${W}) {
            const ${INT} right = ${lanes} >= (${INT})(c + some - j);
            ${V} ${", ".join(f"s{t} = 0" for t in range(NB))};
            for (int i = k; i < rows; i++) {
                const ${V} own = vload${W}(0, w + i * s + j);
                ${" ".join(f"s{t} = fma(({V})panel[{t * DEPTH} + i], own, s{t});" for t in range(NB))}
            }
% for t in range(NB):
            const ${V} u${t} = right ? ${" + ".join(f"turned[{t * NB + q}] * s{q}" for q in range(t + 1))} : (${V})0;
% endfor
            for (int i = k; i < rows; i++) {
                ${V} own = vload${W}(0, w + i * s + j);
                ${" ".join(f"own = fma(-({V})panel[{t * DEPTH} + i], u{t}, own);" for t in range(NB))}
                vstore${W}(own, 0, w + i * s + j);
            }
        }
    }
}
__kernel ${mat.attr.alone(W)}
void linalg_qr_blocks(IN(${C}, A), OUT(${C}, room), OUT(${C}, V), OUT(${C}, turned), const long m, const long n, const long batch, const long rs, const long cs,
                      const long step) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, room);
    PTR_OUT(${C}, V);
    PTR_OUT(${C}, turned);
    const long z = get_global_id(1), s = ${blk.attr.room("n", B, W)};
    const int rows = (int)m, few = (int)min(m, n), blocks = (int)((n + ${B - 1}) / ${B});
    const int g = (int)get_global_id(0), easy = blocks - (int)step + 2;
    if (step >= 0 && g > 0 && g <= easy) return;
    const int mine = step < 0 ? g : (int)step + 1 + max(0, g - easy), first = mine * ${B}, width = min(${B}, (int)n - first);
    __global ${C}* w = room + z * m * s + first;
    if (step < 0) block_read(A + z * batch + first * cs, rs, cs, w, s, rows, width);
    else {
        const int k = (int)step * ${B};
        block_apply(w + k * s, s, V + (z * m + k) * s + k, s, turned + (z * blocks + step) * ${B * B}, rows - k, 0);
    }
    if (mine == step + 1 && first < few) {
        ${C} tau[${B}];
        for (int c = 0; c < ${B}; c++) tau[c] = 0;
        __global ${C}* v = V + z * m * s + first;
        block_reflect(w, v, s, first, min(${B}, few - first), rows, tau);
        block_factors(v + first * s, s, tau, turned + (z * blocks + mine) * ${B * B}, rows - first);
    }
}
