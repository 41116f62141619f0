<%inherit file="/base.cl.mako"/>\
<%namespace name="pts" file="/resample/points.cl.mako"/>\
## The gradient of resample/grid by the points: gp[n, p, axis] = sum over channels and taps of dy[n, c, p] times x[n, c, tap] times the derivative of
## the tap's weight.
##
## dy (N, C, P), x (N, C, SD, SH, SW), grid and gp (N, P, RANK), contiguous.
## Geometry: global (ceil(P / POINTS), N)
##
## Parameter  legal values
## T RANK MODE PAD POINTS ALIGN   as in resample/grid, but for nearest, whose gradient is zero
<%
    ACC, N, AXES = T.acc, len(pts.attr.taps(RANK, MODE)), pts.attr.axes(RANK)
%>\
${pts.functions(ACC, PAD, ALIGN)}
__kernel void grid_points(IN(${T.c}, dy), IN(${T.c}, x), IN(${T.c}, g), OUT(${T.c}, gp), const long points, const long channels,
                          const long SD, const long SH, const long SW) {
    PTR_IN(${T.c}, dy);
    PTR_IN(${T.c}, x);
    PTR_IN(${T.c}, g);
    PTR_OUT(${T.c}, gp);
    const long begin = get_global_id(0) * ${POINTS}, image = get_global_id(1);
    if (begin >= points) return;
    const int some = (int)min((long)${POINTS}, points - begin);
${pts.arrays(T, RANK, MODE, PAD, ALIGN, POINTS, SLOPES=True)}
    ${ACC} ${", ".join(f"s{a}[{POINTS}]" for a in AXES)};
    for (int q = 0; q < some; q++) { ${" ".join(f"s{a}[q] = 0;" for a in AXES)} }
    for (long ch = 0; ch < channels; ch++) {
        __global const ${T.c}* restrict plane = x + (image * channels + ch) * SD * SH * SW;
        __global const ${T.c}* restrict from = dy + (image * channels + ch) * points + begin;
        for (int q = 0; q < some; q++) {
            const ${ACC} e = ${T.load}(from, q);
            ${ACC} ${", ".join(f"t{a} = 0" for a in AXES)};
% for n in range(N):
            {
                const ${ACC} v = o${n}[q] < 0 ? (${ACC})0 : (${ACC})${T.load}(plane, max(o${n}[q], 0));
                ${" ".join(f"t{a} += d{n}{a}[q] * v;" for a in AXES)}
            }
% endfor
            ${" ".join(f"s{a}[q] += e * t{a};" for a in AXES)}
        }
    }
    __global ${T.c}* restrict to = gp + (image * points + begin) * ${RANK};
    for (int q = 0; q < some; q++) {
% for k, a in enumerate(reversed(AXES)):
        ${T.store}(to, q * ${RANK} + ${k}, s${a}[q]);
% endfor
    }
}
