<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## The padded grid of an image: zeros around it, channels outermost, one plane per phase of the stride, in the compute type.
##
## X (N, C, ID, IH, IW) -> Y[c][phase][n][gd][gh][gw] = X[n, c, gd * SD + fd - pd, gh * SH + fh - ph, gw * SW + fw - pw], 0 outside.
## phase (fd, fh, fw) comes from `phases`, three ints each. Phases start e.s9 elements apart, with zeros between; after the last one `slack` zeros follow.
## Geometry: a work-item lays out the planes of e.s8 images, by whole rows, global (ceil(N / e.s8), C * phases).
##
## Parameter  legal values
## T          dtype row of X
## TABLE      True: `phases` says of every element of a phase's plane which one of the image it is, or -1; for short rows
## W          lanes of a vector
## WORDS      True: Y holds words of two 16-bit numbers (see matmul/words): of two channels, or of two images, e.sa elements apart; c, or n,
##            counts pairs of them
## SW         1: rows are copied as they are; 2: every other element; 0: the stride is a run-time value
${vec.vector_io(T, W)}
% if WORDS:
#define AT(p, i) ((uint)(p)[i] | (uint)(p)[(i) + e.sa] << 16)
#define VECTOR_AT(p) (convert_uint${W}(vload${W}(0, p)) | convert_uint${W}(vload${W}(0, (p) + e.sa)) << 16)
% else:
#define AT(p, i) ${T.load}(p, i)
#define VECTOR_AT(p) ldv_${T.name}(p)
% endif
<% O = "uint" if WORDS else T.acc %>\
__kernel void conv_grid(IN(${T.c}, X), OUT(${O}, Y), __global const int* restrict phases, const long16 d, const long16 e) {
    const long N = d.s0, C = d.s1, ID = d.s2, IH = d.s3, IW = d.s4, GD = d.s5, GH = d.s6, GW = d.s7, F = d.s8, slack = d.s9;
    const long SD = e.s0, SH = e.s1, SW = ${SW or "e.s2"};
    const long cf = get_global_id(1), c = cf / F, f = cf % F, P = GD * GH * GW;
    if (cf >= C * F) return;
    __global ${O}* restrict planes = Y_p + Y_o + cf * e.s9;
    const long behind = e.s9 - N * P + (cf == C * F - 1 ? slack : 0);
% if not TABLE:
    const long pd = e.s3 - phases[3 * f], ph = e.s4 - phases[3 * f + 1], pw = e.s5 - phases[3 * f + 2];
% endif
    const long n_begin = get_global_id(0) * e.s8, n_end = min(N, n_begin + e.s8);
% if TABLE:
    __global const int* restrict from = phases + f * P;
    __global const ${T.c}* restrict src = X_p + X_o + c * e.s7;
    long n = n_begin;
    for (; n + 4 <= n_end; n += 4) {            // four images at a time share the table
        __global const ${T.c}* restrict s = src + n * e.s6;
        __global ${O}* restrict o = planes + n * P;
        for (int q = 0; q < (int)P; q++) {
            const int at = max(from[q], 0);
            const bool keep = from[q] >= 0;
% for r in range(4):
            o[q + ${r} * P] = keep ? AT(s + ${r} * e.s6, at) : 0;
% endfor
        }
    }
    for (; n < n_end; n++)
        for (int q = 0; q < (int)P; q++) planes[n * P + q] = from[q] >= 0 ? AT(src + n * e.s6, max(from[q], 0)) : 0;
% else:
    for (long n = n_begin; n < n_end; n++) {
    __global const ${T.c}* restrict src = X_p + X_o + n * e.s6 + c * e.s7;
    __global ${O}* restrict dst = planes + n * P;
    // columns first..last - 1 of a row lie inside the image
    const long first = min(GW, max(0L, (pw + SW - 1) / SW)), last = max(first, min(GW, (IW + pw + SW - 1) / SW));
    for (long gd = 0; gd < GD; gd++)
        for (long gh = 0; gh < GH; gh++) {
            const long z = gd * SD - pd, y = gh * SH - ph;
            __global ${O}* restrict o = dst + (gd * GH + gh) * GW;
            if (z < 0 || z >= ID || y < 0 || y >= IH) {
                for (long w = 0; w < GW; w++) o[w] = 0;
                continue;
            }
            __global const ${T.c}* s = src + (z * IH + y) * IW;
            for (long w = 0; w < first; w++) o[w] = 0;
            long w = first;
% if SW == 1:
            for (; w + ${W} <= last; w += ${W}) vstore${W}(VECTOR_AT(s + w - pw), 0, o + w);
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
            for (; w < last; w++) o[w] = AT(s, w * SW - pw);
            for (; w < GW; w++) o[w] = 0;
        }
    }
% endif
    if (n_end == N) for (long w = 0; w < behind; w++) planes[N * P + w] = 0;
}
