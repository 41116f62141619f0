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

    def interleaved(a, b, places):
        return f"CLNN_SHUFFLE({a}, {b}, " + ", ".join(f"{i}, {i + 2 * len(places)}" for i in places) + ")"

    def turn(V, E, W, v, t):
        """Statements: piece k of the vectors v0 v1 ... as a square, turned, into t0 t1 ..."""
        low, high = halves(E, W)
        if E == 2:
            return [f"const {V} {t}0 = {interleaved(v + '0', v + '1', low)}, {t}1 = {interleaved(v + '0', v + '1', high)};"]
        lines = [f"const {V} {t}{n}{k} = {interleaved(v + str(k), v + str(k + 2), part)};" for n, part in (("l", low), ("h", high)) for k in (0, 1)]
        return lines + [f"const {V} {t}{2 * j + k} = {interleaved(t + n + '0', t + n + '1', part)};"
                        for j, n in enumerate("lh") for k, part in enumerate((low, high))]

    def steps(E, W):
        """(distance of two vectors, lanes of the first result of both, lanes of the second): elements change places within pieces, then pieces."""
        found, h = [], 1
        while h < E:
            found.append((h, [[r * W + p + q + s + e for p in range(0, W, E) for q in range(0, E // 2, h) for r in (0, 1) for e in range(h)] for s in (0, E // 2)]))
            h *= 2
        while h < W:
            found.append((h, [[r * W + p + e for r in (0, 1) for p in range(s, W, 2 * E) for e in range(E)] for s in (0, E)]))
            h *= 2
        return found

    def square(V, E, W, v):
        """Statements that turn the vectors v0 v1 ... (W of them, pieces of E) where they are, into columns in the order of `columns`."""
        return [f"{{ const {V} lo = CLNN_SHUFFLE({v}{i}, {v}{i + h}, {', '.join(map(str, low))}), "
                f"hi = CLNN_SHUFFLE({v}{i}, {v}{i + h}, {', '.join(map(str, high))}); {v}{i} = lo; {v}{i + h} = hi; }}"
                for h, (low, high) in steps(E, W) for i in range(W) if not i & h]

    def columns(E, W):
        """Which vector holds column 0, 1, ... after `square`."""
        inner, h = [0], 1
        while h < E:
            inner += [c + E // 2 // h for c in inner]
            h *= 2
        return [p + c for p in range(0, W, E) for c in inner]
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
% if many == 4:
        ${V} ${", ".join(f"v{l} = vload{W}(0, (__global const {R}*)(x + xb[{l}]) + {each} * at)" for l in range(W))};
% for line in square(V, E, W, "v"):
        ${line}
% endfor
% for e, column in enumerate(columns(E, W)):
        ${to}_${"ri"[e % each]}[at + ${e // each}] = v${column};
% endfor
% else:
% for j in range(E):
        const ${V} v${j} = (${V})(${", ".join(f"vload{E}(0, (__global const {R}*)(x + xb[{k * E + j}]) + {each} * at)" for k in range(4))});
% endfor
% for line in turn(V, E, W, "v", "t"):
        ${line}
% endfor
% for e in range(E):
        ${to}_${"ri"[e % each]}[at + ${e // each}] = t${e};
% endfor
% endif
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
% if many == 4:
            ${V} ${", ".join(f"v{e} = {left}_{'ri'[e % each]}[at + {e // each}]" for e in range(W))};
% for line in square(V, E, W, "v"):
            ${line}
% endfor
% for l, column in enumerate(columns(E, W)):
            vstore${W}(v${column}, 0, (__global ${R}*)(y + yb[${l}]) + ${each} * at);
% endfor
% else:
            const ${V} ${", ".join(f"v{e} = {left}_{'ri'[e % each]}[at + {e // each}]" for e in range(E))};
% for line in turn(V, E, W, "v", "t"):
            ${line}
% endfor
% for j in range(E):
% for k in range(4):
            vstore${E}(t${j}.s${"".join(f"{k * E + i:x}" for i in range(E))}, 0, (__global ${R}*)(y + yb[${k * E + j}]) + ${each} * at);
% endfor
% endfor
% endif
        }
% endfor
    for (; at < ${length}; at++)
        for (int l = 0; l < some; l++) {
            __global ${R}* to = (__global ${R}*)(y + yb[l]) + ${each} * at;
            ${" ".join(f"to[{i}] = ((__local const {R}*)({left}_{c} + at))[l];" for i, c in enumerate("ri"[:each]))}
        }
</%def>
