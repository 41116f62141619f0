<%inherit file="/base.cl.mako"/>\
<%namespace name="walk" file="/recurrent/walk.cl.mako"/>\
## Gradients of recurrent/sequence through all steps, the last first: those of the gates; the weights' follow from them by one product.
##
## act y h c cells as there; dy (T, N, H) gradient of the outputs; dlast (N, H) gradient of the last cell state or unused; w: hidden weights by recurrent/weights (BACK), or as
## they are; dg (T, N, K*H) out: gradient of the input part of the gates; du: of the hidden part (gru); dh, dc (N, H) out: gradients of the first state.
## Geometry and d as in recurrent/sequence.
##
## Parameter  legal values
## T MODE H   as in recurrent/sequence;  LAST  1: dlast is read (lstm);  PACKED  as there, with dhn (N, H) the gradient of the last outputs
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
        IN(${A}, w), OUT(${T.c}, dg), OUT(${T.c}, du), OUT(${T.c}, dh), OUT(${T.c}, dc), ${f"IN(long, starts), IN({T.c}, dhn), " if PACKED else ""}const long4 d) {
    ${walk.locals_(D, A)}
    const long N = d.s1, row = get_group_id(0) * ${R};
    long T = d.s0;
% if PACKED:     # as many steps as the longest sequence of the group has
    for (long low = 0; low < T;) {
        const long mid = (low + T) / 2;
        if (starts_p[starts_o + mid + 1] - starts_p[starts_o + mid] > row) low = mid + 1; else T = mid;
    }
% endif
    ${walk.hold(D, A, "w_p + w_o")}
    for (int i = lid; i < ${R * (WIDTH - GATES * H)}; i += ${ITEMS})     /* the end of each row: nothing else is written there */
        x[i / ${max(1, WIDTH - GATES * H)} * ${WIDTH} + ${GATES * H} + i % ${max(1, WIDTH - GATES * H)}] = 0;
% for q in TURNS:
    const int i${q} = min(lid + ${q * ITEMS}, ${R * H - 1}), r${q} = i${q} / ${H}, j${q} = i${q} % ${H};
    const bool live${q} = ${"" if whole(q) else f"lid + {q * ITEMS} < {R * H} && "}row + r${q} < N;
    const long n${q} = min(row + r${q}, N - 1), s${q} = n${q} * ${H} + j${q};
    ${A} back${q} = ${ld("dhn", f"s{q}") if PACKED else "0"}, carry${q} = ${ld("dlast", f"s{q}") if LAST else "0"}, before${q}, d${q}${"".join(f", a{q}_{g}" for g in range(KEPT))};
% if PACKED and MODE != "gru":
    ${A} now${q};
% elif MODE != "gru":     # the state of the step itself, which is the one before of the step that is next
    ${A} now${q} = ${ld("cells" if MODE == "lstm" else "y", f"(d.s2 ? 0 : T - 1) * N * {H} + s{q}")};
% endif
% endfor
    { const long n = 0; ${fetch()} }
    for (long n = 0; n < T; n++) {
        const long step = d.s2 ? n : T - 1 - n, base = ${"starts_p[starts_o + step]" if PACKED else "step * N"};
% if PACKED:
        const long count = starts_p[starts_o + step + 1] - base;
% endif
% for q in TURNS:
        const bool on${q} = live${q}${f" && n{q} < count" if PACKED else ""};
        ${f"if (on{q}) " if PACKED else "" if whole(q) else f"if (lid + {q * ITEMS} < {R * H}) "}{
            const long at = base + n${q};
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
        { ${A} sum = ${f"carry{q}" if MODE == "gru" else "0"};
% for p in range(PARTS):
          sum += sums[(${p * R} + r${q}) * ${4 * VECTORS} + j${q}];
% endfor
          ${f"if (on{q}) " if PACKED else ""}back${q} = sum; }
% endfor
    }
% for q in TURNS:
    if (live${q}) { ${st("dh", f"s{q}", f"back{q}")} ${st("dc", f"s{q}", f"carry{q}") if MODE == "lstm" else ""} }
% endfor
}
<%def name="fetch()">
            const long step = d.s2 ? n : T - 1 - n, earlier = d.s2 ? step + 1 : step - 1;
            const bool begins = n == T - 1;
% if PACKED:
            const long base = starts_p[starts_o + step], count = starts_p[starts_o + step + 1] - base;
            const long past = begins ? 0 : starts_p[starts_o + earlier], left = begins ? 1 : starts_p[starts_o + earlier + 1] - past;
% else:
            const long base = step * N, count = N, past = earlier * N, left = N;
% endif
% for q in TURNS:
            { const long at = base + min(n${q}, count - 1), was = (past + min(n${q}, left - 1)) * ${H} + j${q};
              const bool first = begins${f" || n{q} >= left" if PACKED else ""};
              d${q} = ${ld("dy", f"at * {H} + j{q}")};
% for g in range(KEPT):
              a${q}_${g} = ${ld("act", f"at * {4 * H} + {g * H} + j{q}")};
% endfor
% if PACKED and MODE != "gru":
              now${q} = ${ld("cells" if MODE == "lstm" else "y", f"at * {H} + j{q}")};
% endif
              before${q} = first ? ${dict(lstm=ld("c", f"s{q}"), gru=ld("h", f"s{q}")).get(MODE, "0")} : ${ld("cells" if MODE == "lstm" else "y", "was")}; }
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
            ${'' if PACKED else f'now{q} = before{q};'}
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
            ${'' if PACKED else f'now{q} = before{q};'}
            out[0] = e;
            ${grads(q, "dg", ("e",))}
% endif
</%def>
