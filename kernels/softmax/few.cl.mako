## Rows that fit a vector (form `few` of rows.cl.mako), R of them side by side: names of that file.
## A row's vector reads on into the next row and writes on into it before that is written, but never beyond the last row of the work-item.
<%!
    def lanes(W, h, odd):
        """The lanes of W whose number has bit h (not) set."""
        return "s" + "".join("0123456789abcdef"[l] for l in range(W) if bool(l & h) == odd)
%>
<%namespace name="vec" file="/matmul/vec.cl.mako"/>
## functions: LDV_<dtype> and STV_<dtype>
<%def name="functions(T, W)">
${vec.vector_io(T, W)}
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
#define LDV_${T.name}(p, i) few_load_${T.name}((p) + (i), left)
#define STV_${T.name}(p, i, v) few_store_${T.name}((p) + (i), v, n, left)
</%def>
## fold: the array `name` of one value per row: what combine makes of the values that the statements `element` leave in e.
<%def name="fold(ACC, W, R, name, init, combine, element, n)">
<% I = "long8" if W == 8 else "int16" %>\
    ${ACC} ${name}[${R}];
    {
        const ${ACC}${W} none = (${ACC}${W})(${init});
        const ${I} mine = (${I})(${", ".join(map(str, range(W)))}) < (${I})(${n});
        ${ACC} part[${R * W}];
        for (int l = 0; l < width; l++) {
            const long base = (first + l) * n, left = row_end * n - base;
            ${element}
            vstore${W}(mine ? e : none, l, part);
        }
        for (int l = width; l < ${R}; l++) vstore${W}(none, l, part);
% for block in range(0, R, W):
        {
% for k in range(W):
            ${ACC}${W} t${k} = vload${W}(${block + k}, part);
% endfor
<% h = W // 2 %>\
% while h:
% for k in range(h):
            {
                const ${ACC}${W} low = (${ACC}${W})(${f"t{2 * k}.{lanes(W, h, False)}, t{2 * k + 1}.{lanes(W, h, False)}"});
                const ${ACC}${W} high = (${ACC}${W})(${f"t{2 * k}.{lanes(W, h, True)}, t{2 * k + 1}.{lanes(W, h, True)}"});
                t${k} = ${combine("low", "high")};
            }
% endfor
<% h //= 2 %>\
% endwhile
            vstore${W}(t0, ${block // W}, ${name});
        }
% endfor
    }
</%def>
