<%inherit file="/base.cl.mako"/>\
## The most frequent value of each sorted row (the smallest of several) and where its last occurrence came from.
##
## sorted (rows, L), places (rows, L) int64; values, indices (rows). Geometry: global (rows), any local size.
##
## Parameter  legal values
## T          dtype row of the values
__kernel void mode(IN(${T.c}, sorted), IN(long, places), OUT(${T.c}, values), OUT(long, indices), const long rows, const long L) {
    const long row = get_global_id(0);
    if (row >= rows) return;
    __global const ${T.c}* restrict s = sorted_p + sorted_o + row * L;
    long best = 0, most = 0, run = 0;
    for (long i = 0; i < L; i++) {
        run = i > 0 && ${T.load}(s, i) == ${T.load}(s, i - 1) ? run + 1 : 1;
        if (run > most) { most = run; best = i; }
    }
    values_p[values_o + row] = s[best];
    indices_p[indices_o + row] = places_p[places_o + row * L + best];
}
