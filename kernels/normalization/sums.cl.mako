<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## Sums that a normalisation's backward pass needs, per row of n contiguous elements:
##   a[row] = sum(g)      b[row] = sum(g * (x - mean[row / divide % modulo]))
##
## Parameter  legal values
## T          dtype row of g and x (float); mean, a and b hold its compute type
## FORM LANES as in softmax/forward
<%
    ACC = T.acc
    at = rows.attr.place(FORM)
    ADD = lambda a, b: f"{a} + {b}"
    V = rows.attr.value(FORM)
%>\
${rows.vectors(FORM, T)}
__kernel ${rows.attr.sized(FORM)}void sums(IN(${T.c}, g), IN(${T.c}, x), IN(${ACC}, mean_in), OUT(${ACC}, a), OUT(${ACC}, b), const long rows, const long n, const long chunk,
                   const long divide, const long modulo) {
    PTR_IN(${T.c}, g);
    PTR_IN(${T.c}, x);
    PTR_IN(${ACC}, mean_in);
    PTR_OUT(${ACC}, a);
    PTR_OUT(${ACC}, b);
    const long inner = 1;
${rows.begin(FORM, ACC=ACC)}
${rows.once(FORM, T, "g", "x")}\
${rows.each_row(FORM, ACC, "mean", "mean_in[row_at / divide % modulo]")}
${rows.fold(FORM, LANES, ACC, "s", T.zero, ADD, lambda i: f"const E_T e = LD_{T.name}(g, {at(i)});")}
${rows.fold(FORM, LANES, ACC, "q", T.zero, ADD, lambda i: f"const E_T e = LD_{T.name}(g, {at(i)}) * (LD_{T.name}(x, {at(i)}) - {V('mean')});")}
${rows.store_row(FORM, "a[row_at] = s_; b[row_at] = q_;")}
${rows.end(FORM)}
}
