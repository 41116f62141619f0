<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
<%namespace name="bag" file="/indexing/bag.cl.mako"/>\
## The gradient of sums of bags by what scales their rows: gs[j] = the dot product of g[b, :] and w[index[j], :] for the elements j of bag b; 0 for `padding`.
##
## g (B, E), w (V, E), index (N), gs (N), contiguous. Geometry: global (ceil(B / chunk)), any local size.
##
## Parameter  legal values
## T TI       dtype rows of g, w and gs and of the index
## EVEN       bool: as in indexing/bag
<%
    ACC, VEC = T.acc, T.c == T.acc
    W = 8 if ACC == "double" else 16
%>\
${ix.row(False)}
__kernel void bags_scales(IN(${T.c}, g), IN(${T.c}, w), OUT(${T.c}, gs), const long chunk, ${bag.parameters(TI, EVEN)}) {
    PTR_IN(${T.c}, g); PTR_IN(${T.c}, w); PTR_IN(${TI.c}, index); PTR_OUT(${T.c}, gs);
    ${"" if EVEN else "PTR_IN(%s, offsets);" % TI.c}
    const long last = min(B, (long)(get_global_id(0) + 1) * chunk);
    for (long b = get_global_id(0) * chunk; b < last; b++) {
${bag.span(EVEN)}
        __global const ${T.c}* by = g + b * E;
        for (long j = begin; j < end; j++) {
            const long row = clnn_row(index[j], V, err, code);
            __global const ${T.c}* from = w + row * E;
            FETCH(w + (long)index[min(j + 4, N - 1)] * E);
            ${ACC} sum = 0;
            long e = 0;
% if VEC:
            ${ACC}${W} sums = 0;
            for (; e + ${W} <= E; e += ${W}) sums += vload${W}(0, from + e) * vload${W}(0, by + e);
            ${ACC} part[${W}];
            vstore${W}(sums, 0, part);
            for (int l = 0; l < ${W}; l++) sum += part[l];
% endif
            for (; e < E; e++) sum += ${T.load}(from, e) * ${T.load}(by, e);
            ${T.store}(gs, j, row == padding ? 0 : sum);
        }
    }
}
