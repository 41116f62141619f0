<%inherit file="/base.cl.mako"/>\
<%namespace name="win" file="/pooling/window.cl.mako"/>\
<%namespace name="lanes" file="/pooling/lanes.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Max pooling: y and the place `at` (flat in a plane, int) of each window's largest element; NaN wins.
##
## Parameter  legal values
## T          dtype row of x and y
## K S P L    dicts by axis D, H, W: kernel size, stride, padding, dilation; ADAPTIVE 0 | 1 | 2; INSIDE dict by axis, see window
## FORM       item: one output per work-item, global (OW, other axes)
##            lanes: `chunk` output rows per work-item, W outputs side by side (CPUs); not with ADAPTIVE
##            wide: the same rows with W elements of a window side by side, for windows of at least W without dilation (CPUs)
## W          2 | 4 | 8 | 16; item: 1
<%
    ACC, I = T.acc, lanes.attr.index_type(T.acc)
    WHOLE = "long" if ADAPTIVE == 1 else "int"
    V, IV = f"{ACC}{W}", f"{I}{W}"
    k, s, p, l = K["W"], S["W"], P["W"], L["W"]
    NAN = T.is_floating_point
    REST = p - lanes.attr.beyond(k, s, l) - (W - 1) * s - 1
%>\
% if W > 1:
${vec.vector_io(T, W)}
${lanes.functions(T, W, s) if FORM == "lanes" else ""}
% endif
% if FORM != "wide":
static inline void largest(__global const ${T.c}* x, __global ${T.c}* y, __global int* at, const long o, const ${WHOLE} oD, const ${WHOLE} oH, const ${WHOLE} oW,
                           const long ND, const long NH, const long NW, const long OD, const long OH, const long OW) {
    ${ACC} best = ${T.lowest};
    int from = (int)(((${win.first("D", "oD", S, P, L, ADAPTIVE)}) * NH + ${win.first("H", "oH", S, P, L, ADAPTIVE)}) * NW + ${win.first("W", "oW", S, P, L, ADAPTIVE)});
    ${win.open("D", K, S, P, L, ADAPTIVE, INSIDE)}
    ${win.open("H", K, S, P, L, ADAPTIVE, INSIDE)}
    ${win.open("W", K, S, P, L, ADAPTIVE, INSIDE)}
        const int i = (int)((iD * (int)NH + iH) * (int)NW + iW);
        const ${ACC} v = ${T.load}(x, i);
        const int take = v > best || v != v;
        best = take ? v : best;
        from = take ? i : from;
    }
    }
    }
    ${T.store}(y, o, best);
    at[o] = from;
}
% endif
__kernel void max_pool(IN(${T.c}, x), OUT(${T.c}, y), OUT(int, at), const long count, const long ND, const long NH, const long NW, const long OD,
                       const long OH, const long OW, const long chunk) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${T.c}, y);
    PTR_OUT(int, at);
% if FORM == "item":
    const long line = get_global_id(1), o = line * OW + get_global_id(0), plane = line / (OH * OD) * (ND * NH * NW);
    const ${WHOLE} oW = get_global_id(0), oH = (${WHOLE})(line % OH), oD = (${WHOLE})(line / OH % OD);
    if (oW >= OW || o >= count) return;
    largest(x + plane, y, at, o, oD, oH, oW, ND, NH, NW, OD, OH, OW);
% elif FORM == "wide":
    ${lanes.rows("OW", "OH", "OD")}
        const ${WHOLE} oH = nH, oD = nD;
        __global const ${T.c}* from = x + n * (ND * NH * NW);
        ${win.span("D", K, S, P, ADAPTIVE, INSIDE)}
        ${win.span("H", K, S, P, ADAPTIVE, INSIDE)}
        for (int oW = 0; oW < (int)OW; oW++) {
            ${win.span("W", K, S, P, ADAPTIVE, INSIDE)}
            const ${IV} step = (${IV})(${", ".join(map(str, range(W)))});
            ${V} best${W} = (${V})(${T.lowest});
            ${IV} place${W} = (${IV})((bD * (int)NH + bH) * (int)NW + bW);
            for (int iD = bD; iD < eD; iD++)
            for (int iH = bH; iH < eH; iH++) {
            const int line = (iD * (int)NH + iH) * (int)NW;
            ${lanes.wide(W, take)}
            }
            ${fold()}
            ${T.store}(y, row * OW + oW, best1);
            at[row * OW + oW] = (int)place1;
        }
    }
% else:
    ${lanes.rows("OW", "OH", "OD")}
        const int oH = nH, oD = nD;
        __global const ${T.c}* from = x + n * (ND * NH * NW);
        const int corner = (int)((${win.first("D", "oD", S, P, L, 0)}) * NH + ${win.first("H", "oH", S, P, L, 0)}) * (int)NW - ${p};
        ${lanes.spread(W, 1, "OW", -(-p // s), f"(NW + {REST} < 0 ? -1 : (NW + {REST}) / {s})", single, vector)}
    }
% endif
}
<%def name="single(w)">largest(from, y, at, row * OW + ${w}, oD, oH, (int)${w}, ND, NH, NW, OD, OH, OW);</%def>
<%def name="vector(w)">
            const ${IV} step = (${IV})(${", ".join(str(n * s) for n in range(W))}) + (${IV})((int)${w} * ${s});
            ${V} best = (${V})(${T.lowest});
            ${IV} place = step + (${IV})(corner);
            ${win.open("D", K, S, P, L, 0, INSIDE)}
            ${win.open("H", K, S, P, L, 0, INSIDE)}
            const int line = (iD * (int)NH + iH) * (int)NW - ${p};
            __global const ${T.c}* part = from + line + (int)${w} * ${s};
% for k_ in range(k):
            {
                const ${V} v = ${lanes.attr.strided(T, W, s, "part", k_ * l)};
                const ${IV} take = (v > best)${" | (v != v)" if T.is_floating_point else ""};
                best = take ? v : best;
                place = take ? step + (${IV})(line + ${k_ * l}) : place;
            }
% endfor
            }
            }
            stv_${T.name}(y + row * OW + ${w}, best);
            vstore${W}(${"convert_int8(place)" if I == "long" and W == 8 else f"convert_int{W}(place)" if I == "long" else "place"}, 0, at + row * OW + ${w});
</%def>
<%def name="take(i, again)">
                const ${V} v = ldv_${T.name}(from + line + ${i});
                const ${IV} take = (v > best${W})${" | (v != v)" if NAN else ""};
                best${W} = take ? v : best${W};
                place${W} = take ? step + (${IV})(line + ${i}) : place${W};
</%def>
## of two lanes the larger element, of equal ones the first; of NaN the last
<%def name="fold()">
% for h in (8, 4, 2, 1):
% if h < W:
<%
    VH, IH = (f"{ACC}{h}", f"{I}{h}") if h > 1 else (ACC, I)
    a, b, pa, pb = f"best{2 * h}.lo", f"best{2 * h}.hi", f"place{2 * h}.lo", f"place{2 * h}.hi"
%>\
            const ${IH} take${h} = (${b} > ${a}) | ((${b} == ${a}) & (${pb} < ${pa}))${f" | (({b} != {b}) & (({a} == {a}) | ({pb} > {pa})))" if NAN else ""};
            const ${VH} best${h} = take${h} ? ${b} : ${a};
            const ${IH} place${h} = take${h} ? ${pb} : ${pa};
% endif
% endfor
</%def>
