<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="lanes" file="/scan/lanes.cl.mako"/>\
<%namespace name="op" file="/scan/combine.cl.mako"/>\
## Running sums, products or log-sum-exps along the middle dimension of X (outer, n, inner), in fixed blocks: the order of operations
## depends on the sizes only, so every device gives the same sums and products.
##   PHASE whole   Y = scan of X (one part)
##   PHASE total   Y (outer, parts, inner) = result of each part of PART elements, in the accumulate type
##   PHASE apply   Y = scan of X, each part continued from Z[part - 1], the scanned totals
##   PHASE through Y = scan of X, part after part: the totals are scanned on the way, as the other phases do it (form vector)
## (many neighbouring columns on CPUs: scan/columns)
##
## Within a part, blocks of BLOCK elements (16; 8 of 64-bit types) are scanned in log2 steps, then continued from what came before.
##
## FORM      geometry
## array     global (inner, outer, parts)                                     a block in an array (GPUs)
## vector    global (1, outer * parts / chunk), inner = 1, local size 1       a block in the lanes of a vector (CPUs)
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
## COUNT      1 ... 15              of forms beside and rows (rows: at most the lanes of a vector)
<%
    A = T.acc
    W = 8 if A in ("double", "long", "double2") else 16
    V = f"{A}{W}"
    NOTHING = op.attr.nothing(OP, T)
    last = "0" if REVERSE else "%x" % (W - 1)
    gathered, SPAN = lanes.attr.gathered, range(COUNT * W)
    vectors = lambda source: lanes.attr.places(COUNT, W, source)
    moved = lambda s: lanes.attr.moved(COUNT, W, s, FORM == "rows", REVERSE)
%>
${op.combine(OP, T)}
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
    const long i = 0, end = min(outer${"" if PHASE == "through" else " * parts"}, (long)(get_global_id(1) + 1) * chunk);
    for (long unit = get_global_id(1) * chunk; unit < end; unit++) {
% if PHASE == "through":
    const long o = unit;
    ${V} totals = (${V})(0);
    ${A} past = ${NOTHING}, earlier = past;
    for (long p = 0; p < parts; p++) {
% else:
    const long o = unit / parts, p = unit - o * parts;
% endif
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
        stv_${R.name}(Y + here, ${f"COMBINE(({V})(past), v)" if PHASE in ("apply", "through") else "v"});
% endif
    }
    ${rest("at", A)}
% if PHASE == "total":
    ${R.store}(Y, to, run);
% elif PHASE == "through":
    ## the total of part p in a lane of its own: a block of W totals is scanned as theirs is where they are stored
    const int q = (int)(p % ${W}), place = ${f"{W - 1} - q" if REVERSE else "q"};
    ${A} t[${W}];
    vstore${W}(totals, 0, t);
    t[place] = run;
    totals = vload${W}(0, t);
    vstore${W}(scan_block(totals), 0, t);
    past = COMBINE(earlier, t[place]);
    if (q == ${W - 1}) earlier = past;
    }
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
    NOTHING = op.attr.nothing(OP, T)
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
            if (l < some) ${R.store}(Y, ${begin} + step * (k + l), ${"COMBINE(past, b[l])" if PHASE in ("apply", "through") else "b[l]"});
% endif
        }
        run = b[some - 1];
    }
</%def>
