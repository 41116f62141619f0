<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## First position of the largest (smallest) element along the middle dimension of X (outer, n, inner); NaN counts as the extreme.
##   V[o, p, i], I[o, p, i] = value and position of part p of the row (o, i); parts are PART elements long
##
## Geometry and STYLE
##   serial   one work-item per (i, o, p): columns, and short rows; with FLAT, inner = 1 and global (outer, 1, parts)
##   (many short rows: reduction/arg_few; few columns: reduction/arg_slim; on GPUs all: reduction/arg_group)
##   vector   one work-item per (ROWS values of o, p), inner = 1: candidates in the lanes of vectors
##   block    one work-item per (span values of i, o, p): the same for columns, row by row in long runs
##
## parameter  values            meaning
## T          dtype row         of X and V
## SIGN       ">" "<"           largest or smallest
## STYLE      see above
## CHUNK      1..               the most that span may be, a multiple of 64
## ROWS       1..               rows per work-item of style vector; FLAT bool
## POSITIONS  bool              X comes with positions J of an earlier stage, else a position is the index along n
## Limits: a part has fewer than 2^31 elements.
#define BETTER(a, b) (((a) ${SIGN} (b)) | (((a) != (a)) & ((b) == (b))))
#define FIRST(a, ia, b, ib) (BETTER(a, b) | (!BETTER(b, a) & ((ia) < (ib))))
<%
    A = T.acc
    W = 8 if A in ("double", "long") else 16
    P = "long" if W == 8 else "int"                      # positions in lanes as wide as the values
    USES_VECTORS = STYLE in ("vector", "block")
%>
% if USES_VECTORS:
${vec.vector_io(T, W)}
% endif
__kernel void reduction_arg(IN(${T.c}, X), IN(long, J), OUT(${T.c}, V), OUT(long, I), const long outer, const long n, const long inner,
                            const long part, const long parts, const long span) {
    PTR_IN(${T.c}, X);
    PTR_IN(long, J);
    PTR_OUT(${T.c}, V);
    PTR_OUT(long, I);
% if STYLE == "vector":
    const long p = get_global_id(1), o_begin = get_global_id(0) * ${ROWS}, o_end = min(outer, o_begin + ${ROWS});
    for (long o = o_begin; o < o_end; o++) {
% else:
    const long i = ${"0" if FLAT else "get_global_id(0)"}${" * span" if STYLE == "block" else ""}, \
o = get_global_id(${0 if FLAT else 1}), p = get_global_id(2);
% endif
% if STYLE == "serial":
    if (i >= inner || o >= outer) return;
% endif
    const long first = p * part;
    const int m = (int)(min(n, first + part) - first);
    const long base = (o * n + first) * inner;
    const long to = ${"o * parts + p" if STYLE == "vector" else "(o * parts + p) * inner + i"};
% if STYLE == "vector":
    ${A} best = ${T.load}(X, base);
    ${P} at = 0;
    int k = 0;
    if (m >= ${W}) {
        const ${P}${W} lane = (${P}${W})(${", ".join(map(str, range(W)))});
        ${A}${W} b0 = ldv_${T.name}(X + base), b1 = b0;
        ${P}${W} a0 = lane, a1 = lane;
        k = ${W};
        for (; k + ${2 * W} <= m; k += ${2 * W}) {
% for q in range(2):
            {
                const ${A}${W} v = ldv_${T.name}(X + base + k + ${q * W});
                const ${P}${W} take = BETTER(v, b${q});
                b${q} = take ? v : b${q};
                a${q} = take ? lane + (${P}${W})(k + ${q * W}) : a${q};
            }
% endfor
        }
        for (; k + ${W} <= m; k += ${W}) {
            const ${A}${W} v = ldv_${T.name}(X + base + k);
            const ${P}${W} take = BETTER(v, b0);
            b0 = take ? v : b0;
            a0 = take ? lane + (${P}${W})(k) : a0;
        }
        const ${P}${W} other = FIRST(b1, a1, b0, a0);
        b0 = other ? b1 : b0;
        a0 = other ? a1 : a0;
<% n = W // 2 %>\
% while n >= 2:
<% b, a = ("b0", "a0") if n == W // 2 else (f"h{2 * n}", f"p{2 * n}") %>\
        const ${P}${n} t${n} = FIRST(${b}.hi, ${a}.hi, ${b}.lo, ${a}.lo);
        const ${A}${n} h${n} = t${n} ? ${b}.hi : ${b}.lo;
        const ${P}${n} p${n} = t${n} ? ${a}.hi : ${a}.lo;
<% n //= 2 %>\
% endwhile
        const int second = FIRST(h2.y, p2.y, h2.x, p2.x);
        best = second ? h2.y : h2.x;
        at = second ? p2.y : p2.x;
    }
    for (; k < m; k++) {
        const ${A} v = ${T.load}(X, base + k);
        if (BETTER(v, best)) { best = v; at = k; }
    }
    ${T.store}(V, to, best);
    I[to] = ${"J[base + at]" if POSITIONS else "first + at"};
    }
% elif STYLE == "block":
    const int w = (int)min(span, inner - i);
    ${A} best[${CHUNK}];
    ${P} at[${CHUNK}];
    if (w < ${W}) {
        for (int c = 0; c < w; c++) { best[c] = ${T.load}(X, base + i + c); at[c] = 0; }
        for (int k = 1; k < m; k++)
            for (int c = 0; c < w; c++) {
                const ${A} v = ${T.load}(X, base + i + c + k * inner);
                if (BETTER(v, best[c])) { best[c] = v; at[c] = k; }
            }
    } else {
        for (int d = 0; d < w; d += ${W}) {                       /* the last vector may have columns of the one before it */
            const int c = min(d, w - ${W});
            vstore${W}(ldv_${T.name}(X + base + i + c), 0, best + c);
            vstore${W}((${P}${W})(0), 0, at + c);
        }
        int k = 1;
<% K = 4 %>\
% for group in (K, 1):
        for (; k + ${group} <= m; k += ${group}) {
            __global const ${T.c}* row = X + base + i + k * inner;
            for (int d = 0; d < w; d += ${W}) {
                const int c = min(d, w - ${W});
                ${A}${W} b = vload${W}(0, best + c);
                ${P}${W} a = vload${W}(0, at + c);
% for q in range(group):
                {
                    const ${A}${W} v = ldv_${T.name}(row + ${q} * inner + c);
                    FETCH(row + ${q + 2 * group} * inner + c);
                    const ${P}${W} take = BETTER(v, b);
                    b = take ? v : b;
                    a = take ? (${P}${W})(k + ${q}) : a;
                }
% endfor
                vstore${W}(b, 0, best + c);
                vstore${W}(a, 0, at + c);
            }
        }
% endfor
    }
    for (int c = 0; c < w; c++) {
        ${T.store}(V, to + c, best[c]);
        I[to + c] = ${"J[base + i + c + at[c] * inner]" if POSITIONS else "first + at[c]"};
    }
% else:
    ${A} best = ${T.load}(X, base + i);
    int at = 0;
    for (int k = 1; k < m; k++) {
        const ${A} v = ${T.load}(X, base + i + k * inner);
        if (BETTER(v, best)) { best = v; at = k; }
    }
    ${T.store}(V, to, best);
    I[to] = ${"J[base + i + at * inner]" if POSITIONS else "first + at"};
% endif
}
