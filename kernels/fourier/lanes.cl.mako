## Rows to lanes of vectors and back, for fourier/rows: element e of W rows becomes one vector, in squares of 16-byte pieces (a transpose of whole vectors
## needs more moves between the quarters of a register, which is what they cost most), four pieces of a row at a time: rows whose distance is a power of 2
## share few places of the first cache, so a line should not be needed twice.
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
% for many in (4, 1):
    for (; at + ${many * E // each} <= ${length}; at += ${many * E // each}) {
% if many == 4:
% for l in range(W):
        FETCH((__global const ${R}*)(x + xb[${l}] + next) + ${each} * at);
% if out:
        FETCH((__global const ${R}*)(y + yb[${l}]) + ${out} * at);
% endif
% endfor
% endif
% for j in range(E):
% for c in range(many):
        const ${V} v${c}_${j} = (${V})(${", ".join(f"vload{E}(0, (__global const {R}*)(x + xb[{k * E + j}]) + {each} * at + {c * E})" for k in range(4))});
% endfor
% endfor
% for c in range(many):
% for line in turn(V, E, W, f"v{c}_", f"t{c}_"):
        ${line}
% endfor
% for e in range(E):
        ${to}_${"ri"[e % each]}[at + ${(c * E + e) // each}] = t${c}_${e};
% endfor
% endfor
    }
% endfor
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
% for many in (4, 1):
    if (some == ${W})
        for (; at + ${many * E // each} <= ${length}; at += ${many * E // each}) {
% for c in range(many):
% for e in range(E):
            const ${V} v${c}_${e} = ${left}_${"ri"[e % each]}[at + ${(c * E + e) // each}];
% endfor
% for line in turn(V, E, W, f"v{c}_", f"t{c}_"):
            ${line}
% endfor
% endfor
% for j in range(E):
% for k in range(4):
% for c in range(many):
            vstore${E}(t${c}_${j}.s${"".join(f"{k * E + i:x}" for i in range(E))}, 0, (__global ${R}*)(y + yb[${k * E + j}]) + ${each} * at + ${c * E});
% endfor
% endfor
% endfor
        }
% endfor
    for (; at < ${length}; at++)
        for (int l = 0; l < some; l++) {
            __global ${R}* to = (__global ${R}*)(y + yb[l]) + ${each} * at;
            ${" ".join(f"to[{i}] = ((__local const {R}*)({left}_{c} + at))[l];" for i, c in enumerate("ri"[:each]))}
        }
</%def>
