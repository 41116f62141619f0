<%inherit file="/base.cl.mako"/>\
## normalization/sums and gradients (mode batch) in one launch, where a work-group of a GPU takes a whole channel of g and x (N, C, n):
##   db = sum g      dw = rstd * sum g * (x - mean)      sa = w * sum g      sb = w * sum g * (x - mean)
## Geometry: global (C * G), local (G).
##
## Parameter  legal values
## T X        dtype rows of g and x (all else holds their compute type) and of w; WEIGHT 0: w is 1
## V G        as in normalization/channel, V for all of g, x and y
## RELU       1: the gradient is g where y, what a relu made of the normalisation's result, is not 0 and below, else 0
<%
    ACC = T.acc
    vector = T.c if V == 1 else f"{T.c}{V}"
    AHEAD = 4 if V > 1 else 8
%>\
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void channel_backward(IN(${T.c}, g), IN(${T.c}, x), ${f"IN({T.c}, y), " if RELU else ""}IN(${ACC}, mean_in), IN(${ACC}, rstd), IN(${X.c}, weight), OUT(${ACC}, dw), OUT(${ACC}, db), OUT(${ACC}, sa),
                      OUT(${ACC}, sb), const long N, const long C, const long n) {
    PTR_IN(${T.c}, g);
    PTR_IN(${T.c}, x);
% if RELU:
    PTR_IN(${T.c}, y);
% endif
    PTR_IN(${ACC}, mean_in);
    PTR_IN(${ACC}, rstd);
    PTR_OUT(${ACC}, dw);
    PTR_OUT(${ACC}, db);
    PTR_OUT(${ACC}, sa);
    PTR_OUT(${ACC}, sb);
    __local ${ACC} part_a[${G}], part_b[${G}];
    const int lid = get_local_id(0), per = (int)n / ${V}, total = (int)N * per;
    const long c = get_group_id(0);
    const ${ACC} mean = mean_in[c];
    ${ACC} a = 0, b = 0;
    for (int first = lid; first < total; first += ${AHEAD * G}) {
        ${vector} gs[${AHEAD}], xs[${AHEAD}]${f", ys[{AHEAD}]" if RELU else ""};
#pragma unroll
        for (int k = 0; k < ${AHEAD}; k++) {            /* so many loads are on their way together; those beyond the end count nothing */
            const int t = first + k * ${G} < total ? first + k * ${G} : first;
            const long at = (t / per * C + c) * n + t % per * ${V};
            gs[k] = *(__global const ${vector}*)(g + at);
            xs[k] = *(__global const ${vector}*)(x + at);
% if RELU:
            ys[k] = *(__global const ${vector}*)(y + at);
% endif
        }
#pragma unroll
        for (int k = 0; k < ${AHEAD}; k++) {
            const bool inside = first + k * ${G} < total;       /* chosen, not branched: Intel's compiler errs about the branch */
            const ${vector} gv = gs[k], xv = xs[k]${", yv = ys[k]" if RELU else ""};
% for j in range(V):
            {
                const ${T.c} ge = gv${f".s{j:x}" if V > 1 else ""}, xe = xv${f".s{j:x}" if V > 1 else ""};
% if RELU:
                const ${T.c} ye = yv${f".s{j:x}" if V > 1 else ""};
                const ${ACC} e = ${T.load}(&ye, 0) <= 0 ? 0 : ${T.load}(&ge, 0);
% else:
                const ${ACC} e = ${T.load}(&ge, 0);
% endif
                const ${ACC} d = e * (${T.load}(&xe, 0) - mean);
                a += inside ? e : 0;
                b += inside ? d : 0;
            }
% endfor
        }
    }
    part_a[lid] = a;
    part_b[lid] = b;
    for (int s = ${G // 2}; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < s) { part_a[lid] += part_a[lid + s]; part_b[lid] += part_b[lid + s]; }
    }
    if (lid == 0) {
        a = part_a[0];
        b = part_b[0];
        db[c] = a;
        dw[c] = b * rstd[c];
% if WEIGHT:
        PTR_IN(${X.c}, weight);
        const ${ACC} w = ${X.load}(weight, c);
        sa[c] = a * w;
        sb[c] = b * w;
% else:
        sa[c] = a;
        sb[c] = b;
% endif
    }
}
