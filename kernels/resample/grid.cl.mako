<%inherit file="/base.cl.mako"/>\
## Sampling at the points of a grid: y[n, c, p] = sum over the taps around grid[n, p] of their weights times x[n, c, tap].
##
## x (N, C, SD, SH, SW), grid (N, P, RANK) with the coordinate of the last axis first, y (N, C, P), contiguous. SD is 1 for two axes.
## Geometry: global (ceil(P / POINTS), N * groups); a work-item does `chunk` channels of its points.
##
## Parameter  legal values
## T          dtype row (float) of all three
## RANK       2 | 3
## MODE       bilinear nearest bicubic (two axes)
## PAD        zeros border reflection
## POINTS     points of a work-item: 1, or many where the compiler makes vectors of loops: channel by channel it goes over them and stays in one plane
## ALIGN      1: -1 and 1 are the centres of the outermost elements | 0: their outer edges
<%
    import itertools
    ACC = T.acc
    AXES = "HW" if RANK == 2 else "DHW"
    TAPS = {"bilinear": 2, "nearest": 1, "bicubic": 4}[MODE]
    taps = list(itertools.product(range(TAPS), repeat=RANK))
%>\
/* The coordinate of an element for a point outside of [0, n - 1]. */
static inline ${ACC} inside(${ACC} x, const int n) {
% if PAD == "reflection":
% if ALIGN:
    const ${ACC} low = 0, span = n - 1;
% else:
    const ${ACC} low = -0.5f, span = n;
% endif
    const ${ACC} a = fabs(x - low), rest = span > 0 ? fmod(a, span) : 0;
    x = span > 0 ? low + (fmod(floor(a / span), (${ACC})2) == 0 ? rest : span - rest) : 0;
% endif
% if PAD != "zeros":
    x = fmin(fmax(x, (${ACC})0), (${ACC})(n - 1));      /* a NaN becomes 0 */
% endif
    return x;
}

__kernel void grid(IN(${T.c}, x), IN(${T.c}, g), OUT(${T.c}, y), const long points, const long channels, const long groups, const long chunk,
                   const long SD, const long SH, const long SW) {
    PTR_IN(${T.c}, x);
    PTR_IN(${T.c}, g);
    PTR_OUT(${T.c}, y);
    const long begin = get_global_id(0) * ${POINTS}, image = get_global_id(1) / groups, first = get_global_id(1) % groups * chunk;
    if (begin >= points) return;
    const int some = (int)min((long)${POINTS}, points - begin);
    /* The taps of each point: where they lie in a plane, -1 outside of it, and their weights. */
% for n in range(len(taps)):
    int o${n}[${POINTS}];
    ${ACC} w${n}[${POINTS}];
% endfor
    for (int q = 0; q < some; q++) {
    const long p = begin + q;
% for k, a in enumerate(reversed(AXES)):
    int i${a}[${TAPS}];
    ${ACC} w${a}[${TAPS}];
    {
        const ${ACC} c = ${T.load}(g, (image * points + p) * ${RANK} + ${k});
        ${ACC} at = ${f"(c + 1) * 0.5f * (S{a} - 1)" if ALIGN else f"((c + 1) * S{a} - 1) * 0.5f"};
% if MODE != "bicubic":
        at = inside(at, (int)S${a});
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
% if MODE == "bilinear":
        i${a}[0] = (int)down;
        i${a}[1] = (int)down + 1;
        w${a}[0] = 1 - t;
        w${a}[1] = t;
% else:
        const ${ACC} A = -0.75f, u = 1 - t;
        w${a}[0] = ((A * (t + 1) - 5 * A) * (t + 1) + 8 * A) * (t + 1) - 4 * A;
        w${a}[1] = ((A + 2) * t - (A + 3)) * t * t + 1;
        w${a}[2] = ((A + 2) * u - (A + 3)) * u * u + 1;
        w${a}[3] = ((A * (u + 1) - 5 * A) * (u + 1) + 8 * A) * (u + 1) - 4 * A;
        for (int k = 0; k < 4; k++) i${a}[k] = (int)inside(down - 1 + k, (int)S${a});
% endif
% endif
    }
% endfor
% for n, tap in enumerate(taps):
    o${n}[q] = ${" && ".join(f"i{a}[{k}] >= 0 && i{a}[{k}] < S{a}" for a, k in zip(AXES, tap))} ? (int)(${"iD[%d] * SH * SW + " % tap[0] if RANK == 3 else ""}iH[${tap[-2]}] * SW + iW[${tap[-1]}]) : -1;
    w${n}[q] = ${" * ".join(f"w{a}[{k}]" for a, k in zip(AXES, tap))};
% endfor
    }
    const long last = min(channels, first + chunk);
    for (long ch = first; ch < last; ch++) {
        __global const ${T.c}* restrict plane = x + (image * channels + ch) * SD * SH * SW;
        __global ${T.c}* restrict to = y + (image * channels + ch) * points + begin;
        for (int q = 0; q < some; q++) {
            ${ACC} sum = 0;
% for n in range(len(taps)):
            {
                const ${ACC} v = w${n}[q] * ${T.load}(plane, max(o${n}[q], 0));
                sum += o${n}[q] < 0 ? (${ACC})0 : v;
            }
% endfor
            ${T.store}(to, q, sum);
        }
    }
}
