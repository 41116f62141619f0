<%inherit file="/base.cl.mako"/>\
<%namespace name="win" file="/pooling/window.cl.mako"/>\
## Gradient of max pooling, gathered: each input adds the gradients of the windows that chose it, in a fixed order, without atomics.
## Parameters as in pooling/max; `loop` takes `chunk` input rows per work-item.
<%
    ACC = T.acc
    WHOLE = "long" if ADAPTIVE == 1 else "int"
    c = lambda a: -(-((K[a] - 1) * L[a] + 1) // S[a])
%>\
__kernel void max_pool_backward(IN(${T.c}, g), IN(int, at), OUT(${T.c}, gx), const long count, const long ND, const long NH, const long NW,
                                const long OD, const long OH, const long OW, const long chunk) {
    PTR_IN(${T.c}, g);
    PTR_IN(int, at);
    PTR_OUT(${T.c}, gx);
% if FORM == "item":
    const long line = get_global_id(1), i = line * NW + get_global_id(0), plane = line / (NH * ND) * (OD * OH * OW);
    const ${WHOLE} iW = get_global_id(0), iH = (${WHOLE})(line % NH), iD = (${WHOLE})(line / NH % ND);
    if (iW >= NW || i >= count) return;
    const int me = (int)((iD * NH + iH) * NW + iW);
    ${ACC} sum = 0;
    ${win.reach("D", K, S, P, L, ADAPTIVE)}
    ${win.reach("H", K, S, P, L, ADAPTIVE)}
    ${win.reach("W", K, S, P, L, ADAPTIVE)}
        const int o = (int)((oD * (int)OH + oH) * (int)OW + oW);
        sum += (at + plane)[o] == me ? ${T.load}((g + plane), o) : 0;
    }
    }
    }
    ${T.store}(gx, i, sum);
% else:
    const long rows = count / NW, row_begin = get_global_id(0) * chunk, row_end = min(rows, row_begin + chunk);
    for (long row = row_begin; row < row_end; row++) {
        const long iH = row % NH, iD = row / NH % ND, plane = row / (NH * ND) * (OD * OH * OW);
        for (long w0 = 0; w0 < NW; w0 += 64) {
            const int width = (int)min(64L, NW - w0), me = (int)((iD * NH + iH) * NW + w0);
            ${ACC} sum[64];
            for (int l = 0; l < width; l++) sum[l] = 0;
            ${win.reach("D", K, S, P, L, 0)}
            ${win.reach("H", K, S, P, L, 0)}
            const long base = plane + (oD * OH + oH) * OW;
            for (int cW = 0; cW < ${c("W")}; cW++)
                for (int l = 0; l < width; l++) {
                    const int oW = ((int)w0 + l + ${P["W"]}) / ${S["W"]} - cW, safe = clamp(oW, 0, (int)OW - 1);
                    const int take = (oW == safe) & (at[base + safe] == me + l);
                    sum[l] += take ? ${T.load}(g, base + safe) : 0;
                }
            }
            }
            for (int l = 0; l < width; l++) ${T.store}(gx, row * NW + w0 + l, sum[l]);
        }
    }
% endif
}
