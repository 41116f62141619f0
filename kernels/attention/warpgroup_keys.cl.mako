<%inherit file="/base.cl.mako"/>\
<%namespace name="frag" file="/attention/fragments.cl.mako"/>\
<%namespace name="lines" file="/attention/lines.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## attention/tensor_keys by the instructions of four warps together (wgmma) of compute capability 9.0: same operands, arguments and order of blocks.
##
## Geometry: local (128 WG, 1), global (local * B * H / groups, blocks of 64 WG keys). A warpgroup owns 64 keys. Local memory holds them and their values, and STAGES
## slots of BQ queries and the gradients of their results (see attention/lines), of which the next one is fetched while one is multiplied.
##
## Parameter  legal values
## T E EV PTX MASK CAUSAL  as in attention/warpgroup; WG: 1, 2; BQ: 32 (WG 1), 64 or 128 (WG 2); STAGES: 1, 2
##
## Limits: scale > 0; offsets inside a tile are 32 bits.
<%
    G, BK, NT, SQ, SY, SK, SV = 128 * WG, 64 * WG, BQ // 8, BQ * E // 8, BQ * EV // 8, 8 * WG * E, 8 * WG * EV
    SLOT, words = SQ + SY, 8 * max(BQ, 64)
    assert BQ <= G and BQ * E // 8 % G == BQ * EV // 8 % G == 0
%>\
${frag.helpers(T, PTX)}
${lines.helpers(T, PTX)}
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_warpgroup_keys(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), IN(${T.c}, dO), IN(float, lse), IN(float, delta), OUT(${T.c}, dK), OUT(${T.c}, dV),
        const long8 d, const long16 x, const long8 y, const float scale
        ${scores.parameters(MASK)}) {
    __local uint4 pool[${STAGES * SLOT + SK + SV}] __attribute__((aligned(1024)));
    __local float2 lows[${STAGES * BQ}];        /* minus the log-sum-exp (an exponent of 2) and delta of each query */
% if not PTX:
    __local uint exchange[${WG * 4 * words}];
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
% if not PTX:
    __local uint* mine = exchange + warp * ${words};
% endif
    const long L = d.s0, S = d.s1, groups = d.s3, heads = d.s2 / groups, b = get_group_id(0) / heads, hk = get_group_id(0) % heads;
    const long first = get_global_id(1) * ${BK}, mine0 = first + warp * 16, start = ${f"min(first / {BQ} * {BQ}, L)" if CAUSAL else "0"};
    const int qs = (int)x.s2, ys = (int)x.sb;
    __global ${T.c}* DK = dK_p + dK_o + b * y.s0 + hk * y.s1;
    __global ${T.c}* DV = dV_p + dV_o + b * y.s3 + hk * y.s4;
    __local uint4* kt = pool + ${STAGES * SLOT};
    __local uint4* vt = kt + ${SK};
    {
        const int left = (int)min(S - first, ${BK}L), ks = (int)x.s5, vs = (int)x.s8;
        __global const ${T.c}* K = K_p + K_o + b * x.s3 + hk * x.s4 + first * ks;
        __global const ${T.c}* V = V_p + V_o + b * x.s6 + hk * x.s7 + first * vs;
${lines.fetch("kt", "K", "ks", E, BK, G, "left")}
${lines.fetch("vt", "V", "vs", EV, BK, G, "left")}
    }
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
        __global const float* total = lse_p + lse_o + z * L;
        __global const float* mean = delta_p + delta_o + z * L;
% if STAGES > 1:
        barrier(CLK_LOCAL_MEM_FENCE);
        {
            const int left = (int)min(L - start, ${BQ}L);
${queries("0", "start")}
        }
        COMMIT();
% endif
        int slot = 0;
        for (long q0 = start; q0 < L; q0 += ${BQ}) {
            __local uint4* qt = pool + slot * ${SLOT};
            __local uint4* yt = qt + ${SQ};
            __local const float2* low = lows + slot * ${BQ};
% if STAGES == 1:
            barrier(CLK_LOCAL_MEM_FENCE);
            {
                const int left = (int)min(L - q0, ${BQ}L);
${queries("0", "q0")}
            }
            COMMIT();
% endif
            WAIT(0);
            FENCE();
            barrier(CLK_LOCAL_MEM_FENCE);
            Q += ${BQ} * (long)qs;
            Y += ${BQ} * (long)ys;
% if STAGES > 1:
            slot ^= 1;
            if (q0 + ${BQ} < L) {
                const int left = (int)min(L - q0 - ${BQ}, ${BQ}L);
${queries("slot", f"q0 + {BQ}")}
            }
            COMMIT();
% endif
            float s[${NT * 4}], w[${NT * 4}];
${lines.multiply(T, PTX, True, ("s", BQ, E, ("own", "kt", BK), ("across", "qt", BQ), True), ("w", BQ, EV, ("own", "vt", BK), ("across", "yt", BQ), True))}
${scores.turned("s", MASK, CAUSAL, NT, "mine0", "q0")}
            #pragma unroll
            for (int i = 0; i < ${NT * 4}; i++) {
                const float2 e = low[i / 4 * 8 + t * 2 + (i & 1)];
                s[i] = EXP2(${"s[i] + e.s0" if scores.module.adds(MASK) else "fma(s[i], unit, e.s0)"});
                w[i] = (w[i] - e.s1) * s[i];
            }
${frag.packed("p", "s", 1, NT)}
${frag.packed("u", "w", 1, NT)}
${lines.multiply(T, PTX, True, ("dv", EV, BQ, ("held", "p"), ("down", "yt", BQ), False), ("dk", E, BQ, ("held", "u"), ("down", "qt", BQ), False))}
        }
    }
${frag.store("DK", "dk", E, "y.s2", "mine0", "S", "scale", 1)}
${frag.store("DV", "dv", EV, "y.s5", "mine0", "S", "1.0f", 1)}
}
## The queries from `at` on to a slot; Q and Y stand there. Past the end: weights of 0.
<%def name="queries(slot, at)">
                __local uint4* to = pool + ${slot} * ${SLOT};
${lines.fetch("to", "Q", "qs", E, BQ, G, "left")}
${lines.fetch(f"(to + {SQ})", "Y", "ys", EV, BQ, G, "left")}
                if (lid < ${BQ}) lows[${slot} * ${BQ} + lid] = lid < left ? (float2)(total[${at} + lid] * -1.44269504f, mean[${at} + lid]) : (float2)(-INFINITY, 0);
</%def>
