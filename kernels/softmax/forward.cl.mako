<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## y = softmax or log-softmax of x along one dimension: x and y are dense (outer, n, inner).
## Row r = (outer, inner): element i lies at outer * n * inner + i * inner + inner index.
##
## Parameter  legal values
## T          dtype row of x and y (float)
## FORM       loop | group | item, see rows.cl.mako; loop and group want inner == 1
## LANES      1 | 16 | 64; LOG  0 | 1
## Per row: the largest element m, the sum s of exp(x - m), then exp(x - m) / s, or x - m - log(s).
## 32- and 64-bit floats keep exp(x - m) in y between the passes; narrower ones compute it again.
<%
    ACC = T.acc
    KEEP = T.itemsize > 2 and not LOG
    STRIDE = " * inner" if FORM == "item" else ""
    at = lambda i: f"base + {i}{STRIDE}"
    load = lambda i: f"{T.load}(x, {at(i)})"
%>\
__kernel void softmax(IN(${T.c}, x), OUT(${T.c}, y), const long rows, const long n, const long inner, const long chunk) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${T.c}, y);
${rows.begin(FORM)}
% if FORM == "item":
    const long base = row / inner * (n * inner) + row % inner;
% else:
    const long base = row * n;
% endif
${rows.fold(FORM, LANES, ACC, "m", "-INFINITY", lambda a, b: f"({b} > {a} ? {b} : {a})", lambda i: f"const {ACC} e = {load(i)};")}
% if KEEP:
${rows.fold(FORM, LANES, ACC, "s", T.zero, lambda a, b: f"{a} + {b}", lambda i: f"const {ACC} e = exp({load(i)} - m); {T.store}(y, {at(i)}, e);")}
    const ${ACC} r = 1 / s;
${rows.each(FORM, LANES, lambda i: f"y[{at(i)}] *= r;")}
% elif LOG:
${rows.fold(FORM, LANES, ACC, "s", T.zero, lambda a, b: f"{a} + {b}", lambda i: f"const {ACC} e = exp({load(i)} - m);")}
    const ${ACC} ls = log(s);
${rows.each(FORM, LANES, lambda i: f"{T.store}(y, {at(i)}, {load(i)} - m - ls);")}
% else:
${rows.fold(FORM, LANES, ACC, "s", T.zero, lambda a, b: f"{a} + {b}", lambda i: f"const {ACC} e = exp({load(i)} - m);")}
    const ${ACC} r = 1 / s;
${rows.each(FORM, LANES, lambda i: f"{T.store}(y, {at(i)}, exp({load(i)} - m) * r);")}
% endif
${rows.end(FORM)}
}
