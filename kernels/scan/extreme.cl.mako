<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="lanes" file="/scan/lanes.cl.mako"/>\
## Running maxima (minima) V and their latest positions I along the middle dimension of X (outer, n, inner). NaN stays once met.
##   PHASE whole   of all of X
##   PHASE total   the last pair of each part of PART elements: V, I (outer, parts, inner)
##   PHASE apply   each part continued from the scanned totals ZV, ZI
##
## FORM      geometry
## item      global (inner, outer, parts)
## vector    global (1, outer * parts / chunk), inner = 1, local size 1: blocks of a vector's width are scanned in log2 steps (CPUs)
## columns   global (inner / span, outer * parts / chunk), local size 1: vectors of W neighbouring columns, W = 8 for 64-bit types, else 16 (CPUs)
## Sizes are rounded up; the last two forms take `chunk` parts, one after another.
## A stage above the first gets the positions of its elements in ZI (POSITIONS, form item). Limit of the other forms: n < 2^31.
##
## parameter  values      meaning
## T          dtype row   of X and V
## SIGN       ">=" "<="   maxima or minima
## PHASE      see above
## POSITIONS  bool        an element's position is ZI[element], not its index
## COLUMNS    multiple of 64   the most columns of a work-item of form columns (span)
<%
    A = T.acc
    W = 8 if A in ("double", "long") else 16
    P = "long" if W == 8 else "int"                  # positions in lanes as wide as the values
    V, PV = f"{A}{W}", f"{P}{W}"
    NOTHING = T.lowest if SIGN == ">=" else T.highest
    last = "%x" % (W - 1)
    SLOTS = COLUMNS + W
%>
#define TAKE(v, best) (((v) != (v)) | (((best) == (best)) & ((v) ${SIGN} (best))))
% if FORM != "item":
${vec.vector_io(T, W)}
% endif
__kernel void scan_extreme(IN(${T.c}, X), IN(${T.c}, ZV), IN(long, ZI), OUT(${T.c}, V), OUT(long, I), const long outer, const long n,
                           const long inner, const long part, const long parts, const long chunk, const long span) {
    PTR_IN(${T.c}, X);
    PTR_IN(${T.c}, ZV);
    PTR_IN(long, ZI);
    PTR_OUT(${T.c}, V);
    PTR_OUT(long, I);
% if FORM == "item":
    const long i = get_global_id(0), o = get_global_id(1), p = get_global_id(2);
    if (i >= inner || o >= outer) return;
    {
% else:
    const long i = ${"get_global_id(0) * span" if FORM == "columns" else "0"}, end = min(outer * parts, (long)(get_global_id(1) + 1) * chunk);
% if FORM == "columns":
    if (i && inner - i < ${W}) return;                             /* so few columns are left to the work-item before */
    const int w = (int)(inner - i < span + ${W} ? inner - i : span), slots = (w + ${W - 1}) / ${W} * ${W};
% endif
    for (long unit = get_global_id(1) * chunk; unit < end; unit++) {
    const long o = unit / parts, p = unit - o * parts;
% endif
    const long first = p * part, last = min(n, first + part), base = o * n * inner + i, to = (o * parts + p) * inner + i;
% if FORM == "vector":
    ${A} best = ${NOTHING};
    ${P} at = (${P})first;
% if PHASE == "apply":
    if (p) { best = ${T.load}(ZV, to - 1); at = (${P})ZI[to - 1]; }
% endif
    const ${PV} lane = (${PV})(${", ".join(map(str, range(W)))});
    long k = first;
    for (; k + ${W} <= last; k += ${W}) {
        ${V} v = ldv_${T.name}(X + base + k);
        ${PV} q = (${PV})(at);
        if (any(TAKE(v, (${V})(best)))) {
            q = lane + (${PV})((${P})k);
% for s in lanes.attr.steps(W):
            {
                const ${V} u = ${lanes.attr.shifted("v", A, W, s, NOTHING)};
                const ${PV} r = ${lanes.attr.shifted("q", P, W, s, "0")};
                ## lanes that nothing was moved into keep what they have: TAKE holds against the extreme that is never greater
                const ${PV} keep = TAKE(v, u) | (lane < (${PV})(${s}));
                v = keep ? v : u;
                q = keep ? q : r;
            }
% endfor
            {
                const ${PV} keep = TAKE(v, (${V})(best));
                v = keep ? v : (${V})(best);
                q = keep ? q : (${PV})(at);
            }
        } else {
            v = (${V})(best);               /* most blocks have nothing new */
        }
        best = v.s${last};
        at = q.s${last};
% if PHASE != "total":
        stv_${T.name}(V + base + k, v);
        vstore${W}(${"q" if P == "long" else f"convert_long{W}(q)"}, 0, I + base + k);
% endif
    }
    for (; k < last; k++) {
        const ${A} v = ${T.load}(X, base + k);
        if (TAKE(v, best)) { best = v; at = (${P})k; }
% if PHASE != "total":
        ${T.store}(V, base + k, best);
        I[base + k] = at;
% endif
    }
% if PHASE == "total":
    ${T.store}(V, to, best);
    I[to] = at;
% endif
% elif FORM == "columns":
    ${A} kept[${SLOTS}];
    ${P} places[${SLOTS}];
    for (int d = 0; d < slots; d += ${W}) {
        const int c = min(d, w - ${W});
        ${V} best = ldv_${T.name}(X + base + c + first * inner);
        ${PV} at = (${PV})((${P})first);
% if PHASE == "apply":
        if (p) {
            const ${V} past = ldv_${T.name}(ZV + to + c - inner);
            const ${PV} keep = TAKE(best, past);
            best = keep ? best : past;
            at = keep ? at : convert_${P}${W}(vload${W}(0, ZI + to + c - inner));
        }
% endif
        vstore${W}(best, 0, kept + d);
        vstore${W}(at, 0, places + d);
    }
    ## the last vector may have columns of the one before it: what was met so far has its own place then
    for (long k = first; k < last; k++)
        for (int d = 0; d < slots; d += ${W}) {
            const int c = min(d, w - ${W});
            const long here = base + c + k * inner;
            ${V} best = vload${W}(0, kept + d);
            ${PV} at = vload${W}(0, places + d);
            if (k > first) {
                const ${V} v = ldv_${T.name}(X + here);
                const ${PV} take = TAKE(v, best);
                best = take ? v : best;
                at = take ? (${PV})((${P})k) : at;
                vstore${W}(best, 0, kept + d);
                vstore${W}(at, 0, places + d);
            }
            FETCH(X + here + 4 * inner);
% if PHASE != "total":
            FETCH(V + here + 4 * inner);
            FETCH(I + here + 4 * inner);
            FETCH(I + here + 4 * inner + 8);
            stv_${T.name}(V + here, best);
            vstore${W}(${"at" if P == "long" else f"convert_long{W}(at)"}, 0, I + here);
% endif
        }
% if PHASE == "total":
    for (int d = 0; d < slots; d += ${W}) {
        stv_${T.name}(V + to + min(d, w - ${W}), vload${W}(0, kept + d));
        vstore${W}(convert_long${W}(vload${W}(0, places + d)), 0, I + to + min(d, w - ${W}));
    }
% endif
% else:
    ${alone("base", "to")}
% endif
    }
}
## alone: one column by itself
<%def name="alone(begin, slot)">
    ${T.acc} best = ${T.load}(X, ${begin} + first * inner);
    long at = ${f"ZI[{begin} + first * inner]" if POSITIONS else "first"};
% if PHASE == "apply":
    if (p) {
        const ${T.acc} past = ${T.load}(ZV, ${slot} - inner);
        if (!TAKE(best, past)) { best = past; at = ZI[${slot} - inner]; }
    }
% endif
    for (long k = first; k < last; k++) {
        const ${T.acc} v = ${T.load}(X, ${begin} + k * inner);
        if (k > first && TAKE(v, best)) { best = v; at = ${f"ZI[{begin} + k * inner]" if POSITIONS else "k"}; }
% if PHASE != "total":
        ${T.store}(V, ${begin} + k * inner, best);
        I[${begin} + k * inner] = at;
% endif
    }
% if PHASE == "total":
    ${T.store}(V, ${slot}, best);
    I[${slot}] = at;
% endif
</%def>
