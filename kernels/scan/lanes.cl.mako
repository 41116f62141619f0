## Moving along the lanes of a vector, for scans in log2 steps.
##
## steps(W)                                   1, 2, 4 ... W / 2
## shifted(v, A, W, s, fill, REVERSE)         the vector v of W lanes of type A moved on by s lanes (towards lane 0 with REVERSE), `fill` coming in
## gathered(names, A, W, sources, fill)       the vector whose lane k is lane sources[k] of the vectors called names + "0".. in a row; `fill` for None
## places(COUNT, W, source)                    per vector of COUNT the places source(f) that its lanes come from
## moved(COUNT, W, s, rows, REVERSE)           the places s steps of a scan before, in sequences of COUNT (rows) or a block of W rows; None: it begins later
<%!
    def places(COUNT, W, source):
        return [[source(f) for f in range(q * W, (q + 1) * W)] for q in range(COUNT)]

    def moved(COUNT, W, s, rows, REVERSE):
        s = -s if REVERSE else s
        if rows:
            return places(COUNT, W, lambda f: f - s if 0 <= f % COUNT - s < COUNT else None)
        return places(COUNT, W, lambda f: f - s * COUNT if 0 <= f - s * COUNT < COUNT * W else None)

    def gathered(names, A, W, sources, fill):
        return f"({A}{W})({', '.join(fill if at is None else f'{names}{at // W}.s{at % W:x}' for at in sources)})"

    def steps(W):
        return [1 << k for k in range(W.bit_length() - 1)]

    def shifted(v, A, W, s, fill, REVERSE=False):
        names = ["%x" % l for l in range(W)]
        kept = f"{v}.s{''.join(names[s:] if REVERSE else names[:-s])}" if W - s in (2, 4, 8) else ", ".join(
            f"{v}.s{l}" for l in (names[s:] if REVERSE else names[:-s]))
        fills = ", ".join([fill] * s)
        return f"({A}{W})({kept}, {fills})" if REVERSE else f"({A}{W})({fills}, {kept})"
%>
