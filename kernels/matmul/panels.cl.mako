<%inherit file="/base.cl.mako"/>\
## Y[z][tile][k][MR] = X[z][tile * MR + row, k]: a matrix whose columns are contiguous, laid out in panels of MR rows for matmul/cpu.
##
## Read along its rows in memory, so that every cache line is used once; rows from M on are zeros.
## X: element (i, k) at i + k * d.s4; Y in the compute type, tiles of K * MR elements. Geometry: global (ceil(K / STEPS), 1,
## batch), local (1, 1, 1).
##
## Parameter  legal values
## T          dtype row of X
## MR         rows of a panel
## STEPS      steps of K per work-item
<%
    parts, at = [], 0
    while at < MR:
        width = next(w for w in (16, 8, 4, 2, 1) if at + w <= MR)
        parts.append((at, width))
        at += width
%>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_panels(IN(${T.c}, X), OUT(${T.acc}, Y), const long16 d, const long8 z) {
    const long M = d.s0, K = d.s2, cas = d.s4, b = get_group_id(2), whole = M / ${MR};
    __global const ${T.c}* restrict X = X_p + X_o + (b / z.s0) * z.s1 + (b % z.s0) * z.s4;
    __global ${T.acc}* restrict Y = Y_p + Y_o + b * ((M + ${MR - 1}) / ${MR}) * ${MR} * K;
    const long k_begin = get_group_id(0) * ${STEPS}, k_end = min(K, k_begin + ${STEPS});
    for (long k0 = k_begin; k0 < k_end; k0 += 8) {
        // Eight lines at a time stay in the first cache while the tiles take their parts of them, and each tile writes eight steps in a row.
        const long k1 = min(k0 + 8, k_end);
        for (long t = 0; t < whole; t++) {
            __global ${T.acc}* next = Y + (t * K + k0 + 8) * ${MR};     /* what this tile writes next */
            ${" ".join(f"FETCH(next + {at});" for at in range(0, 8 * MR, 64 // T.acc_dtype.itemsize))}
            for (long k = k0; k < k1; k++) {
                __global const ${T.c}* s = X + k * cas + t * ${MR};
                __global ${T.acc}* o = Y + (t * K + k) * ${MR};
% for at, width in parts:
% if width == 1 or T.c != T.acc:
% for q in range(width):
                o[${at + q}] = ${T.load}(s, ${at + q});
% endfor
% else:
                vstore${width}(vload${width}(0, s + ${at}), 0, o + ${at});
% endif
% endfor
            }
        }
        if (whole * ${MR} < M)
            for (long k = k0; k < k1; k++)
                for (long r = 0; r < ${MR}; r++) Y[(whole * K + k) * ${MR} + r] = whole * ${MR} + r < M ? ${T.load}(X + k * cas + whole * ${MR}, r) : 0;
    }
}
