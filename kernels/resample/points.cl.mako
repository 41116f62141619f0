## The taps around points of a grid, for the kernels that sample images there and for their gradients.
<%!
    import itertools

    def axes(RANK):
        return "DHW"[3 - RANK:]

    def taps(RANK, MODE):
        """All combinations of the taps of the axes."""
        return list(itertools.product(range({"bilinear": 2, "nearest": 1, "bicubic": 4}[MODE]), repeat=RANK))
%>
## functions: the coordinate of an element for a point outside of [0, n - 1]; with SLOPE also its derivative
<%def name="functions(ACC, PAD, ALIGN)">\
static inline ${ACC} inside(${ACC} x, const int n, ${ACC}* slope) {
% if PAD == "reflection":
% if ALIGN:
    const ${ACC} low = 0, span = n - 1;
% else:
    const ${ACC} low = -0.5f, span = n;
% endif
    const ${ACC} a = fabs(x - low), rest = span > 0 ? fmod(a, span) : 0;
    const int back = fmod(floor(a / span), (${ACC})2) != 0;
    if (slope) *slope *= span > 0 ? ((x < low) != back ? -1 : 1) : 0;
    x = span > 0 ? low + (back ? span - rest : rest) : 0;
% endif
% if PAD != "zeros":
    if (slope) *slope *= x > 0 && x < n - 1 ? 1 : 0;
    x = fmin(fmax(x, (${ACC})0), (${ACC})(n - 1));      /* a NaN becomes 0 */
% endif
    return x;
}
</%def>
## arrays: for each of the POINTS points and each tap its place in a plane, o<n>, -1 outside of it, and its weight, w<n>; with SLOPES the
## derivatives of the weight by each axis of the grid instead, d<n><axis>. The caller has begin, some, image and points.
<%def name="arrays(T, RANK, MODE, PAD, ALIGN, POINTS, SLOPES=False)">\
<%
    ACC, AXES, ALL = T.acc, axes(RANK), taps(RANK, MODE)
    TAPS = ALL[-1][0] + 1
    weight = lambda tap, by="": " * ".join(f"{'d' if a == by else 'w'}{a}[{k}]" for a, k in zip(AXES, tap))
%>\
% for n in range(len(ALL)):
    int o${n}[${POINTS}];
    ${ACC} ${", ".join(f"d{n}{a}[{POINTS}]" for a in AXES) if SLOPES else f"w{n}[{POINTS}]"};
% endfor
    for (int q = 0; q < some; q++) {
    const long p = begin + q;
% for k, a in enumerate(reversed(AXES)):
    int i${a}[${TAPS}];
    ${ACC} w${a}[${TAPS}]${f", d{a}[{TAPS}], slope{a} = {'' if ALIGN else '0.5f * S' + a}{f'0.5f * (S{a} - 1)' if ALIGN else ''}" if SLOPES else ""};
    {
        const ${ACC} c = ${T.load}(g, (image * points + p) * ${RANK} + ${k});
        ${ACC} at = ${f"(c + 1) * 0.5f * (S{a} - 1)" if ALIGN else f"((c + 1) * S{a} - 1) * 0.5f"};
% if MODE != "bicubic":
        at = inside(at, (int)S${a}, ${f"&slope{a}" if SLOPES else 0});
% endif
% if MODE == "bicubic" and PAD != "zeros":
        at = fabs(at) < 1e9f ? at : -100;                /* what an int holds; each tap is brought inside below */
% else:
        at = at > -4 && at < S${a} + 4 ? at : -100;      /* far outside, infinite or NaN: no tap is inside */
% endif
% if MODE == "nearest":
        i${a}[0] = (int)rint(at);
        w${a}[0] = 1;
% else:
        const ${ACC} down = floor(at), t = at - down;
        ${linear(a, ACC, SLOPES) if MODE == "bilinear" else cubic(a, ACC, SLOPES)}
% endif
    }
% endfor
% for n, tap in enumerate(ALL):
    o${n}[q] = ${" && ".join(f"i{a}[{k}] >= 0 && i{a}[{k}] < S{a}" for a, k in zip(AXES, tap))} ? (int)(${"iD[%d] * SH * SW + " % tap[0] if RANK == 3 else ""}iH[${tap[-2]}] * SW + iW[${tap[-1]}]) : -1;
% if SLOPES:
% for a in AXES:
    d${n}${a}[q] = ${weight(tap, a)};
% endfor
% else:
    w${n}[q] = ${weight(tap)};
% endif
% endfor
    }
</%def>
<%def name="linear(a, ACC, SLOPES)">\
i${a}[0] = (int)down;
        i${a}[1] = (int)down + 1;
        w${a}[0] = 1 - t;
        w${a}[1] = t;
% if SLOPES:
        d${a}[0] = -slope${a};
        d${a}[1] = slope${a};
% endif
</%def>
<%def name="cubic(a, ACC, SLOPES)">\
const ${ACC} A = -0.75f, u = 1 - t;
        w${a}[0] = ((A * (t + 1) - 5 * A) * (t + 1) + 8 * A) * (t + 1) - 4 * A;
        w${a}[1] = ((A + 2) * t - (A + 3)) * t * t + 1;
        w${a}[2] = ((A + 2) * u - (A + 3)) * u * u + 1;
        w${a}[3] = ((A * (u + 1) - 5 * A) * (u + 1) + 8 * A) * (u + 1) - 4 * A;
% if SLOPES:
        d${a}[0] = ((3 * A * (t + 1) - 10 * A) * (t + 1) + 8 * A) * slope${a};
        d${a}[1] = (3 * (A + 2) * t - 2 * (A + 3)) * t * slope${a};
        d${a}[2] = (3 * (A + 2) * u - 2 * (A + 3)) * u * -slope${a};
        d${a}[3] = ((3 * A * (u + 1) - 10 * A) * (u + 1) + 8 * A) * -slope${a};
% endif
        for (int k = 0; k < 4; k++) i${a}[k] = (int)inside(down - 1 + k, (int)S${a}, 0);
</%def>
