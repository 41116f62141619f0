<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## First position of the largest (smallest) element of each row of X (outer, n), NaN counting as the extreme: V, I (outer) = value and position.
## For many short rows on CPUs: the lanes of W rows (16; 8 of 64-bit types) are brought together at once.
##
## Geometry: global (outer / ROWS rounded up), local 1.
##
## parameter  values       meaning
## T          dtype row    of X and V
## SIGN       ">" "<"      largest or smallest
## ROWS       multiple of W, rows per work-item
## Limit: n < 2^31.
#define BETTER(a, b) (((a) ${SIGN} (b)) | (((a) != (a)) & ((b) == (b))))
#define FIRST(a, ia, b, ib) (BETTER(a, b) | (!BETTER(b, a) & ((ia) < (ib))))
<%
    A = T.acc
    W = 8 if A in ("double", "long") else 16
    P = "long" if W == 8 else "int"                      # positions in lanes as wide as the values
    def lanes(h, odd):
        return "s" + "".join("0123456789abcdef"[l] for l in range(W) if bool(l & h) == odd)
%>
${vec.vector_io(T, W)}
__kernel void arg_few(IN(${T.c}, X), OUT(${T.c}, V), OUT(long, I), const long outer, const long n) {
    PTR_IN(${T.c}, X);
    PTR_OUT(${T.c}, V);
    PTR_OUT(long, I);
    const long end = min(outer, (long)(get_global_id(0) + 1) * ${ROWS});
    const ${P}${W} lane = (${P}${W})(${", ".join(map(str, range(W)))});
    const int m = (int)n;
    for (long o = get_global_id(0) * ${ROWS}; o < end; o += ${W}) {
        const int rows = (int)min(${W}L, end - o);
        ${A} best[${W * W}];
        ${P} place[${W * W}];
        for (int r = 0; r < rows; r++) {
            __global const ${T.c}* from = X + (o + r) * n;
            ${A}${W} b0;
            ${P}${W} a0 = lane;
            if (m >= ${W}) {
                b0 = ldv_${T.name}(from);
                for (int k = ${W}; k < m; k += ${W}) {               /* the last vector may have elements of the one before it */
                    const int at = min(k, m - ${W});
                    const ${A}${W} v = ldv_${T.name}(from + at);
                    const ${P}${W} take = BETTER(v, b0);
                    b0 = take ? v : b0;
                    a0 = take ? lane + (${P}${W})(at) : a0;
                }
            } else {                                                /* lanes past the end have the first element */
                const ${A}${W} none = (${A}${W})(${T.load}(from, 0));
                if ((outer - o - r) * n >= ${W}) b0 = ldv_${T.name}(from);
                else {
                    ${A} t[${W}];
                    for (int l = 0; l < ${W}; l++) t[l] = ${T.load}(from, min(l, m - 1));
                    b0 = vload${W}(0, t);
                }
                const ${P}${W} inside = lane < (${P}${W})(m);
                b0 = inside ? b0 : none;
                a0 = inside ? a0 : (${P}${W})(0);
            }
            vstore${W}(b0, r, best);
            vstore${W}(a0, r, place);
        }
        for (int r = rows; r < ${W}; r++) { vstore${W}(vload${W}(0, best), r, best); vstore${W}(vload${W}(0, place), r, place); }
% for q in range(W):
        ${A}${W} b${q} = vload${W}(${q}, best);
        ${P}${W} a${q} = vload${W}(${q}, place);
% endfor
<% h = W // 2 %>\
% while h:
% for q in range(h):
        {
            const ${A}${W} low = (${A}${W})(b${2 * q}.${lanes(h, False)}, b${2 * q + 1}.${lanes(h, False)});
            const ${A}${W} high = (${A}${W})(b${2 * q}.${lanes(h, True)}, b${2 * q + 1}.${lanes(h, True)});
            const ${P}${W} il = (${P}${W})(a${2 * q}.${lanes(h, False)}, a${2 * q + 1}.${lanes(h, False)});
            const ${P}${W} ih = (${P}${W})(a${2 * q}.${lanes(h, True)}, a${2 * q + 1}.${lanes(h, True)});
            const ${P}${W} other = FIRST(high, ih, low, il);
            b${q} = other ? high : low;
            a${q} = other ? ih : il;
        }
% endfor
<% h //= 2 %>\
% endwhile
        if (rows == ${W}) {
            stv_${T.name}(V + o, b0);
            vstore${W}(${"a0" if P == "long" else f"convert_long{W}(a0)"}, 0, I + o);
        } else {
            vstore${W}(b0, 0, best);
            vstore${W}(a0, 0, place);
            for (int r = 0; r < rows; r++) { ${T.store}(V, o + r, best[r]); I[o + r] = place[r]; }
        }
    }
}
