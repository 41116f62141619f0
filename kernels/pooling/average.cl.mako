<%inherit file="/base.cl.mako"/>\
<%namespace name="win" file="/pooling/window.cl.mako"/>\
## Average pooling, forward (x to y) and backward (g to gx, gathered).
##
## Parameter  legal values
## T          dtype row of both (float)
## K S P L ADAPTIVE FORM   as in pooling/max; L is 1
## DIVISOR    0: the window's size, counting padding if PADDED; else this number
## BACKWARD   0 | 1
<%
    ACC = T.acc
    WHOLE = "long" if ADAPTIVE == 1 else "int"
    sz = lambda a, o: capture(win.size, a, o, K, S, P, ADAPTIVE, PADDED)
    area = lambda w: str(DIVISOR) if DIVISOR else f"(({sz('D', 'oD')}) * ({sz('H', 'oH')}) * ({sz('W', w)}))"
    part = str(DIVISOR) if DIVISOR else f"(({sz('D', 'oD')}) * ({sz('H', 'oH')}))"
    c = lambda a: -(-K[a] // S[a])
%>\
__kernel void average_pool(IN(${T.c}, x), OUT(${T.c}, y), const long count, const long ND, const long NH, const long NW, const long OD,
                           const long OH, const long OW, const long chunk) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${T.c}, y);
% if FORM == "item" and not BACKWARD:
    const long line = get_global_id(1), o = line * OW + get_global_id(0), plane = line / (OH * OD) * (ND * NH * NW);
    const ${WHOLE} oW = get_global_id(0), oH = (${WHOLE})(line % OH), oD = (${WHOLE})(line / OH % OD);
    if (oW >= OW || o >= count) return;
    ${ACC} sum = 0;
    ${win.open("D", K, S, P, L, ADAPTIVE, INSIDE)}
    ${win.open("H", K, S, P, L, ADAPTIVE, INSIDE)}
    ${win.open("W", K, S, P, L, ADAPTIVE, INSIDE)}
        sum += ${T.load}((x + plane), (iD * (int)NH + iH) * (int)NW + iW);
    }
    }
    }
    ${T.store}(y, o, sum / ${area("oW")});
% elif FORM == "item":
    const long line = get_global_id(1), i = line * NW + get_global_id(0), plane = line / (NH * ND) * (OD * OH * OW);
    const ${WHOLE} iW = get_global_id(0), iH = (${WHOLE})(line % NH), iD = (${WHOLE})(line / NH % ND);
    if (iW >= NW || i >= count) return;
    ${ACC} sum = 0;
    ${win.reach("D", K, S, P, L, ADAPTIVE)}
    ${win.reach("H", K, S, P, L, ADAPTIVE)}
    ${win.reach("W", K, S, P, L, ADAPTIVE)}
% if not ADAPTIVE:  # the last candidate may end before this input
        if (oD * ${S["D"]} - ${P["D"]} + ${K["D"]} > iD && oH * ${S["H"]} - ${P["H"]} + ${K["H"]} > iH && oW * ${S["W"]} - ${P["W"]} + ${K["W"]} > iW)
% endif
        sum += ${T.load}(x, plane + (oD * OH + oH) * OW + oW) / ${area("oW")};
    }
    }
    }
    ${T.store}(y, i, sum);
% elif not BACKWARD:
    const long rows = count / OW, row_begin = get_global_id(0) * chunk, row_end = min(rows, row_begin + chunk);
    for (long row = row_begin; row < row_end; row++) {
        const long oH = row % OH, oD = row / OH % OD, plane = row / (OH * OD) * (ND * NH * NW);
        const ${ACC} share = ${part};
        for (long w0 = 0; w0 < OW; w0 += 64) {
            const int width = (int)min(64L, OW - w0);
            ${ACC} sum[64];
            for (int l = 0; l < width; l++) sum[l] = 0;
            ${win.open("D", K, S, P, L, 0, INSIDE)}
            ${win.open("H", K, S, P, L, 0, INSIDE)}
            for (int kW = 0; kW < ${K["W"]}; kW++) {
                const int shift = kW - ${P["W"]};
                const int lo = (int)clamp((long)(-shift + ${S["W"] - 1}) / ${S["W"]} - w0, 0L, 64L);
                const int hi = shift >= NW ? 0 : (int)min((long)width, (NW - 1 - shift) / ${S["W"]} + 1 - w0);
                const long base = plane + (iD * NH + iH) * NW + w0 * ${S["W"]} + shift;
                for (int l = lo; l < hi; l++) sum[l] += ${T.load}(x, base + l * ${S["W"]});
            }
            }
            }
            for (int l = 0; l < width; l++) ${T.store}(y, row * OW + w0 + l, sum[l] / (share${"" if DIVISOR else f" * ({sz('W', 'w0 + l')})"}));
        }
    }
% else:
    const long rows = count / NW, row_begin = get_global_id(0) * chunk, row_end = min(rows, row_begin + chunk);
    for (long row = row_begin; row < row_end; row++) {
        const long iH = row % NH, iD = row / NH % ND, plane = row / (NH * ND) * (OD * OH * OW);
        for (long w0 = 0; w0 < NW; w0 += 64) {
            const int width = (int)min(64L, NW - w0);
            ${ACC} sum[64];
            for (int l = 0; l < width; l++) sum[l] = 0;
            ${win.reach("D", K, S, P, L, 0)}
            ${win.reach("H", K, S, P, L, 0)}
            if (oD * ${S["D"]} - ${P["D"]} + ${K["D"]} <= iD || oH * ${S["H"]} - ${P["H"]} + ${K["H"]} <= iH) continue;
            const long base = plane + (oD * OH + oH) * OW;
            const ${ACC} share = ${part};
            for (int cW = 0; cW < ${c("W")}; cW++)
                for (int l = 0; l < width; l++) {
                    const long oW = (w0 + l + ${P["W"]}) / ${S["W"]} - cW, safe = clamp(oW, 0L, OW - 1);
                    const int take = (oW == safe) & (oW * ${S["W"]} - ${P["W"]} + ${K["W"]} > w0 + l);
                    const ${ACC} v = ${T.load}(x, base + safe) / (share${"" if DIVISOR else f" * ({sz('W', 'safe')})"});
                    sum[l] += take ? v : 0;
                }
            }
            }
            for (int l = 0; l < width; l++) ${T.store}(y, row * NW + w0 + l, sum[l]);
        }
    }
% endif
}
