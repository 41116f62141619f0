<%inherit file="/base.cl.mako"/>\
## The step between the transform z (M) of M pairs of neighbours and the transform y of the 2 M real numbers that they are, for rows too long for fourier/rows:
## with S and D = the half sum and half difference of z[k] and the conjugate of z[M - k], y[k] = S - i w^k D and y[M - k] is the conjugate of S + i w^k D.
##
## x (rows, M), y (rows, M + 1 or, with FULL, 2 M); with BACK x (rows, M + 1), y (rows, M), both sums twice as large
## roots (2 M)   exp(-2 pi i j / 2 M)
##
## Geometry: global (ceil((M / 2 + 1) / RUN), rows), local (1, 1) for W > 1
##
## Parameter  legal values
## T          dtype row of the parts: float32 or float64
## W          lanes: 8 or 16 on CPUs, else 1
## RUN        places per work-item
## BACK FULL  bool, not both
<%
    R = T.acc
    P = f"{R}2"
    half = "1" if BACK else "0.5f" if R == "float" else "0.5"
%>\
<%def name="sums(V)">
            const ${V} sr = (ar + br) * ${half}, si = (ai - bi) * ${half}, dr = (ar - br) * ${half}, di = (ai + bi) * ${half};
% if BACK:
            const ${V} tr = wi * dr - wr * di, ti = wr * dr + wi * di;
% else:
            const ${V} tr = wr * di + wi * dr, ti = wi * di - wr * dr;
% endif
</%def>
<%
    def split(name, at):
        F = f"{R}{W}"
        return [f"__global const {R}* {name}p = (__global const {R}*)({at});", f"const {F} {name}l = vload{W}(0, {name}p), {name}h = vload{W}(1, {name}p);",
                f"const {F} {name}r = ({F})({name}l.even, {name}h.even), {name}i = ({F})({name}l.odd, {name}h.odd);"]

    def join(at, re, im):
        F = f"{R}{W}"
        return [f"{{ const {F} u = {re}, v = {im}; {F} low, high; low.even = u.lo; low.odd = v.lo; high.even = u.hi; high.odd = v.hi;",
                f"__global {R}* to = (__global {R}*)({at}); vstore{W}(low, 0, to); vstore{W}(high, 1, to); }}"]
    turned = "s" + "".join(f"{l:x}" for l in reversed(range(W)))
%>\
__kernel void fourier_pairs(IN(${P}, x), OUT(${P}, y), IN(${P}, roots), const long M, const long rows) {
    PTR_IN(${P}, x);
    PTR_OUT(${P}, y);
    PTR_IN(${P}, roots);
    const long row = get_global_id(1);
    long k = get_global_id(0) * ${RUN};
    const long end = min(k + ${RUN}, M / 2 + 1);
    if (row >= rows) return;
    x += row * ${"(M + 1)" if BACK else "M"};
    y += row * ${"M" if BACK else "2 * M" if FULL else "(M + 1)"};
    while (k < end) {
% if W > 1:
        if (k && k + ${W} <= end) {
% for line in split("a", "x + k") + split("c", f"x + M - k - {W - 1}") + split("w", "roots + k"):
            ${line}
% endfor
            const ${R}${W} br = cr.${turned}, bi = ci.${turned};
${sums(f"{R}{W}")}
% if BACK:
            const ${R}${W} mr = sr - tr, mi = ti - si;
% for line in join("y + k", "sr + tr", "si + ti") + join(f"y + M - k - {W - 1}", f"mr.{turned}", f"mi.{turned}"):
            ${line}
% endfor
% else:
            const ${R}${W} pr = sr + tr, pi = si + ti, mr = sr - tr, mi = ti - si;
% for line in join("y + k", "pr", "pi") + join(f"y + M - k - {W - 1}", f"mr.{turned}", f"mi.{turned}"):
            ${line}
% endfor
% if FULL:
% for line in join(f"y + 2 * M - k - {W - 1}", f"pr.{turned}", f"-pi.{turned}") + join("y + M + k", "mr", "-mi"):
            ${line}
% endfor
% endif
% endif
            k += ${W};
            continue;
        }
% endif
        {
            const ${P} a = x[k], b = x[${"M - k" if BACK else "k ? M - k : 0"}], w = roots[k];
            const ${R} ar = a.x, br = b.x, wr = w.x, wi = w.y, ai = ${"k ? a.y : 0" if BACK else "a.y"}, bi = ${"k ? b.y : 0" if BACK else "b.y"};
${sums(R)}
            y[k] = (${P})(sr + tr, si + ti);
% if BACK:
            if (k) y[M - k] = (${P})(sr - tr, ti - si);
% else:
            y[M - k] = (${P})(sr - tr, k ? ti - si : si + ti);      // the middle is real: +0, as angles tell
% if FULL:
            if (k) {
                y[2 * M - k] = (${P})(sr + tr, -si - ti);
                y[M + k] = (${P})(sr - tr, si - ti);
            }
% endif
% endif
            k++;
        }
    }
}
