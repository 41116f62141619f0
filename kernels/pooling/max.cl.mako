<%inherit file="/base.cl.mako"/>\
<%namespace name="win" file="/pooling/window.cl.mako"/>\
## Max pooling: y and the place `at` (flat in a plane, int) of each window's largest element; NaN wins.
##
## Parameter  legal values
## T          dtype row of x and y
## K S P L    dicts by axis D, H, W: kernel size, stride, padding, dilation; ADAPTIVE 0 | 1 | 2; INSIDE dict by axis, see window
## FORM       item: one output per work-item, global (OW, other axes)
##            loop: `chunk` output rows per work-item, 64 outputs side by side, taps outside (PoCL); not with ADAPTIVE
<%
    ACC = T.acc
    WHOLE = "long" if ADAPTIVE == 1 else "int"
%>\
__kernel void max_pool(IN(${T.c}, x), OUT(${T.c}, y), OUT(int, at), const long count, const long ND, const long NH, const long NW, const long OD,
                       const long OH, const long OW, const long chunk) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${T.c}, y);
    PTR_OUT(int, at);
% if FORM == "item":
    const long line = get_global_id(1), o = line * OW + get_global_id(0), plane = line / (OH * OD) * (ND * NH * NW);
    const ${WHOLE} oW = get_global_id(0), oH = (${WHOLE})(line % OH), oD = (${WHOLE})(line / OH % OD);
    if (oW >= OW || o >= count) return;
    ${ACC} best = ${T.lowest};
    int from = (int)(((${win.first("D", "oD", S, P, L, ADAPTIVE)}) * NH + ${win.first("H", "oH", S, P, L, ADAPTIVE)}) * NW + ${win.first("W", "oW", S, P, L, ADAPTIVE)});
    ${win.open("D", K, S, P, L, ADAPTIVE, INSIDE)}
    ${win.open("H", K, S, P, L, ADAPTIVE, INSIDE)}
    ${win.open("W", K, S, P, L, ADAPTIVE, INSIDE)}
        const int i = (int)((iD * (int)NH + iH) * (int)NW + iW);
        const ${ACC} v = ${T.load}((x + plane), i);
        const int take = v > best || v != v;
        best = take ? v : best;
        from = take ? i : from;
    }
    }
    }
    ${T.store}(y, o, best);
    at[o] = from;
% else:
    const long rows = count / OW, row_begin = get_global_id(0) * chunk, row_end = min(rows, row_begin + chunk);
    for (long row = row_begin; row < row_end; row++) {
        const long oH = row % OH, oD = row / OH % OD, plane = row / (OH * OD) * (ND * NH * NW);
        for (long w0 = 0; w0 < OW; w0 += 64) {
            const int width = (int)min(64L, OW - w0);
            ${ACC} best[64];
            int from[64];
            const long corner = ((${win.first("D", "oD", S, P, L, 0)}) * NH + ${win.first("H", "oH", S, P, L, 0)}) * NW;
            for (int l = 0; l < width; l++) { best[l] = ${T.lowest}; from[l] = (int)(corner + ${win.first("W", "w0 + l", S, P, L, 0)}); }
            ${win.open("D", K, S, P, L, 0, INSIDE)}
            ${win.open("H", K, S, P, L, 0, INSIDE)}
            for (int kW = 0; kW < ${K["W"]}; kW++) {
                /* outputs whose tap kW lies inside the row */
                const int shift = kW * ${L["W"]} - ${P["W"]};
                const int lo = (int)clamp((long)(-shift + ${S["W"] - 1}) / ${S["W"]} - w0, 0L, 64L);
                const int hi = shift >= NW ? 0 : (int)min((long)width, (NW - 1 - shift) / ${S["W"]} + 1 - w0);
                const long base = (iD * NH + iH) * NW + w0 * ${S["W"]} + shift;
                for (int l = lo; l < hi; l++) {
                    const ${ACC} v = ${T.load}(x, plane + base + l * ${S["W"]});
                    const int take = v > best[l] || v != v;
                    best[l] = take ? v : best[l];
                    from[l] = take ? (int)base + l * ${S["W"]} : from[l];
                }
            }
            }
            }
            for (int l = 0; l < width; l++) { ${T.store}(y, row * OW + w0 + l, best[l]); at[row * OW + w0 + l] = from[l]; }
        }
    }
% endif
}
