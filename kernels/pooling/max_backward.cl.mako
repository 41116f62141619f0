<%inherit file="/base.cl.mako"/>\
<%namespace name="win" file="/pooling/window.cl.mako"/>\
<%namespace name="lanes" file="/pooling/lanes.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Gradient of max pooling, gathered: each input adds the gradients of the windows that chose it, in a fixed order, without atomics.
## Parameters as in pooling/max but for
## FORM       item: one input per work-item
##            lanes: `chunk` input rows per work-item, S W inputs side by side
##            owner: `chunk` planes per work-item, global (1, planes / chunk): the outputs add to them in their order (CPUs); W is 1
<%
    ACC, I = T.acc, lanes.attr.index_type(T.acc)
    WHOLE = "long" if ADAPTIVE == 1 else "int"
    V, IV = f"{ACC}{W}", f"{I}{W}"
    s = S["W"]
    PHASES = lanes.attr.phases(K["W"], s, P["W"], L["W"]) if FORM == "lanes" else []
    D = [d for ds in PHASES for d in ds] or [0]
    convert = f"convert_{I}{W}" if I == "long" else ""
    among = lambda d: lanes.attr.within(IV, W, "m0", d)
%>\
% if W > 1:
${vec.vector_io(T, W)}
% endif
% if FORM != "owner":
static inline void collect(__global const ${T.c}* g, __global const int* at, __global ${T.c}* gx, const long i, const ${WHOLE} iD, const ${WHOLE} iH, const ${WHOLE} iW,
                           const long ND, const long NH, const long NW, const long OD, const long OH, const long OW) {
    const int me = (int)((iD * NH + iH) * NW + iW);
    ${ACC} sum = 0;
    ${win.reach("D", K, S, P, L, ADAPTIVE)}
    ${win.reach("H", K, S, P, L, ADAPTIVE)}
    ${win.reach("W", K, S, P, L, ADAPTIVE)}
        const int o = (int)((oD * (int)OH + oH) * (int)OW + oW);
        sum += at[o] == me ? ${T.load}(g, o) : 0;
    }
    }
    }
    ${T.store}(gx, i, sum);
}
% endif
__kernel void max_pool_backward(IN(${T.c}, g), IN(int, at), OUT(${T.c}, gx), const long count, const long ND, const long NH, const long NW,
                                const long OD, const long OH, const long OW, const long chunk) {
    PTR_IN(${T.c}, g);
    PTR_IN(int, at);
    PTR_OUT(${T.c}, gx);
% if FORM == "item":
    const long line = get_global_id(1), i = line * NW + get_global_id(0), plane = line / (NH * ND) * (OD * OH * OW);
    const ${WHOLE} iW = get_global_id(0), iH = (${WHOLE})(line % NH), iD = (${WHOLE})(line / NH % ND);
    if (iW >= NW || i >= count) return;
    collect(g + plane, at + plane, gx, i, iD, iH, iW, ND, NH, NW, OD, OH, OW);
% elif FORM == "owner":
    const long first = get_global_id(1) * chunk, last = min(count / (ND * NH * NW), first + chunk), outs = OD * OH * OW;
    for (long plane = first; plane < last; plane++) {
        __global ${T.c}* to = gx + plane * (ND * NH * NW);
        for (long i = 0; i < ND * NH * NW; i++) to[i] = 0;
        for (long o = plane * outs; o < (plane + 1) * outs; o++)
            ${T.store}(to, at[o], ${T.load}(to, at[o]) + ${T.load}(g, o));
    }
% else:
    ${lanes.rows("NW", "NH", "ND")}
        const int iH = nH, iD = nD, me = (iD * (int)NH + iH) * (int)NW;
        const long plane = n * (OD * OH * OW);
        ${lanes.margins(W, s, D, max(0, -min(D)), f"min(NW / {s}, OW - {max(D)})")}
        ${lanes.spread(W, s, "NW", "first_whole", "last_whole", single, vector)}
    }
% endif
}
<%def name="single(w)">collect(g + plane, at + plane, gx, row * NW + ${w}, iD, iH, (int)${w}, ND, NH, NW, OD, OH, OW);</%def>
<%def name="vector(w)">
            const long m0 = ${w};
            const ${IV} own = (${IV})(${", ".join(str(n * s) for n in range(W))}) + (${IV})(me + (int)m0 * ${s});
            ${V} ${", ".join(f"s{r} = 0" for r in range(s))};
            ${win.reach("D", K, S, P, L, 0)}
            ${win.reach("H", K, S, P, L, 0)}
            const long base = plane + (oD * (int)OH + oH) * (int)OW + m0;
% for r, ds in enumerate(PHASES):
% for d in ds:
            s${r} += ${among(d)} & (${convert}(vload${W}(0, at + base + ${d})) == own + (${IV})(${r})) ? ldv_${T.name}(g + base + ${d}) : (${V})(0);
% endfor
% endfor
            }
            }
% for j in range(s):
            stv_${T.name}(gx + row * NW + m0 * ${s} + ${j * W}, ${lanes.attr.woven(V, W, s, j, "s")});
% endfor
</%def>
