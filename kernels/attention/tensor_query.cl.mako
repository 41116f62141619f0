<%inherit file="/base.cl.mako"/>\
<%namespace name="frag" file="/attention/fragments.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## Gradient of the queries of attention/tensor: weights P of a block of queries are formed again from the log-sum-exps, then
## dQ = scale * (P * (dO V' - delta)) K.
##
## Q dQ (B, H, L, E), K (B, H / groups, S, E), V (B, H / groups, S, EV), dO (B, H, L, EV) by the strides x, as in attention/tensor;
## lse, delta (B * H, L): log of the sum of exponentials; sum over the head of dO * O.
## Geometry: local (32 W, 1), global (local * B * H, blocks of queries). A warp owns 16 MT queries; keys and values of one block are multiplied while
## those of the next are fetched. The blocks that see the most keys are started first.
##
## Parameter  legal values
## T E EV W MT BK PTX MASK CAUSAL  as in attention/tensor
##
## Limits: scale > 0; offsets inside a tile are 32 bits. Local memory: two tiles of BK keys and of BK values.
<%
    G, BQ, NT = 32 * W, 16 * MT * W, BK // 8
    KP, VP = frag.module.pitch(E), frag.module.pitch(EV)
    STAGE = BK * (KP + VP)
%>\
${frag.helpers(T, PTX)}
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_tensor_query(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), IN(${T.c}, dO), IN(float, lse), IN(float, delta), OUT(${T.c}, dQ), const long8 d, const long16 x,
        const float scale
        ${scores.parameters(MASK)}) {
    __local uint4 pool[${2 * STAGE}];
% if not PTX:
    __local uint exchange[${W * 192}];
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
% if not PTX:
    __local uint* mine = exchange + warp * 192;
% endif
    const long L = d.s0, S = d.s1, H = d.s2, z = get_group_id(0), b = z / H, h = z % H;
    const long first = (d.s4 - 1 - get_global_id(1)) * ${BQ}, mine0 = first + warp * ${16 * MT};
    const int ks = (int)x.s5, vs = (int)x.s8;
    __global const ${T.c}* Q = Q_p + Q_o + b * x.s0 + h * x.s1;
    __global const ${T.c}* K = K_p + K_o + b * x.s3 + h / d.s3 * x.s4;
    __global const ${T.c}* V = V_p + V_o + b * x.s6 + h / d.s3 * x.s7;
    __global const ${T.c}* Y = dO_p + dO_o + b * x.s9 + h * x.sa;
    __global ${T.c}* D = dQ_p + dQ_o + b * x.sc + h * x.sd;
    const long seen = ${f"min(S, first + {BQ})" if CAUSAL else "S"};
% for stage in (0, STAGE):
    ${frag.clear(f"pool + {stage}", E, BK, G)}
    ${frag.clear(f"pool + {stage + BK * KP}", EV, BK, G)}
% endfor
    {
        const int left = (int)min(seen, ${BK}L);
${frag.fetch("pool", "K", E, "ks", BK, G, "left")}
${frag.fetch(f"(pool + {BK * KP})", "V", EV, "vs", BK, G, "left")}
    }
    COMMIT();
${frag.rows("q", "Q", E, "x.s2", "mine0", "L", MT)}
${frag.rows("y", "Y", EV, "x.sb", "mine0", "L", MT)}
    float low[${MT * 2}], mean[${MT * 2}], sum[${MT * E // 2}];
    #pragma unroll
    for (int i = 0; i < ${MT * 2}; i++) {
        const long row = z * L + min(mine0 + i * 8 + g, L - 1);
        low[i] = lse_p[lse_o + row] * -1.44269504f;
        mean[i] = delta_p[delta_o + row];
    }
    #pragma unroll
    for (int i = 0; i < ${MT * E // 2}; i++) sum[i] = 0;
    const float unit = scale * 1.44269504f;
    int stage = 0;
    for (long k0 = 0; k0 < seen; k0 += ${BK}) {
        K += ${BK} * (long)ks;
        V += ${BK} * (long)vs;
        __local uint4* kt = pool + stage;
        __local uint4* vt = kt + ${BK * KP};
        stage = ${STAGE} - stage;
        if (k0 + ${BK} < seen) {
            const int left = (int)min(seen - k0 - ${BK}, ${BK}L);
${frag.fetch("(pool + stage)", "K", E, "ks", BK, G, "left")}
${frag.fetch(f"(pool + stage + {BK * KP})", "V", EV, "vs", BK, G, "left")}
        }
        COMMIT();
        WAIT(1);
        barrier(CLK_LOCAL_MEM_FENCE);
        float s[${MT * NT * 4}], w[${MT * NT * 4}];
        #pragma unroll
        for (int i = 0; i < ${MT * NT * 4}; i++) { s[i] = 0; w[i] = 0; }
${frag.across("s", "q", "kt", E, MT, NT)}
${scores.scaled("s", MASK, CAUSAL, MT, NT, BK, "mine0", "k0", "i * 16 + g + (r >> 1) * 8", "t * 2", "j * 8 + (r & 1)", "L", "S")}
${frag.across("w", "y", "vt", EV, MT, NT)}
        #pragma unroll
        for (int i = 0; i < ${MT * NT * 4}; i++) {
            const int row = i / ${NT * 4} * 2 + (i >> 1 & 1);
            w[i] = (w[i] - mean[row]) * EXP2(${"s[i] + low[row]" if scores.module.adds(MASK) else "fma(s[i], unit, low[row])"});
        }
${frag.packed("p", "w", MT, NT)}
${frag.down("sum", "p", "kt", E, MT, BK // 16)}
        barrier(CLK_LOCAL_MEM_FENCE);
    }
${frag.store("D", "sum", E, "x.se", "mine0", "L", "scale", MT)}
}
