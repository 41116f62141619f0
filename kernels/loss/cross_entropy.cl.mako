<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
<%namespace name="top" file="/softmax/top.cl.mako"/>\
## Cross-entropy of logits x (outer, n classes, inner) and class numbers, without storing probabilities.
## Per position p = (outer, inner), with t = target[p] and w = weight[t] (1 without weights):
##   lse[p]  = log(sum_c exp(x_c))
##   part[p] = (1 - eps) * w * (lse - x_t) + eps / n * sum_c weight_c * (lse - x_c)        0 where t == ignore
##   used[p] = w                                                                          0 where t == ignore
##
## Parameter  legal values
## T          dtype row of x and weight (float); part, used and lse hold its compute type; target is int64
## FORM LANES as in softmax/forward
## WEIGHT     0 | 1: per-class weights (else the operand is not read); SMOOTH  0 | 1: eps > 0
<%
    ACC = T.acc
    at = rows.attr.place(FORM)
    load = lambda i: f"LD_{T.name}(x, {at(i)})"
    ADD = lambda a, b: f"{a} + {b}"
    m = rows.attr.value(FORM)("m")
    w = lambda i: f"LC_{T.name}(weight, {i})" if WEIGHT else "1"
    keep = "(1 - eps) * " if SMOOTH else ""
%>\
${rows.vectors(FORM, T)}
${rows.expo(FORM, T)}
static inline long checked(const long t, const long n, const long ignore, __global int* err, const int code) {
    if (t != ignore && (t < 0 || t >= n)) CLNN_FAIL(err, code, t);
    return t == ignore || t < 0 || t >= n ? -1 : t;
}
__kernel ${rows.attr.sized(FORM)}void cross_entropy(IN(${T.c}, x), IN(long, target), IN(${T.c}, weight), OUT(${ACC}, part), OUT(${ACC}, used), OUT(${ACC}, lse_out),
                            const long rows, const long n, const long inner, const long chunk, const long ignore, const ${ACC} eps,
                            __global int* err, const int code) {
    PTR_IN(${T.c}, x);
    PTR_IN(long, target);
    PTR_IN(${T.c}, weight);
    PTR_OUT(${ACC}, part);
    PTR_OUT(${ACC}, used);
    PTR_OUT(${ACC}, lse_out);
${rows.begin(FORM, ACC=ACC)}
${rows.once(FORM, T, "x")}\
${top.of(FORM, LANES, ACC, lambda i: f"const E_T e = {load(i)};", lambda i: f"const E_T e = rows_exp({load(i)} - {m});", T.zero)}
% if SMOOTH:
${rows.fold(FORM, LANES, ACC, "xs", T.zero, ADD, lambda i: f"const E_T e = {load(i)} * {w(i)};")}
% if WEIGHT:
${rows.fold(FORM, LANES, ACC, "ws", T.zero, ADD, lambda i: f"const E_T e = {w(i)};")}
% endif
% endif
${rows.each_row(FORM, ACC, "lse", "m_ + clnn_log(s_)" if ACC == "float" else "m_ + log(s_)")}
${rows.each_row(FORM, "long", "t", "checked(target[row_at], n, ignore, err, code)")}
${rows.each_row(FORM, ACC, "w", f"t_ < 0 ? 0 : {w('t_')}")}
<% valid = "(t_ >= 0 ? lse_ - " + load("max(t_, 0L)") + " : 0)" %>
% if SMOOTH and WEIGHT:
${rows.store_row(FORM, f"part[row_at] = t_ < 0 ? 0 : {keep}w_ * {valid} + eps / n * (ws_ * lse_ - xs_);")}
% elif SMOOTH:
${rows.store_row(FORM, f"part[row_at] = t_ < 0 ? 0 : {keep}{valid} + eps / n * (n * lse_ - xs_);")}
% else:
${rows.store_row(FORM, f"part[row_at] = w_ == 0 ? 0 : w_ * {valid};")}
% endif
${rows.store_row(FORM, "used[row_at] = w_; lse_out[row_at] = lse_;")}
${rows.end(FORM)}
}
