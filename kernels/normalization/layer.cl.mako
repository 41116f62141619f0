<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## Layer or RMS normalisation of rows of n contiguous elements: y = (x - mean) * rstd * weight + bias.
##
## Parameter  legal values
## T          dtype row of x and y; mean and rstd hold its compute type; W dtype row of weight and bias
## FORM LANES as in softmax/forward; WEIGHT BIAS 0 | 1
## RMS        0 | 1: no mean, rstd = 1 / sqrt(mean(x^2) + eps)
<%
    ACC = T.acc
    at = rows.attr.place(FORM)
    ADD = lambda a, b: f"{a} + {b}"
    V = rows.attr.value(FORM)
    x = lambda i: f"LD_{T.name}(x, {at(i)})" + ("" if RMS else f" - {V('mean')}")
    w = lambda i: (f" * LC_{W.name}(weight, {i})" if WEIGHT else "") + (f" + LC_{W.name}(bias, {i})" if BIAS else "")
%>\
${rows.vectors(FORM, T, W)}
__kernel ${rows.attr.sized(FORM)}void layer(IN(${T.c}, x), IN(${W.c}, weight), IN(${W.c}, bias), OUT(${T.c}, y), OUT(${ACC}, mean_out), OUT(${ACC}, rstd_out),
                    const long rows, const long n, const long chunk, const ${ACC} eps) {
    PTR_IN(${T.c}, x);
    PTR_IN(${W.c}, weight);
    PTR_IN(${W.c}, bias);
    PTR_OUT(${T.c}, y);
    PTR_OUT(${ACC}, mean_out);
    PTR_OUT(${ACC}, rstd_out);
    const long inner = 1;
${rows.begin(FORM, ACC=ACC)}
${rows.once(FORM, T, "x")}\
% if not RMS:
${rows.fold(FORM, LANES, ACC, "s", T.zero, ADD, lambda i: f"const E_T e = LD_{T.name}(x, {at(i)});")}
${rows.each_row(FORM, ACC, "mean", "s_ / n")}
${rows.store_row(FORM, "mean_out[row_at] = mean_;")}
% endif
${rows.fold(FORM, LANES, ACC, "q", T.zero, ADD, lambda i: f"const E_T d = {x(i)}, e = d * d;")}
${rows.each_row(FORM, ACC, "rstd", f"1 / sqrt(q_ / n + eps)")}
${rows.store_row(FORM, "rstd_out[row_at] = rstd_;")}
${rows.each(FORM, LANES, ACC, lambda i: f"ST_{T.name}(y, {at(i)}, ({x(i)}) * {V('rstd')}{w(i)});")}
${rows.end(FORM)}
}
