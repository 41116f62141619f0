<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
<%namespace name="bag" file="/indexing/bag.cl.mako"/>\
## The gradient of sums of bags by the rows: gw[index[j], :] += g[b, :] (times s[j], times share[b]) for the elements j of each bag b in their order. A
## work-item owns `own` rows, which it sets to 0 first, and reads all of the index. For CPUs.
##
## g (B, E), index (N), s (N), share (B), gw (V, E), contiguous.
## Geometry: global (1, ceil(V / own)), local 1
##
## Parameter  legal values
## T TI       dtype rows of g and s and of the index; share and gw hold the compute type of T
## EVEN SCALED SHARED   bool: as in indexing/bag; whether there are s and share
<%
    ACC, VEC = T.acc, T.c == T.acc
    W = 8 if ACC == "double" else 16
    scale = (["share[b]"] if SHARED else []) + ([f"{T.load}(s, j)"] if SCALED else [])
%>\
${ix.row(False)}
__kernel void bags_backward(IN(${T.c}, g), IN(${T.c}, s), IN(${ACC}, share), OUT(${ACC}, gw), const long own, ${bag.parameters(TI, EVEN)}) {
    PTR_IN(${T.c}, g); PTR_IN(${TI.c}, index); PTR_OUT(${ACC}, gw);
    ${"PTR_IN(%s, s);" % T.c if SCALED else ""} ${"PTR_IN(%s, share);" % ACC if SHARED else ""} ${"" if EVEN else "PTR_IN(%s, offsets);" % TI.c}
    const long lo = get_global_id(1) * own, hi = min(V, lo + own);
    for (long i = lo * E; i < hi * E; i++) gw[i] = 0;
    for (long b = 0; b < B; b++) {
${bag.span(EVEN)}
        __global const ${T.c}* from = g + b * E;
        for (long j = begin; j < end; j++) {
            const long row = clnn_row(index[j], V, err, code);
            if (row < lo || row >= hi || row == padding) continue;
            ${f"const {ACC} f = {' * '.join(scale)};" if scale else ""}
            __global ${ACC}* to = gw + row * E;
            long e = 0;
% if VEC:
            for (; e + ${W} <= E; e += ${W}) vstore${W}(vload${W}(0, to + e) + vload${W}(0, from + e)${" * f" if scale else ""}, 0, to + e);
% endif
            for (; e < E; e++) to[e] += ${T.load}(from, e)${" * f" if scale else ""};
        }
    }
}
