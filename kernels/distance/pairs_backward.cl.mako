<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## The gradient of distance/pairs by x: gx[b, i, m] = sum over j of w[b, i, j] * f(x[b, i, m] - y[b, m, j]) with f(d) = sign(d) |d|^(p - 1), where w is the
## gradient of the distances over their power p - 1. With TRIANGLE w has pairs i < j alone, and both x and y are the rows, whose gradient is this sum.
##
## x, gx (B, P, M), y (B, M, R), w (B, P, R) or pairs, contiguous; line: R elements of scratch per work-item with TRIANGLE.
## Geometry: global (ceil(P / chunk), B), any local size. Parameters as in distance/pairs, w and line of the compute type; W: lanes over j, any R.
<%
    ACC, BLOCK = T.acc, 4
    V = ACC if W == 1 else f"{ACC}{W}"
    load = lambda p: f"ldv_{T.name}({p})" if W > 1 else f"{T.load}({p}, 0)"
    LANE = "0123456789abcdef"
    def slope(t):
        zero = f"({t})(0)" if t != ACC else "0"
        if P == 2:
            return "d"
        one = f"(d > {zero} ? ({t})(1) : d < {zero} ? ({t})(-1) : d)"
        return one if P == 1 else f"(d == {zero} ? {zero} : {one} * pow(fabs(d), ({t})(p - 1)))"
%>\
% if W > 1:
${vec.vector_io(T, W)}
% endif
__kernel void pairs_backward(IN(${ACC}, w), IN(${T.c}, x), IN(${T.c}, y), OUT(${T.c}, gx), OUT(${ACC}, line), const long P, const long R, const long M,
                             const long chunk, const ${ACC} p) {
    PTR_IN(${ACC}, w); PTR_IN(${T.c}, x); PTR_IN(${T.c}, y); PTR_OUT(${T.c}, gx);
    const long b = get_global_id(1), last = min(P, (long)(get_global_id(0) + 1) * chunk);
    for (long i = get_global_id(0) * chunk; i < last; i++) {
% if TRIANGLE:
        __global ${ACC}* by = line_p + line_o + get_global_id(0) * R;
        for (long j = 0; j < i; j++) by[j] = w[j * R - j * (j + 1) / 2 - j - 1 + i];
        by[i] = 0;
        for (long j = i + 1; j < R; j++) by[j] = w[i * R - i * (i + 1) / 2 - i - 1 + j];
% else:
        __global const ${ACC}* by = w + (b * P + i) * R;
% endif
        for (long m0 = 0; m0 < M; m0 += ${BLOCK}) {
            __global const ${T.c}* from = y + (b * M + m0) * R;
            const long ${", ".join(f"f{k} = (m0 + {k} < M ? {k} : 0) * R" for k in range(BLOCK))};
            const ${ACC} ${", ".join(f"x{k} = {T.load}(x, (b * P + i) * M + min(m0 + {k}, M - 1))" for k in range(BLOCK))};
            ${V} ${", ".join(f"s{k} = 0" for k in range(BLOCK))};
            long j = 0;
            for (; j + ${W} <= R; j += ${W}) {
                const ${V} c = ${f"vload{W}(0, by + j)" if W > 1 else "by[j]"};
% for k in range(BLOCK):
                { const ${V} d = x${k} - ${load(f"from + f{k} + j")}; s${k} += c * ${slope(V)}; }
% endfor
            }
% for k in range(BLOCK):
            if (m0 + ${k} < M) {
                ${ACC} sum = ${" + ".join(f"s{k}.s{LANE[l]}" for l in range(W)) if W > 1 else f"s{k}"};
                for (long l = j; l < R; l++) { const ${ACC} d = x${k} - ${T.load}(from + f${k}, l); sum += by[l] * ${slope(ACC)}; }
                ${T.store}(gx, (b * P + i) * M + m0 + ${k}, sum);
            }
% endfor
        }
    }
}
