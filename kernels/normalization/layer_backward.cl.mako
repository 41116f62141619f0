<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## Gradient of normalization/layer with respect to x. With h = g * weight and z = (x - mean) * rstd:
##   gx = rstd * (h - sum(h) / n - z * sum(h * z) / n)        (RMS: without the mean's term)
## Parameters as in normalization/layer; BIAS is not used.
<%
    ACC = T.acc
    at = rows.attr.place(FORM)
    ADD = lambda a, b: f"{a} + {b}"
    V = (lambda name: name + "[l]") if FORM == "block" else (lambda name: name)
    h = lambda i: f"LD_{T.name}(g, {at(i)})" + (f" * LD_{W.name}(weight, {i})" if WEIGHT else "")
    z = lambda i: (f"LD_{T.name}(x, {at(i)})" if RMS else f"(LD_{T.name}(x, {at(i)}) - {V('mean')})") + f" * {V('rstd')}"
%>\
${rows.vectors(FORM, T, W)}
__kernel void layer_backward(IN(${T.c}, g), IN(${T.c}, x), IN(${W.c}, weight), IN(${ACC}, mean_in), IN(${ACC}, rstd_in), OUT(${T.c}, gx),
                             const long rows, const long n, const long chunk) {
    PTR_IN(${T.c}, g);
    PTR_IN(${T.c}, x);
    PTR_IN(${W.c}, weight);
    PTR_IN(${ACC}, mean_in);
    PTR_IN(${ACC}, rstd_in);
    PTR_OUT(${T.c}, gx);
    const long inner = 1;
${rows.begin(FORM)}
${rows.each_row(FORM, ACC, "rstd", "rstd_in[row_at]")}
% if not RMS:
${rows.each_row(FORM, ACC, "mean", "mean_in[row_at]")}
${rows.fold(FORM, LANES, ACC, "s", T.zero, ADD, lambda i: f"const E_T e = {h(i)};")}
${rows.each_row(FORM, ACC, "c", "s_ / n")}
% endif
${rows.fold(FORM, LANES, ACC, "q", T.zero, ADD, lambda i: f"const E_T e = {h(i)} * {z(i)};")}
${rows.each_row(FORM, ACC, "k", "q_ / n")}
${rows.each(FORM, LANES, ACC, lambda i: f"ST_{T.name}(gx, {at(i)}, {V('rstd')} * ({h(i)}{'' if RMS else ' - ' + V('c')} - {z(i)} * {V('k')}));")}
${rows.end(FORM)}
}
