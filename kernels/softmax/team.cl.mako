## Rows whose elements P work-items keep, K each, in groups of G (form `team` of rows.cl.mako): what lies beyond the end of a row is read from its last
## element and left out, so that all loads are on their way together. V elements next to each other are read and written as a vector.
<%!
    def place(P, V, slot="slot"):
        """The element of a row that is in `slot`."""
        return f"(lane + {slot} * {P})" if V == 1 else f"((lane + {slot} / {V} * {P}) * {V} + {slot} % {V})"

    C = dict(float32="float", float16="ushort", bfloat16="ushort", float64="double")
%>
<%def name="begin(P, G, K, V, rows)">
    const int lid = get_local_id(0), lane = lid % ${P};
    const long place = (long)get_group_id(0) * ${G // P} + lid / ${P};
    const bool there = place < ${rows};
    const long row = there ? place : 0, base = row * n;
#define row_at row
</%def>
##
<%def name="once(P, G, K, V, T, names)">
% for name in names:
    ${T.acc} kept_${name}[${K}];
#pragma unroll
% if V == 1:
    for (int slot = 0; slot < ${K}; slot++) kept_${name}[slot] = ${T.load}(${name}, base + min(lane + slot * ${P}, (int)n - 1));
% else:
    for (int q = 0; q < ${K // V}; q++) {
        const ${T.c}${V} v = *(__global const ${T.c}${V}*)(${name} + base + min((lane + q * ${P}) * ${V}, (int)n - ${V}));
% for j in range(V):
        { const ${T.c} e = v.s${"%x" % j}; kept_${name}[q * ${V} + ${j}] = ${T.load}(&e, 0); }
% endfor
    }
% endif
% endfor
</%def>
##
<%def name="fold(P, G, K, V, ACC, name, init, combine, element, n)">
<%
    A = min(P, 1 << (P.bit_length() // 2)) if P >= 16 else P        # so many sums of the first step, which all work-items then add up
%>\
    ${ACC} ${"mine_" if P > 1 else ""}${name} = ${init};
#pragma unroll
    for (int slot = 0; slot < ${K}; slot++) {
        const bool inside = ${place(P, V)} < ${n};
        const long i = min((long)${place(P, V)}, ${n} - 1);
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
<%def name="each(P, G, K, V, body, n, stores)">
% if V == 1:
#pragma unroll
    for (int slot = 0; slot < ${K}; slot++) {
        const bool inside = there && lane + slot * ${P} < ${n};
        const long i = min((long)lane + slot * ${P}, ${n} - 1);
        ${body}
    }
% else:
#pragma unroll
    for (int q = 0; q < ${K // V}; q++) {
        const int begin = (lane + q * ${P}) * ${V};
% for dtype, name in stores:
        ${C[dtype]} put_${name}[${V}];
% endfor
#pragma unroll
        for (int j = 0; j < ${V}; j++) {
            const int slot = q * ${V} + j;
            const long i = min((long)begin + j, ${n} - 1);
            ${body}
        }
        if (there && begin < ${n}) {
% for dtype, name in stores:
            *(__global ${C[dtype]}${V}*)(${name} + base + begin) = (${C[dtype]}${V})(${", ".join(f"put_{name}[{j}]" for j in range(V))});
% endfor
        }
    }
% endif
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
##
## The same with many loads on their way at a time, for rows that one group reads: 16 places at a time, the rest four and one at a time.
<%def name="places(LANES, n, body, most=16)">
    long spot = lane;
% for count in (most, 4, 1):
    for (; spot + ${(count - 1) * LANES} < ${n}; spot += ${count * LANES}) {
% if count > 1:
#pragma unroll
% endif
        for (int step = 0; step < ${count}; step++) {
            const long i = spot + step * ${LANES};
            ${body}
        }
    }
% endfor
</%def>
##
<%def name="each_longest(LANES, body, n)">
    {
${places(LANES, n, body, 8)}
    }
</%def>
##
<%def name="fold_longest(LANES, ACC, name, init, combine, element, n)">
    __local ${ACC} part_${name}[${LANES}];
    ${ACC} mine_${name} = ${init};
    {
${places(LANES, n, element + f" mine_{name} = {combine(f'mine_{name}', 'e')};")}
    }
    part_${name}[lane] = mine_${name};
    for (int s = ${LANES // 2}; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < s) part_${name}[lane] = ${combine(f"part_{name}[lane]", f"part_{name}[lane + s]")};
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const ${ACC} ${name} = part_${name}[0];
</%def>
