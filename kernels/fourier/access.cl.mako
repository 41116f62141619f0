## How fourier/rows reads and writes: its parameters FORM HALF W VIN VOUT RIN ROUT say where the numbers lie, xb and yb where sequences start.
##
## def                      gives
## take(at, re, im)         the numbers at place `at` of the sequences as two new variables
## put(left, at, re, im)    results to place `at`, or of what is turned into rows: the local arrays `left`_r and `left`_i
<%def name="take(at, re, im)">
<%
    R, P, REAL_IN, REAL_OUT, WIDE, lanes = T.acc, T.acc + "2", FORM in ("real_in", "real_full"), FORM == "real_out", W > 1, range(W)
    F = R if W == 1 else f"{R}{W}"
%>\
## the numbers at place `at` of x; without HALF those beyond the middle of conjugate symmetric ones are mirrored
        ${F} ${re}, ${im} = (${F})(0);
        {
            const int at = ${at};
% if REAL_OUT and not HALF:
            const int mirrored = at > ${N // 2}, from = mirrored ? ${N} - at : at;
% else:
            const int from = at;
% endif
% if RIN:
            ${re} = two_r[from];
% if not REAL_IN or HALF:
            ${im} = two_i[from];
% endif
% elif REAL_IN:
% for c, part in enumerate((re, im) if HALF else (re,)):
<% place = f"({c} + 2 * (long)from) * xs" if HALF else "(long)from * xs" %>\
% if VIN:
            ${part} = vload${W}(0, x + xb[0] + ${place});
% elif WIDE:
            ${part} = (${F})(${", ".join(f"x[xb[{l}] + {place}]" for l in lanes)});
% else:
            ${part} = x[xb + ${place}];
% endif
% endfor
% elif VIN:
            __global const ${R}* pair = (__global const ${R}*)(x + xb[0] + from * xs);
            const ${F} low = vload${W}(0, pair), high = vload${W}(1, pair);
            ${re} = (${F})(low.even, high.even);
            ${im} = (${F})(low.odd, high.odd);
% elif WIDE:
            const ${P} ${", ".join(f"v{l} = x[xb[{l}] + from * xs]" for l in lanes)};
            ${re} = (${F})(${", ".join(f"v{l}.x" for l in lanes)});
            ${im} = (${F})(${", ".join(f"v{l}.y" for l in lanes)});
% else:
            const ${P} v = x[xb + from * xs];
            ${re} = v.x;
            ${im} = v.y;
% endif
% if REAL_OUT and not HALF:
            ${im} = mirrored ? -${im} : ${im};
% endif
        }
</%def>
<%def name="put(left, at, re, im)">
<%
    R, P, REAL_IN, REAL_OUT, WIDE, lanes = T.acc, T.acc + "2", FORM in ("real_in", "real_full"), FORM == "real_out", W > 1, range(W)
    F = R if W == 1 else f"{R}{W}"
%>\
## results at place `at` of y, or of what is turned into rows
% if ROUT:
            ${left}_r[${at}] = ${re};
% if HALF or not REAL_OUT:
            ${left}_i[${at}] = ${im};
% endif
% elif REAL_OUT:
% for c, part in enumerate((re, im) if HALF else (re,)):
<% place = f"({c} + 2 * (long)({at})) * ys" if HALF else f"(long)({at}) * ys" %>\
% if VOUT:
            vstore${W}(${part}, 0, y + yb[0] + ${place});
% elif WIDE:
            { const ${F} v = ${part}; ${" ".join(f"{f'if ({l} < some) ' if l else ''}y[yb[{l}] + {place}] = v.s{l:x};" for l in lanes)} }
% else:
            y[yb + ${place}] = ${part};
% endif
% endfor
% elif VOUT:
            {
                const ${F} u = ${re}, v = ${im};
                __global ${R}* to = (__global ${R}*)(y + yb[0] + (long)(${at}) * ys);
                ${F} low, high;
                low.even = u.lo; low.odd = v.lo; high.even = u.hi; high.odd = v.hi;
                vstore${W}(low, 0, to);
                vstore${W}(high, 1, to);
            }
% elif WIDE:
            {
                const ${F} u = ${re}, v = ${im};
% for l in lanes:
                ${f"if ({l} < some) " if l else ""}y[yb[${l}] + (long)(${at}) * ys] = (${P})(u.s${f"{l:x}"}, v.s${f"{l:x}"});
% endfor
            }
% else:
            y[yb + (long)(${at}) * ys] = (${P})(${re}, ${im});
% endif
</%def>
