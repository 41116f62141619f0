<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Resampling as in resample/axes, with weights, for CPUs: the rows of a window are added up to one row in vectors, then that row is resampled.
##
## x (planes, ND, NH, NW), y (planes, OD, OH, OW), contiguous; line: NW + 16 elements of scratch per work-item. Tables of the axes: span (O, 2) and
## weights (O, taps); where TAPS is not 0 those of the last axis are turned, (taps, O).
## Geometry: global (planes * OD * OH / chunk), local 1.
##
## Parameter  legal values
## T          dtype row of x and y (float)
## AXES       the resampled ones of "DHW"; on the others sizes agree
## W          lanes for the elements of an input row: 4 | 8 | 16, at most NW
## LANES      lanes for the outputs of a row: W, at most OW, or 1; 1 where TAPS is 0
## TAPS       the widest window of the last axis where the loop over it is unrolled, else 0
<%
    ACC = T.acc
    V, O = f"{ACC}{W}", f"{ACC}{LANES}"
    I = ("long" if ACC == "double" else "int") + str(LANES)
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
    __global ${ACC}* restrict r = line_p + line_o + get_global_id(0) * (NW + 16);
    const long begin = get_global_id(0) * chunk, end = min(rows, begin + chunk);
    for (long row = begin; row < end; row++) {
        const int oH = (int)(row % OH), oD = (int)(row / OH % OD);
        __global ${T.c}* restrict to = y + row * OW;
% for a in "DH":
        const int i${a} = ${f"s{a}[2 * o{a}], n{a} = s{a}[2 * o{a} + 1]" if a in AXES else f"o{a}, n{a} = 1"};
% endfor
        __global const ${T.c}* restrict from = x + row / (OH * OD) * (ND * NH * NW) + (iD * NH + iH) * NW;
        for (long i = 0; i < NW; i += ${W}) {
            const long at = min(i, NW - ${W});
            ${V} sum = 0;
            for (int kD = 0; kD < nD; kD++)
                for (int kH = 0; kH < nH; kH++)
                    sum += ${"".join(f"w{a}[o{a} * taps{a} + k{a}] * " for a in AXES if a != "W")}ldv_${T.name}(from + (kD * NH + kH) * NW + at);
% if "W" in AXES:
            vstore${W}(sum, 0, r + at);
% else:
            stv_${T.name}(to + at, sum);
% endif
        }
% if "W" in AXES and LANES > 1:
        for (long o = 0; o < OW; o += ${LANES}) {
            const long at = min(o, OW - ${LANES});
            __global const int* s = sW + 2 * at;
            const ${I} n = (${I})(${", ".join(f"s[{2 * l + 1}]" for l in range(LANES))});
            ${O} sum = 0;
% for k in range(TAPS):
            {
                const ${O} v = (${O})(${", ".join(f"r[s[{2 * l}] + {k}]" for l in range(LANES))});
                sum += n > (${I})(${k}) ? v * vload${LANES}(0, wW + ${k} * OW + at) : (${O})(0);
            }
% endfor
            stv_${T.name}(to + at, sum);
        }
% elif "W" in AXES:
        for (int o = 0; o < (int)OW; o++) {
            __global const ${ACC}* e = r + sW[2 * o];
            const int n = sW[2 * o + 1];
            ${ACC} sum = 0;
            for (int k = 0; k < n; k++) sum += wW[${"k * OW + o" if TAPS else "o * tapsW + k"}] * e[k];
            ${T.store}(to, o, sum);
        }
% endif
    }
}
