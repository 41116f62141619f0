<%inherit file="/base.cl.mako"/>\
<%namespace name="frag" file="/attention/fragments.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## Gradients of the keys and values of attention/tensor: weights P of a block of keys are formed again, turned, from the log-sum-exps, then
## dV = P' dO, dK = scale * (P * (dO V' - delta))' Q, summed over the query heads that share the keys.
##
## Q (B, H, L, E), K dK (B, H / groups, S, E), V dV (B, H / groups, S, EV), dO (B, H, L, EV) by the strides x and y (dK, dV), as in attention/tensor;
## lse, delta (B * H, L): log of the sum of exponentials; sum over the head of dO * O.
## Geometry: local (32 W, 1), global (local * B * H / groups, blocks of keys). A warp owns 16 keys; queries and gradients of one block are multiplied while
## those of the next are fetched. The blocks that the most queries see are started first.
##
## Parameter  legal values
## T E EV W PTX MASK CAUSAL  as in attention/tensor; BQ: queries of a block, a multiple of 16 and no more than 32 W
##
## Limits: scale > 0; offsets inside a tile are 32 bits. Local memory: two tiles of BQ queries and of BQ gradients.
<%
    G, BK, NT = 32 * W, 16 * W, BQ // 8
    QP, YP = frag.module.pitch(E), frag.module.pitch(EV)
    STAGE = BQ * (QP + YP)
    assert BQ <= G
%>\
${frag.helpers(T, PTX)}
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_tensor_keys(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), IN(${T.c}, dO), IN(float, lse), IN(float, delta), OUT(${T.c}, dK), OUT(${T.c}, dV), const long8 d,
        const long16 x, const long8 y, const float scale
        ${scores.parameters(MASK)}) {
    __local uint4 pool[${2 * STAGE}];
    __local float2 lows[${2 * G}];      /* minus the log-sum-exp (an exponent of 2) and delta of each query; every work-item writes one */
% if not PTX:
    __local uint exchange[${W * 192}];
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
% if not PTX:
    __local uint* mine = exchange + warp * 192;
% endif
    const long L = d.s0, S = d.s1, groups = d.s3, heads = d.s2 / groups, b = get_group_id(0) / heads, hk = get_group_id(0) % heads;
    const long first = get_global_id(1) * ${BK}, mine0 = first + warp * 16, start = ${f"first / {BQ} * {BQ}" if CAUSAL else "0"};
    const int qs = (int)x.s2, ys = (int)x.sb;
    __global const ${T.c}* K = K_p + K_o + b * x.s3 + hk * x.s4;
    __global const ${T.c}* V = V_p + V_o + b * x.s6 + hk * x.s7;
    __global ${T.c}* DK = dK_p + dK_o + b * y.s0 + hk * y.s1;
    __global ${T.c}* DV = dV_p + dV_o + b * y.s3 + hk * y.s4;
% for stage in (0, STAGE):
    ${frag.clear(f"pool + {stage}", E, BQ, G)}
    ${frag.clear(f"pool + {stage + BQ * QP}", EV, BQ, G)}
% endfor
${frag.rows("kf", "K", E, "x.s5", "mine0", "S", 1)}
${frag.rows("vf", "V", EV, "x.s8", "mine0", "S", 1)}
    float dk[${E // 2}], dv[${EV // 2}];
    #pragma unroll
    for (int i = 0; i < ${E // 2}; i++) dk[i] = 0;
    #pragma unroll
    for (int i = 0; i < ${EV // 2}; i++) dv[i] = 0;
    const float unit = scale * 1.44269504f;
    for (long h = hk * groups; h < (hk + 1) * groups; h++) {
        const long z = b * d.s2 + h;
        __global const ${T.c}* Q = Q_p + Q_o + b * x.s0 + h * x.s1 + start * qs;
        __global const ${T.c}* Y = dO_p + dO_o + b * x.s9 + h * x.sa + start * ys;
        {       /* where no query sees the keys, of zeros: PoCL 7 miscompiles a condition here */
            const int left = (int)clamp(L - start, 0L, ${BQ}L);
${frag.fetch("pool", "Q", E, "qs", BQ, G, "left")}
${frag.fetch(f"(pool + {BQ * QP})", "Y", EV, "ys", BQ, G, "left")}
            lows[lid] = lid < left ? (float2)(lse_p[lse_o + z * L + start + lid] * -1.44269504f, delta_p[delta_o + z * L + start + lid]) : (float2)(-INFINITY, 0);
        }
        COMMIT();
        int now = 0;
        for (long q0 = start; q0 < L; q0 += ${BQ}) {
            Q += ${BQ} * (long)qs;
            Y += ${BQ} * (long)ys;
            __local uint4* qt = pool + now * ${STAGE};
            __local uint4* yt = qt + ${BQ * QP};
            __local const float2* low = lows + now * ${G};
            now ^= 1;
            float2 next = (float2)(-INFINITY, 0);
            if (q0 + ${BQ} < L) {
                const int left = (int)min(L - q0 - ${BQ}, ${BQ}L);
                __local uint4* to = pool + now * ${STAGE};
${frag.fetch("to", "Q", E, "qs", BQ, G, "left")}
${frag.fetch(f"(to + {BQ * QP})", "Y", EV, "ys", BQ, G, "left")}
                if (lid < left) next = (float2)(lse_p[lse_o + z * L + q0 + ${BQ} + lid] * -1.44269504f, delta_p[delta_o + z * L + q0 + ${BQ} + lid]);
            }
            COMMIT();
            WAIT(1);
            barrier(CLK_LOCAL_MEM_FENCE);
            float s[${NT * 4}], w[${NT * 4}];
            #pragma unroll
            for (int i = 0; i < ${NT * 4}; i++) { s[i] = 0; w[i] = 0; }
${frag.across("s", "kf", "qt", E, 1, NT)}
${scores.turned("s", MASK, CAUSAL, NT, "mine0", "q0")}
            #pragma unroll
            for (int i = 0; i < ${NT * 4}; i++) {
                const float e = low[i / 4 * 8 + t * 2 + (i & 1)].s0;
                s[i] = EXP2(${"s[i] + e" if scores.module.adds(MASK) else "fma(s[i], unit, e)"});
            }
${frag.across("w", "vf", "yt", EV, 1, NT)}
            #pragma unroll
            for (int i = 0; i < ${NT * 4}; i++) w[i] = (w[i] - low[i / 4 * 8 + t * 2 + (i & 1)].s1) * s[i];
            {
${frag.packed("p", "s", 1, NT)}
${frag.down("dv", "p", "yt", EV, 1, BQ // 16)}
            }
            {
${frag.packed("p", "w", 1, NT)}
${frag.down("dk", "p", "qt", E, 1, BQ // 16)}
            }
            lows[now * ${G} + lid] = next;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
${frag.store("DK", "dk", E, "y.s2", "mine0", "S", "scale", 1)}
${frag.store("DV", "dv", EV, "y.s5", "mine0", "S", "1.0f", 1)}
}
