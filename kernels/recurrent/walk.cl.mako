## Parts of recurrent/sequence and recurrent/sequence_backward: a product of R rows in local memory with a matrix (4 * FOURS * PARTS rows, VECTORS vectors of
## four columns), step after step. The rows of the matrix are cut into PARTS; a task is one vector of columns over the rows of one part, and task t is that of
## work-item t mod ITEMS. The first HELD fours of rows of each task stay in registers through all steps; AHEAD fours of the others are loaded at a time.
## Sums of each part: part[(p * R + r) * VECTORS + v].
<%def name="locals_(d, A)">\
    __local ${A}4 x4[${d["R"] * d["PARTS"] * d["FOURS"]}], part[${d["PARTS"] * d["R"] * d["VECTORS"]}];
    __local ${A}* x = (__local ${A}*)x4;
    __local const ${A}* sums = (__local const ${A}*)part;
    const int lid = get_local_id(0);
</%def>
<%def name="hold(d, A, matrix)">\
<% V, P, F, total = d["VECTORS"], d["PARTS"], d["FOURS"], d["VECTORS"] * d["PARTS"] %>\
% for b in range(-(-total // d["ITEMS"])):
    const int t${b} = min(lid + ${b * d["ITEMS"]}, ${total - 1}), p${b} = t${b} / ${V};
    __global const ${A}4* restrict m${b} = (__global const ${A}4*)(${matrix}) + p${b} * ${4 * F * V} + t${b} % ${V};
% for k in range(4 * d["HELD"]):
    const ${A}4 w${b}_${k} = m${b}[${k * V}];
% endfor
% endfor
</%def>
<%def name="multiply(d, A)">\
<%
    V, R, P, F, HELD, AHEAD = (d[name] for name in ("VECTORS", "R", "PARTS", "FOURS", "HELD", "AHEAD"))
    LEFT = F - HELD
%>\
% for b in range(-(-V * P // d["ITEMS"])):
        if (lid + ${b * d["ITEMS"]} < ${V * P}) {
            __local const ${A}4* a = x4 + p${b} * ${F};
            ${A}4 ${", ".join(f"s{r} = 0" for r in range(R))};
% for i in range(HELD):
            ${add(R, f"a[{{r}} * {P * F} + {i}]", [f"w{b}_{4 * i + q}" for q in range(4)], A)}
% endfor
% if LEFT >= AHEAD:     # as a loop: compilers would take its loads before that over the steps, and have no registers for them
            #pragma unroll 1
            for (int i = ${HELD}; i < ${HELD + LEFT // AHEAD * AHEAD}; i += ${AHEAD}) {
                __global const ${A}4* restrict m = m${b} + i * ${4 * V};
                ${some(d, A, "m", "a[{r} * %d + i + {i}]" % (P * F), 0, AHEAD)}
            }
% endif
% if LEFT % AHEAD:
            { ${some(d, A, f"m{b}", "a[{r} * %d + {i}]" % (P * F), F - LEFT % AHEAD, LEFT % AHEAD)} }
% endif
% for r in range(R):
            part[(p${b} * ${R} + ${r}) * ${V} + t${b} % ${V}] = s${r};
% endfor
        }
% endfor
</%def>
## ``count`` fours of rows from the memory: all loads, then all additions
<%def name="some(d, A, matrix, state, first, count)">\
% for k in range(4 * count):
                const ${A}4 v${k} = ${matrix}[${(4 * first + k) * d["VECTORS"]}];
% endfor
% for i in range(count):
                ${add(d["R"], state.replace("{i}", str(first + i)), [f"v{4 * i + q}" for q in range(4)], A)}
% endfor
</%def>
<%def name="add(R, state, weights, A)">\
{ const ${A}4 ${", ".join(f"h{r} = {state.format(r=r)}" for r in range(R))};
% for q, w in enumerate(weights):
              ${" ".join(f"s{r} = fma(({A}4)h{r}.s{q}, {w}, s{r});" for r in range(R))}
% endfor
            }\
</%def>
