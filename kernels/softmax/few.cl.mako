## Short rows, as many together as a vector has lanes, whose folds end together (forms `few` and `several` of rows.cl.mako, which explains the names).
## Each row is folded to a vector, and these are folded to the one vector of all rows' values.
##   few      a row fits a vector: that reads on into the next row and writes on into it before it is written, but never beyond the work-item's last
##   several  longer rows: the last vector ends with the row, so it overlaps the one before
<%!
    import re

    MOST = 128              # elements of a row

    def lanes(W, h, odd):
        """The lanes of W whose number has bit h (not) set."""
        return ", ".join(str(v * W + l) for v in (0, 1) for l in range(W) if bool(l & h) == odd)

    def kept(FORM, W):
        """Where the private array `kept` holds the vector from element i of row l on."""
        return (lambda i: f"kept + l * {W}") if FORM == "few" else (lambda i: f"kept + l * (int)n + {i}")

    def guarded(text):
        """The same statements where a vector may reach beyond the last row."""
        return re.sub(r"\b(LD|ST)V_", r"\1G_", text)

    def room(FORM, W):
        return W * W if FORM == "few" else W * MOST
%>
<%namespace name="vec" file="/matmul/vec.cl.mako"/>
## functions: LDV_, LCV_ and STV_<dtype>
<%def name="functions(FORM, T, W)">
${vec.vector_io(T, W)}
% if FORM == "few":
static inline ${T.acc}${W} few_load_${T.name}(__global const ${T.c}* p, const long left) {
    if (left >= ${W}) return ldv_${T.name}(p);
    ${T.acc} t[${W}];
    for (int i = 0; i < ${W}; i++) t[i] = ${T.load}(p, min((long)i, left - 1));
    return vload${W}(0, t);
}
static inline void few_store_${T.name}(__global ${T.c}* p, const ${T.acc}${W} v, const long n, const long left) {
    if (left >= ${W}) { stv_${T.name}(p, v); return; }
    ${T.acc} t[${W}];
    vstore${W}(v, 0, t);
    for (int i = 0; i < n; i++) ${T.store}(p, i, t[i]);
}
#define LDG_${T.name}(p, i) few_load_${T.name}((p) + (i), left)
#define STG_${T.name}(p, i, v) few_store_${T.name}((p) + (i), v, n, left)
% endif
#define LDV_${T.name}(p, i) ldv_${T.name}((p) + (i))
#define LCV_${T.name}(p, i) ldv_${T.name}((p) + (i))
#define STV_${T.name}(p, i, v) stv_${T.name}((p) + (i), v)
</%def>
## fold: the array `name` of one value per row: what combine makes of the values that the statements `element` leave in e.
<%def name="fold(FORM, ACC, W, name, init, combine, element, n)">
<% V, I = f"{ACC}{W}", "long8" if W == 8 else "int16" %>\
    ${ACC} ${name}[${W}];
    {
        const ${V} none = (${V})(${init});
        const ${I} lane = lanes_${ACC}, rest = (${I})((int)${n} % ${W});
        ${ACC} part[${W * W}];
% if FORM == "few":
        int l = 0;
        for (; l < inside; l++) {
            const long base = (first + l) * n;
            ${element("0")}
            vstore${W}(lane < rest ? e : none, l, part);
        }
        for (; l < width; l++) {
            const long base = (first + l) * n, left = row_end * n - base;
            ${guarded(element("0"))}
            vstore${W}(lane < rest ? e : none, l, part);
        }
% else:
        for (int l = 0; l < width; l++) {
            const long base = (first + l) * n;
            ${V} v0 = none, v1 = none;
            int i = 0;
            for (; i + ${2 * W} <= (int)${n}; i += ${2 * W}) {
                { ${element("i")} v0 = ${combine("v0", "e")}; }
                { ${element(f"(i + {W})")} v1 = ${combine("v1", "e")}; }
            }
            if (i + ${W} <= (int)${n}) { ${element("i")} v0 = ${combine("v0", "e")}; i += ${W}; }
            if (i < (int)${n}) {
                i = (int)${n} - ${W};
                ${element("i")}
                const ${V} fresh = lane + rest >= (${I})(${W}) ? e : none;
                v1 = ${combine("v1", "fresh")};
            }
            vstore${W}(${combine("v0", "v1")}, l, part);
        }
% endif
        for (int l = width; l < ${W}; l++) vstore${W}(none, l, part);
        ${V} ${", ".join(f"t{k} = vload{W}({k}, part)" for k in range(W))};
<% h = W // 2 %>\
% while h:
% for k in range(h):
        {
            const ${V} low = CLNN_SHUFFLE(t${2 * k}, t${2 * k + 1}, ${lanes(W, h, False)});
            const ${V} high = CLNN_SHUFFLE(t${2 * k}, t${2 * k + 1}, ${lanes(W, h, True)});
            t${k} = ${combine("low", "high")};
        }
% endfor
<% h //= 2 %>\
% endwhile
        vstore${W}(t0, 0, ${name});
    }
</%def>
<%def name="each(FORM, W, body, n)">
    {
% if FORM == "few":
    int l = 0;
    for (; l < inside; l++) {
        const long base = (first + l) * n;
        ${body("0")}
    }
    for (; l < width; l++) {
        const long base = (first + l) * n, left = row_end * n - base;
        ${guarded(body("0"))}
    }
% else:
    for (int l = 0; l < width; l++) {
        const long base = (first + l) * n;
        for (int start = 0; start < (int)${n}; start += ${W}) {
            const int i = min(start, (int)${n} - ${W});
            ${body("i")}
        }
    }
% endif
    }
</%def>
