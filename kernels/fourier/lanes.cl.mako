## Rows to lanes of vectors and back, for fourier/rows: element e of W rows becomes one vector, in squares of 16-byte pieces (a transpose of whole vectors
## needs more moves between the quarters of a register, which is what they cost most).
##
## def                                           gives
## rows_to_lanes(T, W, each, length, to, out)    the W rows at x + xb[l], each of `length` elements of `each` parts, into to_r (and to_i); asks for the lines of
##                                               the next W rows and of those at y + yb[l], where as many elements have `out` parts (0: none)
## lanes_to_rows(T, W, each, length, left, to)   left_r (and left_i) into the rows at y + yb[l]; only the first `some` of them
<%!
    def halves(E, W):
        """Lanes of the first and of the second half of each piece."""
        return [[b + i for b in range(0, W, E) for i in part] for part in (range(E // 2), range(E // 2, E))]

    def interleaved(V, a, b, places):
        return f"({V})(" + ", ".join(f"{n}.s{i:x}" for i in places for n in (a, b)) + ")"

    def turn(V, E, W, v, t):
        """Statements: piece k of the vectors v0 v1 ... as a square, turned, into t0 t1 ..."""
        low, high = halves(E, W)
        if E == 2:
            return [f"const {V} {t}0 = {interleaved(V, v + '0', v + '1', low)}, {t}1 = {interleaved(V, v + '0', v + '1', high)};"]
        lines = [f"const {V} {t}{n}{k} = {interleaved(V, v + str(k), v + str(k + 2), part)};" for n, part in (("l", low), ("h", high)) for k in (0, 1)]
        return lines + [f"const {V} {t}{2 * j + k} = {interleaved(V, t + n + '0', t + n + '1', part)};"
                        for j, n in enumerate("lh") for k, part in enumerate((low, high))]
%>
<%def name="rows_to_lanes(T, W, each, length, to, out)">
<%
    R, V = T.acc, f"{T.acc}{W}"
    E = W // 4
%>\
    {
    int at = 0;
    const long next = ${W} * (xb[1] - xb[0]);
    for (; at + ${E // each} <= ${length}; at += ${E // each}) {
        if ((at & ${W // each - 1}) == 0) {
% for l in range(W):
            FETCH((__global const ${R}*)(x + xb[${l}] + next) + ${each} * at);
% if out:
            FETCH((__global const ${R}*)(y + yb[${l}]) + ${out} * at);
% endif
% endfor
        }
% for j in range(E):
        const ${V} v${j} = (${V})(${", ".join(f"vload{E}(0, (__global const {R}*)(x + xb[{k * E + j}]) + {each} * at)" for k in range(4))});
% endfor
% for line in turn(V, E, W, "v", "t"):
        ${line}
% endfor
% for e in range(E):
        ${to}_${"ri"[e % each]}[at + ${e // each}] = t${e};
% endfor
    }
    for (; at < ${length}; at++)
        for (int l = 0; l < ${W}; l++) {
            __global const ${R}* from = (__global const ${R}*)(x + xb[l]) + ${each} * at;
            ${" ".join(f"((__local {R}*)({to}_{c} + at))[l] = from[{i}];" for i, c in enumerate("ri"[:each]))}
        }
    }
</%def>
<%def name="lanes_to_rows(T, W, each, length, left)">
<%
    R, V = T.acc, f"{T.acc}{W}"
    E = W // 4
%>\
    int at = 0;
    if (some == ${W})
        for (; at + ${E // each} <= ${length}; at += ${E // each}) {
% for e in range(E):
            const ${V} v${e} = ${left}_${"ri"[e % each]}[at + ${e // each}];
% endfor
% for line in turn(V, E, W, "v", "t"):
            ${line}
% endfor
% for j in range(E):
% for k in range(4):
            vstore${E}(t${j}.s${"".join(f"{k * E + i:x}" for i in range(E))}, 0, (__global ${R}*)(y + yb[${k * E + j}]) + ${each} * at);
% endfor
% endfor
        }
    for (; at < ${length}; at++)
        for (int l = 0; l < some; l++) {
            __global ${R}* to = (__global ${R}*)(y + yb[l]) + ${each} * at;
            ${" ".join(f"to[{i}] = ((__local const {R}*)({left}_{c} + at))[l];" for i, c in enumerate("ri"[:each]))}
        }
</%def>
