<%inherit file="/base.cl.mako"/>\
## normalization/moments and combine in one launch, where a work-group of a GPU takes a whole channel of x (N, C, n): mean[c], rstd[c] = 1 / sqrt(var + eps),
## and the running statistics moved by `momentum` (variance over the count less one). Geometry: global (C * G), local (G).
##
## Parameter  legal values
## T R        dtype rows of x (mean and rstd hold its compute type) and of the running statistics; RUNNING 0 | 1
## V          elements that are read as one vector, of which n and the offset of x are multiples
## G          work-items of a group, a power of two; K: vectors of a work-item, which keeps them; 0: any number, read twice
<%
    ACC = T.acc
    vector = T.c if V == 1 else f"{T.c}{V}"
    elements = [f"v.s{j:x}" if V > 1 else "v" for j in range(V)]
%>\
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void channel(IN(${T.c}, x), OUT(${ACC}, mean_out), OUT(${ACC}, rstd_out), IN(${R.c}, rm), IN(${R.c}, rv), OUT(${R.c}, rm_new), OUT(${R.c}, rv_new),
             const long N, const long C, const long n, const ${ACC} eps, const ${R.acc} momentum) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${ACC}, mean_out);
    PTR_OUT(${ACC}, rstd_out);
    __local ${ACC} sums[${G}], squares[${G}];
    const int lid = get_local_id(0), per = (int)n / ${V}, total = (int)N * per;
    const long c = get_group_id(0);
    const ${ACC} count = (${ACC})N * n;
    ${ACC} m = 0, q = 0;
% if K:
    ${ACC} kept[${K * V}];
#pragma unroll
    for (int k = 0; k < ${K}; k++) {
        const bool inside = lid + k * ${G} < total;
        const int at = inside ? lid + k * ${G} : 0;
        const ${vector} v = ${read()};
% for j, e in enumerate(elements):
        { const ${T.c} e = ${e}; kept[k * ${V} + ${j}] = ${T.load}(&e, 0); m += inside ? kept[k * ${V} + ${j}] : 0; }
% endfor
    }
% else:
    ${again(lambda load: f"m += inside ? {load} : 0;")}
% endif
    ${tree("sums", "m")}
    const ${ACC} mean = sums[0] / count;
% if K:
#pragma unroll
    for (int k = 0; k < ${K}; k++)
        for (int j = 0; j < ${V}; j++) { const ${ACC} d = kept[k * ${V} + j] - mean; q += lid + k * ${G} < total ? d * d : 0; }
% else:
    ${again(lambda load: f"const {ACC} d = {load} - mean; q += inside ? d * d : 0;")}
% endif
    ${tree("squares", "q")}
    if (lid == 0) {
        const ${ACC} m2 = squares[0];
        mean_out[c] = mean;
        rstd_out[c] = 1 / sqrt(m2 / count + eps);
% if RUNNING:
        PTR_IN(${R.c}, rm);
        PTR_IN(${R.c}, rv);
        PTR_OUT(${R.c}, rm_new);
        PTR_OUT(${R.c}, rv_new);
        const ${R.acc} f = momentum;
        ${R.store}(rm_new, c, (1 - f) * ${R.load}(rm, c) + f * mean);
        ${R.store}(rv_new, c, (1 - f) * ${R.load}(rv, c) + f * (m2 / (count - 1)));
% endif
    }
}
## Vector `at` of the channel.
<%def name="read()">*(__global const ${vector}*)(x + (at / per * C + c) * n + at % per * ${V})</%def>
## All elements in memory, eight vectors of a work-item at a time.
<%def name="again(body)">\
for (int first = lid; first < total; first += ${8 * G}) {
        ${vector} some[8];
#pragma unroll
        for (int k = 0; k < 8; k++) { const int at = first + k * ${G} < total ? first + k * ${G} : first; some[k] = ${read()}; }
#pragma unroll
        for (int k = 0; k < 8; k++) {                           /* chosen, not branched: Intel's compiler errs about the branch */
            const bool inside = first + k * ${G} < total;
            const ${vector} v = some[k];
% for e in elements:
            { const ${T.c} e = ${e}; ${body(f"{T.load}(&e, 0)")} }
% endfor
        }
    }\
</%def>
<%def name="tree(name, mine)">\
${name}[lid] = ${mine};
    for (int s = ${G // 2}; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < s) ${name}[lid] += ${name}[lid + s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);\
</%def>
