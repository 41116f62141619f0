<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## Gradient of softmax or log-softmax from its result y and the gradient g of y; all dense (outer, n, inner).
##   softmax      gx = (g - sum(g * y)) * y
##   log-softmax  gx = g - exp(y) * sum(g)
## Parameters as in softmax/forward.
<%
    ACC = T.acc
    at = rows.attr.place(FORM)
    gy = lambda i: f"LD_{T.name}(g, {at(i)})"
    yy = lambda i: f"LD_{T.name}(y, {at(i)})"
    ADD = lambda a, b: f"{a} + {b}"
    S = rows.attr.value(FORM)("s")
%>\
${rows.vectors(FORM, T)}
${rows.expo(FORM, T)}
__kernel ${rows.attr.sized(FORM)}void softmax_backward(IN(${T.c}, g), IN(${T.c}, y), OUT(${T.c}, gx), const long rows, const long n, const long inner, const long chunk) {
    PTR_IN(${T.c}, g);
    PTR_IN(${T.c}, y);
    PTR_OUT(${T.c}, gx);
${rows.begin(FORM, ACC=ACC)}
${rows.once(FORM, T, "g", "y")}\
% if LOG:
${rows.fold(FORM, LANES, ACC, "s", T.zero, ADD, lambda i: f"const E_T e = {gy(i)};")}
${rows.each(FORM, LANES, ACC, lambda i: f"ST_{T.name}(gx, {at(i)}, {gy(i)} - rows_exp({yy(i)}) * {S});")}
% else:
${rows.fold(FORM, LANES, ACC, "s", T.zero, ADD, lambda i: f"const E_T e = {gy(i)} * {yy(i)};")}
${rows.each(FORM, LANES, ACC, lambda i: f"ST_{T.name}(gx, {at(i)}, ({gy(i)} - {S}) * {yy(i)});")}
% endif
${rows.end(FORM)}
}
