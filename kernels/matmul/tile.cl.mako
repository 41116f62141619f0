## The register tile that every CPU kernel of matrix products and convolutions is built from: MR rows x NV vectors of W lanes.
##
## def                                        emits
## multiply(MR, NV, V, a, b, step, ahead)     declares c<r>_<j> and accumulates kc steps; a(r) and b(j) give the operands of step k; ahead(k) emits
##                                            what fetches the next tile's steps k to k + 15 while this one is computed
## fetch_result(MR, NV, W)                    fetches the lines of the result, which would else be waited for one after the other
## store(MR, NV, W, V, TC, first, last, ...)  writes them: scale, add to C, bias, epilogue; `full` chooses vectors or guarded scalars
## sums(MR, NV, V)                            puts them into the array t: a loop over stored rows builds much faster than unrolled stores and costs next to
##                                            nothing
##
## Both are plain text in the caller's scope. store expects: i (row of the tile), i_new (first row that is ours), r_end (rows of
## the tile inside C), jt (column of the tile), j_new (first column that is ours), n_end (columns of C), c (address of the tile),
## alpha, beta, first, last, full.
## An epilogue is a C expression in v (and row). One that writes the type of v as VT is valid on vectors too.
<%!
    import re

    SPAN = 32  # steps between fetches for the next tile, a multiple of 16: a shorter run pays more often for leaving its loop

    def passes(MR, NV, V, ACC, DEV):
        """Parts of the tile, (rows, vectors) each, whose sums fit the device's vector registers together with their operands."""
        size = int(V[len(ACC):] or 1) * (8 if ACC in ("double", "long") else 4)
        room = getattr(DEV, "registers", 0)
        if not room or MR * NV * size <= room * 3 // 4:
            return [(range(MR), range(NV))]
        vectors = max(1, min(NV, room * 3 // 16 // size))
        rows = -(-MR // -(-MR // max(1, room * 2 // 3 // (vectors * size))))
        return [(range(r, min(MR, r + rows)), range(j, min(NV, j + vectors))) for j in range(0, NV, vectors) for r in range(0, MR, rows)]

    def vector_epilogue(text):
        return not text or "VT" in text
%>\
<%def name="multiply(MR, NV, V, ACC, a, b, step='', ahead=None, unroll=2, X=None, start=None)">
## X: the vector type of the operands where it is not that of the sums; start(j): what the sums begin with (zeros).
## unroll: steps per pass of the loop, which share counting and address sums. 4 pays in long runs, but costs time to build; 8 no longer fit
## the cache of decoded instructions. A tile of more sums than the registers hold is computed in parts, each with its own walk over the operands.
## Intel's compiler misreads packed columns in local memory in a second walk over them: cpu_tile gives tiles that need no parts.
<%
    parts = passes(MR, NV, V, ACC, DEV)
    walked = re.findall(r"(\w+) \+=", step) if len(parts) > 1 else []
%>\
% for r in range(MR):
${V} ${", ".join(f"c{r}_{j} = {start(j) if start else 0}" for j in range(NV))};
% endfor
% for part, (rows, vectors) in enumerate(parts):
% if walked:
{ ${" ".join(f"__typeof__({p}) {p}_0 = {p};" for p in walked)} { ${" ".join(f"__typeof__({p}_0) {p} = {p}_0;" for p in walked)}
% endif
    ${walk(rows, vectors, X or V, a, b, step, None if part else ahead, unroll)}
% if walked:
} }
% endif
% endfor
</%def>
##
<%def name="walk(rows, vectors, V, a, b, step, ahead, unroll)">
% if ahead:
for (long k_new = 0; k_new < kc; k_new += ${SPAN}) {
    ${" ".join(ahead(f"(k_new + {part})") for part in range(0, SPAN, 16))}
% else:
{
    const long k_new = 0;
% endif
    const long k_stop = ${f"min(k_new + {SPAN}, kc)" if ahead else "kc"};
    long k_pass = k_new;
    for (; k_pass + ${unroll} <= k_stop; k_pass += ${unroll}) {
% for u in range(unroll):
        { const long k = k_pass + ${u}; ${one_step(rows, vectors, V, a, b, step)} }
% endfor
    }
    for (; k_pass < k_stop; k_pass++) { const long k = k_pass; ${one_step(rows, vectors, V, a, b, step)} }
}
</%def>
##
<%def name="one_step(rows, vectors, V, a, b, step)">
% for j in vectors:
    const ${V} b${j} = ${b(j)};
% endfor
% for r in rows:
    { const ${V} x = (${V})(${a(r)}); ${" ".join(f"c{r}_{j} = MAC(x, b{j}, c{r}_{j});" for j in vectors)} }
% endfor
    ${step}
</%def>
##
<%def name="fetch_result(MR, NV, W)">
% for r in range(MR):
    ${" ".join(f"FETCH(c + {r} * rcs + {j * W});" for j in range(NV))}
% endfor
</%def>
##
<%def name="macros(ACC)">
% if ACC in ("float", "double"):
#define MAC(x, y, z) fma(x, y, z)
% else:
#define MAC(x, y, z) ((x) * (y) + (z))
% endif
</%def>
##
<%def name="finish(TC, ACC, V, BIAS, BETA, EPI, where, col, vec, TBIAS=None)">
<%
    load = (lambda p: f"ldv_{TC.name}({p})") if vec else (lambda p: f"{TC.load}({p}, 0)")
%>\
if (!first) v += ${load(where)};
% if BETA:
else v += beta * ${load(where)};
% endif
if (last) {
% if BIAS == "n":
    v += ${load(f"bias + {col}")};
% elif BIAS == "m":
    v += ${(TBIAS or TC).load}(bias, row);
% endif
% if EPI:
    v = ${EPI.replace("VT", V)};
% endif
}
</%def>
##
<%def name="store(MR, NV, W, V, ACC, TC, BIAS, BETA, EPI)">
if (full${"" if vector_epilogue(EPI) else " && !last"}) {
    ${store_vectors(MR, NV, W, V, ACC, TC, BIAS, BETA, EPI)}
} else {
    ${sums(MR, NV, V)}
    const ${ACC}* e = (const ${ACC}*)t;
    const int j_end = (int)min((long)${NV * W}, n_end - jt);
    for (int r = (int)(i_new - i); r < r_end; r++) {
        const long row = i + r;
        for (int j = (int)j_new; j < j_end; j++) {
            ${ACC} v = e[r * ${NV * W} + j] * alpha;
            __global ${TC.c}* p = c + r * rcs + j;
            ${finish(TC, ACC, ACC, BIAS, BETA, EPI, "p", "jt + j", False)}
            ${TC.store}(p, 0, v);
        }
    }
}
</%def>
##
<%def name="sums(MR, NV, V)">
${V} t[${MR * NV}];
% for r in range(MR):
${" ".join(f"t[{r * NV + j}] = c{r}_{j};" for j in range(NV))}
% endfor
</%def>
##
<%def name="store_vectors(MR, NV, W, V, ACC, TC, BIAS, BETA, EPI, TBIAS=None)">
${sums(MR, NV, V)}
for (int r = 0; r < ${MR}; r++) {
    const long row = i + r;
% for j in range(NV):
    { ${V} v = t[r * ${NV} + ${j}] * alpha; __global ${TC.c}* p = c + r * rcs + ${j * W};
      ${finish(TC, ACC, V, BIAS, BETA, EPI if vector_epilogue(EPI) else "", "p", f"jt + {j * W}", True, TBIAS)} stv_${TC.name}(p, v); }
% endfor
}
</%def>
