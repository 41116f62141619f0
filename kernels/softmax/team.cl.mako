## Rows whose elements P work-items keep, K each, in groups of G (form `team` of rows.cl.mako): what lies beyond the end of a row is read from its last
## element and left out, so that all loads are on their way together.
<%def name="begin(P, G, K, rows)">
    const int lid = get_local_id(0), lane = lid % ${P};
    const long place = (long)get_group_id(0) * ${G // P} + lid / ${P};
    const bool there = place < ${rows};
    const long row = there ? place : 0, base = row * n;
#define row_at row
</%def>
##
<%def name="once(P, G, K, T, names)">
% for name in names:
    ${T.acc} kept_${name}[${K}];
#pragma unroll
    for (int slot = 0; slot < ${K}; slot++) kept_${name}[slot] = ${T.load}(${name}, base + min((long)lane + slot * ${P}, n - 1));
% endfor
</%def>
##
<%def name="fold(P, G, K, ACC, name, init, combine, element, n)">
<%
    A = min(P, 1 << (P.bit_length() // 2)) if P >= 16 else P        # so many sums of the first step, which all work-items then add up
%>\
    ${ACC} ${"mine_" if P > 1 else ""}${name} = ${init};
#pragma unroll
    for (int slot = 0; slot < ${K}; slot++) {
        const bool inside = lane + slot * ${P} < ${n};
        const long i = min((long)lane + slot * ${P}, ${n} - 1);
        ${element}
        ${"mine_" if P > 1 else ""}${name} = inside ? ${combine(("mine_" if P > 1 else "") + name, "e")} : ${"mine_" if P > 1 else ""}${name};
    }
% if P > 1:
    __local ${ACC} part_${name}[${G}];
    part_${name}[lid] = mine_${name};
    barrier(CLK_LOCAL_MEM_FENCE);
% if A < P:
    if (lane < ${A}) {
        for (int j = ${A}; j < ${P}; j += ${A}) mine_${name} = ${combine(f"mine_{name}", f"part_{name}[lid + j]")};
        part_${name}[lid] = mine_${name};
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
    ${ACC} ${name} = part_${name}[lid - lane];
    for (int j = 1; j < ${A}; j++) ${name} = ${combine(name, f"part_{name}[lid - lane + j]")};
% endif
</%def>
##
<%def name="each(P, G, K, body, n)">
#pragma unroll
    for (int slot = 0; slot < ${K}; slot++) {
        const bool inside = there && lane + slot * ${P} < ${n};
        const long i = min((long)lane + slot * ${P}, ${n} - 1);
        ${body}
    }
</%def>
##
## The form `group`: one row, however long.
<%def name="fold_long(LANES, ACC, AHEAD, name, init, combine, element, n)">
    __local ${ACC} part_${name}[${LANES}];
    ${ACC} mine_${name} = ${init};
${AHEAD}    for (long i = lane; i < ${n}; i += ${LANES}) {
        ${element}
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
</%def>
