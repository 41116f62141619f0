## Masks of scores in registers, for the kernels of GPUs: parameters, and the scores as exponents of two.
<%!
    def adds(MASK):
        """Whether scores are multiplied by `unit` (scale and log2 e) before a mask is added, rather than in the exponent."""
        return MASK is not None and MASK.name != "bool"
%>\
<%def name="parameters(MASK)">
% if MASK:
        , IN(${MASK.c}, mask), const long m0, const long m1, const long m2, const long m3
% endif
</%def>
## Scores s[MT][NT][4] of queries q0 + row and keys k0 + key (texts in i, j, r): -Inf where a query does not see a key; times `unit` plus the mask where one adds.
## A warp whose block of BK keys is seen whole skips the comparisons. q0: first query of the warp's 16 MT; `queries` are they or, turned, its keys.
<%def name="scaled(s, MASK, CAUSAL, MT, NT, BK, q0, k0, row, key, L, S)">
        if (${"true" if MASK else f"{k0} + {BK} > {S}" + (f" || {k0} + {BK - 1} > {q0}" if CAUSAL else "")}) {
            #pragma unroll
            for (int i = 0; i < ${MT}; i++) {
                #pragma unroll
                for (int j = 0; j < ${NT}; j++) {
                    #pragma unroll
                    for (int r = 0; r < 4; r++) {
                        const long query = ${q0} + ${row}, key = ${k0} + ${key};
                        float x = ${s}[(i * ${NT} + j) * 4 + r];
% if MASK:
                        const long place = mask_o + b * m0 + h * m1 + min(query, ${L} - 1) * m2 + min(key, ${S} - 1) * m3;
% if MASK.name == "bool":
                        x = mask_p[place] ? x : -INFINITY;
% else:
                        const float v = ${MASK.load}(mask_p, place), w = v * 1.44269504f;
                        x = fma(x, unit, isinf(w) ? v : w);     /* the lowest float is a mask, too, and no infinity */
% endif
% endif
                        ${s}[(i * ${NT} + j) * 4 + r] = key < ${S}${" && key <= query" if CAUSAL else ""} ? x : -INFINITY;
                    }
                }
            }
        }
</%def>
