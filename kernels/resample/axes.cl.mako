<%inherit file="/base.cl.mako"/>\
## Resampling of up to three axes: y[p, d, h, w] = sum over the windows of d, h, w of wD * wH * wW * x[p, i, j, k].
##
## x (planes, ND, NH, NW), y (planes, OD, OH, OW), contiguous. Each resampled axis has a table: span (O, 2) of int, the first element and the
## number of elements of each output's window, and w (O, taps), their weights. The gradient is the same sum with transposed tables.
## Geometry: global (OW, planes * OD * OH).
##
## Parameter  legal values
## T          dtype row of x and y; without weights any C type of the element's width
## AXES       the resampled ones of "DHW"; on the others sizes agree
## WEIGHTED   1: as above | 0: y takes the first element of the window (nearest), whatever the dtype
<%
    ACC = T.acc if WEIGHTED else None
    C = T.c if WEIGHTED else T
%>\
__kernel void axes(IN(${C}, x), OUT(${C}, y), const long rows, const long ND, const long NH, const long NW, const long OD, const long OH,
                   const long OW
% for a in AXES:
                   , IN(int, s${a})${f", IN({ACC}, w{a}), const long taps{a}" if WEIGHTED else ""}
% endfor
                   ) {
    PTR_IN(${C}, x);
    PTR_OUT(${C}, y);
    const long oW = get_global_id(0), row = get_global_id(1);
    if (oW >= OW || row >= rows) return;
    const long oH = row % OH, oD = row / OH % OD, plane = row / (OH * OD);
% for a in "DHW":
% if a in AXES:
    PTR_IN(int, s${a});
    const long i${a} = s${a}[2 * o${a}];
% if WEIGHTED:
    PTR_IN(${ACC}, w${a});
    const int n${a} = s${a}[2 * o${a} + 1];
% endif
% else:
    const long i${a} = o${a};
% endif
% endfor
    const long from = ((plane * ND + iD) * NH + iH) * NW + iW;
% if WEIGHTED:
    ${ACC} sum = 0;
% for a in AXES:
    for (int k${a} = 0; k${a} < n${a}; k${a}++) {
% endfor
        const long i = from ${"+ kD * NH * NW" if "D" in AXES else ""} ${"+ kH * NW" if "H" in AXES else ""} ${"+ kW" if "W" in AXES else ""};
        sum += ${" * ".join(f"w{a}[o{a} * taps{a} + k{a}]" for a in AXES)} * ${T.load}(x, i);
% for a in AXES:
    }
% endfor
    ${T.store}(y, row * OW + oW, sum);
% else:
    y[row * OW + oW] = x[from];
% endif
}
