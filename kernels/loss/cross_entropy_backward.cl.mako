<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## Gradient of loss/cross_entropy with respect to x, in one pass:
##   gx_c = k * ((1 - eps) * w_t * (p_c - [c == t]) + eps / n * (sum(weight) * p_c - weight_c)),   p_c = exp(x_c - lse)
## with k = g / total (mean), g (sum) or g[position] (none), and 0 where t == ignore.
##
## Parameter  legal values
## T, FORM, LANES, WEIGHT, SMOOTH as in loss/cross_entropy
## REDUCTION  none | sum | mean: which of g (T) and total (compute type) are read
<%
    ACC = T.acc
    at = rows.attr.place(FORM)
    V = rows.attr.value(FORM)
    ADD = lambda a, b: f"{a} + {b}"
    w = lambda i: f"LC_{T.name}(weight, {i})" if WEIGHT else "1"
    p = lambda i: f"rows_exp(LD_{T.name}(x, {at(i)}) - {V('lse')})"
    k = {"none": f"{T.load}(g, row_at)", "sum": f"{T.load}(g, 0)", "mean": f"{T.load}(g, 0) / total[0]"}[REDUCTION]
    total = (V("ws") if WEIGHT else "n")
    smooth = lambda i: f" + {V('k')} * eps / n * ({total} * p - {w(i)})" if SMOOTH else ""
%>\
${rows.vectors(FORM, T)}
${rows.expo(FORM, T)}
__kernel ${rows.attr.sized(FORM)}void cross_entropy_backward(IN(${T.c}, g), IN(${ACC}, total), IN(${T.c}, x), IN(long, target), IN(${T.c}, weight), IN(${ACC}, lse_in),
                                     OUT(${T.c}, gx), const long rows, const long n, const long inner, const long chunk, const long ignore,
                                     const ${ACC} eps) {
    PTR_IN(${T.c}, g);
    PTR_IN(${ACC}, total);
    PTR_IN(${T.c}, x);
    PTR_IN(long, target);
    PTR_IN(${T.c}, weight);
    PTR_IN(${ACC}, lse_in);
    PTR_OUT(${T.c}, gx);
${rows.begin(FORM, ACC=ACC)}
${rows.once(FORM, T, "x")}\
% if SMOOTH and WEIGHT:
${rows.fold(FORM, LANES, ACC, "ws", T.zero, ADD, lambda i: f"const E_T e = {w(i)};")}
% endif
${rows.each_row(FORM, "long", "tl", "target[row_at]")}
${rows.each_row(FORM, "int", "t", "tl_ == ignore || tl_ < 0 || tl_ >= n ? -1 : (int)tl_")}
${rows.each_row(FORM, ACC, "lse", "lse_in[row_at]")}
${rows.each_row(FORM, ACC, "k", f"t_ < 0 ? 0 : {k}")}
${rows.each_row(FORM, ACC, "kw", f"t_ < 0 ? 0 : {'(1 - eps) * ' if SMOOTH else ''}k_ * {w('t_')}")}
${rows.each(FORM, LANES, ACC, lambda i: f"const E_T p = {p(i)}; ST_{T.name}(gx, {at(i)}, {V('kw')} * (p - HIT_{T.acc}({i}, {V('t')})){smooth(i)});")}
${rows.end(FORM)}
}
