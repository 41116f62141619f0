## Moving along the lanes of a vector, for scans in log2 steps.
##
## steps(W)                                   1, 2, 4 ... W / 2
## shifted(v, A, W, s, fill, REVERSE)         the vector v of W lanes of type A moved on by s lanes (towards lane 0 with REVERSE), `fill` coming in
## gathered(names, A, W, sources, fill)       the vector whose lane k is lane sources[k] of the vectors called names + "0".. in a row; `fill` for None
<%!
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
