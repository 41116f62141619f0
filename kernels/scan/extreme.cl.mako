<%inherit file="/base.cl.mako"/>\
## Running maxima (minima) V and their latest positions I along the middle dimension of X (outer, n, inner). NaN stays once met.
##   PHASE whole   of all of X
##   PHASE total   the last pair of each part of PART elements: V, I (outer, parts, inner)
##   PHASE apply   each part continued from the scanned totals ZV, ZI
##
## Geometry: global (inner, outer, parts). A stage above the first gets the positions of its elements in ZI (POSITIONS).
##
## parameter  values      meaning
## T          dtype row   of X and V
## SIGN       ">=" "<="   maxima or minima
## PHASE      see above
## POSITIONS  bool        an element's position is ZI[element], not its index
<% A = T.acc %>
#define TAKE(v, best) (((v) != (v)) | (((best) == (best)) & ((v) ${SIGN} (best))))
__kernel void scan_extreme(IN(${T.c}, X), IN(${T.c}, ZV), IN(long, ZI), OUT(${T.c}, V), OUT(long, I), const long outer, const long n,
                           const long inner, const long part, const long parts) {
    PTR_IN(${T.c}, X);
    PTR_IN(${T.c}, ZV);
    PTR_IN(long, ZI);
    PTR_OUT(${T.c}, V);
    PTR_OUT(long, I);
    const long i = get_global_id(0), o = get_global_id(1), p = get_global_id(2);
    if (i >= inner || o >= outer) return;
    const long first = p * part, last = min(n, first + part), base = o * n * inner + i, to = (o * parts + p) * inner + i;
    ${A} best = ${T.load}(X, base + first * inner);
    long at = ${"ZI[base + first * inner]" if POSITIONS else "first"};
% if PHASE == "apply":
    if (p) {
        const ${A} past = ${T.load}(ZV, to - inner);
        if (!TAKE(best, past)) { best = past; at = ZI[to - inner]; }
    }
% endif
    for (long k = first; k < last; k++) {
        const ${A} v = ${T.load}(X, base + k * inner);
        if (k > first && TAKE(v, best)) { best = v; at = ${"ZI[base + k * inner]" if POSITIONS else "k"}; }
% if PHASE != "total":
        ${T.store}(V, base + k * inner, best);
        I[base + k * inner] = at;
% endif
    }
% if PHASE == "total":
    ${T.store}(V, to, best);
    I[to] = at;
% endif
}
