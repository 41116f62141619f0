<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## Gradient of normalization/layer with respect to x. With h = g * weight and z = (x - mean) * rstd:
##   gx = rstd * (h - sum(h) / n - z * sum(h * z) / n)        (RMS: without the mean's term)
## Parameters T W FORM LANES WEIGHT RMS as in normalization/layer, and
## WEIGHTS    1: also the sums of normalization/layer_weight over each `chunk` rows, dw and db (rows / chunk rounded up, n); form vector only
<%
    ACC = T.acc
    at = rows.attr.place(FORM)
    ADD = lambda a, b: f"{a} + {b}"
    V = rows.attr.value(FORM)
    h = lambda i: f"LD_{T.name}(g, {at(i)})" + (f" * LC_{W.name}(weight, {i})" if WEIGHT else "")
    z = lambda i: (f"LD_{T.name}(x, {at(i)})" if RMS else f"(LD_{T.name}(x, {at(i)}) - {V('mean')})") + f" * {V('rstd')}"
%>\
${rows.vectors(FORM, T, W, T.acc_dtype)}
__kernel ${rows.attr.sized(FORM)}void layer_backward(IN(${T.c}, g), IN(${T.c}, x), IN(${W.c}, weight), IN(${ACC}, mean_in), IN(${ACC}, rstd_in), OUT(${T.c}, gx),
                             ${f"OUT({ACC}, dw), OUT({ACC}, db), " if WEIGHTS else ""}const long rows, const long n, const long chunk) {
    PTR_IN(${T.c}, g);
    PTR_IN(${T.c}, x);
    PTR_IN(${W.c}, weight);
    PTR_IN(${ACC}, mean_in);
    PTR_IN(${ACC}, rstd_in);
    PTR_OUT(${T.c}, gx);
    const long inner = 1;
% if WEIGHTS:
    __global ${ACC}* sw = dw_p + dw_o + get_global_id(0) * n;
    __global ${ACC}* sb = db_p + db_o + get_global_id(0) * n;
    for (long i = 0; i < n; i++) sw[i] = sb[i] = 0;
% endif
${rows.begin(FORM, ACC=ACC)}
${rows.once(FORM, T, "g", "x")}\
${rows.each_row(FORM, ACC, "rstd", "rstd_in[row_at]")}
% if not RMS:
${rows.each_row(FORM, ACC, "mean", "mean_in[row_at]")}
${rows.fold(FORM, LANES, ACC, "s", T.zero, ADD, lambda i: f"const E_T e = {h(i)};")}
${rows.each_row(FORM, ACC, "c", "s_ / n")}
% endif
${rows.fold(FORM, LANES, ACC, "q", T.zero, ADD, lambda i: f"const E_T e = {h(i)} * {z(i)};")}
${rows.each_row(FORM, ACC, "k", "q_ / n")}
<%
    A = T.acc_dtype.name
    sums = lambda i, once="": (f" ST_{A}(sw, {i}, LC_{A}(sw, {i}) + LD_{T.name}(g, {at(i)}) * ({z(i)}) {once});"
                               f" ST_{A}(sb, {i}, LC_{A}(sb, {i}) + LD_{T.name}(g, {at(i)}) {once});")
%>\
<% gx = lambda i: f" ST_{T.name}(gx, {at(i)}, {V('rstd')} * ({h(i)}{'' if RMS else ' - ' + V('c')} - {z(i)} * {V('k')}));" %>\
${rows.each(FORM, LANES, ACC, lambda i: (sums(i) if WEIGHTS else "") + gx(i), lambda i: (sums(i, "* one") if WEIGHTS else "") + gx(i))}
${rows.end(FORM)}
}
