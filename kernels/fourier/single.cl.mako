<%inherit file="/base.cl.mako"/>\
<%namespace name="turned" file="/fourier/lanes.cl.mako"/>\
<%namespace name="short" file="/fourier/short.cl.mako"/>\
## Discrete Fourier transforms of rows, one after another, on CPUs: what fourier/rows computes, where a row alone fills vectors and W of them would leave the
## first cache. With M = R W places, of which a vector holds W neighbours, transforms of length R add up whole vectors; what they give is multiplied by turns
## (Gentleman & Sande, 1966) and turned in squares of W x W, so that transforms of length W add up whole vectors, too, and write runs of results.
## An even number N of reals is done as M = N / 2 complex numbers, the pairs of neighbours, with a step before or after.
##
## x, y          (rows, N) complex; (rows, N) real to (rows, N / 2 + 1) or (rows, N) complex, or (rows, N / 2 + 1) complex to (rows, N) real
## roots (R)     exp(-2 pi i j / R)
## turns (R, 2, W)         exp(-2 pi i k l / M), the real parts of a vector before the imaginary ones
## parted (M / 2 / W, 2, W)  exp(-2 pi i k / N) in the same order (with reals)
##
## Geometry: global (ceil(rows / RUN)), local 1
##
## Parameter  legal values
## T          dtype row of the parts: float32 or float64
## M W        length of the complex transform, a multiple of W * W; lanes (8 16)
## RADICES    factors of M / W in the order of the passes, of 2 3 4 5 7 8 11 13 16
## FORM       complex; real_in: the first N / 2 + 1 results; real_full: all N; real_out: from the first N / 2 + 1 of conjugate symmetric numbers
## BACK       bool: the backward transform, which is the forward one with parts exchanged on both sides (only with complex; with real_out always)
<%
    S = T.acc
    V, P = f"{S}{W}", f"{S}2"
    R, LAST = M // W, len(RADICES) - 1
    REAL_IN, REAL_OUT = FORM in ("real_in", "real_full"), FORM == "real_out"
    SWAP = BACK or REAL_OUT
    half = "0.5f" if S == "float" else "0.5"
    LEFT, FREE = ("one", "two") if LAST % 2 == 0 else ("two", "one")
    WIDTHS = {"complex": (2 * M, 2 * M), "real_in": (2 * M, 2 * M + 2), "real_full": (2 * M, 4 * M), "real_out": (2 * M + 2, 2 * M)}[FORM]
    reversed_ = ", ".join(str(l) for l in reversed(range(W)))
    evens, odds = (", ".join(str(2 * l + c) for l in range(W)) for c in (0, 1))
    low, high = (", ".join(f"{l}, {l + W}" for l in part) for part in (range(W // 2), range(W // 2, W)))
%>\
<%def name="parts(at, re, im)">
## W complex numbers of x, from place `at` on
    const ${V} l${re} = vload${W}(0, x + 2 * (${at})), h${re} = vload${W}(0, x + 2 * (${at}) + ${W});
    const ${V} ${re} = CLNN_SHUFFLE(l${re}, h${re}, ${evens}), ${im} = CLNN_SHUFFLE(l${re}, h${re}, ${odds});
</%def>
<%def name="pairs(at, re, im)">
## W complex numbers to y, from place `at` on
    { const ${V} u = ${re}, v = ${im};
      vstore${W}(CLNN_SHUFFLE(u, v, ${low}), 0, y + 2 * (${at}));
      vstore${W}(CLNN_SHUFFLE(u, v, ${high}), 0, y + 2 * (${at}) + ${W}); }
</%def>
<%def name="work(t, r, s, m)">
## one butterfly of pass t
% for j in range(r):
% if t == 0 and not REAL_OUT:
${parts(f"{W} * (p + {m * j})", f"x{j}r", f"x{j}i")}
    const ${V} a${j}r = x${j}${"i" if SWAP else "r"}, a${j}i = x${j}${"r" if SWAP else "i"};
% else:
    const ${V} a${j}r = from_r[q + ${s} * (p + ${m * j})], a${j}i = from_i[q + ${s} * (p + ${m * j})];
% endif
% endfor
% for line in short.module.butterfly(r, V, T):
    ${line}
% endfor
% for k in range(r):
<% at = f"q + {s} * ({r} * p + {k})" if m > 1 else f"q + {s * k}" %>\
% if t == LAST:
    const ${V} w${k}r = vload${W}(2 * (${at}), turns), w${k}i = vload${W}(2 * (${at}) + 1, turns);
    to_r[${at}] = t${k}r * w${k}r - t${k}i * w${k}i;
    to_i[${at}] = t${k}r * w${k}i + t${k}i * w${k}r;
% elif k:
    to_r[${at}] = t${k}r * w${k}.x - t${k}i * w${k}.y;
    to_i[${at}] = t${k}r * w${k}.y + t${k}i * w${k}.x;
% else:
    to_r[${at}] = t0r;
    to_i[${at}] = t0i;
% endif
% endfor
</%def>
<%def name="squares()">
## turns W vectors at `b`, and transforms of length W over what lay in a vector
    for (int b = 0; b < ${R}; b += ${W}) {
% for c in "ri":
        __local const ${S}* ${c}p = (__local const ${S}*)(${LEFT}_${c} + b);
% endfor
% for c in "ri":
        ${V} ${", ".join(f"s{c}{j} = {LEFT}_{c}[b + {j}]" for j in range(W))};
% for line in turned.module.square(V, 16 // T.itemsize, W, f"s{c}"):
        ${line}
% endfor
% for l, column in enumerate(turned.module.columns(16 // T.itemsize, W)):
        const ${V} a${l}${c} = s${c}${column};
% endfor
% endfor
% for line in short.module.butterfly(W, V, T):
        ${line}
% endfor
% for k in range(W):
% if REAL_IN:
        ${FREE}_r[${R // W * k} + b / ${W}] = t${k}r * (${V})(${half});
        ${FREE}_i[${R // W * k} + b / ${W}] = t${k}i * (${V})(${half});
% else:
${pairs(f"{R * k} + b", f"t{k}{'i' if SWAP else 'r'} * scale", f"t{k}{'r' if SWAP else 'i'} * scale")}
% endif
% endfor
    }
</%def>
<%def name="sums(w, wi)">
## S and T of places k and M - k: their results are S + T and the conjugate of S - T
        const ${V} br = CLNN_SHUFFLE(cr, cr, ${reversed_}), bi = CLNN_SHUFFLE(ci, ci, ${reversed_});
        const ${V} wr = vload${W}(${w}, parted), wi = vload${W}(${w} + 1, parted), sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi;
</%def>
<%def name="join()">
## the reals' transform before the way back is made that of their pairs: k and M - k together, from x to two_r, two_i; the middle of reals' is real
    for (int k = 0; k < ${M // 2}; k += ${W}) {
        const int m = ${M - W + 1} - k;
${parts("k", "ar", "fi")}
${parts("m", "cr", "gi")}
        ${V} ai = fi, ci = gi;
        if (k == 0) ai.s0 = ci.s${f"{W - 1:x}"} = 0;
${sums(f"2 * (k / {W})", "")}
        const ${V} tr = wi * dr - wr * di, ti = wr * dr + wi * di, ur = ti - si, ui = sr - tr;
        vstore${W}(si + ti, 0, (__local ${S}*)two_r + k);
        vstore${W}(sr + tr, 0, (__local ${S}*)two_i + k);
        if (k) {
            vstore${W}(CLNN_SHUFFLE(ur, ur, ${reversed_}), 0, (__local ${S}*)two_r + m);
            vstore${W}(CLNN_SHUFFLE(ui, ui, ${reversed_}), 0, (__local ${S}*)two_i + m);
        } else {
% for l in range(1, W):
            ((__local ${S}*)two_r)[${M - l}] = ur.s${f"{l:x}"};
            ((__local ${S}*)two_i)[${M - l}] = ui.s${f"{l:x}"};
% endfor
        }
    }
    ((__local ${S}*)two_r)[${M // 2}] = -2 * x[${M + 1}];
    ((__local ${S}*)two_i)[${M // 2}] = 2 * x[${M}];
</%def>
<%def name="separate()">
## the pairs' transform is made that of the reals: k and M - k together, from FREE to y
    __local ${S}* from_r = (__local ${S}*)${FREE}_r;
    __local ${S}* from_i = (__local ${S}*)${FREE}_i;
    from_r[${M}] = from_r[0];
    from_i[${M}] = from_i[0];
    for (int k = 0; k < ${M // 2}; k += ${W}) {
        const int m = ${M - W + 1} - k;
        const ${V} ar = vload${W}(0, from_r + k), ai = vload${W}(0, from_i + k), cr = vload${W}(0, from_r + m), ci = vload${W}(0, from_i + m);
${sums(f"2 * (k / {W})", "")}
        const ${V} tr = wr * di + wi * dr, ti = wi * di - wr * dr;
        const ${V} pr = (sr + tr) * scale, pi = (si + ti) * scale, mr = (sr - tr) * scale, mi = (ti - si) * scale;
${pairs("k", "pr", "pi")}
% if FORM == "real_full":
        if (k) {
${pairs(f"{M} + k", "mr", "-mi")}
${pairs(f"{M} + m", f"CLNN_SHUFFLE(pr, pr, {reversed_})", f"CLNN_SHUFFLE(-pi, -pi, {reversed_})")}
        } else {
% for l in range(1, W):
            vstore2((${P})(mr.s${f"{l:x}"}, -mi.s${f"{l:x}"}), ${M + l}, y);
            vstore2((${P})(pr.s${f"{l:x}"}, -pi.s${f"{l:x}"}), ${2 * M - l}, y);
% endfor
        }
% endif
${pairs("m", f"CLNN_SHUFFLE(mr, mr, {reversed_})", f"CLNN_SHUFFLE(mi, mi, {reversed_})")}
        if (k == 0) y[1] = y[${2 * M + 1}] = 0;                          // real: +0, as angles tell
    }
% for at, sign in ((M // 2, "-"), (M + M // 2, "")) if FORM == "real_full" else ((M // 2, "-"),):
    y[${2 * at}] = 2 * from_r[${M // 2}] * scale;
    y[${2 * at + 1}] = ${sign}2 * from_i[${M // 2}] * scale;
% endfor
</%def>
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void fourier_single(IN(${S}, x), OUT(${S}, y), IN(${P}, roots), IN(${S}, turns), IN(${S}, parted), const long rows, const long run, const ${S} scale) {
    PTR_IN(${S}, x);
    PTR_OUT(${S}, y);
    PTR_IN(${P}, roots);
    PTR_IN(${S}, turns);
    PTR_IN(${S}, parted);
    __local ${V} one_r[${R + 1}], one_i[${R + 1}], two_r[${R + 1}], two_i[${R + 1}];
    const long first = get_global_id(0) * run, end = min(first + run, rows);
    x += first * ${WIDTHS[0]};
    y += first * ${WIDTHS[1]};
    for (long row = first; row < end; row++, x += ${WIDTHS[0]}, y += ${WIDTHS[1]}) {
% if REAL_OUT:
${join()}
% endif
<% s, m = 1, R %>\
% for t, r in enumerate(RADICES):
<% m = m // r %>\
    {
        __local ${V}* from_r = ${"one_r" if t % 2 else "two_r"};
        __local ${V}* from_i = ${"one_i" if t % 2 else "two_i"};
        __local ${V}* to_r = ${"two_r" if t % 2 else "one_r"};
        __local ${V}* to_i = ${"two_i" if t % 2 else "one_i"};
        for (int p = 0; p < ${m}; p++) {
% for k in range(1, r) if t < LAST else ():
            const ${P} w${k} = roots[p * ${s * k}];
% endfor
            for (int q = 0; q < ${s}; q++) {
${work(t, r, s, m)}
            }
        }
    }
<% s = s * r %>\
% endfor
${squares()}
% if REAL_IN:
${separate()}
% endif
    }
}
