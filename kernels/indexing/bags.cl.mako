<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
<%namespace name="bag" file="/indexing/bag.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Bags of rows: out[b, :] = sum, mean or maximum over the elements j of bag b of w[index[j], :] (times s[j]); the row `padding` is left out, empty bags are 0.
## kept (B, E): the numbers of the rows of the maxima, -1 in empty bags; for the mean (B): one over the number of rows.
##
## w (V, E), index (N), s (N), out (B, E), contiguous.
## Geometry: W * BLOCK 1: global (E, B), any local size; else global (ceil(B / chunk)), local 1 (CPUs)
##
## Parameter  legal values
## T TI       dtype rows of w, s and out and of the index (and offsets)
## MODE       sum mean max
## EVEN SCALED bool: as in indexing/bag; whether there is s
## FORM       item | rows (CPUs)
## W BLOCK    rows: BLOCK vectors of W columns at a time, at most E together: 1 2 4 8 16, 1 2 4 8
<%
    ACC, ALL = T.acc, W * BLOCK
    V, I = (f"{ACC}{W}", f"{'long' if ACC == 'double' else 'int'}{W}") if W > 1 else (ACC, "int")
    load = lambda p: f"ldv_{T.name}({p})" if W > 1 else f"{T.load}({p}, 0)"
    store = lambda p, v: f"stv_{T.name}({p}, {v})" if W > 1 else f"{T.store}({p}, 0, {v})"
    narrow = lambda v: v if W == 1 else f"convert_int{W}({v})"
%>\
% if W > 1:
${vec.vector_io(T, W)}
% endif
${ix.row(False)}
__kernel void bags(IN(${T.c}, w), IN(${T.c}, s), OUT(${T.c}, out), OUT(${"int" if MODE == "max" else ACC}, kept), const long chunk,
                   ${bag.parameters(TI, EVEN)}) {
    PTR_IN(${T.c}, w); PTR_IN(${TI.c}, index); PTR_OUT(${T.c}, out);
    ${"PTR_IN(%s, s);" % T.c if SCALED else ""} ${"" if EVEN else "PTR_IN(%s, offsets);" % TI.c}
    ${"" if MODE == "sum" else "PTR_OUT(%s, kept);" % ("int" if MODE == "max" else ACC)}
% if FORM == "item":
    const long e0 = get_global_id(0), b = get_global_id(1);
    if (e0 >= E) return;
    {
${bag.span(EVEN)}
        {
% else:
    const long last = min(B, (long)(get_global_id(0) + 1) * chunk);
    for (long b = get_global_id(0) * chunk; b < last; b++) {
${bag.span(EVEN)}
        for (long at = 0; at < E; at += ${ALL}) {
            const long e0 = min(at, E - ${ALL});
% endif
            ${V} ${", ".join(f"a{k} = {T.lowest if MODE == 'max' else 0}" for k in range(BLOCK))};
            ${f"{I} " + ", ".join(f"p{k} = -1" for k in range(BLOCK)) + ";" if MODE == "max" else ""}
            ${"long count = 0;" if MODE == "mean" else ""}
            for (long j = begin; j < end; j++) {
                const long row = clnn_row(index[j], V, err, code);
% if FORM == "rows":
                __global const ${T.c}* next = w + (long)index[min(j + 4, N - 1)] * E + e0;
                ${" ".join(f"FETCH(next + {k});" for k in range(0, ALL, 64 // T.itemsize))}
% endif
                if (row == padding) continue;
                ${"count++;" if MODE == "mean" else ""}
                __global const ${T.c}* from = w + row * E + e0;
% for k in range(BLOCK):
% if MODE == "max":
                { const ${V} v = ${load(f"from + {k * W}")}; const ${I} take = (v > a${k}) | (v != v) | (p${k} < 0); a${k} = take ? v : a${k}; p${k} = take ? (${I})(row) : p${k}; }
% else:
                a${k} += ${load(f"from + {k * W}")}${f" * {T.load}(s, j)" if SCALED else ""};
% endif
% endfor
            }
% if MODE == "mean":
            const ${ACC} share = count ? 1 / (${ACC})count : 0;
            if (e0 == 0) kept[b] = share;
% endif
            __global ${T.c}* to = out + b * E + e0;
% for k in range(BLOCK):
% if MODE == "max":
            ${store(f"to + {k * W}", f"p{k} < 0 ? ({V})(0) : a{k}")};
            ${f"vstore{W}({narrow(f'p{k}')}, 0, kept + b * E + e0 + {k * W})" if W > 1 else f"kept[b * E + e0] = p{k}"};
% else:
            ${store(f"to + {k * W}", f"a{k}{' * share' if MODE == 'mean' else ''}")};
% endif
% endfor
        }
    }
}
