<%inherit file="/base.cl.mako"/>\
## Resampling of up to three axes: y[p, d, h, w] = sum over the windows of d, h, w of wD * wH * wW * x[p, i, j, k].
##
## x (planes, ND, NH, NW), y (planes, OD, OH, OW), contiguous. Each resampled axis has a table: span (O, 2) of int, the first element and the
## number of elements of each output's window, and w (O, taps), their weights. The gradient is the same sum with transposed tables.
## Geometry: item: global (OW, ceil(planes * OD * OH / E)), any local size, a work-item has E rows, a group apart; loop: global (planes * OD * OH / chunk), local 1 (PoCL)
## Limit: a plane has fewer than 2^31 elements.
##
## Parameter  legal values
## T          dtype row of x and y; without weights any C type of the element's width
## AXES       the resampled ones of "DHW"; on the others sizes agree
## WEIGHTED   1: as above | 0: y takes the first element of the window (nearest), whatever the dtype
## TAPS       by axis of AXES: the widest window where the loop over it is to be unrolled (elements beyond a window's end count nothing), else 0
## FORM       item | loop
## E          1 2 4, 1 in form loop
## ROW        C type that counts planes * OD * OH: uint long
## REPEAT     0 | 2 | 4 | 8: every element of a row is taken so often, not WEIGHTED, rows of at least 16 outputs; form loop
<%
    ACC = T.acc if WEIGHTED else None
    C = T.c if WEIGHTED else T
    taps = dict(zip(AXES, TAPS))
    pitch = dict(D="NH * NW", H="NW", W="1")
%>\
__kernel void axes(IN(${C}, x), OUT(${C}, y), const long rows, const long chunk, const long ND, const long NH, const long NW, const long OD,
                   const long OH, const long OW
% for a in AXES:
                   , IN(int, s${a})${f", IN({ACC}, w{a}), const long taps{a}" if WEIGHTED else ""}
% endfor
                   ) {
    PTR_IN(${C}, x);
    PTR_OUT(${C}, y);
% for a in AXES:
    PTR_IN(int, s${a});
% if WEIGHTED:
    PTR_IN(${ACC}, w${a});
% endif
% endfor
% if FORM == "loop":
    const long begin = get_global_id(0) * chunk, end = min(rows, begin + chunk);
    for (long row = begin; row < end; row++) {
% else:
    const long ly = get_local_id(1), high = get_local_size(1), row0 = (get_global_id(1) - ly) * ${E} + ly;
    const int oW = get_global_id(0);
    if (row0 >= rows || oW >= (int)OW) return;
    const int iW = ${"sW[2 * oW]" if "W" in AXES else "oW"};
% if WEIGHTED and "W" in AXES:
    ${window("W")}
% endif
    ${ACC or C} got[${E}];
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
        const long row = min(row0 + e * high, rows - 1);
% endif
% if "D" in AXES:
        const ${ROW} sheet = (${ROW})row / (${ROW})OH;
        const int oH = (int)((${ROW})row - sheet * (${ROW})OH), oD = (int)(sheet % (${ROW})OD);
        __global const ${C}* restrict from = x + (long)(sheet / (${ROW})OD) * (ND * NH * NW);
% else:
        const ${ROW} sheet = (${ROW})row / (${ROW})OH;                 /* planes are sheets of volumes as well */
        const int oH = (int)((${ROW})row - sheet * (${ROW})OH);
        __global const ${C}* restrict from = x + (long)sheet * (NH * NW);
% endif
        __global ${C}* restrict to = y + row * OW;
% for a in AXES.replace("W", ""):
        ${window(a)}
% endfor
        const int corner = (${"sD[2 * oD] * (int)NH + " if "D" in AXES else ""}${"sH[2 * oH]" if "H" in AXES else "oH"}) * (int)NW;
% if REPEAT:
        for (long o = 0; o < OW; o += 16) {
            const long at = min(o, OW - 16);
            const ${C}${16 // REPEAT} v = vload${16 // REPEAT}(0, from + corner + at / ${REPEAT});
            vstore16((${C}16)(${", ".join(f"v.s{l // REPEAT}" for l in range(16))}), 0, to + at);
        }
% else:
% if FORM == "loop":
        for (int oW = 0; oW < (int)OW; oW++) {
            const int iW = ${"sW[2 * oW]" if "W" in AXES else "oW"};
% if WEIGHTED and "W" in AXES:
            ${window("W")}
% endif
% endif
% if WEIGHTED:
            ${ACC} sum = 0;
            ${walk(AXES, [], [])}
            ${f"{T.store}(to, oW, sum)" if FORM == "loop" else "got[e] = sum"};
% else:
            ${"to[oW]" if FORM == "loop" else "got[e]"} = from[corner + iW];
% endif
% if FORM == "loop":
        }
% endif
% endif
    }
% if FORM == "item":
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
        const long row = row0 + e * high;
        if (row < rows) ${f"{T.store}(y, row * OW + oW, got[e])" if WEIGHTED else "y[row * OW + oW] = got[e]"};
    }
% endif
}
## window: the number of elements of the window of output o along an axis, and where its weights are
<%def name="window(a)">
% if WEIGHTED:
<% n = taps[a] %>\
        const int n${a} = s${a}[2 * o${a} + 1];
% if n:
% for k in range(n):
        const int e${a}${k} = ${"0" if k == 0 else f"max(min({k}, n{a} - 1), 0)"} * (int)(${pitch[a]});
        const ${ACC} v${a}${k} = w${a}[o${a} * taps${a} + ${k}];
% endfor
% endif
% endif
</%def>
## walk: add up the windows of the axes left
<%def name="walk(axes, weights, steps)">
% if not axes:
<%
    product = " * ".join(w for w, _, _ in weights)
    tests = " & ".join(f"({k} < n{a})" for _, a, k in weights if k)
    element = f"{product} * {T.load}(from, corner + iW{''.join(' + ' + s for s in steps)})"
%>\
            sum += ${f"{tests} ? {element} : 0" if tests else element};
% elif taps[axes[0]]:
% for k in range(taps[axes[0]]):
            ${walk(axes[1:], weights + [(f"v{axes[0]}{k}", axes[0], k)], steps + [f"e{axes[0]}{k}"])}
% endfor
% else:
            for (int k${axes[0]} = 0; k${axes[0]} < n${axes[0]}; k${axes[0]}++) {
            ${walk(axes[1:], weights + [(f"w{axes[0]}[o{axes[0]} * taps{axes[0]} + k{axes[0]}]", axes[0], 0)], steps + [f"k{axes[0]} * (int)({pitch[axes[0]]})"])}
            }
% endif
</%def>
