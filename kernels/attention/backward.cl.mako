<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="block" file="/attention/block.cl.mako"/>\
## Gradients of attention/forward: the weights P of a block are formed again from the log-sum-exps, then
## dV += P' dO, dS = P * (dO V' - sum(dO * O)) * scale, dQ += dS K, dK += dS' Q.
##
## Q dQ (B, H, L, E), K (B, H / groups, S, E), O dO (B, H, L, EV) by the strides t and u, unit stride in the last dimension; KT, VT: K and V
## in the panels of matmul/columns; dK dV (B, H, S, E or EV): one per query head. All but KT and VT have rows of whole vectors, padded by zeros.
## Geometry: global (chunks of d.s6 keys, B * H), local (1, 1). A work-item owns the keys of its chunk: it walks over blocks of d.s4
## queries and writes its share of dQ to plane number chunk (d.s7 elements apart; the launcher adds the planes up).
##
## Parameter  legal values
## E EV NK MK MASK CAUSAL DROP  as in attention/forward; KB: most keys of a block; BQ: most queries; local memory 2 * BQ * (KB + 16) floats
## NE ME      tile of the products with E columns: vectors (a divisor of those of a row) and rows; NO MO: the same for EV
<% SP, NR, QV, VV = KB + 16, NK * 16, -(-E // 16), -(-EV // 16) %>\
${tile.macros("float")}
${block.functions(MASK)}
<%def name="accumulate(MR, NV, width, a, b, step, out, pitch, limit, fresh)">
            for (int c = 0; c < ${width}; c += ${NV * 16}) {
                ${caller.body()}
                ${tile.multiply(MR, NV, "float16", "float", a, b, step)}
                float16 t[${MR * NV}];
% for r in range(MR):
                ${" ".join(f"t[{r * NV + j}] = c{r}_{j};" for j in range(NV))}
% endfor
                for (int r = 0; r < ${limit}; r++) {
                    __global float* o = ${out} + r * ${pitch} + c;
% for j in range(NV):
                    vstore16(${fresh} ? t[r * ${NV} + ${j}] : t[r * ${NV} + ${j}] + vload16(${j}, o), ${j}, o);
% endfor
                }
            }
</%def>
<%def name="scores(target, X, row, width, panels)">
            for (long p = 0; p < kn; p += ${NR})
                for (long i = ${f"max(0L, k0 + p - q0) / {MK} * {MK}" if CAUSAL else "0"}; i < rows; i += ${MK}) {
                    const long kc = ${width};
                    __global const float* b = ${panels} + (k0 + p) * ${width};
% for r in range(MK):
                    __global const float* a${r} = ${X} + min(q0 + i + ${r}, L - 1) * ${row};
% endfor
                    ${tile.multiply(MK, NK, "float16", "float", lambda r: f"a{r}[k]", lambda j: f"vload16({j}, b)", f"b += {NR};")}
                    __local float* o = ${target} + i * ${SP} + p;
% for r in range(MK):
                    ${" ".join(f"vstore16(c{r}_{j}, {j}, o + {r * SP});" for j in range(NK))}
% endfor
                }
</%def>
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void attention_backward(IN(float, Q), IN(float, K), IN(float, KT), IN(float, VT), IN(float, O), IN(float, dO), IN(float, lse), OUT(float, dQ),
        OUT(float, dK), OUT(float, dV), const long8 d, const long16 t, const long16 u, const float scale
        ${block.parameters(MASK, DROP)}) {
    __local float s[${BQ * SP}], ds[${BQ * SP}];
    float delta[${BQ}]${f", kept[{KB + 16}]" if DROP else ""};
    const long L = d.s0, S = d.s1, H = d.s2, G = d.s3, panels = d.s5;
    const long ql = t.s2, ks = t.s5, ol = t.s8, gl = t.sb, dql = t.se, dks = u.s2, dvs = u.s5;
    const long z = get_group_id(1), b = z / H, h = z % H, begin = get_group_id(0) * d.s6, end = min(S, begin + d.s6);
    __global const float* restrict Q = Q_p + Q_o + b * t.s0 + h * t.s1;
    __global const float* restrict K = K_p + K_o + b * t.s3 + h / G * t.s4;
    __global const float* restrict KT = KT_p + KT_o + z / G * panels * ${E * NR};
    __global const float* restrict VT = VT_p + VT_o + z / G * panels * ${EV * NR};
    __global const float* restrict O = O_p + O_o + b * t.s6 + h * t.s7;
    __global const float* restrict dO = dO_p + dO_o + b * t.s9 + h * t.sa;
    __global const float* restrict total = lse_p + lse_o + z * L;
    __global float* restrict dQ = dQ_p + dQ_o + b * t.sc + h * t.sd + get_group_id(0) * d.s7;
    __global float* restrict dK = dK_p + dK_o + b * u.s0 + h * u.s1;
    __global float* restrict dV = dV_p + dV_o + b * u.s3 + h * u.s4;
    for (long j = begin; j < end; j++) {
        for (int c = 0; c < ${QV}; c++) vstore16((float16)0, c, dK + j * dks);
        for (int c = 0; c < ${VV}; c++) vstore16((float16)0, c, dV + j * dvs);
    }
    for (long q0 = 0; q0 < L; q0 += d.s4) {
        const long rows = min(d.s4, L - q0);
% if CAUSAL:
        if (begin >= q0 + rows) {
            for (int r = 0; r < rows; r++)
                for (int c = 0; c < ${QV}; c++) vstore16((float16)0, c, dQ + (q0 + r) * dql);
            continue;
        }
% endif
        for (int r = 0; r < rows; r++) {
            float16 v = 0;
            for (int c = 0; c < ${VV}; c++) v = fma(vload16(c, dO + (q0 + r) * gl), vload16(c, O + (q0 + r) * ol), v);
            delta[r] = sum16(v);
        }
        const long seen = ${"min(end, q0 + rows)" if CAUSAL else "end"};
        for (long k0 = begin; k0 < seen; k0 += ${KB}) {
            const long kn = min(${KB}L, seen - k0);
            ${scores("s", "Q", "ql", E, "KT")}
            ${scores("ds", "dO", "gl", EV, "VT")}
            for (int r = 0; r < rows; r++) {
                const long query = q0 + r;
                const int n = ${"(int)clamp(query + 1 - k0, 0L, kn)" if CAUSAL else "(int)kn"};
                __local float* x = s + r * ${SP};
                __local float* y = ds + r * ${SP};
% if MASK:
                __global const ${MASK.c}* row = mask_p + mask_o + b * m0 + h * m1 + query * m2;
% endif
% if DROP:
                for (int q = 0; q < n; q++)
                    kept[q] = clnn_random_word(seed, draw, (z * L + query) * S + k0 + q) < (ulong)limit ? gain : 0;
% endif
                int j = 0;
                for (; j < n; j += 16) {
                    float16 v = vload16(0, x + j) * scale;
% if MASK:
                    v = masked(v, row, m3, k0 + j, S);
% endif
                    const int16 in = LANES < (float)(n - j);
                    const float16 p = in ? exp16(v - total[query]) : (float16)0;
                    float16 g = vload16(0, y + j);
% if DROP:
                    const float16 keep = vload16(0, kept + j);
                    g *= keep;
                    vstore16(in ? p * keep : (float16)0, 0, x + j);
% else:
                    vstore16(p, 0, x + j);
% endif
                    vstore16(in ? p * (g - delta[r]) * scale : (float16)0, 0, y + j);
                }
                vstore16((float16)0, 0, x + j);
                vstore16((float16)0, 0, y + j);
            }
            for (long i = 0; i < rows; i += ${ME}) {
                const long kc = ${f"min(kn, q0 + i + {ME} - k0)" if CAUSAL else "kn"};
                const int limit = (int)min(${ME}L, rows - i);
                __global float* out = dQ + (q0 + i) * dql;
                const bool fresh = k0 == begin;
<%call expr="accumulate(ME, NE, QV * 16, lambda r: f'a{r}[k]', lambda j: f'vload16({j}, b)', 'b += ks;', 'out', 'dql', 'limit', 'fresh')">
% for r in range(ME):
                __local const float* a${r} = ds + (i + ${r}) * ${SP};
% endfor
                __global const float* b = K + k0 * ks + c;
</%call>
            }
% for P, M, N, width, X, pitch, out, step in (("ds", ME, NE, QV * 16, "Q", "ql", "dK", "dks"), ("s", MO, NO, VV * 16, "dO", "gl", "dV", "dvs")):
            for (long j = 0; j < kn; j += ${M}) {
                const long i = ${"max(0L, k0 + j - q0)" if CAUSAL else "0"}, kc = rows - i;
                const int limit = (int)min(${M}L, kn - j);
                __global float* out = ${out} + (k0 + j) * ${step};
<%call expr="accumulate(M, N, width, lambda r: f'a[{r}]', lambda j: f'vload16({j}, b)', f'b += {pitch}; a += {SP};', 'out', step, 'limit', 'false')">
                __local const float* a = ${P} + i * ${SP} + j;
                __global const float* b = ${X} + (q0 + i) * ${pitch} + c;
</%call>
            }
% endfor
        }
    }
}
