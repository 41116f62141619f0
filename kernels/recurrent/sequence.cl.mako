<%inherit file="/base.cl.mako"/>\
<%namespace name="walk" file="/recurrent/walk.cl.mako"/>\
## All steps of a recurrent layer on a GPU: sequences do not see each other, so a work-group takes R of them through time alone. The state is in local memory; the hidden
## weights are read again in each step, but for those that the work-items hold in registers.
##
## pre (T, N, K*H) input part of the gates with their biases; wt: hidden weights by recurrent/weights; bias (K*H) of the hidden part or unused; h, c (N, H) first state;
## y (T, N, H) outputs; cells (T, N, H) cell states (lstm); act (T, N, A*H) what backward needs: i f g o (lstm), r z n and the hidden part of n (gru), nothing else.
## Geometry: global (ceil(N / R) * ITEMS), local (ITEMS). d = (T, N, reverse, 0).
## PACKED: sequences of unequal lengths, the longest first; the rows of step t are starts[t] to starts[t + 1] - 1 of pre, y, cells and act (R, *), and hn, cn (N, H) get the last states.
##
## Parameter  legal values
## T          dtype row (float);  MODE  lstm | gru | tanh | relu;  H  units;  BIAS  1: bias is added to the hidden part;  PACKED  0 | 1
## R ITEMS VECTORS PARTS FOURS HELD AHEAD  as in recurrent/walk; the rows of the matrix are the units. Local memory R * PARTS * (FOURS + VECTORS) vectors of four
<%
    A, GATES = T.acc, dict(lstm=4, gru=3).get(MODE, 1)
    D = dict(R=R, ITEMS=ITEMS, VECTORS=VECTORS, PARTS=PARTS, FOURS=FOURS, HELD=HELD, AHEAD=AHEAD)
    WIDTH, TURNS, WIDE = PARTS * FOURS * 4, range(-(-R * H // ITEMS)), GATES > 1
    st = lambda p, i, v: f"{T.store}({p}, {i}, {v});"
    rounded = lambda v: f"{T.round_trip}({v})" if T.round_trip else v
    sig = lambda v: f"(1 / (1 + exp(-({v}))))"
    whole = lambda q: (q + 1) * ITEMS <= R * H
%>\
__kernel __attribute__((reqd_work_group_size(${ITEMS}, 1, 1)))
void recurrent_sequence(IN(${T.c}, pre), IN(${A}, wt), IN(${T.c}, bias), IN(${T.c}, h), IN(${T.c}, c), OUT(${T.c}, y), OUT(${T.c}, cells), OUT(${T.c}, act),
        ${f"IN(long, starts), OUT({T.c}, hn), OUT({T.c}, cn), " if PACKED else ""}const long4 d) {
    ${walk.locals_(D, A)}
    const long N = d.s1, row = get_group_id(0) * ${R};
    long T = d.s0;
% if PACKED:     # as many steps as the longest sequence of the group has
    for (long low = 0; low < T;) {
        const long mid = (low + T) / 2;
        if (starts_p[starts_o + mid + 1] - starts_p[starts_o + mid] > row) low = mid + 1; else T = mid;
    }
% endif
    ${walk.hold(D, A, "wt_p + wt_o")}
    for (int i = lid; i < ${R * WIDTH}; i += ${ITEMS})
        x[i] = i % ${WIDTH} < ${H} ? ${T.load}(h_p, h_o + min(row + i / ${WIDTH}, N - 1) * ${H} + i % ${WIDTH}) : 0;
% for q in TURNS:
    const int i${q} = min(lid + ${q * ITEMS}, ${R * H - 1}), r${q} = i${q} / ${H}, j${q} = i${q} % ${H};
    const bool live${q} = ${"" if whole(q) else f"lid + {q * ITEMS} < {R * H} && "}row + r${q} < N;
    const long n${q} = min(row + r${q}, N - 1);
% if MODE in ("lstm", "gru"):
    ${A} c${q} = ${T.load}(${"c_p, c_o" if MODE == "lstm" else "h_p, h_o"} + n${q} * ${H} + j${q});
% endif
% if BIAS:
    const ${A} ${", ".join(f"b{q}_{g} = {T.load}(bias_p, bias_o + {g * H} + j{q})" for g in range(GATES))};
% endif
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long n = 0; n < T; n++) {
        const long step = d.s2 ? T - 1 - n : n;
% if PACKED:
        const long base = starts_p[starts_o + step], count = starts_p[starts_o + step + 1] - base;
% else:
        const long base = step * N, count = N;
% endif
% for q in TURNS:   # asked for before the product, which hides the wait
        const bool on${q} = live${q}${f" && n{q} < count" if PACKED else ""};
        const long at${q} = base + min(n${q}, count - 1), g${q}_at = pre_o + at${q} * ${GATES * H} + j${q};
        const ${A} ${", ".join(f"x{q}_{g} = {T.load}(pre_p, g{q}_at + {g * H})" for g in range(GATES))};
% endfor
        ${walk.multiply(D, A)}
        barrier(CLK_LOCAL_MEM_FENCE);
% for q in TURNS:
        ${"{" if whole(q) else f"if (lid + {q * ITEMS} < {R * H}) " + "{"}
% if WIDE:
            ${A}4 u = part[r${q} * ${VECTORS} + j${q}];
% for p in range(1, PARTS):
            u += part[(${p * R} + r${q}) * ${VECTORS} + j${q}];
% endfor
% else:
            ${A} u = sums[r${q} * ${4 * VECTORS} + j${q}];
% for p in range(1, PARTS):
            u += sums[(${p * R} + r${q}) * ${4 * VECTORS} + j${q}];
% endfor
% endif
% if BIAS:
            ${" ".join(f"u{f'.s{g}' if WIDE else ''} += b{q}_{g};" for g in range(GATES))}
% endif
% if PACKED and GATES > 1:
            const ${A} ended = c${q};
% endif
            ${cell(q)}
            const ${A} kept = ${rounded("v")};
% if PACKED and GATES > 1:
            if (!on${q}) c${q} = ended;
% endif
            ${f"if (on{q}) " if PACKED else ""}x[r${q} * ${WIDTH} + j${q}] = kept;
            if (on${q}) {
                const long o = at${q} * ${H} + j${q};
                ${st("y_p", "y_o + o", "kept")}
% if MODE == "lstm":
                ${st("cells_p", "cells_o + o", f"c{q}")}
% endif
% for g, name in enumerate(dict(lstm=("in", "forget", "new", "out"), gru=("reset", "z", "new", "u.s2")).get(MODE, ())):
                ${st("act_p", f"act_o + at{q} * {4 * H} + {g * H} + j{q}", name)}
% endfor
            }
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% if PACKED:
% for q in TURNS:
    if (live${q}) { ${st("hn_p", f"hn_o + n{q} * {H} + j{q}", f"x[r{q} * {WIDTH} + j{q}]")} ${st("cn_p", f"cn_o + n{q} * {H} + j{q}", f"c{q}") if MODE == "lstm" else ""} }
% endfor
% endif
}
<%def name="cell(q)">\
% if MODE == "lstm":
            const ${A} in = ${sig(f"u.s0 + x{q}_0")}, forget = ${sig(f"u.s1 + x{q}_1")}, new = clnn_tanh(u.s2 + x${q}_2), out = ${sig(f"u.s3 + x{q}_3")};
            c${q} = forget * c${q} + in * new;
            const ${A} v = out * clnn_tanh(c${q});
% elif MODE == "gru":
            const ${A} reset = ${sig(f"u.s0 + x{q}_0")}, z = ${sig(f"u.s1 + x{q}_1")};
            const ${A} new = clnn_tanh(x${q}_2 + reset * u.s2), v = new + z * (c${q} - new);
            c${q} = ${rounded("v")};
% else:
            const ${A} w = u + x${q}_0, v = ${"clnn_tanh(w)" if MODE == "tanh" else "w < 0 ? 0 : w"};
% endif
</%def>
