<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Gradient of loss/nll: gx (outer, n, inner) is 0 but at the target of each position, where it is -w * k (k as in
## loss/cross_entropy_backward).
##   item   one work-item per element
##   rows   inner 1: a work-item takes `chunk` positions, whose elements lie together: zeros as vectors, then the targets (CPUs)
##   plane  inner > 1: a work-item takes `chunk` positions of one outer index, and compares their targets with each class in turn (CPUs)
##
## Parameter  legal values
## T WEIGHT   as in loss/nll; REDUCTION  none | sum | mean
## FORM       item | rows | plane
<%
    L = 64 // T.acc_dtype.itemsize
    V, I = T.acc + str(L), "long8" if L == 8 else "int16"
    weighted = lambda i: f" * {T.load}(weight, {i})" if WEIGHT else ""
    whole = {"none": "", "sum": f"-{T.load}(g, 0)", "mean": f"-{T.load}(g, 0) / total[0]"}[REDUCTION]
    of = lambda p: f"-{T.load}(g, {p})" if REDUCTION == "none" else "k"
%>\
% if FORM != "item":
${vec.vector_io(T, L)}
% endif
__kernel void nll_backward(IN(${T.c}, g), IN(${T.acc}, total), IN(long, target), IN(${T.c}, weight), OUT(${T.c}, gx), const long rows, const long n,
                           const long inner, const long chunk, const long ignore) {
    PTR_IN(${T.c}, g);
    PTR_IN(${T.acc}, total);
    PTR_IN(long, target);
    PTR_IN(${T.c}, weight);
    PTR_OUT(${T.c}, gx);
% if whole:
    const ${T.acc} k = ${whole};
% endif
% if FORM == "rows":
    const long first = get_global_id(0) * chunk, last = min(rows, first + chunk), end = last * n;
    long at = first * n;
    for (; at + ${L} <= end; at += ${L}) stv_${T.name}(gx + at, (${V})0);
    for (; at < end; at++) { ${T.store}(gx, at, (${T.acc})0); }
    for (long p = first; p < last; p++) {
        const long t = target[p];
        if (t == ignore || t < 0 || t >= n) continue;
        ${T.store}(gx, p * n + t, ${of("p")}${weighted("t")});
    }
% elif FORM == "plane":
    const long blocks = (inner + chunk - 1) / chunk, outer = get_global_id(0) / blocks, first = get_global_id(0) % blocks * chunk;
    const long last = min(inner, first + chunk), here = outer * inner;
    if (here >= rows) return;
    for (long i = 0; i < n; i++) {
        __global ${T.c}* to = gx + (outer * n + i) * inner;
        const long sought = i == ignore ? -1 : i;
        const ${T.acc} scale = 1${weighted("i")};
        long j = first;
        for (; j + ${L} <= last; j += ${L}) {
            const ${I} hit = ${"vload8(0, target + here + j) == (long8)(sought)" if L == 8 else "convert_int16(vload16(0, target + here + j) == (long16)(sought))"};
            stv_${T.name}(to + j, hit ? ${f"-ldv_{T.name}(g + here + j)" if REDUCTION == "none" else f"({V})(k)"} * (${V})(scale) : (${V})0);
        }
        for (; j < last; j++) { ${T.store}(to, j, target[here + j] == sought ? ${of("here + j")} * scale : (${T.acc})0); }
    }
% else:
    const long at = get_global_id(0);
    if (at >= rows * n) return;
    const long i = at / inner % n, p = at / (inner * n) * inner + at % inner, t = target[p];
    ${T.store}(gx, at, t == i && t != ignore ? ${of("p")}${weighted("t")} : (${T.acc})0);
% endif
}
