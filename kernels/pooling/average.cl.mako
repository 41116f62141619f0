<%inherit file="/base.cl.mako"/>\
<%namespace name="win" file="/pooling/window.cl.mako"/>\
<%namespace name="lanes" file="/pooling/lanes.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Average pooling, forward (x to y) and backward (g to gx, gathered).
##
## Parameter  legal values
## T          dtype row of both (float)
## K S P L ADAPTIVE INSIDE FORM W   as in pooling/max; L is 1. BACKWARD has rows of inputs instead of outputs, and for wide
##            runs: the gradients of 64 inputs at a time, to which whole windows add
## DIVISOR    0: the window's size, counting padding if PADDED; else this number
## BACKWARD   0 | 1
<%
    ACC = T.acc
    WHOLE = "long" if ADAPTIVE == 1 else "int"
    V = f"{ACC}{W}"
    k, s, p = K["W"], S["W"], P["W"]
    REST = p - lanes.attr.beyond(k, s, 1) - (W - 1) * s - 1
    I = lanes.attr.index_type(ACC)
    PHASES = lanes.attr.phases(k, s, p, 1) if FORM == "lanes" else []
    D = [d for ds in PHASES for d in ds] or [0]
    IV, MOST = f"{I}{W}", 64
    among = lambda d: lanes.attr.within(IV, W, "m0", d)
    sz = lambda a, o: capture(win.size, a, o, K, S, P, ADAPTIVE, PADDED)
    area = lambda w: str(DIVISOR) if DIVISOR else f"(({sz('D', 'oD')}) * ({sz('H', 'oH')}) * ({w}))"
    AREA, WHOLE_AREA = area(sz("W", "oW")), area(k)
    # outputs whose windows have K elements along the row: from WHOLE_FROM on, before WHOLE_TO
    WHOLE_FROM = 0 if DIVISOR or PADDED else -(-p // s)
    WHOLE_TO = "OW" if DIVISOR else f"min(OW, (NW + {(2 if PADDED else 1) * p - k + s}) / {s})"
%>\
% if W > 1:
${vec.vector_io(T, W)}
${lanes.functions(T, W, s) if FORM == "lanes" and not BACKWARD else ""}
% endif
% if FORM in ("wide", "runs"):
% elif BACKWARD:
static inline void spread(__global const ${T.c}* g, __global ${T.c}* gx, const long i, const ${WHOLE} iD, const ${WHOLE} iH, const ${WHOLE} iW,
                          const long ND, const long NH, const long NW, const long OD, const long OH, const long OW) {
    ${ACC} sum = 0;
    ${win.reach("D", K, S, P, L, ADAPTIVE)}
    ${win.reach("H", K, S, P, L, ADAPTIVE)}
    ${win.reach("W", K, S, P, L, ADAPTIVE)}
% if not ADAPTIVE:  # the last candidate may end before this input
        if (oD * ${S["D"]} - ${P["D"]} + ${K["D"]} > iD && oH * ${S["H"]} - ${P["H"]} + ${K["H"]} > iH && oW * ${s} - ${p} + ${k} > iW)
% endif
        sum += ${T.load}(g, (oD * OH + oH) * OW + oW) / ${AREA};
    }
    }
    }
    ${T.store}(gx, i, sum);
}
% else:
static inline void mean(__global const ${T.c}* x, __global ${T.c}* y, const long o, const ${WHOLE} oD, const ${WHOLE} oH, const ${WHOLE} oW,
                        const long ND, const long NH, const long NW, const long OD, const long OH, const long OW) {
    ${ACC} sum = 0;
    ${win.open("D", K, S, P, L, ADAPTIVE, INSIDE)}
    ${win.open("H", K, S, P, L, ADAPTIVE, INSIDE)}
    ${win.open("W", K, S, P, L, ADAPTIVE, INSIDE)}
        sum += ${T.load}(x, (iD * (int)NH + iH) * (int)NW + iW);
    }
    }
    }
    ${T.store}(y, o, sum / ${AREA});
}
% endif
__kernel void average_pool(IN(${T.c}, x), OUT(${T.c}, y), const long count, const long ND, const long NH, const long NW, const long OD,
                           const long OH, const long OW, const long chunk) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${T.c}, y);
% if FORM == "item" and not BACKWARD:
    const long line = get_global_id(1), o = line * OW + get_global_id(0), plane = line / (OH * OD) * (ND * NH * NW);
    const ${WHOLE} oW = get_global_id(0), oH = (${WHOLE})(line % OH), oD = (${WHOLE})(line / OH % OD);
    if (oW >= OW || o >= count) return;
    mean(x + plane, y, o, oD, oH, oW, ND, NH, NW, OD, OH, OW);
% elif FORM == "item":
    const long line = get_global_id(1), i = line * NW + get_global_id(0), plane = line / (NH * ND) * (OD * OH * OW);
    const ${WHOLE} iW = get_global_id(0), iH = (${WHOLE})(line % NH), iD = (${WHOLE})(line / NH % ND);
    if (iW >= NW || i >= count) return;
    spread(x + plane, y, i, iD, iH, iW, ND, NH, NW, OD, OH, OW);
% elif FORM == "wide":
    ${lanes.rows("OW", "OH", "OD")}
        const ${WHOLE} oH = nH, oD = nD;
        __global const ${T.c}* from = x + n * (ND * NH * NW);
        ${win.span("D", K, S, P, ADAPTIVE, INSIDE)}
        ${win.span("H", K, S, P, ADAPTIVE, INSIDE)}
        for (int oW = 0; oW < (int)OW; oW++) {
            ${win.span("W", K, S, P, ADAPTIVE, INSIDE)}
            const ${I}${W} step = (${I}${W})(${", ".join(map(str, range(W)))});
            ${V} sum${W} = 0;
            for (int iD = bD; iD < eD; iD++)
            for (int iH = bH; iH < eH; iH++) {
            __global const ${T.c}* line = from + (iD * (int)NH + iH) * (int)NW;
            ${lanes.wide(W, take)}
            }
% for h in (8, 4, 2, 1):
% if h < W:
            const ${ACC}${h if h > 1 else ""} sum${h} = sum${2 * h}.lo + sum${2 * h}.hi;
% endif
% endfor
            ${T.store}(y, row * OW + oW, sum1 / ${AREA});
        }
    }
% elif not BACKWARD:
    ${lanes.rows("OW", "OH", "OD")}
        const int oH = nH, oD = nD;
        __global const ${T.c}* from = x + n * (ND * NH * NW);
        const ${ACC} share = ${WHOLE_AREA};
        ${lanes.spread(W, 1, "OW", -(-p // s), f"(NW + {REST} < 0 ? -1 : (NW + {REST}) / {s})", single, vector)}
    }
% elif FORM == "runs":
    ${WHOLE} was[4];
    long plane = -1;
% if ADAPTIVE:
    /* divisions that all rows share: bounds of the windows along a row, and which windows hold a row */
    int starts[${MOST}], ends[${MOST}], lows[${MOST}], tops[${MOST}];
    for (int oW = 0; oW < (int)min(OW, ${MOST}L); oW++) {
        ${win.span("W", K, S, P, ADAPTIVE, INSIDE)}
        starts[oW] = bW;
        ends[oW] = eW;
    }
    for (int iH = 0; iH < (int)min(NH, ${MOST}L); iH++) {
        ${win.outer("H", K, S, P, ADAPTIVE)}
        lows[iH] = (int)lH;
        tops[iH] = (int)tH;
    }
% endif
    ${ACC} sum[64];
    int depth = -1;
    ${WHOLE} lD = 0, tD = 0;
    ${lanes.rows("NW", "NH", "ND")}
        const ${WHOLE} iH = nH, iD = nD;
        if (nD != depth) {
            ${win.outer("D", K, S, P, ADAPTIVE, names="lowest, highest")}
            depth = nD;
            lD = lowest;
            tD = highest;
        }
% if ADAPTIVE:
        ${WHOLE} lH, tH;
        if (NH <= ${MOST}) { lH = lows[iH]; tH = tops[iH]; }
        else {
            ${win.outer("H", K, S, P, ADAPTIVE, names="lowest, highest")}
            lH = lowest;
            tH = highest;
        }
% else:
        ${win.outer("H", K, S, P, ADAPTIVE)}
% endif
        if (plane == n && was[0] == lD && was[1] == tD && was[2] == lH && was[3] == tH) {      /* rows of the same windows are alike */
            __global ${T.c}* to = y + row * NW;
            int w = 0;
            if (NW <= 64) { ${lanes.put_run(T, W, "to", "(int)NW")} continue; }
            for (; w + ${W} <= (int)NW; w += ${W}) stv_${T.name}(to + w, ldv_${T.name}(to + w - NW));
            for (; w < (int)NW; w++) to[w] = to[w - NW];
            continue;
        }
        plane = n; was[0] = lD; was[1] = tD; was[2] = lH; was[3] = tH;
        __global const ${T.c}* from = x + n * (OD * OH * OW);
        ${lanes.runs(T, W, add, capture(win.outer, "W", K, S, P, ADAPTIVE, "w0", "(w0 + width - 1)"), "y")}
    }
% else:
    ${lanes.rows("NW", "NH", "ND")}
        const int iH = nH, iD = nD;
        const long plane = n * (OD * OH * OW);
        __global const ${T.c}* from = x + plane;
% if WHOLE_FROM:
        ${lanes.spread(W, s, "NW", WHOLE_FROM - min(D), f"min(NW / {s}, {WHOLE_TO} - {max(D)}) - {W}", single, vector)}
% else:
        ${lanes.margins(W, s, D, max(0, -min(D)), f"min(NW / {s}, {WHOLE_TO} - {max(D)})", f"{WHOLE_TO} == OW")}
        ${lanes.spread(W, s, "NW", "first_whole", "last_whole", single, vector)}
% endif
    }
% endif
}
<%def name="take(i, again)">
                ${V} v = ldv_${T.name}(line + ${i});
% if again:
                v = step >= (${I}${W})(${again}) ? v : 0;
% endif
                sum${W} += v;
</%def>
<%def name="add()">
            for (${WHOLE} oD = tD; oD >= lD; oD--)
            for (${WHOLE} oH = tH; oH >= lH; oH--) {
            const int area = ${"1" if DIVISOR else f"({sz('D', 'oD')}) * ({sz('H', 'oH')})"};
            for (${WHOLE} oW = tW; oW >= lW; oW--) {
% if ADAPTIVE:
                int bW, eW;
                if (OW <= ${MOST}) { bW = starts[oW]; eW = ends[oW]; }
                else { ${win.bounds_of("W", ADAPTIVE)} }
% else:
                ${win.span("W", K, S, P, ADAPTIVE, INSIDE)}
% endif
                const ${ACC} v = ${T.load}(from, (oD * OH + oH) * OW + oW) / ${DIVISOR or f"(area * ({'eW - bW' if ADAPTIVE else sz('W', 'oW')}))"};
                int i = max(bW - (int)w0, 0);
                const int end = min(eW - (int)w0, width);
                for (; i + 4 <= end; i += 4) vstore4(vload4(0, sum + i) + v, 0, sum + i);
                for (; i < end; i++) sum[i] += v;
            }
            }
</%def>
<%def name="single(w)">\
% if BACKWARD:
spread(from, y, row * NW + ${w}, iD, iH, (int)${w}, ND, NH, NW, OD, OH, OW);\
% else:
mean(from, y, row * OW + ${w}, oD, oH, (int)${w}, ND, NH, NW, OD, OH, OW);\
% endif
</%def>
<%def name="vector(w)">
% if BACKWARD:
            const long m0 = ${w};
            ${V} ${", ".join(f"s{r} = 0" for r in range(s))};
            ${win.reach("D", K, S, P, L, 0)}
            ${win.reach("H", K, S, P, L, 0)}
            if (oD * ${S["D"]} - ${P["D"]} + ${K["D"]} <= iD || oH * ${S["H"]} - ${P["H"]} + ${K["H"]} <= iH) continue;
            __global const ${T.c}* part = from + (oD * (int)OH + oH) * (int)OW + m0;
            const ${ACC} share = ${WHOLE_AREA};
% for r, ds in enumerate(PHASES):
% for d in ds:
            s${r} += ${"" if WHOLE_FROM else f"{among(d)} ? "}ldv_${T.name}(part + ${d}) / share${"" if WHOLE_FROM else f" : ({V})(0)"};
% endfor
% endfor
            }
            }
% for j in range(s):
            stv_${T.name}(y + row * NW + m0 * ${s} + ${j * W}, ${lanes.attr.woven(V, W, s, j, "s")});
% endfor
% else:
            ${V} sum = 0;
            ${win.open("D", K, S, P, L, 0, INSIDE)}
            ${win.open("H", K, S, P, L, 0, INSIDE)}
            __global const ${T.c}* line = from + (iD * (int)NH + iH) * (int)NW + ${w} * ${s} - ${p};
% for k_ in range(k):
            sum += ${lanes.attr.strided(T, W, s, "line", k_)};
% endfor
            }
            }
            stv_${T.name}(y + row * OW + ${w}, sum / share);
% endif
</%def>
