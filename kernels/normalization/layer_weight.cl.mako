<%inherit file="/base.cl.mako"/>\
## Gradients of the weight and bias of normalization/layer, in one pass over g and x: partial sums over `part` rows each,
##   dw[p, i] = sum_rows g * (x - mean) * rstd      db[p, i] = sum_rows g
## Geometry: (columns, parts); loop form takes 64 columns per work-item (PoCL), item form one; group form (columns, parts * DEEP), local (WIDE, DEEP),
## where DEEP work-items share a column and each has AHEAD rows on their way (GPUs).
##
## Parameter  legal values
## T RMS      as in normalization/layer; FORM loop | item | group; WIDE DEEP AHEAD powers of two
<%
    ACC = T.acc
    z = lambda i: (f"{T.load}(x, row * n + {i})" if RMS else f"({T.load}(x, row * n + {i}) - m)") + " * r"
%>\
__kernel ${f"__attribute__((reqd_work_group_size({WIDE}, {DEEP}, 1))) " if FORM == "group" else ""}void layer_weight(IN(${T.c}, g), IN(${T.c}, x), IN(${ACC}, mean), IN(${ACC}, rstd), OUT(${ACC}, dw), OUT(${ACC}, db), const long rows,
                           const long n, const long part) {
    PTR_IN(${T.c}, g);
    PTR_IN(${T.c}, x);
    PTR_IN(${ACC}, mean);
    PTR_IN(${ACC}, rstd);
    PTR_OUT(${ACC}, dw);
    PTR_OUT(${ACC}, db);
    const long p = get_global_id(1)${f" / {DEEP}" if FORM == "group" else ""}, begin = p * part, end = min(rows, begin + part);
% if FORM == "loop":
    const long first = get_global_id(0) * 64;
    if (first >= n) return;
    const int width = (int)min(64L, n - first);
    ${ACC} sw[64], sb[64];
    for (int l = 0; l < 64; l++) sw[l] = sb[l] = 0;
    for (long row = begin; row < end; row++) {
        const ${ACC} r = rstd[row]${"" if RMS else ", m = mean[row]"};
        for (int l = 0; l < width; l++) {
            const ${ACC} gi = ${T.load}(g, row * n + first + l);
            sw[l] += gi * (${z("first + l")});
            sb[l] += gi;
        }
    }
    for (int l = 0; l < width; l++) { dw[p * n + first + l] = sw[l]; db[p * n + first + l] = sb[l]; }
% elif FORM == "group":
    const int lx = get_local_id(0), ly = get_local_id(1);
    const long column = get_global_id(0), i = min(column, n - 1);
    ${ACC} sw = 0, sb = 0;
    for (long at = begin + ly; at < end; at += ${AHEAD * DEEP}) {       /* the loads of these rows are on their way together; those beyond the end count nothing */
#pragma unroll
        for (int q = 0; q < ${AHEAD}; q++) {
            const bool inside = at + q * ${DEEP} < end;
            const long row = inside ? at + q * ${DEEP} : at;
            const ${ACC} r = rstd[row], gi = ${T.load}(g, row * n + i)${"" if RMS else ", m = mean[row]"};
            const ${ACC} w = gi * (${z("i")});
            sw += inside ? w : 0;
            sb += inside ? gi : 0;
        }
    }
    __local ${ACC} part_w[${WIDE * DEEP}], part_b[${WIDE * DEEP}];
    part_w[ly * ${WIDE} + lx] = sw;
    part_b[ly * ${WIDE} + lx] = sb;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (ly == 0 && column < n) {
        for (int q = 1; q < ${DEEP}; q++) { sw += part_w[q * ${WIDE} + lx]; sb += part_b[q * ${WIDE} + lx]; }
        dw[p * n + i] = sw;
        db[p * n + i] = sb;
    }
% else:
    const long i = get_global_id(0);
    if (i >= n) return;
    ${ACC} sw = 0, sb = 0;
    for (long row = begin; row < end; row++) {
        const ${ACC} r = rstd[row], gi = ${T.load}(g, row * n + i)${"" if RMS else ", m = mean[row]"};
        sw += gi * (${z("i")});
        sb += gi;
    }
    dw[p * n + i] = sw;
    db[p * n + i] = sb;
% endif
}
