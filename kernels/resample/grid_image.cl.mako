<%inherit file="/base.cl.mako"/>\
<%namespace name="pts" file="/resample/points.cl.mako"/>\
## The gradient of resample/grid by the image: gx[n, c, tap] = sum over the points around which the tap lies of its weight times dy[n, c, p], in the order of
## the points. A work-item owns `chunk` planes of gx; few of them are at work at a time (CPUs).
##
## dy (N, C, P), grid (N, P, RANK), gx (N, C, SD, SH, SW), contiguous.
## Geometry: global (1, N * groups), local 1
##
## Parameter  legal values
## T          dtype row (float) of dy and grid; gx holds its compute type
## RANK MODE PAD POINTS ALIGN   as in resample/grid
## TAPWISE    bool: tap after tap of POINTS points, which is up to 5 times as fast on Intel's runtime, and slower on PoCL
<%
    ACC, N = T.acc, len(pts.attr.taps(RANK, MODE))
%>\
${pts.functions(ACC, PAD, ALIGN)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void grid_image(IN(${T.c}, dy), IN(${T.c}, g), OUT(${ACC}, gx), const long points, const long channels, const long groups, const long chunk,
                         const long SD, const long SH, const long SW) {
    PTR_IN(${T.c}, dy);
    PTR_IN(${T.c}, g);
    PTR_OUT(${ACC}, gx);
    const long image = get_global_id(1) / groups, first = get_global_id(1) % groups * chunk, last = min(channels, first + chunk), area = SD * SH * SW;
    for (long i = (image * channels + first) * area; i < (image * channels + last) * area; i++) gx[i] = 0;
    for (long begin = 0; begin < points; begin += ${POINTS}) {
        const int some = (int)min((long)${POINTS}, points - begin);
${pts.arrays(T, RANK, MODE, PAD, ALIGN, POINTS)}
        for (long ch = first; ch < last; ch++) {
            __global const ${T.c}* restrict from = dy + (image * channels + ch) * points + begin;
            __global ${ACC}* to = gx + (image * channels + ch) * area;
% if TAPWISE:
% for n in range(N):
            for (int q = 0; q < some; q++)
                if (o${n}[q] >= 0) to[o${n}[q]] += w${n}[q] * ${T.load}(from, q);
% endfor
% else:
            for (int q = 0; q < some; q++) {
                const ${ACC} e = ${T.load}(from, q);
% for n in range(N):
                if (o${n}[q] >= 0) to[o${n}[q]] += w${n}[q] * e;
% endfor
            }
% endif
        }
    }
}
