<%inherit file="/base.cl.mako"/>\
<%namespace name="access" file="/fourier/access.cl.mako"/>\
<%namespace name="turned" file="/fourier/lanes.cl.mako"/>\
<%namespace name="halves" file="/fourier/halves.cl.mako"/>\
<%namespace name="short" file="/fourier/short.cl.mako"/>\
## Discrete Fourier transforms of many sequences of one length: y[k] = scale * sum over j of x[j] * exp(-2 pi i j k / N), or with + i where `back` is 1.
##
## Sequence number t = (o * A + a) * I + i starts at o * xo + a * xa + i * xi in x and goes on in steps of xs; likewise in y. Stockham's self-sorting
## order: pass after pass of radix r takes what lies N / r apart and writes it side by side, so nothing is reordered at the end. The backward transform is
## the forward one with real and imaginary parts exchanged on both sides. Passes exchange numbers in local memory; the first reads x, the last writes y.
## An even number of reals is done as half as many complex ones, the pairs of neighbours: `split` parts their transform, or joins it before the way back.
## A length with larger primes is a convolution with a chirp of a convenient length M (Bluestein 1970): forward, times the transform of the chirp, and back.
##
## roots (N)     exp(-2 pi i j / N), rounded once from double; with CHIRP of M
## turns (N, I / span)  what results are multiplied by with TURN: the middle step of a longer transform made of two
##       (N + M)        with CHIRP: exp(-pi i j j / N), then the transform of what it is convolved with
##
## Geometry: W lanes: global (ceil(count / W)), local 1: a work-item does W sequences in the lanes of vectors (CPUs).
##           SPANS: global (count / I * `runs`): a work-item does a share of the I sequences that lie side by side, the last W of which may overlap others of its.
##           W = 1: global (ceil(count / C) * local), local a multiple of C: a work-group does C sequences, a work-item parts of one of them.
##
## Parameter  legal values
## T          dtype row of the parts: float32 or float64
## N          at least 2, at most what local memory holds: 4 N max(W, C) numbers, with W = 1 and a 32nd more, so that strides meet all of its banks
## RADICES    factors in the order of the passes, of 2 3 4 5 7 8 11 13: of N, of N / 2 with HALF, of M with CHIRP
## CHIRP      M, at least 2 N - 1, in place of N for what local memory holds; else 0; not with HALF, TURN
## FORM       complex; real_in: x is real, y the first N / 2 + 1 results; real_full: all N; real_out: x the first N / 2 + 1 of conjugate symmetric numbers, y real
## HALF       bool: as half as many complex numbers; N even and at least 4, not with complex
## W C        lanes (1 8 16); sequences per work-group (1 2 4 8, 1 where W > 1)
## SPANS      bool: VIN, VOUT, and I, at least W, is no multiple of it; not with TURN any or one
## VIN VOUT   bool: the W sequences of a work-item always lie side by side in x (in y)
## RIN ROUT   bool: the elements of a sequence lie side by side (W > 1): pieces of W rows are turned into lanes in registers
## TURN       none; any; lanes: the W turns of a place lie side by side (span 1); one: they are the same (W divides span)
<%
    R = T.acc
    F = R if W == 1 else f"{R}{W}"
    P = f"{R}2"
    REAL_IN, REAL_OUT = FORM in ("real_in", "real_full"), FORM == "real_out"
    X, Y = (R if REAL_IN else P), (R if REAL_OUT else P)
    H = N // 2
    M, STEP = (H, 2) if HALF else (CHIRP or N, 1)                # length of the complex transform; the step in `roots`
    PASSES = RADICES * 2 if CHIRP else RADICES                   # with CHIRP there and back
    LAST, THERE = len(PASSES) - 1, len(RADICES) - 1
    WIDE = W > 1
    lanes = range(W)
    RESULTS = H + 1 if FORM == "real_in" else N
    PREPARED, UNPARTED = HALF and REAL_OUT, HALF and REAL_IN     # split before the first pass, after the last one
    LEFT = "one" if LAST % 2 == 0 else "two"                     # what the last pass writes to
    SIZES = {"one": M, "two": max(M, H + 1 if REAL_OUT else M)}
    if UNPARTED:
        SIZES[LEFT] = RESULTS

    def at_(index):
        return f"{index}" if WIDE else f"PLACE({index})"

    def powers(r):
        """The turns of a pass that are read; with work-groups the others are products of two of them, as reads of the table jump."""
        return [k for k in range(1, r) if WIDE or r not in (4, 8) or k in (1, 2, 4)]
%>\
<%def name="deliver(at, re, im)">
## what the last pass gives
        {
            const int at = ${at};
% if CHIRP:
            if (at < ${RESULTS}) {
            const ${P} w = turns[at];
            const ${F} cr = ${im} * w.x - ${re} * w.y;         // parts come exchanged from the way back
            ${F} ci = ${im} * w.y + ${re} * w.x;
% if REAL_IN:
            if (at == 0${f" || at == {H}" if N % 2 == 0 else ""}) ci = (${F})(0);         // real, whatever was rounded: angles tell +0 from -0
% endif
            const ${F} re = (${"1" if REAL_OUT else "0" if REAL_IN else "back"} ? ci : cr) * scale;
            const ${F} im = (${"1" if REAL_OUT else "0" if REAL_IN else "back"} ? cr : ci) * scale;
${access.put(LEFT, "at", "re", "im")}
            }
% elif UNPARTED:
            to_r[${at_("at")}] = ${re} * scale;
            to_i[${at_("at")}] = ${im} * scale;
% else:
            ${F} re = (${"1" if REAL_OUT else "0" if REAL_IN else "back"} ? ${im} : ${re}) * scale;
            ${F} im = (${"1" if REAL_OUT else "0" if REAL_IN else "back"} ? ${re} : ${im}) * scale;
% if TURN != "none":
% if TURN == "lanes":
            __global const ${R}* pair = (__global const ${R}*)(turns + (long)at * wide + col[0]);
            const ${F} near = vload${W}(0, pair), far = vload${W}(1, pair), wr = (${F})(near.even, far.even);
            const ${F} wi = (${F})(near.odd, far.odd) * (back ? (${R})-1 : (${R})1);
% elif TURN == "one" or not WIDE:
            const ${P} w = turns[(long)at * wide + col${"[0]" if WIDE else ""}];
            const ${R} wr = w.x, wi = back ? -w.y : w.y;
% else:
            const ${P} ${", ".join(f"w{l} = turns[(long)at * wide + col[{l}]]" for l in lanes)};
            const ${F} wr = (${F})(${", ".join(f"w{l}.x" for l in lanes)}), wi = (${F})(${", ".join(f"w{l}.y" for l in lanes)}) * (back ? (${R})-1 : (${R})1);
% endif
            const ${F} turned = re * wr - im * wi;
            im = re * wi + im * wr;
            re = turned;
% endif
% if RESULTS < N:
            if (at < ${RESULTS})
% endif
            {
${access.put(LEFT, "at", "re", "im")}
            }
% endif
        }
</%def>
<%def name="work(t, r, s, m)">
## one butterfly of pass t
% for j in range(r):
% if t == 0 and CHIRP:
        ${F} a${j}r = (${F})(0), a${j}i = (${F})(0);
        if (p + ${m * j} < ${N}) {
            const ${P} w = turns[p + ${m * j}];
${access.take(f"p + {m * j}", "xr", "xi")}
            const ${F} re = ${"xi" if REAL_OUT else "xr" if REAL_IN else "back ? xi : xr"}, im = ${"xr" if REAL_OUT else "xi" if REAL_IN else "back ? xr : xi"};
            a${j}r = re * w.x - im * w.y;
            a${j}i = re * w.y + im * w.x;
        }
% elif t == 0 and not PREPARED:
${access.take(f"q + {s} * (p + {m * j})", f"x{j}r", f"x{j}i")}
        const ${F} a${j}r = ${f"x{j}i" if REAL_OUT else f"x{j}r" if REAL_IN else f"back ? x{j}i : x{j}r"};
        const ${F} a${j}i = ${f"x{j}r" if REAL_OUT else f"x{j}i" if REAL_IN else f"back ? x{j}r : x{j}i"};
% else:
        const ${F} a${j}r = from_r[${at_(f"(q + {s} * (p + {m * j}))")}], a${j}i = from_i[${at_(f"(q + {s} * (p + {m * j}))")}];
% endif
% endfor
% for line in short.module.butterfly(r, F, T):
        ${line}
% endfor
% for k in range(r):
<% re, im = (f"t{k}r", f"t{k}i") if not k or m == 1 else (f"z{k}r", f"z{k}i") %>\
% if k and m > 1:
        const ${F} z${k}r = t${k}r * w${k}.x - t${k}i * w${k}.y, z${k}i = t${k}r * w${k}.y + t${k}i * w${k}.x;
% endif
% if t == LAST:
${deliver(f"q + {s} * ({r} * p + {k})", re, im)}
% elif t == THERE:
## on the way back parts are exchanged, so that it is the way there
        {
            const int at = q + ${s} * (${r} * p + ${k});
            const ${P} w = turns[${N} + at];
            to_r[${at_("at")}] = ${re} * w.y + ${im} * w.x;
            to_i[${at_("at")}] = ${re} * w.x - ${im} * w.y;
        }
% else:
        to_r[${at_(f"(q + {s} * ({r} * p + {k}))")}] = ${re};
        to_i[${at_(f"(q + {s} * ({r} * p + {k}))")}] = ${im};
% endif
% endfor
</%def>
% if not WIDE:
#define PLACE(k) (((k) * ${C} + c) + (((k) * ${C} + c) >> 5))
% endif
__kernel ${"__attribute__((reqd_work_group_size(1, 1, 1)))" if WIDE else ""}
void fourier_rows(IN(${X}, x), OUT(${Y}, y), IN(${P}, roots), IN(${P}, turns), const long count, const long A, const long I,
                  const long xo, const long xa, const long xi, const long xs, const long yo, const long ya, const long yi, const long ys,
                  const long span, const ${R} scale, const long back, const long runs) {
    PTR_IN(${X}, x);
    PTR_OUT(${Y}, y);
    PTR_IN(${P}, roots);
    PTR_IN(${P}, turns);
% for name, size in SIZES.items():
    __local ${F} ${name}_r[${size * C + (0 if WIDE else size * C // 32 + 1)}], ${name}_i[${size * C + (0 if WIDE else size * C // 32 + 1)}];
% endfor
    const long wide = I / span;
% if SPANS:
    const long blocks = (I + ${W - 1}) / ${W}, rest = get_global_id(0) / runs, share = get_global_id(0) - rest * runs, o = rest < A ? 0 : rest / A, a = rest - o * A;
    const int some = ${W};
    if (rest * I >= count) return;
    for (long block = share * blocks / runs; block < (share + 1) * blocks / runs; block++) {
    const long i = min(block * ${W}, I - ${W}), xb[1] = {o * xo + a * xa + i}, yb[1] = {o * yo + a * ya + i}, col[1] = {i};
% elif WIDE:
    const long first = get_global_id(0) * ${W};
    if (first >= count) return;
    const int some = (int)min((long)${W}, count - first);
    long xb[${W}], yb[${W}], col[${W}];
    for (int l = 0; l < ${1 if VIN and VOUT and TURN != "any" else W}; l++) {
        const long t = min(first + l, count - 1), rest = t < I ? 0 : t / I, i = t - rest * I, o = rest < A ? 0 : rest / A, a = rest - o * A;
        xb[l] = o * xo + a * xa + i * xi;
        yb[l] = o * yo + a * ya + i * yi;
        col[l] = span == 1 ? i : i / span;
    }
% else:
    const int lid = get_local_id(0), c = lid % ${C}, begin = lid / ${C}, step = (int)get_local_size(0) / ${C};
    const long number = min((long)get_group_id(0) * ${C} + c, count - 1), rest = number < I ? 0 : number / I, i = number - rest * I;
    const long o = rest < A ? 0 : A == 1 ? rest : rest / A, a = rest - o * A;
    const long xb = o * xo + a * xa + i * xi, yb = o * yo + a * ya + i * yi, col = span == 1 ? i : i / span;
    const int end = (long)get_group_id(0) * ${C} + c < count ? 0x7fffffff : 0;          /* beyond the last sequence nothing is read or written */
% endif
% if RIN:
${turned.rows_to_lanes(T, W, 1 if REAL_IN and not HALF else 2, H + 1 if REAL_OUT else N if CHIRP else M, "two", 2 if ROUT else 0)}
% endif
% if PREPARED:
${halves.split(LEFT)}
% endif
<% s, m = 1, M %>\
% for t, r in enumerate(PASSES):
<% s, m = (1, M) if t == THERE + 1 else (s, m) %>\
<% m = m // r %>\
    {
        __local ${F}* from_r = ${"one_r" if t % 2 else "two_r"};
        __local ${F}* from_i = ${"one_i" if t % 2 else "two_i"};
        __local ${F}* to_r = ${"two_r" if t % 2 else "one_r"};
        __local ${F}* to_i = ${"two_i" if t % 2 else "one_i"};
% if WIDE:
    for (int p = 0; p < ${m}; p++) {
% for k in range(1, r) if m > 1 else ():
        const ${P} w${k} = roots[p * ${s * k * STEP}];
% endfor
    for (int q = 0; q < ${s}; q++) {
${work(t, r, s, m)}
    }
    }
% else:
    for (int b = begin; b < ${f"min({M // r}, end)" if t in (0, LAST) else M // r}; b += step) {
        const int p = b / ${s}, q = b - p * ${s};
% for k in powers(r) if m > 1 else ():
        const ${P} w${k} = roots[p * ${s * k * STEP}];
% endfor
% for k in [k for k in range(1, r) if k not in powers(r)] if m > 1 else ():
<% low, high = (k % 2, k - k % 2) if k < 4 else (k - 4, 4) %>\
        const ${P} w${k} = (${P})(w${low}.x * w${high}.x - w${low}.y * w${high}.y, w${low}.x * w${high}.y + w${low}.y * w${high}.x);
% endfor
${work(t, r, s, m)}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
    }
<% s = s * r %>\
% endfor
% if UNPARTED:
${halves.split(LEFT)}
% endif
% if ROUT:
${turned.lanes_to_rows(T, W, 1 if REAL_OUT and not HALF else 2, N if CHIRP and REAL_OUT else M if REAL_OUT else RESULTS, LEFT)}
% endif
% if SPANS:
    }
% endif
}
