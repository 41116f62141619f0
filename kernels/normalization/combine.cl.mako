<%inherit file="/base.cl.mako"/>\
## Statistics of a channel from those of its rows: mean_in, m2_in (N, C) over `count` elements each.
##   mean[c], rstd[c] = 1 / sqrt(var + eps), and the running statistics moved by `momentum` (variance over the count less one)
## ELEMENTS: mean_in holds the elements themselves, rows of one; there is no m2_in. Geometry: a work-item per NV * W channels, any local size;
## with DEEP > 1 global (C, DEEP), local (WIDE, DEEP): so many work-items share the rows of a channel (GPUs).
##
## Parameter  legal values
## T          dtype row of the statistics (float32, float64)
## X          dtype row of mean_in
## R          dtype row of the running statistics; RUNNING, ELEMENTS 0 | 1
## W NV       channels of a vector: 1; 4, 8 or 16 where X is T. Vectors of a work-item: runs of a row are read in less time than a line of each row
## DEEP WIDE  powers of two; W = NV = 1 with DEEP > 1
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
% if DEEP > 1:
    __local ${T.acc} means[${DEEP * WIDE}], parts[${DEEP * WIDE}];
    const int l = get_local_id(1), lid = l * ${WIDE} + (int)get_local_id(0);
    const long own = get_global_id(0), c = min(own, C - 1);
    ${T.acc} m = 0, q = 0, d = 0;
#pragma unroll 8
    for (long n = l; n < N; n += ${DEEP}) m += ${X.load}(mean_in, n * C + c);
    means[lid] = m;
    ${tree("means")}
    const ${T.acc} mean_ = means[lid - l * ${WIDE}] / (${T.acc})N;
#pragma unroll 8
    for (long n = l; n < N; n += ${DEEP}) {
        const ${T.acc} e = ${X.load}(mean_in, n * C + c) - mean_;
        q += e * e;
% if not ELEMENTS:
        d += ${T.load}(m2_in, n * C + c);
% endif
    }
    parts[lid] = d + q * (${T.acc})count;
    ${tree("parts")}
    if (l == 0 && own < C) {
        const ${T.acc} m2_ = parts[lid];
        ${write("c")}
    }
}
% else:
    const long first = (long)get_global_id(0) * ${NV * W}, last = min(C, first + ${NV * W});
    long c = first;
% for count in dict.fromkeys((NV, 1)) if W > 1 else ():
    for (; c + ${count * W} <= last; c += ${count * W}) {
        ${channels(f"{T.acc}{W}", count, lambda p, j: f"vload{W}(0, {p} + n * C + c + {j * W})", lambda p, j: f"vload{W}(0, {p} + n * C + c + {j * W})")}
        ${T.acc} m_of[${count * W}], m2_of[${count * W}];
% for j in range(count):
        vstore${W}(m${j}, ${j}, m_of); vstore${W}(d${j}, ${j}, m2_of);
% endfor
        for (int l = 0; l < ${count * W}; l++) { const ${T.acc} mean_ = m_of[l], m2_ = m2_of[l]; ${write("c + l")} }
    }
% endfor
    for (; c < last; c++) {
        ${channels(T.acc, 1, lambda p, j: f"{X.load}({p}, n * C + c)", lambda p, j: f"{T.load}({p}, n * C + c)")}
        const ${T.acc} mean_ = m0, m2_ = d0;
        ${write("c")}
    }
}
% endif
<%def name="tree(name)">\
for (int s = ${DEEP // 2}; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s) ${name}[lid] += ${name}[lid + s * ${WIDE}];
    }
    barrier(CLK_LOCAL_MEM_FENCE);\
</%def>
## m<j>: means, d<j>: sums of squared distances from them
<%def name="channels(V, count, load_x, load_m2)">\
<% each = range(count) %>\
${V} ${", ".join(f"m{j} = 0, d{j} = 0, q{j} = 0" for j in each)};
#if defined(CLNN_NVIDIA) || defined(CLNN_AMD)   /* many loads on their way at a time */
#pragma unroll 16
#endif
        for (long n = 0; n < N; n++) { ${" ".join(f"m{j} += {load_x('mean_in', j)};" for j in each)} }
        ${" ".join(f"m{j} /= ({T.acc})N;" for j in each)}
#if defined(CLNN_NVIDIA) || defined(CLNN_AMD)   /* many loads on their way at a time */
#pragma unroll 16
#endif
        for (long n = 0; n < N; n++) {
            ${" ".join(f"{{ const {V} e = {load_x('mean_in', j)} - m{j}; q{j} += e * e; }}" for j in each)}
% if not ELEMENTS:
            ${" ".join(f"d{j} += {load_m2('m2_in', j)};" for j in each)}
% endif
        }
        ${" ".join(f"d{j} += q{j} * ({T.acc})count;" for j in each)}\
</%def>
<%def name="write(c)">\
mean[${c}] = mean_;
        rstd[${c}] = 1 / sqrt(m2_ / total + eps);
% if RUNNING:
        ${R.store}(rm_new, ${c}, (1 - f) * ${R.load}(rm, ${c}) + f * mean_);
        ${R.store}(rv_new, ${c}, (1 - f) * ${R.load}(rv, ${c}) + f * (m2_ / (total - 1)));
% endif
</%def>
