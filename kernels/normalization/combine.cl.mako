<%inherit file="/base.cl.mako"/>\
## Statistics of a channel from those of its rows: mean_in, m2_in (N, C) over `count` elements each.
##   mean[c], rstd[c] = 1 / sqrt(var + eps), and the running statistics moved by `momentum` (variance over the count less one)
## ELEMENTS: mean_in holds the elements themselves, rows of one; there is no m2_in. Geometry: a work-item per W channels, any local size.
##
## Parameter  legal values
## T          dtype row of the statistics (float32, float64)
## X          dtype row of mean_in
## R          dtype row of the running statistics; RUNNING, ELEMENTS 0 | 1
## W          channels of a work-item, in a vector: 1; 4, 8 or 16 where X is T
__kernel void combine(IN(${X.c}, mean_in), IN(${T.c}, m2_in), OUT(${T.c}, mean), OUT(${T.c}, rstd), IN(${R.c}, rm), IN(${R.c}, rv),
                      OUT(${R.c}, rm_new), OUT(${R.c}, rv_new), const long N, const long C, const long count, const ${T.acc} eps, const ${R.acc} momentum) {
    PTR_IN(${X.c}, mean_in);
% if not ELEMENTS:
    PTR_IN(${T.c}, m2_in);
% endif
    PTR_OUT(${T.c}, mean);
    PTR_OUT(${T.c}, rstd);
% if RUNNING:
    PTR_IN(${R.c}, rm);
    PTR_IN(${R.c}, rv);
    PTR_OUT(${R.c}, rm_new);
    PTR_OUT(${R.c}, rv_new);
    const ${R.acc} f = momentum;
% endif
    const ${T.acc} total = (${T.acc})N * count;
    const long first = (long)get_global_id(0) * ${W}, last = min(C, first + ${W});
% if W > 1:
    if (first + ${W} <= C) {
        ${channels(f"{T.acc}{W}", lambda p: f"vload{W}(0, {p} + n * C + first)", lambda p: f"vload{W}(0, {p} + n * C + first)")}
        ${T.acc} m_of[${W}], m2_of[${W}];
        vstore${W}(m, 0, m_of); vstore${W}(m2, 0, m2_of);
        for (int l = 0; l < ${W}; l++) { const long c = first + l; const ${T.acc} m = m_of[l], m2 = m2_of[l]; ${write()} }
        return;
    }
% endif
    for (long c = first; c < last; c++) {
        ${channels(T.acc, lambda p: f"{X.load}({p}, n * C + c)", lambda p: f"{T.load}({p}, n * C + c)")}
        ${write()}
    }
}
<%def name="channels(V, load_x, load_m2)">\
${V} s = 0, q = 0, m2 = 0;
        for (long n = 0; n < N; n++) s += ${load_x("mean_in")};
        const ${V} m = s / (${T.acc})N;
        for (long n = 0; n < N; n++) {
            const ${V} d = ${load_x("mean_in")} - m;
            q += d * d;
% if not ELEMENTS:
            m2 += ${load_m2("m2_in")};
% endif
        }
        m2 += q * (${T.acc})count;\
</%def>
<%def name="write()">\
mean[c] = m;
        rstd[c] = 1 / sqrt(m2 / total + eps);
% if RUNNING:
        ${R.store}(rm_new, c, (1 - f) * ${R.load}(rm, c) + f * m);
        ${R.store}(rv_new, c, (1 - f) * ${R.load}(rv, c) + f * (m2 / (total - 1)));
% endif
</%def>
