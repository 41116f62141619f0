<%inherit file="/base.cl.mako"/>\
## Running sums, products or log-sum-exps along the middle dimension of X (outer, n, inner), in fixed blocks: the order of operations
## depends on the sizes only, so every device gives the same sums and products.
##   PHASE whole   Y = scan of X (one part)
##   PHASE total   Y (outer, parts, inner) = result of each part of PART elements, in the accumulate type
##   PHASE apply   Y = scan of X, each part continued from Z[part - 1], the scanned totals
##
## Geometry: global (inner, outer, parts), or with COLUMNS > 1 (inner / COLUMNS, outer, parts) at local size 1
##
## parameter  values                meaning
## T, R       dtype rows            of X, of Y
## OP         sum prod logaddexp    how elements combine
## REVERSE    bool                  from the last element to the first
## PHASE      see above
## COLUMNS    1..                   columns per work-item, as an inner loop that compilers vectorise
<% A = T.acc %>
% if OP == "sum":
#define COMBINE(a, b) ((a) + (b))
% elif OP == "prod":
#define COMBINE(a, b) ((a) * (b))
% else:
#define COMBINE(a, b) ((a) == (b) && isinf(a) ? (a) : fmax(a, b) + clnn_log1p(exp(-fabs((a) - (b)))))
% endif
__kernel void scan_cumulate(IN(${T.c}, X), IN(${A}, Z), OUT(${R.c}, Y), const long outer, const long n, const long inner, const long part,
                            const long parts) {
    PTR_IN(${T.c}, X);
    PTR_IN(${A}, Z);
    PTR_OUT(${R.c}, Y);
    const long i = get_global_id(0)${" * %d" % COLUMNS if COLUMNS > 1 else ""}, o = get_global_id(1), p = get_global_id(2);
    if (i >= inner || o >= outer) return;
    const long first = p * part;
    const int m = (int)(min(n, first + part) - first);
    const long step = ${"-inner" if REVERSE else "inner"};
    long at = (o * n + ${"n - 1 - first" if REVERSE else "first"}) * inner + i;
    const long to = (o * parts + p) * inner + i;
% if COLUMNS > 1:
    const int w = (int)min((long)${COLUMNS}, inner - i);
    ${A} run[${COLUMNS}], past[${COLUMNS}];
    for (int c = 0; c < w; c++) {
        run[c] = ${T.load}(X, at + c);
% if PHASE == "apply":
        past[c] = p ? Z[to + c - inner] : 0;
        ${R.store}(Y, at + c, p ? COMBINE(past[c], run[c]) : run[c]);
% elif PHASE == "whole":
        ${R.store}(Y, at + c, run[c]);
% endif
    }
% for full in (True, False):
    ${"if (w == %d)" % COLUMNS if full else "else"} for (int k = 1; k < m; k++) {
        at += step;
        for (int c = 0; c < ${COLUMNS if full else "w"}; c++) {
            const ${A} v = ${T.load}(X, at + c);
            run[c] = COMBINE(run[c], v);
% if PHASE == "apply":
            ${R.store}(Y, at + c, p ? COMBINE(past[c], run[c]) : run[c]);
% elif PHASE == "whole":
            ${R.store}(Y, at + c, run[c]);
% endif
        }
    }
% endfor
% if PHASE == "total":
    for (int c = 0; c < w; c++) ${R.store}(Y, to + c, run[c]);
% endif
% else:
    ${A} run = ${T.load}(X, at);
% if PHASE == "apply":
    const ${A} past = p ? Z[to - inner] : 0;
    ${R.store}(Y, at, p ? COMBINE(past, run) : run);
% elif PHASE == "whole":
    ${R.store}(Y, at, run);
% endif
    for (int k = 1; k < m; k++) {
        at += step;
        const ${A} v = ${T.load}(X, at);
        run = COMBINE(run, v);
% if PHASE == "apply":
        ${R.store}(Y, at, p ? COMBINE(past, run) : run);
% elif PHASE == "whole":
        ${R.store}(Y, at, run);
% endif
    }
% if PHASE == "total":
    ${R.store}(Y, to, run);
% endif
% endif
}
