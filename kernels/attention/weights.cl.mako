<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## Attention weights of a block of queries, in place of their scores.
##   s     scores (batch * block, n), overwritten by the weights; row r of batch z is query first + r
##   lse   log of the sum of exponentials per query, (batch, length)
##   mask  added to the scores (float) or keeps where true (bool); read through strides over (z / heads, z % heads, query, key)
## Parameter  legal values
## T          dtype row of s: float32 or float64
## FORM       loop | group, LANES 16 | 64: see rows.cl.mako
## MASK       None, or the dtype row of the mask
## CAUSAL     0 | 1: key j is seen by queries i >= j; DROP 0 | 1: weights are dropped with probability 1 - keep
## A query that sees no key gets weights 0.
<%
    ACC = T.acc
    MAX = lambda a, b: f"({b} > {a} ? {b} : {a})"
    ADD = lambda a, b: f"{a} + {b}"
    load = lambda i: f"score(s, base, {i}, scale{', mask, at, m3' if MASK else ''})"
%>\
% if MASK:
static inline ${ACC} score(__global const ${T.c}* s, long base, long i, ${ACC} scale, __global const ${MASK.c}* mask, long at, long m3) {
% if MASK.name == "bool":
    return mask[at + i * m3] ? s[base + i] * scale : -INFINITY;
% else:
    return s[base + i] * scale + ${MASK.load}(mask, at + i * m3);
% endif
}
% else:
static inline ${ACC} score(__global const ${T.c}* s, long base, long i, ${ACC} scale) { return s[base + i] * scale; }
% endif
__kernel void weights(OUT(${T.c}, s), OUT(${T.c}, lse), const long rows, const long n, const long chunk, const ${ACC} scale, const long block,
        const long first, const long length, const long heads
% if MASK:
        , IN(${MASK.c}, mask), const long m0, const long m1, const long m2, const long m3
% endif
% if DROP:
        , const long seed, const long draw, const long limit, const ${ACC} gain, const long keys
% endif
        ) {
    __global ${T.c}* s = s_p + s_o;
    __global ${T.c}* lse = lse_p + lse_o;
% if MASK:
    __global const ${MASK.c}* mask = mask_p + mask_o;
% endif
${rows.begin(FORM)}
    const long z = row / block, query = first + row % block;
    const long seen = ${"min(n, query + 1)" if CAUSAL else "n"};
% if MASK:
    const long at = z / heads * m0 + z % heads * m1 + query * m2;
% endif
${rows.fold(FORM, LANES, ACC, "m", "-INFINITY", MAX, lambda i: f"const {ACC} e = {load(i)};", n="seen")}
    const ${ACC} top = m == -INFINITY ? 0 : m;
${rows.fold(FORM, LANES, ACC, "t", T.zero, ADD, lambda i: f"const {ACC} e = exp({load(i)} - top); s[base + {i}] = e;", n="seen")}
    const ${ACC} r = t == 0 ? 0 : 1 / t;
% if DROP:
${rows.each(FORM, LANES, ACC, lambda i: f"s[base + {i}] *= clnn_random_word(seed, draw, (z * length + query) * keys + {i}) < (ulong)limit ? r * gain : 0;", n="seen")}
% else:
${rows.each(FORM, LANES, ACC, lambda i: f"s[base + {i}] *= r;", n="seen")}
% endif
% if CAUSAL:
% if FORM == "group":
    for (long i = seen + lane; i < n; i += ${LANES}) s[base + i] = 0;
% else:
    for (long i = seen; i < n; i++) s[base + i] = 0;
% endif
% endif
${rows.store_row(FORM, "lse[z * length + query] = t == 0 ? INFINITY : top + log(t);")}
${rows.end(FORM)}
}
