<%inherit file="/base.cl.mako"/>\
<%namespace name="walk" file="/recurrent/walk.cl.mako"/>\
## Gradients of recurrent/sequence through all steps, the last first: those of the gates; the weights' follow from them by one product.
##
## act y h c cells as there; dy (T, N, H) gradient of the outputs; dlast (N, H) gradient of the last cell state or unused; w: hidden weights by recurrent/weights (BACK), or as
## they are; dg (T, N, K*H) out: gradient of the input part of the gates; du: of the hidden part (gru); dh, dc (N, H) out: gradients of the first state.
## Geometry and d as in recurrent/sequence.
##
## Parameter  legal values
## T MODE H   as in recurrent/sequence;  LAST  1: dlast is read (lstm)
## R ITEMS VECTORS PARTS FOURS HELD AHEAD  as in recurrent/walk; the rows of the matrix are the gates
<%
    A, GATES = T.acc, dict(lstm=4, gru=3).get(MODE, 1)
    D = dict(R=R, ITEMS=ITEMS, VECTORS=VECTORS, PARTS=PARTS, FOURS=FOURS, HELD=HELD, AHEAD=AHEAD)
    WIDTH, TURNS = PARTS * FOURS * 4, range(-(-R * H // ITEMS))
    ld = lambda p, i: f"{T.load}({p}_p, {p}_o + {i})"
    st = lambda p, i, v: f"{T.store}({p}_p, {p}_o + {i}, {v});"
    whole = lambda q: (q + 1) * ITEMS <= R * H
    KEPT = dict(lstm=4, gru=4).get(MODE, 0)
%>\
__kernel __attribute__((reqd_work_group_size(${ITEMS}, 1, 1)))
void recurrent_sequence_backward(IN(${T.c}, act), IN(${T.c}, y), IN(${T.c}, h), IN(${T.c}, c), IN(${T.c}, cells), IN(${T.c}, dy), IN(${T.c}, dlast),
        IN(${A}, w), OUT(${T.c}, dg), OUT(${T.c}, du), OUT(${T.c}, dh), OUT(${T.c}, dc), const long4 d) {
    ${walk.locals_(D, A)}
    const long T = d.s0, N = d.s1, row = get_group_id(0) * ${R};
    ${walk.hold(D, A, "w_p + w_o")}
    for (int i = lid; i < ${R * (WIDTH - GATES * H)}; i += ${ITEMS})     /* the end of each row: nothing else is written there */
        x[i / ${max(1, WIDTH - GATES * H)} * ${WIDTH} + ${GATES * H} + i % ${max(1, WIDTH - GATES * H)}] = 0;
% for q in TURNS:
    const int i${q} = min(lid + ${q * ITEMS}, ${R * H - 1}), r${q} = i${q} / ${H}, j${q} = i${q} % ${H};
    const bool live${q} = ${"" if whole(q) else f"lid + {q * ITEMS} < {R * H} && "}row + r${q} < N;
    const long n${q} = min(row + r${q}, N - 1), s${q} = n${q} * ${H} + j${q};
    ${A} back${q} = 0, carry${q} = ${ld("dlast", f"s{q}") if LAST else "0"}, before${q}, d${q}${"".join(f", a{q}_{g}" for g in range(KEPT))};
% if MODE != "gru":     # the state of the step itself, which is the one before of the step that is next
    ${A} now${q} = ${ld("cells" if MODE == "lstm" else "y", f"(d.s2 ? 0 : T - 1) * N * {H} + s{q}")};
% endif
% endfor
    { const long n = 0; ${fetch()} }
    for (long n = 0; n < T; n++) {
        const long step = d.s2 ? n : T - 1 - n;
% for q in TURNS:
        ${"{" if whole(q) else f"if (lid + {q * ITEMS} < {R * H}) " + "{"}
            const long at = step * N + n${q};
            const ${A} g = d${q} + back${q};
            __local ${A}* out = x + r${q} * ${WIDTH} + j${q};
            ${cell(q)}
        }
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        if (n + 1 < T) {        /* what the next step needs, asked for before the product */
            const long after = n + 1;
            { const long n = after; ${fetch()} }
        }
        ${walk.multiply(D, A)}
        barrier(CLK_LOCAL_MEM_FENCE);
% for q in TURNS:
        back${q} = ${f"carry{q}" if MODE == "gru" else "0"};
% for p in range(PARTS):
        back${q} += sums[(${p * R} + r${q}) * ${4 * VECTORS} + j${q}];
% endfor
% endfor
    }
% for q in TURNS:
    if (live${q}) { ${st("dh", f"s{q}", f"back{q}")} ${st("dc", f"s{q}", f"carry{q}") if MODE == "lstm" else ""} }
% endfor
}
<%def name="fetch()">
            const long step = d.s2 ? n : T - 1 - n, earlier = d.s2 ? step + 1 : step - 1;
            const bool first = n == T - 1;
% for q in TURNS:
            d${q} = ${ld("dy", f"step * N * {H} + s{q}")};
% for g in range(KEPT):
            a${q}_${g} = ${ld("act", f"(step * N + n{q}) * {4 * H} + {g * H} + j{q}")};
% endfor
% if MODE == "lstm":
            before${q} = first ? ${ld("c", f"s{q}")} : ${ld("cells", f"earlier * N * {H} + s{q}")};
% elif MODE == "gru":
            before${q} = first ? ${ld("h", f"s{q}")} : ${ld("y", f"earlier * N * {H} + s{q}")};
% else:
            before${q} = first ? 0 : ${ld("y", f"earlier * N * {H} + s{q}")};
% endif
% endfor
</%def>
<%def name="grads(q, target, names)">
            if (live${q}) {
% for g, name in enumerate(names):
                ${st(target, f"at * {GATES * H} + {g * H} + j{q}", name)}
% endfor
            }
</%def>
<%def name="cell(q)">
% if MODE == "lstm":
            const ${A} in = a${q}_0, forget = a${q}_1, new = a${q}_2, o = a${q}_3, t = clnn_tanh(now${q}), e = carry${q} + g * o * (1 - t * t);
            const ${A} d0 = e * new * in * (1 - in), d1 = e * before${q} * forget * (1 - forget), d2 = e * in * (1 - new * new), d3 = g * t * o * (1 - o);
            carry${q} = e * forget;
            now${q} = before${q};
            ${" ".join(f"out[{i * H}] = d{i};" for i in range(4))}
            ${grads(q, "dg", ("d0", "d1", "d2", "d3"))}
% elif MODE == "gru":
            const ${A} r = a${q}_0, z = a${q}_1, m = a${q}_2, dm = g * (1 - z) * (1 - m * m), dz = g * (before${q} - m) * z * (1 - z);
            const ${A} dr = dm * a${q}_3 * r * (1 - r), dq = dm * r;
            carry${q} = g * z;
            out[0] = dr; out[${H}] = dz; out[${2 * H}] = dq;
            ${grads(q, "dg", ("dr", "dz", "dm"))}
            ${grads(q, "du", ("dr", "dz", "dq"))}
% else:
            const ${A} v = now${q}, e = ${"g * (1 - v * v)" if MODE == "tanh" else "v > 0 ? g : 0"};
            now${q} = before${q};
            out[0] = e;
            ${grads(q, "dg", ("e",))}
% endif
</%def>
