## Work on rows of n elements, in the three forms that drivers like. A template calls begin, any number of fold and each, then end.
##   loop   local size 1: a work-item takes `chunk` rows one after another; LANES partial results keep inner loops vectorised (PoCL)
##   group  one work-group of LANES work-items per row, combined in local memory (GPUs, Intel)
##   item   one work-item per row: short rows, and columns, where neighbouring work-items read neighbouring addresses
## In each form partial results are folded in a fixed order.
<%def name="begin(FORM, rows='rows')">
% if FORM == "loop":
    const long row_begin = get_global_id(0) * chunk, row_end = min(${rows}, row_begin + chunk);
    for (long row = row_begin; row < row_end; row++) {
% elif FORM == "group":
    const int lane = get_local_id(0);
    const long row = get_group_id(0);
% else:
    const long row = get_global_id(0);
    if (row >= ${rows}) return;
% endif
</%def>
<%def name="end(FORM)">
% if FORM == "loop":
    }
% endif
</%def>
## fold: `name` becomes combine over i of the value that the statements element(i) leave in `e`.
<%def name="fold(FORM, LANES, ACC, name, init, combine, element, n='n')">
% if FORM == "loop" and LANES > 1:
    ${ACC} part_${name}[${LANES}];
    for (int l = 0; l < ${LANES}; l++) part_${name}[l] = ${init};
    {
        long i0 = 0;
        for (; i0 + ${LANES} <= ${n}; i0 += ${LANES})
            for (int l = 0; l < ${LANES}; l++) {
                ${element("(i0 + l)")}
                part_${name}[l] = ${combine(f"part_{name}[l]", "e")};
            }
        for (int l = 0; l < (int)(${n} - i0); l++) {
            ${element("(i0 + l)")}
            part_${name}[l] = ${combine(f"part_{name}[l]", "e")};
        }
    }
    for (int s = ${LANES // 2}; s > 0; s >>= 1)
        for (int l = 0; l < s; l++) part_${name}[l] = ${combine(f"part_{name}[l]", f"part_{name}[l + s]")};
    const ${ACC} ${name} = part_${name}[0];
% elif FORM == "group":
    __local ${ACC} part_${name}[${LANES}];
    ${ACC} mine_${name} = ${init};
    for (long i = lane; i < ${n}; i += ${LANES}) {
        ${element("i")}
        mine_${name} = ${combine(f"mine_{name}", "e")};
    }
    part_${name}[lane] = mine_${name};
    barrier(CLK_LOCAL_MEM_FENCE);
    <% s = LANES // 2 %>
% while s > 0:
    if (lane < ${s}) part_${name}[lane] = ${combine(f"part_{name}[lane]", f"part_{name}[lane + {s}]")};
    barrier(CLK_LOCAL_MEM_FENCE);
    <% s //= 2 %>
% endwhile
    const ${ACC} ${name} = part_${name}[0];
% else:
    ${ACC} ${name} = ${init};
    for (long i = 0; i < ${n}; i++) {
        ${element("i")}
        ${name} = ${combine(name, "e")};
    }
% endif
</%def>
## each: the statements body(i) for every i of the row.
<%def name="each(FORM, LANES, body, n='n')">
% if FORM == "group":
    for (long i = lane; i < ${n}; i += ${LANES}) {
        ${body("i")}
    }
% else:
    for (int i = 0; i < (int)${n}; i++) {
        ${body("i")}
    }
% endif
</%def>
