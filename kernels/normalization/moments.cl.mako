<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## Mean and spread of each row of n contiguous elements, in two passes over a row that is then in cache (no cancellation).
##   mean[row] = sum(x) / n      spread[row] = q = sum((x - mean)^2), or 1 / sqrt(q / n + eps), or q / eps, or sqrt(q / eps)
##
## Parameter  legal values
## T          dtype row of x (float); mean and spread hold its compute type
## FORM LANES as in softmax/forward; RSTD 0 | 1 | 2 | 3: which spread
<%
    ACC = T.acc
    at = rows.attr.place(FORM)
    ADD = lambda a, b: f"{a} + {b}"
    V = rows.attr.value(FORM)
%>\
${rows.vectors(FORM, T)}
__kernel ${rows.attr.sized(FORM)}void moments(IN(${T.c}, x), OUT(${ACC}, mean_out), OUT(${ACC}, spread), const long rows, const long n, const long chunk, const ${ACC} eps) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${ACC}, mean_out);
    PTR_OUT(${ACC}, spread);
    const long inner = 1;
${rows.begin(FORM, ACC=ACC)}
${rows.once(FORM, T, "x")}\
${rows.fold(FORM, LANES, ACC, "s", T.zero, ADD, lambda i: f"const E_T e = LD_{T.name}(x, {at(i)});")}
${rows.each_row(FORM, ACC, "mean", "s_ / n")}
${rows.fold(FORM, LANES, ACC, "q", T.zero, ADD, lambda i: f"const E_T d = LD_{T.name}(x, {at(i)}) - {V('mean')}, e = d * d;")}
${rows.store_row(FORM, f"mean_out[row_at] = mean_; spread[row_at] = {('q_', '1 / sqrt(q_ / n + eps)', 'q_ / eps', 'sqrt(q_ / eps)')[RSTD]};")}
${rows.end(FORM)}
}
