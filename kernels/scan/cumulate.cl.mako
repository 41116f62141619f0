<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="lanes" file="/scan/lanes.cl.mako"/>\
## Running sums, products or log-sum-exps along the middle dimension of X (outer, n, inner), in fixed blocks: the order of operations
## depends on the sizes only, so every device gives the same sums and products.
##   PHASE whole   Y = scan of X (one part)
##   PHASE total   Y (outer, parts, inner) = result of each part of PART elements, in the accumulate type
##   PHASE apply   Y = scan of X, each part continued from Z[part - 1], the scanned totals
##
## Within a part, blocks of BLOCK elements (16; 8 of 64-bit types) are scanned in log2 steps, then continued from what came before.
##
## FORM      geometry
## array     global (inner, outer, parts)                                     a block in an array (GPUs)
## vector    global (1, outer * parts / chunk), inner = 1, local size 1       a block in the lanes of a vector (CPUs)
## columns   global (inner / COLUMNS, outer * parts / chunk), local size 1    a block in vectors of neighbouring columns (CPUs)
## beside    global (1, outer * parts / chunk), inner = COUNT, local size 1   a block's rows as they lie, in COUNT vectors (CPUs)
## rows      global (1, outer / chunk), inner = 1, n = COUNT, local size 1    a vector's number of sequences as they lie, in COUNT vectors (CPUs)
## Sizes are rounded up; all but the first take `chunk` parts (rows: sequences), one after another.
##
## parameter  values                meaning
## T, R       dtype rows            of X, of Y; the same but for PHASE total
## OP         sum prod logaddexp    how elements combine
## REVERSE    bool                  from the last element to the first
## PHASE FORM see above
## complex    FORM == "array"
## COLUMNS    multiple of 64        columns per work-item of form columns
## COUNT      1 ... 15              of forms beside and rows (rows: at most the lanes of a vector)
<%!
    def nothing(OP, T):
        """What combines with anything to that; for sums the zero that keeps the sign of zeros."""
        return dict(sum=f"({T.acc})(-0.0f)" if T.is_complex else "-0.0f" if T.acc == "float" else "-0.0" if T.acc == "double" else "0", prod=T.one, logaddexp=f"({T.acc})(-INFINITY, 0)" if T.is_complex else "-INFINITY")[OP]
%>\
<%
    A = T.acc
    W = 8 if A in ("double", "long", "double2") else 16
    V = f"{A}{W}"
    NOTHING = nothing(OP, T)
    last = "0" if REVERSE else "%x" % (W - 1)
    gathered, SPAN = lanes.attr.gathered, range(COUNT * W)
    vectors = lambda source: lanes.attr.places(COUNT, W, source)
    moved = lambda s: lanes.attr.moved(COUNT, W, s, FORM == "rows", REVERSE)
%>
% if OP == "sum":
#define COMBINE(a, b) ((a) + (b))
% elif OP == "prod":
#define COMBINE(a, b) ${f"clnn_c_mul_{'d' if A == 'double2' else 'f'}((a), (b))" if T.is_complex else "((a) * (b))"}
% else:
#define COMBINE(a, b) ${f"clnn_c_logaddexp_{A[0]}((a), (b))" if T.is_complex else "((a) == (b) && isinf(a) ? (a) : fmax(a, b) + clnn_log1p(clnn_exp(-fabs((a) - (b)))))"}
% endif
% if FORM != "array":
${vec.vector_io(T, W)}
% if R is not T:
${vec.vector_io(R, W)}
% endif
% endif
% if FORM == "vector":
static inline ${V} scan_block(${V} v) {
% for s in lanes.attr.steps(W):
    v = COMBINE(${lanes.attr.shifted("v", A, W, s, NOTHING, REVERSE)}, v);
% endfor
    return v;
}
% endif
__kernel void scan_cumulate(IN(${T.c}, X), IN(${A}, Z), OUT(${R.c}, Y), const long outer, const long n, const long inner, const long part,
                            const long parts, const long chunk) {
    PTR_IN(${T.c}, X);
    PTR_IN(${A}, Z);
    PTR_OUT(${R.c}, Y);
% if FORM == "array":
    const long i = get_global_id(0), o = get_global_id(1), p = get_global_id(2);
    if (i >= inner || o >= outer) return;
    {
% elif FORM == "rows":
    const long end = min(outer, (long)(get_global_id(1) + 1) * chunk), step = ${-1 if REVERSE else 1};
    const int m = ${COUNT};
    long o = get_global_id(1) * chunk;
    for (; o + ${W} <= end; o += ${W}) {
        ${block("X + o * n", "Y + o * n")}
    }
    for (; o < end; o++) {
        const long at = o * n${" + n - 1" if REVERSE else ""};
        ${A} run = ${NOTHING};
        int k = 0;
        ${rest("at", A)}
% else:
    const long i = get_global_id(0) * ${COLUMNS if FORM == "columns" else 1}, end = min(outer * parts, (long)(get_global_id(1) + 1) * chunk);
    if (i >= inner) return;
    for (long unit = get_global_id(1) * chunk; unit < end; unit++) {
    const long o = unit / parts, p = unit - o * parts;
% endif
% if FORM != "rows":
    const long first = p * part;
    const int m = (int)(min(n, first + part) - first);
    const long step = ${"-inner" if REVERSE else "inner"};
    long at = (o * n + ${"n - 1 - first" if REVERSE else "first"}) * inner + i;
    const long to = (o * parts + p) * inner + i;
% if FORM == "vector":
    ${A} run = ${NOTHING};
% if PHASE == "apply":
    const ${A} past = p ? Z[to - 1] : ${NOTHING};
% endif
    int k = 0;
    for (; k + ${W} <= m; k += ${W}) {
        const long here = ${f"at - k - {W - 1}" if REVERSE else "at + k"};
        const ${V} v = COMBINE((${V})(run), scan_block(ldv_${T.name}(X + here)));
        run = v.s${last};
% if PHASE != "total":
        stv_${R.name}(Y + here, ${f"COMBINE(({V})(past), v)" if PHASE == "apply" else "v"});
% endif
    }
    ${rest("at", A)}
% if PHASE == "total":
    ${R.store}(Y, to, run);
% endif
% elif FORM == "beside":
% for q in range(COUNT):
    ${V} run${q} = (${V})(${NOTHING});
% if PHASE == "apply":
    const ${V} past${q} = p ? (${V})(${", ".join(f"Z[to - inner + {f % COUNT}]" for f in SPAN[q * W:(q + 1) * W])}) : (${V})(${NOTHING});
% endif
% endfor
    int done = 0;
    for (; done + ${W} <= m; done += ${W}) {
        ${block(f"X + at + step * (done + {W - 1 if REVERSE else 0})", f"Y + at + step * (done + {W - 1 if REVERSE else 0})")}
    }
    ${A} kept[${COUNT * W}];
% for q in range(COUNT):
    vstore${W}(run${q}, ${q}, kept);
% endfor
    for (int c = 0; c < ${COUNT}; c++) {
        ${A} run = kept[c];
        int k = done;
% if PHASE == "apply":
        const ${A} past = p ? Z[to + c - inner] : ${NOTHING};
% endif
        ${rest("at + c", A)}
% if PHASE == "total":
        ${R.store}(Y, to + c, run);
% endif
    }
% elif FORM == "columns":
    const int w = (int)min((long)${COLUMNS}, inner - i), whole = w / ${W} * ${W};
    ${A} kept[${COLUMNS}], before[${COLUMNS}];
    for (int c = 0; c < w; c++) {
        kept[c] = ${NOTHING};
% if PHASE == "apply":
        before[c] = p ? Z[to + c - inner] : ${NOTHING};
% endif
    }
    int done = 0;
    for (; done + ${W} <= m; done += ${W})
        for (int c = 0; c < whole; c += ${W}) {
% for l in range(W):
            ${V} b${l} = ldv_${T.name}(X + at + c + step * (done + ${l}));
% endfor
% for s in lanes.attr.steps(W):
% for l in range(W - 1, s - 1, -1):
            b${l} = COMBINE(b${l - s}, b${l});
% endfor
% endfor
            const ${V} run = vload${W}(0, kept + c);
% if PHASE == "apply":
            const ${V} past = vload${W}(0, before + c);
% endif
% for l in range(W):
            b${l} = COMBINE(run, b${l});
% if PHASE != "total":
            stv_${R.name}(Y + at + c + step * (done + ${l}), ${f"COMBINE(past, b{l})" if PHASE == "apply" else f"b{l}"});
% endif
% endfor
            vstore${W}(b${W - 1}, 0, kept + c);
        }
    for (int c = 0; c < w; c++) {
        ${A} run = kept[c];
        int k = c < whole ? done : 0;
% if PHASE == "apply":
        const ${A} past = before[c];
% endif
        ${rest("at + c", A)}
% if PHASE == "total":
        ${R.store}(Y, to + c, run);
% endif
    }
% else:
    ${A} run = ${NOTHING};
% if PHASE == "apply":
    const ${A} past = p ? Z[to - inner] : ${NOTHING};
% endif
    int k = 0;
    ${rest("at", A)}
% if PHASE == "total":
    ${R.store}(Y, to, run);
% endif
% endif
% endif
    }
}
## block: the COUNT vectors from pointer `begin` on, scanned and continued, to pointer `end`
<%def name="block(begin, end)">
% for q in range(COUNT):
        ${V} b${q} = ldv_${T.name}(${begin} + ${q * W});
% endfor
% for s in lanes.attr.steps(W) if FORM != "rows" else [s for s in lanes.attr.steps(W) if s < COUNT]:
        {
% for q, sources in enumerate(moved(s)):
            const ${V} m${q} = ${gathered("b", A, W, sources, NOTHING)};
% endfor
% for q in range(COUNT):
            b${q} = COMBINE(m${q}, b${q});
% endfor
        }
% endfor
% if FORM == "beside":
% for q in range(COUNT):
        b${q} = COMBINE(run${q}, b${q});
% endfor
% endif
% if PHASE != "total":
% for q in range(COUNT):
        stv_${R.name}(${end} + ${q * W}, ${f"COMBINE(past{q}, b{q})" if PHASE == "apply" else f"b{q}"});
% endfor
% endif
% if FORM == "beside":
% for q, sources in enumerate(vectors(lambda f: f % COUNT + (0 if REVERSE else (W - 1) * COUNT))):
        run${q} = ${gathered("b", A, W, sources, NOTHING)};
% endfor
% endif
</%def>\
## rest: the blocks from element k on, with the elements of a block one by one
<%def name="rest(begin, A)">
<%
    W = 8 if A in ("double", "long", "double2") else 16
    NOTHING = nothing(OP, T)
%>\
    for (; k < m; k += ${W}) {
        const int some = min(${W}, m - k);
        ${A} b[${W}];
        for (int l = 0; l < ${W}; l++) b[l] = l < some ? ${T.load}(X, ${begin} + step * (k + l)) : ${NOTHING};
% for s in lanes.attr.steps(W):
        for (int l = ${W - 1}; l >= ${s}; l--) b[l] = COMBINE(b[l - ${s}], b[l]);
% endfor
        for (int l = 0; l < ${W}; l++) {
            b[l] = COMBINE(run, b[l]);
% if PHASE != "total":
            if (l < some) ${R.store}(Y, ${begin} + step * (k + l), ${"COMBINE(past, b[l])" if PHASE == "apply" else "b[l]"});
% endif
        }
        run = b[some - 1];
    }
</%def>
