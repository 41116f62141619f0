<%inherit file="/base.cl.mako"/>\
<%namespace name="op" file="/scan/combine.cl.mako"/>\
## Running sums, products, log-sum-exps, maxima or minima along the middle dimension of X (outer, n, INNER) on GPUs, where INNER is small: memory is read
## and written as it lies, through a tile in local memory, of which each work-item scans K elements of a sequence before the items scan what they have.
##   PHASE whole   Y = scan of X; one part, of n elements
##   PHASE total   Y (outer, parts, INNER) = result of each part of `part` elements; sums in the accumulate type
##   PHASE apply   Y = scan of X, each part continued from Z[part - 1], the scanned totals
## Extremes have values V and Z and their latest positions I and J; NaN stays once met.
##
## Geometry: global (outer / UNITS * SIZE, parts), local (SIZE, 1). Item (unit, d, c) has rows d * K ... of column c of sequence `unit` of the group.
##
## parameter   values                       meaning
## T, R        dtype rows                   of X, of Y; the same but for totals of sums
## OP          sum prod logaddexp max min   how elements combine
## REVERSE     bool                         from the last element to the first (not of extremes)
## PHASE       see above
## INNER       1 ...                        columns side by side
## DEEP        1 ...                        work-items of a column; UNITS * DEEP * INNER <= SIZE
## UNITS       1 ...                        sequences of a group, of n <= DEEP * K elements; 1 with LOOP and in phases total and apply (K is odd, then)
## SIZE        power of two                 work-items of a group; K  1 ... elements of each at a time
## LOOP        bool                         tile after tile: the next one is on its way meanwhile
## POSITIONS   bool                         of extremes: an element's position is J[element], not its index
## complex     OP in ("sum", "prod", "logaddexp")
<%
    A = T.acc
    EXTREME = OP in ("max", "min")
    PLACE = "long" if A in ("double", "long") else "int"
    E = "element" if EXTREME else A
    NOTHING = "nothing" if EXTREME else op.attr.nothing(OP, T)
    TILE, STEP = UNITS * DEEP * K * INNER, DEEP * INNER
    BYTES = dict(float=4, int=4).get(A, 16 if A == "double2" else 8) * (2 if EXTREME else 1)
    # Items of one sequence are at different banks as K is odd; with several, an empty place per so many elements sees to it
    SHIFT = (5 if BYTES == 4 else 4 if BYTES == 8 else 3) if UNITS > 1 else 0
    flat = lambda q: f"at_first + {q} * {SIZE + (SIZE >> SHIFT if SHIFT else 0)}"
    levels = [s for s in (1, 4, 16, 64, 256) if s < DEEP]
%>
% if EXTREME:
struct placed { ${A} v; ${PLACE} at; };
#define element struct placed
static inline element combine(const element a, const element b) {       /* a comes earlier */
    const bool keep = (a.v != a.v || !(b.v ${">=" if OP == "max" else "<="} a.v)) && b.v == b.v;
    return keep ? a : b;
}
static inline element combine_any(const element a, const element b) { return a.at <= b.at ? combine(a, b) : combine(b, a); }
#define COMBINE(a, b) combine(a, b)
#define COMBINE_ANY(a, b) combine_any(a, b)
% else:
${op.combine(OP, T)}
#define COMBINE_ANY(a, b) COMBINE(a, b)
% endif
#define PLACE(e) ${f'((e) + ((e) >> {SHIFT}))' if SHIFT else '(e)'}
__kernel __attribute__((reqd_work_group_size(${SIZE}, 1, 1))) void scan_group(IN(${T.c}, X), ${f"IN({T.c}, Z), IN(long, J)" if EXTREME else f"IN({A}, Z)"},
        OUT(${R.c}, Y), ${"OUT(long, I), " if EXTREME else ""}const long outer, const long n, const long part, const long parts) {
    PTR_IN(${T.c}, X);
    PTR_IN(${T.c if EXTREME else A}, Z);
    PTR_OUT(${R.c}, Y);
% if EXTREME:
    PTR_IN(long, J);
    PTR_OUT(long, I);
    element nothing;
    nothing.v = ${T.lowest if OP == "max" else T.highest};
    nothing.at = -1;
% endif
% if DEEP > 1:
    __local ${E} sums[${2 * SIZE}];
% endif
    const int lid = get_local_id(0), unit = lid / ${STEP}, d = lid / ${INNER} % ${DEEP}, c = lid % ${INNER};
    const long o = (long)get_group_id(0) * ${UNITS}, p = get_global_id(1), begin = p * part, end = min(n, begin + part), to = (o * parts + p) * ${INNER} + c;
% if PHASE == "total":
    const long base = (o * n + ${"n - end" if REVERSE else "begin"}) * ${INNER};
    const int count = (int)(end - begin) * ${INNER};
    ${E} mine = ${NOTHING};
    int e = unit ? count : lid;
    for (; e + ${(K - 1) * STEP} < count; e += ${K * STEP}) {
#pragma unroll
        for (int q = 0; q < ${K}; q++) { ${fetch("x", f"e + q * {STEP}", "begin")} mine = COMBINE_ANY(mine, x); }
    }
#pragma unroll 4
    for (; e < count; e += ${STEP}) { ${fetch("x", "e", "begin")} mine = COMBINE_ANY(mine, x); }
    ${across("COMBINE_ANY")}
    if (unit == 0 && d == ${DEEP - 1}) { ${result("to", "mine")} }
}
% else:
    __local ${E} tile[PLACE(${TILE}) + 1];
    const int units = (int)min(${UNITS}L, outer - o), at_first = PLACE(lid);
    ${E} next[${K}];
% if LOOP:
    ${E} carry = ${NOTHING};
% if PHASE == "apply":
% if EXTREME:
    if (p && unit == 0) { carry.v = ${T.load}(Z, to - ${INNER}); carry.at = J[to - ${INNER}]; }
% else:
    if (p && unit == 0) carry = Z[to - ${INNER}];
% endif
% endif
    int m = (int)min(${DEEP * K}L, end - begin);
    long base = (o * n + ${"n - begin - m" if REVERSE else "begin"}) * ${INNER};
    ${ask("base", f"m * {INNER}", "begin")}
    for (long first = begin; first < end; first += ${DEEP * K}) {
        const int count = m * ${INNER};
% else:
    const int m = (int)n, count = units * m * ${INNER};
    const long first = 0, base = o * n * ${INNER};
    ${ask("base", "count", "first")}
    {
% endif
#pragma unroll
        for (int q = 0; q < ${K}; q++) if (lid + q * ${SIZE} < count) tile[${flat('q')}] = next[q];
        barrier(CLK_LOCAL_MEM_FENCE);
% if LOOP:
        const long ahead = first + ${DEEP * K};
        const int m_next = (int)min(${DEEP * K}L, max(1L, end - ahead));
        const long base_next = ahead < end ? (o * n + ${"n - ahead - m_next" if REVERSE else "ahead"}) * ${INNER} : base;
        if (ahead < end) {
            ${ask("base_next", f"m_next * {INNER}", "ahead")}
        }
% endif
        ## the items' own elements, in order
        const int rows = unit < units ? min(${K}, m - d * ${K}) : 0;
        const int own = (unit * m + ${f"m - 1 - d * {K}" if REVERSE else f"d * {K}"}) * ${INNER} + c;
        ${E} b[${K}], mine = ${NOTHING};
#pragma unroll
        for (int k = 0; k < ${K}; k++) {
            if (k < rows) {
                ${"" if EXTREME and not POSITIONS else "const "}${E} x = tile[PLACE(own ${"-" if REVERSE else "+"} k * ${INNER})];
% if EXTREME and not POSITIONS:
                x.at = (${PLACE})first + d * ${K} + k;
% endif
                mine = COMBINE(mine, x);
            }
            b[k] = mine;
        }
        ${across("COMBINE")}
% if LOOP and DEEP > 1:
        const ${E} past = d ? COMBINE(carry, before) : carry;
        if (unit == 0) carry = COMBINE(carry, sums[last + ${(DEEP - 1) * INNER} + c]);
% elif LOOP:
        const ${E} past = carry;
        carry = COMBINE(carry, mine);
% elif DEEP > 1:
        const ${E} past = before;
% endif
#pragma unroll
        for (int k = 0; k < ${K}; k++)
            if (k < rows) tile[PLACE(own ${"-" if REVERSE else "+"} k * ${INNER})] = ${"COMBINE(past, b[k])" if LOOP or DEEP > 1 else "b[k]"};
        barrier(CLK_LOCAL_MEM_FENCE);
        ## the items write the places that they fill next, so no barrier has to follow
#pragma unroll
        for (int q = 0; q < ${K}; q++)
            if (lid + q * ${SIZE} < count) { const ${E} y = tile[${flat('q')}]; ${result(f"base + lid + q * {SIZE}", "y")} }
% if LOOP:
        m = m_next;
        base = base_next;
% endif
    }
}
% endif
## fetch: the element `name` at place `e` of what starts at base, row `first` of the sequence
<%def name="fetch(name, e, first, base='base')">\
% if EXTREME:
element ${name}; ${name}.v = ${T.load}(X, ${base} + ${e}); ${name}.at = ${f"(PLACE_T)J[{base} + {e}]".replace("PLACE_T", PLACE) if POSITIONS else f"({PLACE}){first} + ({e}) / {INNER}"};\
% else:
const ${E} ${name} = ${T.load}(X, ${base} + ${e});\
% endif
</%def>
## ask: each item reads its share of a tile of `count` elements, as it lies
<%def name="ask(base, count, first)">\
{
#pragma unroll
        for (int q = 0; q < ${K}; q++) if (lid + q * ${SIZE} < ${count}) {
            const long from = ${base} + lid + q * ${SIZE};
% if EXTREME:
            next[q].v = ${T.load}(X, from);
            next[q].at = ${f"({PLACE})J[from]" if POSITIONS else "0"};
% else:
            next[q] = ${T.load}(X, from);
% endif
        }
    }
</%def>
## across: `mine` becomes the scan over the items of a column, `before` that of the items before, which is in `sums` from `last` on
<%def name="across(fold)">\
% if DEEP > 1:
% for at, s in enumerate(levels):
        sums[${at % 2 * SIZE} + lid] = mine;
        barrier(CLK_LOCAL_MEM_FENCE);
% for j in range(1, 4):
% if j * s < DEEP:
        if (d >= ${j * s}) mine = ${fold}(sums[${at % 2 * SIZE} + lid - ${j * s * INNER}], mine);
% endif
% endfor
% endfor
% if PHASE != "total":
        const int last = ${len(levels) % 2 * SIZE};
        sums[last + lid] = mine;
        barrier(CLK_LOCAL_MEM_FENCE);
        ${E} before = ${NOTHING};
        if (d) before = sums[last + lid - ${INNER}];
% endif
% endif
</%def>
<%def name="result(at, value)">\
% if EXTREME:
${R.store}(Y, ${at}, ${value}.v); I[${at}] = ${value}.at;\
% else:
${R.store}(Y, ${at}, ${value});\
% endif
</%def>
