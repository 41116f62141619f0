## Radix sort of one row by as few digits as its keys need; parts for `rows` and `long`. `sorting/key` must stand before it (key, keys, unkey).
##
## The keys less the smallest of them, without the low bits that all have in common, are sorted by as many digits as they need: whole
## numbers of a small range take one pass. Such a key of up to 32 bits and its place travel in one 64-bit word, wider ones side by side.
##
## def                   gives
## functions(T, DIGIT)   for digits of DIGIT bits: clnn_range, clnn_plan, clnn_count, clnn_move, clnn_emit
<%def name="functions(T, DIGIT)">
<%
    WIDE = T.itemsize == 8
    U = "ulong" if WIDE else "uint"
    BITS, W = (64, 8) if WIDE else (32, 16)
    D = 1 << DIGIT
%>
#if defined(CLNN_POCL) || defined(CLNN_INTEL_CPU)
#define APART restrict
#else
#define APART                   /* Oclgrind 21.10 stops at an intrinsic that inlining makes of it */
#endif
/* r = the smallest and the greatest key of from[lo .. hi) and the bits that differ from those of `first`. */
static inline void clnn_range(__global const ${T.c}* APART from, ${U} first, long lo, long hi, ${U}* r) {
    ${U}${W} low = ~(${U})0, high = 0, differ = 0;
    long i = lo;
    for (; i + ${W} <= hi; i += ${W}) {
        const ${U}${W} k = clnn_keys(from + i);
        low = min(low, k); high = max(high, k); differ |= k ^ first;
    }
    r[0] = ~(${U})0; r[1] = r[2] = 0;
% for l in range(W):
    r[0] = min(r[0], low.s${f"{l:x}"}); r[1] = max(r[1], high.s${f"{l:x}"}); r[2] |= differ.s${f"{l:x}"};
% endfor
    for (; i < hi; i++) {
        const ${U} k = clnn_key(from[i]);
        r[0] = min(r[0], k); r[1] = max(r[1], k); r[2] |= k ^ first;
    }
}

/* The number of passes over keys that lie in low .. high and differ in the bits `differ`, how far they are shifted, and whether they are narrow. */
static inline int clnn_plan(${U} low, ${U} high, ${U} differ, int* shift, int* narrow) {
    const int s = differ ? ${BITS - 1} - (int)clz(differ & (~differ + 1)) : 0;
    const int width = ${BITS} - (int)clz((high - low) >> s);
    *shift = s;
    *narrow = width <= 32;
    return (width + ${DIGIT - 1}) / ${DIGIT};
}

/* How often each digit of pass `pass` occurs. Pass 0 makes the keys from the values, the others find them in k. */
static inline void clnn_count(__global const ${T.c}* APART from, __global const ulong* APART k, long lo, long hi, ${U} low, int shift,
                              int narrow, int pass, int* count) {
    for (int d = 0; d < ${D}; d++) count[d] = 0;
    if (pass == 0) {
        for (long i = lo; i < hi; i++) count[(uint)((clnn_key(from[i]) - low) >> shift) & ${D - 1}]++;
        return;
    }
    const int s = pass * ${DIGIT} + (narrow ? 32 : 0);
    for (long i = lo; i < hi; i++) count[(uint)(k[i] >> s) & ${D - 1}]++;
}

/* Each key and its place to where `at` says, which moves on. */
static inline void clnn_move(__global const ${T.c}* APART from, __global const ulong* APART k, __global const int* APART places,
                             __global ulong* APART k2, __global int* APART places2, long lo, long hi, ${U} low, int shift,
                             int narrow, int pass, int* at) {
    const int s = pass * ${DIGIT} + (narrow ? 32 : 0);
% if WIDE:
    if (!narrow) {
        for (long i = lo; i < hi; i++) {
            const ulong mine = pass == 0 ? (clnn_key(from[i]) - low) >> shift : k[i];
            const int to = at[(uint)(mine >> s) & ${D - 1}]++;
            k2[to] = mine; places2[to] = pass == 0 ? (int)i : places[i];
        }
        return;
    }
% endif
    if (pass == 0) {
        for (long i = lo; i < hi; i++) {
            const ulong mine = (clnn_key(from[i]) - low) >> shift;
            k2[at[(uint)mine & ${D - 1}]++] = mine << 32 | (ulong)i;
        }
        return;
    }
    for (long i = lo; i < hi; i++) {
        const ulong mine = k[i];
        k2[at[(uint)(mine >> s) & ${D - 1}]++] = mine;
    }
}

/* Values and indices from the sorted keys; without a pass all are equal. */
static inline void clnn_emit(__global const ${T.c}* APART from, __global const ulong* APART k, __global const int* APART places,
                             __global ${T.c}* APART to, __global long* APART at, long lo, long hi, ${U} low, int shift,
                             int narrow, int passes) {
    if (passes == 0) {
        for (long i = lo; i < hi; i++) { to[i] = from[i]; at[i] = i; }
        return;
    }
% if WIDE:
    if (!narrow) {
        for (long i = lo; i < hi; i++) {
            const int place = places[i];
            at[i] = place;
            to[i] = clnn_unkey((k[i] << shift) + low, from + place);
        }
        return;
    }
% endif
    for (long i = lo; i < hi; i++) {
        const ulong mine = k[i];
        const uint place = (uint)mine;
        at[i] = place;
        to[i] = clnn_unkey((${U})((mine >> 32) << shift) + low, from + place);
    }
}
</%def>
