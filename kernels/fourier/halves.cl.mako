<%namespace name="access" file="/fourier/access.cl.mako"/>\
## The step between the transform of N real numbers and that of the N / 2 pairs of neighbours that they are, for fourier/rows with HALF.
##
## def            gives
## split(LEFT)    parts the transform of pairs in the local arrays LEFT into y, or joins what x holds before the way back
<%def name="split(LEFT)">
<%
    R, P, H, WIDE, PREPARED = T.acc, T.acc + "2", N // 2, W > 1, FORM == "real_out"
    F, half = R if W == 1 else f"{R}{W}", "0.5f" if R == "float" else "0.5"

    def at_(index):
        return f"{index}" if WIDE else f"PLACE({index})"
%>\
## places k and M - k together: S + T and the conjugate of S - T, with T = -i w^k D or, before the way back, i w^-k D; the middle of real numbers' is real: +0
% if WIDE:
    for (int k = 0; k <= ${H // 2}; k++) {
% else:
    for (int k = begin; k < min(${H // 2 + 1}, end); k += step) {
% endif
        const int m = ${H} - k;
        const ${P} w = roots[k];
% if PREPARED:
${access.take("k", "ar", "ai")}
${access.take("m", "br", "bi")}
        if (k == 0) ai = bi = (${F})(0);
        const ${F} sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi, tr = w.y * dr - w.x * di, ti = w.x * dr + w.y * di;
        two_r[${at_("k")}] = si + ti;
        two_i[${at_("k")}] = sr + tr;
        if (k) {
            two_r[${at_("m")}] = ti - si;
            two_i[${at_("m")}] = sr - tr;
        }
% else:
        const int b = k ? m : 0;
        const ${F} ar = ${LEFT}_r[${at_("k")}] * ${half}, ai = ${LEFT}_i[${at_("k")}] * ${half}, br = ${LEFT}_r[${at_("b")}] * ${half}, bi = ${LEFT}_i[${at_("b")}] * ${half};
        const ${F} sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi, tr = w.x * di + w.y * dr, ti = w.y * di - w.x * dr;
${access.put(LEFT, "k", "(sr + tr)", "(si + ti)")}
${access.put(LEFT, "m", "(sr - tr)", "(k ? ti - si : si + ti)")}
% if FORM == "real_full":
        if (k) {
${access.put(LEFT, f"({N} - k)", "(sr + tr)", "(-si - ti)")}
${access.put(LEFT, f"({H} + k)", "(sr - tr)", "(si - ti)")}
        }
% endif
% endif
    }
% if not WIDE:
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
</%def>
