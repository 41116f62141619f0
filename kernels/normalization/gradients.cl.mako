<%inherit file="/base.cl.mako"/>\
## What a normalisation's backward pass makes of partial sums a and b (N, C), in one launch:
##   layer   db = sum_n a             dw = sum_n b
##   batch   the same with dw * rstd, and what the gradient of x needs: sa = w * sum_n a   sb = w * sum_n b    (C)
##   group   db = sum_n a             dw = sum_n b * rstd[n, group]; sa, sb (N, G): sums of w * a and w * b over the channels of a group
## Geometry: a work-item per W channels; group: then also one per W groups of a sample. Any local size.
##
## Parameter  legal values
## T          dtype row of a, b, rstd and the results (float32, float64); X that of w
## MODE       layer | batch | group
## WEIGHT     0: w is 1; W channels of a work-item: 1 | 4 | 8 | 16
<%
    V = T.acc if W == 1 else f"{T.acc}{W}"
    w = lambda c: f"{X.load}(weight, {c})" if WEIGHT else "1"
%>\
__kernel void gradients(IN(${T.c}, a), IN(${T.c}, b), IN(${T.c}, rstd), IN(${X.c}, weight), OUT(${T.c}, dw), OUT(${T.c}, db), OUT(${T.c}, sa), OUT(${T.c}, sb),
                        const long N, const long C, const long G) {
    PTR_IN(${T.c}, a);
    PTR_IN(${T.c}, b);
    PTR_IN(${T.c}, rstd);
    PTR_IN(${X.c}, weight);
    PTR_OUT(${T.c}, dw);
    PTR_OUT(${T.c}, db);
    PTR_OUT(${T.c}, sa);
    PTR_OUT(${T.c}, sb);
    const long first = (long)get_global_id(0) * ${W}, last = min(C, first + ${W});
% if MODE == "group":
    const long per = C / G, row0 = first - (C + ${W - 1}) / ${W} * ${W};
    if (row0 >= 0) {
        for (long row = row0; row < min(N * G, row0 + ${W}); row++) {
            const long c = row % G * per;
            ${T.acc} p = 0, q = 0;
            for (long k = 0; k < per; k++) {
                p += ${T.load}(a, row * per + k)${f" * {w('c + k')}" if WEIGHT else ""};
                q += ${T.load}(b, row * per + k)${f" * {w('c + k')}" if WEIGHT else ""};
            }
            sa[row] = p;
            sb[row] = q;
        }
        return;
    }
    ${T.acc} p[${W}], q[${W}];
    int group[${W}];
    const int width = (int)(last - first);
    for (int l = 0; l < width; l++) { p[l] = q[l] = 0; group[l] = (int)((first + l) / per); }
    for (long n = 0; n < N; n++)
        for (int l = 0; l < width; l++) {
            p[l] += ${T.load}(a, n * C + first + l);
            q[l] += ${T.load}(b, n * C + first + l) * rstd[n * G + group[l]];
        }
    for (int l = 0; l < width; l++) { db[first + l] = p[l]; dw[first + l] = q[l]; }
% else:
% if W > 1:
    if (first + ${W} <= C) {
        ${V} p = 0, q = 0;
        for (long n = 0; n < N; n++) { p += vload${W}(0, a + n * C + first); q += vload${W}(0, b + n * C + first); }
        vstore${W}(p, 0, db + first);
        vstore${W}(q${f" * vload{W}(0, rstd + first)" if MODE == "batch" else ""}, 0, dw + first);
% if MODE == "batch":
        ${T.acc} p_of[${W}], q_of[${W}];
        vstore${W}(p, 0, p_of); vstore${W}(q, 0, q_of);
        for (int l = 0; l < ${W}; l++) { const ${T.acc} s = ${w("first + l")}; sa[first + l] = p_of[l] * s; sb[first + l] = q_of[l] * s; }
% endif
        return;
    }
% endif
    for (long c = first; c < last; c++) {
        ${T.acc} p = 0, q = 0;
#if defined(CLNN_NVIDIA) || defined(CLNN_AMD)   /* many loads on their way at a time */
#pragma unroll 16
#endif
        for (long n = 0; n < N; n++) { p += ${T.load}(a, n * C + c); q += ${T.load}(b, n * C + c); }
        db[c] = p;
        dw[c] = q${" * rstd[c]" if MODE == "batch" else ""};
% if MODE == "batch":
        sa[c] = p * ${w("c")};
        sb[c] = q * ${w("c")};
% endif
    }
% endif
}
