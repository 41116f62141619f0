<%inherit file="/base.cl.mako"/>\
## Statistics of a channel from those of its rows: mean_in, m2_in (N, C) over `count` elements each. One work-item per channel.
## ELEMENTS: mean_in holds the elements themselves, rows of one; there is no m2_in.
##   mean[c], rstd[c] = 1 / sqrt(var + eps), and the running statistics moved by `momentum` (variance over the count less one)
##
## Parameter  legal values
## T          dtype row of the statistics (float32, float64)
## X          dtype row of mean_in
## R          dtype row of the running statistics; RUNNING, ELEMENTS 0 | 1
__kernel void combine(IN(${X.c}, mean_in), IN(${T.c}, m2_in), OUT(${T.c}, mean), OUT(${T.c}, rstd), IN(${R.c}, rm), IN(${R.c}, rv),
                      OUT(${R.c}, rm_new), OUT(${R.c}, rv_new), const long N, const long C, const long count, const float eps, const float momentum) {
    PTR_IN(${X.c}, mean_in);
% if not ELEMENTS:
    PTR_IN(${T.c}, m2_in);
% endif
    PTR_OUT(${T.c}, mean);
    PTR_OUT(${T.c}, rstd);
    const long c = get_global_id(0);
    if (c >= C) return;
    ${T.acc} s = 0, q = 0, m2 = 0;
    for (long n = 0; n < N; n++) s += ${X.load}(mean_in, n * C + c);
    const ${T.acc} m = s / N;
    for (long n = 0; n < N; n++) {
        const ${T.acc} d = ${X.load}(mean_in, n * C + c) - m;
        q += d * d;
% if not ELEMENTS:
        m2 += m2_in[n * C + c];
% endif
    }
    m2 += q * count;
    const ${T.acc} total = (${T.acc})N * count;
    mean[c] = m;
    rstd[c] = 1 / sqrt(m2 / total + (${T.acc})eps);
% if RUNNING:
    PTR_IN(${R.c}, rm);
    PTR_IN(${R.c}, rv);
    PTR_OUT(${R.c}, rm_new);
    PTR_OUT(${R.c}, rv_new);
    const ${R.acc} f = momentum;
    ${R.store}(rm_new, c, (1 - f) * ${R.load}(rm, c) + f * m);
    ${R.store}(rv_new, c, (1 - f) * ${R.load}(rv, c) + f * (m2 / (total - 1)));
% endif
}
