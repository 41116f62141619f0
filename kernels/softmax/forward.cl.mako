<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
<%namespace name="top" file="/softmax/top.cl.mako"/>\
<%namespace name="few" file="/softmax/few.cl.mako"/>\
## y = softmax or log-softmax of x along one dimension: x and y are dense (outer, n, inner).
##
## Parameter  legal values
## T          dtype row of x and y (float)
## FORM       vector | loop | block | few | several | group | team-P-G-K | item | column, see rows.cl.mako
## LANES      1 | 16 | 64; LOG  0 | 1 | 2: with the sum and its logarithm rounded to T, as PyTorch does it on CPUs
## Per row: the largest element m, the sum s of exp(x - m), then exp(x - m) / s, or x - m - log(s).
## Where rows are contiguous, 32- and 64-bit floats keep exp(x - m) in y between the passes, and rows that are worked on together keep it in an array;
## else it is computed again. Long rows ask for the next one meanwhile.
<%
    ACC = T.acc
    TOGETHER, W, TEAM = FORM in rows.attr.TOGETHER, rows.attr.width(ACC), bool(rows.attr.team(FORM))
    KEEP = not LOG and (TOGETHER or TEAM or T.itemsize > 2 and FORM in ("vector", "loop", "group")) and not rows.attr.long_rows(FORM, LANES)
    at = rows.attr.place(FORM)
    load = lambda i: f"LD_{T.name}(x, {at(i)})"
    # per-row values: scalars, or arrays over the rows of a block
    V = rows.attr.value(FORM)
    expo = lambda i: f"rows_exp({load(i)} - {V('m')})"
    aside = few.attr.kept(FORM, W)
    ahead = lambda i: f"FETCH(x + {at(i)} + n); " if FORM == "vector" else ""
    keep = lambda i: "" if not KEEP else "kept_x[slot] = e;" if TEAM else f"vstore{W}(e, 0, {aside(i)});" if TOGETHER else f"ST_{T.name}(y, {at(i)}, e);"
    logarithm = ("clnn_log(%s)" if ACC == "float" else "log(%s)") % (f"{T.round_trip}(s_)" if LOG == 2 else "s_")
    kept = lambda i: f"vload{W}(0, {aside(i)})" if TOGETHER else f"LD_{T.name}({'x' if TEAM else 'y'}, {at(i)})"
%>\
${rows.vectors(FORM, T)}
${rows.expo(FORM, T)}
__kernel ${rows.attr.sized(FORM)}void softmax(IN(${T.c}, x), OUT(${T.c}, y), const long rows, const long n, const long inner, const long chunk) {
    PTR_IN(${T.c}, x);
    PTR_OUT(${T.c}, y);
% if KEEP and TOGETHER:
    ${ACC} kept[${few.attr.room(FORM, W)}];
% endif
${rows.begin(FORM, ACC=ACC)}
${rows.once(FORM, T, "x")}\
${top.of(FORM, LANES, ACC, lambda i: f"const E_T e = {load(i)};", lambda i: ahead(i) + f"const E_T e = {expo(i)}; {keep(i)}", T.zero)}
${rows.each_row(FORM, ACC, "r", (f"{T.round_trip}({logarithm})" if LOG == 2 else logarithm) if LOG else "1 / s_")}
% if KEEP:
${rows.each(FORM, LANES, ACC, lambda i: f"ST_{T.name}(y, {at(i)}, {kept(i)} * {V('r')});",
            None if TOGETHER else lambda i: f"ST_{T.name}(y, {at(i)}, {kept(i)} * (fresh ? (E_T)({V('r')}) : (E_T)1));")}
% elif LOG:
${rows.each(FORM, LANES, ACC, lambda i: f"ST_{T.name}(y, {at(i)}, {load(i)} - {V('m')} - {V('r')});")}
% else:
${rows.each(FORM, LANES, ACC, lambda i: f"ST_{T.name}(y, {at(i)}, {expo(i)} * {V('r')});")}
% endif
${rows.end(FORM)}
}
