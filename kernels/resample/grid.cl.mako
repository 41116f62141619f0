<%inherit file="/base.cl.mako"/>\
<%namespace name="pts" file="/resample/points.cl.mako"/>\
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
    ACC, N = T.acc, len(pts.attr.taps(RANK, MODE))
%>\
${pts.functions(ACC, PAD, ALIGN)}
__kernel void grid(IN(${T.c}, x), IN(${T.c}, g), OUT(${T.c}, y), const long points, const long channels, const long groups, const long chunk,
                   const long SD, const long SH, const long SW) {
    PTR_IN(${T.c}, x);
    PTR_IN(${T.c}, g);
    PTR_OUT(${T.c}, y);
    const long begin = get_global_id(0) * ${POINTS}, image = get_global_id(1) / groups, first = get_global_id(1) % groups * chunk;
    if (begin >= points) return;
    const int some = (int)min((long)${POINTS}, points - begin);
${pts.arrays(T, RANK, MODE, PAD, ALIGN, POINTS)}
    const long last = min(channels, first + chunk);
    for (long ch = first; ch < last; ch++) {
        __global const ${T.c}* restrict plane = x + (image * channels + ch) * SD * SH * SW;
        __global ${T.c}* restrict to = y + (image * channels + ch) * points + begin;
        for (int q = 0; q < some; q++) {
            ${ACC} sum = 0;
% for n in range(N):
            {
                const ${ACC} v = w${n}[q] * ${T.load}(plane, max(o${n}[q], 0));
                sum += o${n}[q] < 0 ? (${ACC})0 : v;
            }
% endfor
            ${T.store}(to, q, sum);
        }
    }
}
