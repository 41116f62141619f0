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
## Scores s[MT][NT][R] of queries q0 + row and keys k0 + own + key (texts in i, j, r; key is a constant): -Inf where a query does not see a key; times `unit` plus
## the mask where one adds. Where the queries from q0 on see all BK keys, the comparisons are skipped.
<%def name="scaled(s, MASK, CAUSAL, MT, NT, BK, q0, k0, row, own, key, L, S, R=4)">
        if (${"true" if MASK else f"{k0} + {BK} > {S}" + (f" || {k0} + {BK - 1} > {q0}" if CAUSAL else "")}) {
            const int most = (int)min(${S} - 1 - ${k0}, ${BK}L) - ${own};
            #pragma unroll
            for (int i = 0; i < ${MT}; i++) {
                #pragma unroll
                for (int r = 0; r < ${R}; r++) {
                    const int last = ${f"min(most, (int)({q0} - {k0}) + {row} - {own})" if CAUSAL else "most"};
% if MASK:
                    const long place = mask_o + b * m0 + h * m1 + min(${q0} + ${row}, ${L} - 1) * m2;
% endif
                    #pragma unroll
                    for (int j = 0; j < ${NT}; j++) {
                        float x = ${s}[(i * ${NT} + j) * ${R} + r];
% if MASK:
                        const long at = place + min(${k0} + ${own} + ${key}, ${S} - 1) * m3;
% if MASK.name == "bool":
                        x = mask_p[at] ? x : -INFINITY;
% else:
                        const float v = ${MASK.load}(mask_p, at), w = v * 1.44269504f;
                        x = fma(x, unit, isinf(w) ? v : w);     /* the lowest float is a mask, too, and no infinity */
% endif
% endif
                        ${s}[(i * ${NT} + j) * ${R} + r] = ${key} <= last ? x : -INFINITY;
                    }
                }
            }
        }
</%def>
## The same of turned scores s[NT][4] of a warp's 16 keys from k0 on and queries from q0 on. Queries past the end are left to the caller.
<%def name="turned(s, MASK, CAUSAL, NT, k0, q0)">
% if MASK or CAUSAL:
        ${"if (%s < %s + 15)" % (q0, k0) if not MASK else ""}{
            #pragma unroll
            for (int r = 0; r < 4; r++) {
                const int from = ${f"(int)({k0} - {q0}) + g + (r >> 1) * 8 - t * 2" if CAUSAL else "-8"};
% if MASK:
                const long place = mask_o + b * m0 + h * m1 + min(${k0} + g + (r >> 1) * 8, S - 1) * m3;
% endif
                #pragma unroll
                for (int j = 0; j < ${NT}; j++) {
                    float e = ${s}[j * 4 + r];
% if MASK:
                    const long at = place + min(${q0} + t * 2 + j * 8 + (r & 1), L - 1) * m2;
% if MASK.name == "bool":
                    e = mask_p[at] ? e : -INFINITY;
% else:
                    const float v = ${MASK.load}(mask_p, at), w = v * 1.44269504f;
                    e = fma(e, unit, isinf(w) ? v : w);
% endif
% endif
                    ${s}[j * 4 + r] = j * 8 + (r & 1) >= from ? e : -INFINITY;
                }
            }
        }
% endif
</%def>
## The same of scores s[MT][NT] of keys k0 + row (text in i) and queries q0 + column (in j), those past the ends included.
<%def name="upright(s, MASK, CAUSAL, MT, NT, BK, k0, row, q0, column)">
% if MASK or CAUSAL:
        ${f"if ({q0} < {k0} + {BK - 1}) " if not MASK else ""}{
            #pragma unroll
            for (int j = 0; j < ${NT}; j++) {
% if MASK:
                const long place = mask_o + b * m0 + h * m1 + min(${q0} + ${column}, L - 1) * m2;
% endif
                const int last = ${f"(int)({q0} - {k0}) + {column}" if CAUSAL else BK};
                #pragma unroll
                for (int i = 0; i < ${MT}; i++) {
                    float e = ${s}[i * ${NT} + j];
% if MASK:
                    const long at = place + min(${k0} + ${row}, S - 1) * m3;
% if MASK.name == "bool":
                    e = mask_p[at] ? e : -INFINITY;
% else:
                    const float v = ${MASK.load}(mask_p, at), w = v * 1.44269504f;
                    e = fma(e, unit, isinf(w) ? v : w);
% endif
% endif
                    ${s}[i * ${NT} + j] = ${row} <= last ? e : -INFINITY;
                }
            }
        }
% endif
</%def>
## On tensor cores: scores to weights; row maxima m, sums l of a lane's own weights, and O in the new unit.
<%def name="weights(MASK, MT, NT, NO)">
<% c = "1" if adds(MASK) else "unit" %>\
        #pragma unroll
        for (int i = 0; i < ${MT * 2}; i++) {
            float* x = s + i / 2 * ${NT * 4} + i % 2 * 2;
            float top = m[i], other, sum = 0;
            #pragma unroll
            for (int j = 0; j < ${NT}; j++) top = fmax(top, fmax(x[j * 4], x[j * 4 + 1]));
            QUAD(other, top, 1); top = fmax(top, other);
            QUAD(other, top, 2); top = fmax(top, other);
            const float base = top == -INFINITY ? 0 : -top${"" if c == "1" else " * unit"}, shrink = EXP2(${"m[i] + base" if c == "1" else "fma(m[i], unit, base)"});
            #pragma unroll
            for (int j = 0; j < ${NT}; j++) {
                x[j * 4] = EXP2(${"x[j * 4] + base" if c == "1" else "fma(x[j * 4], unit, base)"});
                x[j * 4 + 1] = EXP2(${"x[j * 4 + 1] + base" if c == "1" else "fma(x[j * 4 + 1], unit, base)"});
                sum += x[j * 4] + x[j * 4 + 1];
            }
            l[i] = l[i] * shrink + sum;
            m[i] = top;
            #pragma unroll
            for (int j = 0; j < ${NO}; j++) { o[(i / 2 * ${NO} + j) * 4 + i % 2 * 2] *= shrink; o[(i / 2 * ${NO} + j) * 4 + i % 2 * 2 + 1] *= shrink; }
        }
</%def>
## Tiles o[MT][NO] over the sums of weights to O, and the log of the sums.
<%def name="results(T, MASK, MT, NO)">
    #pragma unroll
    for (int i = 0; i < ${MT * 2}; i++) {
        float other;
        QUAD(other, l[i], 1); l[i] += other;
        QUAD(other, l[i], 2); l[i] += other;
        const long row = mine0 + i * 8 + g;
        const float share = l[i] == 0 ? 0 : 1 / l[i];
        if (row < L) {
            __global uint* to = (__global uint*)(O + row * t16.sb) + t;
            #pragma unroll
            for (int j = 0; j < ${NO}; j++) {
                const float* v = o + (i / 2 * ${NO} + j) * 4 + i % 2 * 2;
                to[j * 4] = pack(v[0] * share, v[1] * share);
            }
            if (t == 0) lse_p[lse_o + z * L + row] = l[i] == 0 ? INFINITY : ${"m[i]" if adds(MASK) else "m[i] * unit"} * 0.693147181f + log(l[i]);
        }
    }
</%def>
