<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="block" file="/attention/block.cl.mako"/>\
## O = softmax(scale * Q @ K' + mask) @ V on a CPU, with memory linear in the length (online softmax over blocks of KB keys).
##
## Q (B, H, L, E), V (B, H / groups, S, EV), O (B, H, L, EV) by the strides t, unit stride in the last dimension; KT: K in the panels
## of matmul/columns; lse (B * H, L): log of the sum of exponentials, +Inf for a query that sees no key (its output is 0).
## Geometry: global (blocks of d.s4 queries, B * H), local (1, 1). A work-item forms the scores of its queries with KB keys in local
## memory by register tiles, turns them into weights row by row, and multiplies them with V by register tiles.
##
## Parameter  legal values
## E EV       sizes of a query and of a value; EV is a multiple of 16 (rows of V and O are padded), and E where NK is 0
## NK MK      score tile: vectors of keys (as packed) and rows; NK 0: too few queries to pack for, KT is K with strides t.s9.. and every
##            score the dot product of two rows; NO MO: output tile: vectors (a divisor of EV / 16) and rows
## BQ KB      most queries (a multiple of MK and MO) and keys (a multiple of NK * 16) of a block; local memory BQ * (KB + 16) floats
## MASK       None, or the dtype row of a mask read by strides: bool keeps where true, floats are added
## CAUSAL     0 | 1: query i sees keys 0..i; DROP 0 | 1: weights are dropped with probability 1 - limit / 2^32
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<% SP, NR = KB + 16, NK * 16 %>\
${tile.macros("float")}
${block.functions(MASK)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void attention_forward(IN(float, Q), IN(float, KT), IN(float, V), OUT(float, O), OUT(float, lse), const long8 d, const long16 t, const float scale
        ${block.parameters(MASK, DROP)}) {
    __local float s[${BQ * SP}];
    float m[${BQ}], l[${BQ}], f[${BQ}];
    const long L = d.s0, S = d.s1, H = d.s2, G = d.s3, panels = d.s5, ql = t.s2, vs = t.s5, ol = t.s8;
    const long z = get_group_id(1), b = z / H, h = z % H, first = get_group_id(0) * d.s4, rows = min(d.s4, L - first);
    __global const float* restrict Q = Q_p + Q_o + b * t.s0 + h * t.s1;
    __global const float* restrict KT = KT_p + KT_o + ${"z / G * panels * %d" % (E * NR) if NK else "b * t.s9 + h / G * t.sa"};
    __global const float* restrict V = V_p + V_o + b * t.s3 + h / G * t.s4;
    __global float* restrict O = O_p + O_o + b * t.s6 + h * t.s7 + first * ol;
    for (int r = 0; r < ${BQ}; r++) { m[r] = -INFINITY; l[r] = 0; }
    const long seen = ${"min(S, first + rows)" if CAUSAL else "S"};
    for (long k0 = 0; k0 < seen; k0 += ${KB}) {
        const long kn = min(${KB}L, seen - k0);
% if NK:
        for (long p = 0; p < kn; p += ${NR})
            for (long i = ${f"max(0L, k0 + p - first) / {MK} * {MK}" if CAUSAL else "0"}; i < rows; i += ${MK}) {
                const long kc = ${E};
                __global const float* b = KT + (k0 + p) * ${E};
% for r in range(MK):
                __global const float* a${r} = Q + min(first + i + ${r}, L - 1) * ql;
% endfor
                ${tile.multiply(MK, NK, "float16", "float", lambda r: f"a{r}[k]", lambda j: f"vload16({j}, b)", f"b += {NR};")}
                __local float* o = s + i * ${SP} + p;
% for r in range(MK):
                ${" ".join(f"vstore16(c{r}_{j} * scale, {j}, o + {r * SP});" for j in range(NK))}
% endfor
            }
% else:
        for (long p = 0; p < kn; p += 16) {
            __global const float* k = KT + (k0 + p) * t.sb;
            for (int r = 0; r < rows; r++) {
                __global const float* q = Q + (first + r) * ql;
                ${dots()}
                vstore16(v0 * scale, 0, s + r * ${SP} + p);
            }
        }
% endif
        for (int r = 0; r < rows; r++) {
            const long query = first + r;
            const int n = ${"(int)clamp(query + 1 - k0, 0L, kn)" if CAUSAL else "(int)kn"};
            __local float* x = s + r * ${SP};
% if MASK:
            __global const ${MASK.c}* row = mask_p + mask_o + b * m0 + h * m1 + query * m2;
% endif
            float16 top = -INFINITY;
            for (int j = 0; j < n; j += 16) {
                float16 v = vload16(0, x + j);
% if MASK:
                v = masked(v, row, m3, k0 + j, S);
% endif
                v = LANES < (float)(n - j) ? v : (float16)-INFINITY;
% if MASK:
                vstore16(v, 0, x + j);
% endif
                top = v > top ? v : top;
            }
            const float high = max(m[r], max16(top)), base = high == -INFINITY ? 0 : high;
            float16 sum = 0;
            int j = 0;
            for (; j < n; j += 16) {
                float16 v = exp16(vload16(0, x + j) - base);
                v = LANES < (float)(n - j) ? v : (float16)0;
                sum += v;
                vstore16(v, 0, x + j);
            }
            vstore16((float16)0, 0, x + j);
            f[r] = exp(m[r] - base);
            l[r] = l[r] * f[r] + sum16(sum);
            m[r] = high;
% if DROP:
            for (int q = 0; q < n; q++)
                x[q] *= clnn_random_word(seed, draw, (z * L + query) * S + k0 + q) < (ulong)limit ? gain : 0;
% endif
        }
        for (long i = 0; i < rows; i += ${MO}) {
            const long kc = ${f"min(kn, first + i + {MO} - k0)" if CAUSAL else "kn"};
            if (kc <= 0) continue;
            const int r_end = (int)min(${MO}L, rows - i);
% for r in range(MO):
            __local const float* a${r} = s + (i + ${r}) * ${SP};
% endfor
            for (int c = 0; c < ${EV}; c += ${NO * 16}) {
                __global const float* b = V + k0 * vs + c;
                ${tile.multiply(MO, NO, "float16", "float", lambda r: f"a{r}[k]", lambda j: f"vload16({j}, b)", "b += vs;")}
                float16 t[${MO * NO}];
% for r in range(MO):
                ${" ".join(f"t[{r * NO + j}] = c{r}_{j};" for j in range(NO))}
% endfor
                for (int r = 0; r < r_end; r++) {
                    __global float* o = O + (i + r) * ol + c;
                    const float scale = f[i + r];
% for j in range(NO):
                    vstore16(k0 ? fma(vload16(${j}, o), (float16)scale, t[r * ${NO} + ${j}]) : t[r * ${NO} + ${j}], ${j}, o);
% endfor
                }
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        __global float* o = O + r * ol;
        const float scale = l[r] == 0 ? 0 : 1 / l[r];
        for (int c = 0; c < ${EV // 16}; c++) vstore16(vload16(c, o) * scale, c, o);
        lse_p[lse_o + z * L + first + r] = l[r] == 0 ? INFINITY : m[r] + log(l[r]);
    }
}
<%def name="dots()">
% for c in range(16):
                float16 v${c} = 0;
                __global const float* k${c} = k + min(${c}L, kn - p - 1) * t.sb;
% endfor
                for (int c = 0; c < ${E // 16}; c++) {
                    const float16 x = vload16(c, q);
                    ${" ".join(f"v{c} = fma(x, vload16(c, k{c}), v{c});" for c in range(16))}
                }
                ${vec.lane_sums("float16", 16, "v")}
</%def>
