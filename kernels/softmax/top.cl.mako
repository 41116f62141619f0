<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## of: the largest value `m` of a row and the sum `s` of rows_exp(value - m), of values that the statements element(i) leave in `e` (see rows.cl.mako);
## `after(i)` are the statements for each exponential, which long rows do not have: they are read once for both.
<%def name="of(FORM, LANES, ACC, element, after, zero)">
% if rows.attr.long_rows(FORM, LANES):
${once(LANES, ACC, rows.attr.one(element("i"), ACC), zero)}
% else:
${rows.fold(FORM, LANES, ACC, "m", "-INFINITY", lambda a, b: f"({b} > {a} ? {b} : {a})", element)}
${rows.fold(FORM, LANES, ACC, "s", zero, lambda a, b: f"{a} + {b}", after)}
% endif
</%def>
##
## once: both in one pass over a long row. -INFINITY adds nothing, also to itself.
<%def name="once(LANES, ACC, element, zero)">
    __local ${ACC} part_m[${LANES}], part_s[${LANES}];
    {
    ${ACC} m = -INFINITY, s = ${zero};
    long spot = lane;
% for count in (16 if ACC == "float" else 8, 4, 1):
    for (; spot + ${(count - 1) * LANES} < n; spot += ${count * LANES}) {
        ${ACC} values[${count}], most = m;
#pragma unroll
        for (int step = 0; step < ${count}; step++) { const long i = spot + step * ${LANES}; ${element} values[step] = e; }
#pragma unroll
        for (int step = 0; step < ${count}; step++) most = values[step] > most ? values[step] : most;
        if (most > m) s *= rows_exp(m - most);
        m = most;
#pragma unroll
        for (int step = 0; step < ${count}; step++) s += values[step] == -INFINITY ? ${zero} : rows_exp(values[step] - m);
    }
% endfor
    part_m[lane] = m;
    part_s[lane] = s;
    }
    for (int l = ${LANES // 2}; l > 0; l >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < l) {
            const ${ACC} a = part_m[lane], b = part_m[lane + l], most = b > a ? b : a;
            part_s[lane] = (a == most ? part_s[lane] : part_s[lane] * rows_exp(a - most)) + (b == most ? part_s[lane + l] : part_s[lane + l] * rows_exp(b - most));
            part_m[lane] = most;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const ${ACC} m = part_m[0], s = part_s[0];
</%def>
