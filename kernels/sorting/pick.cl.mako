<%inherit file="/base.cl.mako"/>\
## One element of each sorted row and its former position: a place, or a median among the elements before the first NaN.
##
## x (rows, L) sorted, NaN last, and places (rows, L) int64; values and indices (rows). Geometry: global (rows), any local size.
##
## Parameter  legal values
## T          dtype row of the values
## WHAT       "place": the one at `at`; "median", which is NaN where the row has one; "nanmedian"
__kernel void pick(IN(${T.c}, x), IN(long, places), OUT(${T.c}, values), OUT(long, indices), const long rows, const long L, const long at) {
    const long row = get_global_id(0);
    if (row >= rows) return;
    PTR_IN(${T.c}, x); PTR_IN(long, places);
    long k = at;
% if WHAT != "place":
    long lo = 0, hi = L;                                                   /* numbers end between them */
    while (lo < hi) {
        const long mid = lo + (hi - lo) / 2;
        const ${T.acc} v = ${T.load}(x, row * L + mid);
        if (isnan(v)) hi = mid; else lo = mid + 1;
    }
% if WHAT == "median":
    k = lo < L ? lo : (L - 1) / 2;
% else:
    k = max(lo - 1, 0L) / 2;
% endif
% endif
    values_p[values_o + row] = x[row * L + k];
    indices_p[indices_o + row] = places[row * L + k];
}
