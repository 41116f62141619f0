<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Resampling as in resample/axes, with weights, for CPUs: the rows of a window are added up to one row in vectors. Where the last axis is resampled too, that
## is done for LANES rows at once: squares of their sums are turned, so that a vector holds one column, and the results are turned back.
##
## x (planes, ND, NH, NW), y (planes, OD, OH, OW), contiguous; line: (2 NW + OW) * LANES elements of scratch per work-item. Tables of the axes: span (O, 2)
## and weights (O, taps).
## Geometry: global (planes * OD * OH / chunk), local 1.
##
## Parameter  legal values
## T          dtype row of x and y (float)
## AXES       the resampled ones of "DHW"; on the others sizes agree
## W          lanes for the elements of an input row: 4 | 8 | 16 (double: 4 | 8), at most NW
## LANES      rows at once, the greatest W: 16 (double: 8); chunk is a multiple of it. 1: AXES has no W
<%
    ACC = T.acc
    V, U = f"{ACC}{W}", f"{ACC}{LANES}"
%>\
${vec.vector_io(T, W)}
__kernel void resample_rows(IN(${T.c}, x), OUT(${T.c}, y), OUT(${ACC}, line), const long rows, const long chunk, const long ND, const long NH, const long NW,
                            const long OD, const long OH, const long OW
% for a in AXES:
                            , IN(int, s${a}), IN(${ACC}, w${a}), const long taps${a}
% endfor
                            ) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${T.c}, y);
% for a in AXES:
    PTR_IN(int, s${a});
    PTR_IN(${ACC}, w${a});
% endfor
    const long begin = get_global_id(0) * chunk, end = min(rows, begin + chunk);
% if LANES > 1:
    __global ${ACC}* restrict sums = line_p + line_o + get_global_id(0) * (2 * NW + OW) * ${LANES};
    __global ${ACC}* restrict column = sums + NW * ${LANES};
    __global ${ACC}* restrict result = column + NW * ${LANES};
% endif
    int oH = (int)(begin % OH), oD = (int)(begin / OH % OD);
    long plane = begin / (OH * OD);
    for (long row = begin; row < end; row += ${LANES}) {
        const int some = (int)min((long)${LANES}, end - row);
        for (int l = 0; l < some; l++) {
% for a in "DH":
            const int i${a} = ${f"s{a}[2 * o{a}], n{a} = s{a}[2 * o{a} + 1]" if a in AXES else f"o{a}, n{a} = 1"};
% endfor
            __global const ${T.c}* restrict from = x + ((plane * ND + iD) * NH + iH) * NW;
            for (long i = 0; i < NW; i += ${W}) {
                const long at = min(i, NW - ${W});
                ${V} sum = 0;
                for (int kD = 0; kD < nD; kD++)
                    for (int kH = 0; kH < nH; kH++)
                        sum += ${"".join(f"w{a}[o{a} * taps{a} + k{a}] * " for a in "DH" if a in AXES)}ldv_${T.name}(from + (kD * NH + kH) * NW + at);
% if LANES == 1:
                stv_${T.name}(y + row * OW + at, sum);
% else:
                vstore${W}(sum, 0, sums + l * NW + at);
% endif
            }
            if (++oH == (int)OH) {
                oH = 0;
                if (++oD == (int)OD) { oD = 0; plane++; }
            }
        }
% if LANES > 1:
% if W == LANES:
        for (long i = 0; i < NW; i += ${W}) {
            const long at = min(i, NW - ${W});
            ${U} ${", ".join(f"t{l} = vload{W}(0, sums + {l} * NW + at)" for l in range(W))};
${vec.transpose(U, W, "t")}
            ${" ".join(f"vstore{W}(t{l}, at + {l}, column);" for l in range(W))}
        }
% else:
        for (int i = 0; i < (int)NW; i++)
            for (int l = 0; l < ${LANES}; l++) column[i * ${LANES} + l] = sums[l * NW + i];
% endif
        for (int o = 0; o < (int)OW; o++) {
            __global const ${ACC}* e = column + sW[2 * o] * ${LANES};
            __global const ${ACC}* w = wW + o * tapsW;
            const int n = sW[2 * o + 1];
            ${U} sum = 0;
            for (int k = 0; k < n; k++) sum += w[k] * vload${LANES}(k, e);
            vstore${LANES}(sum, o, result);
        }
        __global ${T.c}* to = y + row * OW;
% if W == LANES:
        if (some == ${LANES} && OW >= ${LANES})
            for (long o = 0; o < OW; o += ${LANES}) {
                const long at = min(o, OW - ${LANES});
                ${U} ${", ".join(f"t{l} = vload{LANES}(at + {l}, result)" for l in range(LANES))};
${vec.transpose(U, LANES, "t")}
                ${" ".join(f"stv_{T.name}(to + {l} * OW + at, t{l});" for l in range(LANES))}
            }
        else
% endif
            for (int l = 0; l < some; l++)
                for (long o = 0; o < OW; o++) ${T.store}(to, l * OW + o, result[o * ${LANES} + l]);
% endif
    }
}
