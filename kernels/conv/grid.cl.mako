<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## The padded grid of an image: zeros around it, channels outermost, one plane per phase of the stride, in the compute type.
##
## X (N, C, ID, IH, IW) -> Y[c][phase][n][gd][gh][gw] = X[n, c, gd * SD + fd - pd, gh * SH + fh - ph, gw * SW + fw - pw], 0 outside.
## phase (fd, fh, fw) comes from `phases`, three ints each. After the last plane `slack` zeros follow.
## Geometry: ROWS: a work-item lays out the planes of e.s8 images, global (ceil(N / e.s8), C * phases);
## else global (elements of a plane, N, C * phases).
##
## Parameter  legal values
## T          dtype row of X
## ROWS       True on CPUs: a work-item copies whole rows with vectors of W elements
## W          lanes of a vector
## SW         1: rows are copied as they are; 2: every other element; 0: the stride is a run-time value
<% V = f"{T.acc}{W}" %>\
${vec.vector_io(T, W) if ROWS else ""}
__kernel void conv_grid(IN(${T.c}, X), OUT(${T.acc}, Y), __global const int* restrict phases, const long16 d, const long16 e) {
    const long N = d.s0, C = d.s1, ID = d.s2, IH = d.s3, IW = d.s4, GD = d.s5, GH = d.s6, GW = d.s7, F = d.s8, slack = d.s9;
    const long SD = e.s0, SH = e.s1, SW = ${SW or "e.s2"};
    const long cf = get_global_id(${"1" if ROWS else "2"}), c = cf / F, f = cf % F, P = GD * GH * GW;
    if (cf >= C * F) return;
    const long pd = e.s3 - phases[3 * f], ph = e.s4 - phases[3 * f + 1], pw = e.s5 - phases[3 * f + 2];
% if ROWS:
    const long n_begin = get_global_id(0) * e.s8, n_end = min(N, n_begin + e.s8);
    for (long n = n_begin; n < n_end; n++) {
    __global const ${T.c}* restrict src = X_p + X_o + n * e.s6 + c * e.s7;
    __global ${T.acc}* restrict dst = Y_p + Y_o + (cf * N + n) * P;
    // columns first..last - 1 of a row lie inside the image
    const long first = min(GW, max(0L, (pw + SW - 1) / SW)), last = max(first, min(GW, (IW + pw + SW - 1) / SW));
    for (long gd = 0; gd < GD; gd++)
        for (long gh = 0; gh < GH; gh++) {
            const long z = gd * SD - pd, y = gh * SH - ph;
            __global ${T.acc}* restrict o = dst + (gd * GH + gh) * GW;
            if (z < 0 || z >= ID || y < 0 || y >= IH) {
                for (long w = 0; w < GW; w++) o[w] = 0;
                continue;
            }
            __global const ${T.c}* s = src + (z * IH + y) * IW;
            for (long w = 0; w < first; w++) o[w] = 0;
            long w = first;
% if SW == 1:
            for (; w + ${W} <= last; w += ${W}) vstore${W}(ldv_${T.name}(s + w - pw), 0, o + w);
% if T.c == T.acc:
% for part in (8, 4) if W == 16 else (4,):
            if (w + ${part} <= last) { vstore${part}(vload${part}(0, s + w - pw), 0, o + w); w += ${part}; }
% endfor
% endif
% elif SW == 2 and T.c == T.acc:
            // the last element that a vector reads is one that it does not use
% for part in (8, 4) if W == 16 else (4, 2):
            for (; w + ${part} <= last && 2 * (w + ${part}) - pw <= IW; w += ${part}) vstore${part}(vload${2 * part}(0, s + 2 * w - pw).even, 0, o + w);
% endfor
% endif
            for (; w < last; w++) o[w] = ${T.load}(s, w * SW - pw);
            for (; w < GW; w++) o[w] = 0;
        }
    if (n == N - 1 && cf == C * F - 1)
        for (long w = 0; w < slack; w++) dst[P + w] = 0;
    }
% else:
    const long n = get_global_id(1);
    if (n >= N) return;
    __global const ${T.c}* restrict src = X_p + X_o + n * e.s6 + c * e.s7;
    __global ${T.acc}* restrict dst = Y_p + Y_o + (cf * N + n) * P;
    const long q = get_global_id(0);
    if (n == N - 1 && cf == C * F - 1)
        for (long w = q; w < slack; w += get_global_size(0)) dst[P + w] = 0;
    if (q >= P) return;
    const long z = q / (GW * GH) * SD - pd, y = q / GW % GH * SH - ph, x = q % GW * SW - pw;
    const bool inside = z >= 0 && z < ID && y >= 0 && y < IH && x >= 0 && x < IW;
    dst[q] = inside ? ${T.load}(src, (z * IH + y) * IW + x) : 0;
% endif
}
