<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="short" file="/fourier/short.cl.mako"/>\
## Discrete Fourier transforms of many sequences of one length: y[k] = scale * sum over j of x[j] * exp(-2 pi i j k / N), or with + i where `back` is 1.
##
## Sequence number t = (o * A + a) * I + i starts at o * xo + a * xa + i * xi in x and goes on in steps of xs; likewise in y. Stockham's self-sorting
## order: pass after pass of radix r takes what lies N / r apart and writes it side by side, so nothing is reordered at the end. The backward transform is
## the forward one with real and imaginary parts exchanged on both sides. Passes exchange numbers in local memory; the first reads x, the last writes y.
##
## roots (N)     exp(-2 pi i j / N), rounded once from double
## turns (N, I / span)  what results are multiplied by with TURN: the middle step of a longer transform made of two
##
## Geometry: W lanes: global (ceil(count / W)), local 1: a work-item does W sequences in the lanes of vectors (CPUs).
##           W = 1: global (ceil(count / C) * local), any local size: a work-group does C sequences.
##
## Parameter  legal values
## T          dtype row of the parts: float32 or float64
## N          at least 2, at most what local memory holds: 4 N max(W, C) numbers
## RADICES    factors of N in the order of the passes, of 2 3 4 5 7 8 11 13
## FORM       complex; real_in: x is real, y the first N / 2 + 1 results; real_out: x the first N / 2 + 1 of conjugate symmetric numbers, y real
## W C        lanes (1 8 16); sequences per work-group (1 where W > 1)
## VIN VOUT   bool: the W sequences of a work-item always lie side by side in x (in y)
## RIN ROUT   bool: the elements of a sequence lie side by side (W > 1): blocks of W rows are turned into lanes in registers
## TURN       bool
<%
    R = T.acc
    F = R if W == 1 else f"{R}{W}"
    P = f"{R}2"
    X, Y = (R if FORM == "real_in" else P), (R if FORM == "real_out" else P)
    H = N // 2
    LAST = len(RADICES) - 1
    WIDE = W > 1
    lanes = range(W)
    BEFORE, AFTER = (H + 1 if FORM == "real_out" else N), (H + 1 if FORM == "real_in" else N)     # elements of a sequence in x and in y
    LEFT = "one" if LAST % 2 == 0 else "two"                                                       # what the last pass writes to
%>\
<%def name="rows_to_lanes()">
<% each = 1 if FORM == "real_in" else 2 %>\
    {
    int at = 0;
    for (; at + ${W // each} <= ${BEFORE}; at += ${W // each}) {
% for l in lanes:
        ${F} t${l} = vload${W}(0, (__global const ${R}*)(x + xb[${l}] + at));
% endfor
        ${vec.transpose(F, W, "t")}
% for l in lanes:
        two_${"ri"[l % each]}[at + ${l // each}] = t${l};
% endfor
    }
    for (; at < ${BEFORE}; at++)
        for (int l = 0; l < ${W}; l++) {
            const ${X} v = x[xb[l] + at];
            ${" ".join(f"((__local {R}*)(two_{c} + at))[l] = v{part};" for c, part in ([("r", "")] if each == 1 else [("r", ".x"), ("i", ".y")]))}
        }
    }
</%def>
<%def name="lanes_to_rows()">
<% each = 1 if FORM == "real_out" else 2 %>\
    int at = 0;
    for (; at + ${W // each} <= ${AFTER}; at += ${W // each}) {
% for l in lanes:
        ${F} t${l} = ${LEFT}_${"ri"[l % each]}[at + ${l // each}];
% endfor
        ${vec.transpose(F, W, "t")}
% for l in lanes:
        ${f"if ({l} < some) " if l else ""}vstore${W}(t${l}, 0, (__global ${R}*)(y + yb[${l}] + at));
% endfor
    }
    for (; at < ${AFTER}; at++)
        for (int l = 0; l < some; l++)
            y[yb[l] + at] = (${Y})(${", ".join(f"((__local const {R}*)({LEFT}_{c} + at))[l]" for c in "ri"[:each])});
</%def>
<%def name="fetch(at, re, im)">
## the numbers at place `at` of the sequences, parts exchanged for the backward transform
% if FORM == "real_in":
% if RIN:
        const ${F} ${re} = two_r[${at}], ${im} = (${F})(0);
% elif VIN:
        const ${F} ${re} = ${f"vload{W}(0, x + xb[0] + ({at}) * xs)"}, ${im} = (${F})(0);
% elif WIDE:
        const ${F} ${re} = (${F})(${", ".join(f"x[xb[{l}] + ({at}) * xs]" for l in lanes)}), ${im} = (${F})(0);
% else:
        const ${F} ${re} = x[xb + (${at}) * xs], ${im} = 0;
% endif
% else:
        ${F} ${re}, ${im};
        {
% if FORM == "real_out":
            const int at = ${at}, mirrored = at > ${H};
            const long place = (long)(mirrored ? ${N} - at : at)${"" if RIN else " * xs"};
            const ${R} sign = mirrored ? -1 : 1;
% else:
            const long place = (long)(${at})${"" if RIN else " * xs"};
% endif
% if RIN:
            const ${F} re = two_r[place], im = two_i[place]${" * sign" if FORM == "real_out" else ""};
% elif VIN:
            __global const ${R}* from = (__global const ${R}*)(x + xb[0] + place);
            const ${F} low = vload${W}(0, from), high = vload${W}(1, from);
            const ${F} re = (${F})(low.even, high.even), im = (${F})(low.odd, high.odd)${" * sign" if FORM == "real_out" else ""};
% elif WIDE:
            const ${P} ${", ".join(f"v{l} = x[xb[{l}] + place]" for l in lanes)};
            const ${F} re = (${F})(${", ".join(f"v{l}.x" for l in lanes)});
            const ${F} im = (${F})(${", ".join(f"v{l}.y" for l in lanes)})${" * sign" if FORM == "real_out" else ""};
% else:
            const ${P} v = x[xb + place];
            const ${F} re = v.x, im = v.y${" * sign" if FORM == "real_out" else ""};
% endif
            ${re} = ${"im" if FORM == "real_out" else "back ? im : re"};
            ${im} = ${"re" if FORM == "real_out" else "back ? re : im"};
        }
% endif
</%def>
<%def name="deliver(at, re, im)">
% if FORM == "real_in":
        if (${at} <= ${H})
% endif
        {
            const long place = (long)(${at}) * ys;
% if FORM == "real_out":
            const ${F} re = ${im} * scale;
% else:
            ${F} re = (back ? ${im} : ${re}) * scale, im = (back ? ${re} : ${im}) * scale;
% endif
% if TURN:
% if WIDE:
            const ${P} ${", ".join(f"w{l} = turns[(long)({at}) * wide + col[{l}]]" for l in lanes)};
            const ${F} wr = (${F})(${", ".join(f"w{l}.x" for l in lanes)}), wi = (${F})(${", ".join(f"w{l}.y" for l in lanes)}) * (back ? (${R})-1 : (${R})1);
% else:
            const ${P} w = turns[(long)(${at}) * wide + col];
            const ${F} wr = w.x, wi = back ? -w.y : w.y;
% endif
            const ${F} turned = re * wr - im * wi;
            im = re * wi + im * wr;
            re = turned;
% endif
% if ROUT:
            to_r[${at}] = re;
% if FORM != "real_out":
            to_i[${at}] = im;
% endif
% elif VOUT and FORM == "real_out":
            vstore${W}(re, 0, y + yb[0] + place);
% elif VOUT:
            __global ${R}* to = (__global ${R}*)(y + yb[0] + place);
            ${F} low, high;
            low.even = re.lo; low.odd = im.lo; high.even = re.hi; high.odd = im.hi;
            vstore${W}(low, 0, to);
            vstore${W}(high, 1, to);
% elif WIDE:
% for l in lanes:
            ${f"if ({l} < some) " if l else ""}y[yb[${l}] + place] = ${f"re.s{l:x}" if FORM == "real_out" else f"({P})(re.s{l:x}, im.s{l:x})"};
% endfor
% else:
            y[yb + place] = ${"re" if FORM == "real_out" else f"({P})(re, im)"};
% endif
        }
</%def>
<%def name="work(t, r, s, m, p, q)">
## one butterfly of pass t
% for j in range(r):
% if t == 0:
${fetch(f"{q} + {s} * ({p} + {m * j})", f"a{j}r", f"a{j}i")}
% else:
        const ${F} a${j}r = from_r[${f"({q} + {s} * ({p} + {m * j}))" if WIDE else f"({q} + {s} * ({p} + {m * j})) * {C} + c"}], a${j}i = from_i[${f"({q} + {s} * ({p} + {m * j}))" if WIDE else f"({q} + {s} * ({p} + {m * j})) * {C} + c"}];
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
${deliver(f"{q} + {s} * ({r} * {p} + {k})", re, im)}
% else:
        to_r[${f"{q} + {s} * ({r} * {p} + {k})" if WIDE else f"({q} + {s} * ({r} * {p} + {k})) * {C} + c"}] = ${re};
        to_i[${f"{q} + {s} * ({r} * {p} + {k})" if WIDE else f"({q} + {s} * ({r} * {p} + {k})) * {C} + c"}] = ${im};
% endif
% endfor
</%def>
__kernel void fourier_rows(IN(${X}, x), OUT(${Y}, y), IN(${P}, roots), IN(${P}, turns), const long count, const long A, const long I,
                           const long xo, const long xa, const long xi, const long xs, const long yo, const long ya, const long yi, const long ys,
                           const long span, const ${R} scale, const long back) {
    PTR_IN(${X}, x);
    PTR_OUT(${Y}, y);
    PTR_IN(${P}, roots);
    PTR_IN(${P}, turns);
    __local ${F} one_r[${N * C}], one_i[${N * C}], two_r[${N * C}], two_i[${N * C}];
    const long wide = I / span;
% if WIDE:
    const long first = get_global_id(0) * ${W};
    if (first >= count) return;
    const int some = (int)min((long)${W}, count - first);
    long xb[${W}], yb[${W}], col[${W}];
    for (int l = 0; l < ${W}; l++) {
        const long t = min(first + l, count - 1), i = t % I, rest = t / I, a = rest % A, o = rest / A;
        xb[l] = o * xo + a * xa + i * xi;
        yb[l] = o * yo + a * ya + i * yi;
        col[l] = i / span;
    }
% else:
    const int lid = get_local_id(0), size = get_local_size(0);
    const long first = (long)get_group_id(0) * ${C};
% endif
% if RIN:
${rows_to_lanes()}
% endif
<% s, m = 1, N %>\
% for t, r in enumerate(RADICES):
<% m = m // r %>\
    {
        __local ${F}* from_r = ${"one_r" if t % 2 else "two_r"};
        __local ${F}* from_i = ${"one_i" if t % 2 else "two_i"};
        __local ${F}* to_r = ${"two_r" if t % 2 else "one_r"};
        __local ${F}* to_i = ${"two_i" if t % 2 else "one_i"};
% if WIDE:
    for (int p = 0; p < ${m}; p++) {
% for k in range(1, r) if m > 1 else ():
        const ${P} w${k} = roots[p * ${s * k}];
% endfor
    for (int q = 0; q < ${s}; q++) {
${work(t, r, s, m, "p", "q")}
    }
    }
% else:
    for (int w = lid; w < ${N // r * C}; w += size) {
        const int c = w % ${C}, b = w / ${C}, p = b / ${s}, q = b - p * ${s};
% if t in (0, LAST):
        const long number = first + c, i = number % I, rest = number / I, a = rest % A, o = rest / A;
        if (number >= count) continue;
        const long xb = o * xo + a * xa + i * xi, yb = o * yo + a * ya + i * yi, col = i / span;
% endif
% for k in range(1, r) if m > 1 else ():
        const ${P} w${k} = roots[p * ${s * k}];
% endfor
${work(t, r, s, m, "p", "q")}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
    }
<% s = s * r %>\
% endfor
% if ROUT:
${lanes_to_rows()}
% endif
}
