## Transforms of the short lengths that a pass of fourier/rows is made of, as statements over named variables (parts end in r and i).
##
## module.butterfly(r, F, T)   the transform of length r (2 3 4 5 7 8 11 13 16) from a0 a1 ... to t0 t1 ... of the C type F; T: dtype row of the parts
<%!
    import math

    def literal(value, T):
        return repr(float(value)) + ("f" if T.acc == "float" else "")

    def four(a, t, F):
        """Statements of a transform of length 4 from the names ``a`` to the names ``t``."""
        n = "n" + t[0]
        lines = []
        for k, (x, sign, y) in enumerate([(a[0], "+", a[2]), (a[0], "-", a[2]), (a[1], "+", a[3]), (a[1], "-", a[3])]):
            lines += [f"const {F} {n}{k}{c} = {x}{c} {sign} {y}{c};" for c in "ri"]
        lines += [f"const {F} {t[0]}{c} = {n}0{c} + {n}2{c}, {t[2]}{c} = {n}0{c} - {n}2{c};" for c in "ri"]
        return lines + [f"const {F} {t[1]}r = {n}1r + {n}3i, {t[1]}i = {n}1i - {n}3r, {t[3]}r = {n}1r - {n}3i, {t[3]}i = {n}1i + {n}3r;"]

    def eight(F, T):
        lines = four(["a0", "a2", "a4", "a6"], ["e0", "e1", "e2", "e3"], F) + four(["a1", "a3", "a5", "a7"], ["o0", "o1", "o2", "o3"], F)
        h = literal(math.sqrt(0.5), T)
        turned = [("o0r", "o0i"), (f"{h} * (o1r + o1i)", f"{h} * (o1i - o1r)"), ("o2i", "-o2r"), (f"{h} * (o3i - o3r)", f"-{h} * (o3r + o3i)")]
        for k, (re, im) in enumerate(turned):
            lines += [f"const {F} u{k}r = {re}, u{k}i = {im};",
                      f"const {F} t{k}r = e{k}r + u{k}r, t{k}i = e{k}i + u{k}i, t{k + 4}r = e{k}r - u{k}r, t{k + 4}i = e{k}i - u{k}i;"]
        return lines

    def sixteen(F, T):
        """Four transforms of length 4 over every fourth number, turned, and four over what they give."""
        lines = []
        for j in range(4):
            lines += four([f"a{j + 4 * m}" for m in range(4)], [f"g{j}{k}" for k in range(4)], F)
        for j in (1, 2, 3):
            for k in (1, 2, 3):
                (re, im), a = _turned(f"g{j}{k}", j * k, T), f"h{j}{k}"
                lines.append(f"const {F} {a}r = {re}, {a}i = {im};")
        for k in range(4):
            lines += four([f"{'h' if j * k else 'g'}{j}{k}" for j in range(4)], [f"t{k + 4 * m}" for m in range(4)], F)
        return lines

    def _turned(a, e, T):
        """The parts of the number ``a`` times exp(-2 pi i e / 16)."""
        h, c, s = (literal(v, T) for v in (math.sqrt(0.5), math.cos(2 * math.pi * e / 16), math.sin(2 * math.pi * e / 16)))
        special = {4: (f"{a}i", f"-{a}r"), 2: (f"{h} * ({a}r + {a}i)", f"{h} * ({a}i - {a}r)"), 6: (f"{h} * ({a}i - {a}r)", f"-{h} * ({a}r + {a}i)")}
        return special.get(e) or (f"{c} * {a}r + {s} * {a}i", f"{c} * {a}i - {s} * {a}r")

    def odd(r, F, T):
        """A transform of odd length: what lies symmetrically is added and subtracted first."""
        half = range(1, r // 2 + 1)
        lines = [f"const {F} p{j}{c} = a{j}{c} + a{r - j}{c}, m{j}{c} = a{j}{c} - a{r - j}{c};" for j in half for c in "ri"]
        lines += [f"const {F} t0{c} = a0{c} + " + " + ".join(f"p{j}{c}" for j in half) + ";" for c in "ri"]
        for k in half:
            cos = [literal(math.cos(2 * math.pi * (j * k % r) / r), T) for j in half]
            sin = [literal(math.sin(2 * math.pi * (j * k % r) / r), T) for j in half]
            for c in "ri":
                lines.append(f"const {F} c{k}{c} = a0{c} + " + " + ".join(f"{v} * p{j}{c}" for v, j in zip(cos, half)) + ";")
                lines.append(f"const {F} s{k}{c} = " + " + ".join(f"{v} * m{j}{c}" for v, j in zip(sin, half)) + ";")
            lines.append(f"const {F} t{k}r = c{k}r + s{k}i, t{k}i = c{k}i - s{k}r, t{r - k}r = c{k}r - s{k}i, t{r - k}i = c{k}i + s{k}r;")
        return lines

    def butterfly(r, F, T):
        """Statements of the transform of length r from a0r, a0i, a1r, ... to t0r, t0i, ..."""
        if r == 2:
            return [f"const {F} t0{c} = a0{c} + a1{c}, t1{c} = a0{c} - a1{c};" for c in "ri"]
        if r == 4:
            return four(["a0", "a1", "a2", "a3"], ["t0", "t1", "t2", "t3"], F)
        return {8: eight, 16: sixteen}[r](F, T) if r in (8, 16) else odd(r, F, T)
%>
