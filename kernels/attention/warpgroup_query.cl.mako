<%inherit file="/base.cl.mako"/>\
<%namespace name="frag" file="/attention/fragments.cl.mako"/>\
<%namespace name="lines" file="/attention/lines.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## attention/tensor_query by the instructions of four warps together (wgmma) of compute capability 9.0: same operands, arguments and order of blocks.
##
## Geometry: local (128 WG, 1), global (local * B * H, blocks of 64 WG queries). A warpgroup owns 64 queries. Local memory holds them and the gradients of their
## results, and STAGES slots of BK keys and their values (see attention/lines), of which the next one is fetched while one is multiplied.
##
## Parameter  legal values
## T E EV PTX MASK CAUSAL  as in attention/warpgroup; WG: 1, 2; BK: 64 or 128; STAGES: 1, 2
##
## Limits: scale > 0; offsets inside a tile are 32 bits.
<%
    G, BQ, NT, SK, SV, SQ, SY = 128 * WG, 64 * WG, BK // 8, BK * E // 8, BK * EV // 8, 8 * WG * E, 8 * WG * EV
    SLOT, words = SK + SV, 8 * max(BK, 64)
%>\
${frag.helpers(T, PTX)}
${lines.helpers(T, PTX)}
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_warpgroup_query(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), IN(${T.c}, dO), IN(float, lse), IN(float, delta), OUT(${T.c}, dQ), const long8 d,
        const long16 x, const float scale
        ${scores.parameters(MASK)}) {
    __local uint4 pool[${STAGES * SLOT + SQ + SY}] __attribute__((aligned(1024)));
% if not PTX:
    __local uint exchange[${WG * 4 * words}];
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
% if not PTX:
    __local uint* mine = exchange + warp * ${words};
% endif
    const long L = d.s0, S = d.s1, H = d.s2, z = get_group_id(0), b = z / H, h = z % H;
    const long first = (d.s4 - 1 - get_global_id(1)) * ${BQ}, mine0 = first + warp * 16;
    const int ks = (int)x.s5, vs = (int)x.s8;
    __global const ${T.c}* K = K_p + K_o + b * x.s3 + h / d.s3 * x.s4;
    __global const ${T.c}* V = V_p + V_o + b * x.s6 + h / d.s3 * x.s7;
    __global ${T.c}* D = dQ_p + dQ_o + b * x.sc + h * x.sd;
    __local uint4* qt = pool + ${STAGES * SLOT};
    __local uint4* yt = qt + ${SQ};
    const long seen = ${f"min(S, first + {BQ})" if CAUSAL else "S"};
    {
        const int left = (int)min(L - first, ${BQ}L), qs = (int)x.s2, ys = (int)x.sb;
        __global const ${T.c}* Q = Q_p + Q_o + b * x.s0 + h * x.s1 + first * qs;
        __global const ${T.c}* Y = dO_p + dO_o + b * x.s9 + h * x.sa + first * ys;
${lines.fetch("qt", "Q", "qs", E, BQ, G, "left")}
${lines.fetch("yt", "Y", "ys", EV, BQ, G, "left")}
    }
% if STAGES > 1:
    {
        const int left = (int)min(seen, ${BK}L);
${lines.fetch("pool", "K", "ks", E, BK, G, "left")}
${lines.fetch(f"(pool + {SK})", "V", "vs", EV, BK, G, "left")}
    }
% endif
    COMMIT();
    float low[2], mean[2], sum[${E // 2}];
    #pragma unroll
    for (int i = 0; i < 2; i++) {
        const long row = z * L + min(mine0 + i * 8 + g, L - 1);
        low[i] = lse_p[lse_o + row] * -1.44269504f;
        mean[i] = delta_p[delta_o + row];
    }
    #pragma unroll
    for (int i = 0; i < ${E // 2}; i++) sum[i] = 0;
    const float unit = scale * 1.44269504f;
    int slot = 0;
    for (long k0 = 0; k0 < seen; k0 += ${BK}) {
        __local uint4* kt = pool + slot * ${SLOT};
        __local uint4* vt = kt + ${SK};
% if STAGES == 1:
        barrier(CLK_LOCAL_MEM_FENCE);
        {
            const int left = (int)min(seen - k0, ${BK}L);
${lines.fetch("kt", "K", "ks", E, BK, G, "left")}
${lines.fetch("vt", "V", "vs", EV, BK, G, "left")}
        }
        COMMIT();
% endif
        WAIT(0);
        FENCE();
        barrier(CLK_LOCAL_MEM_FENCE);
        K += ${BK} * (long)ks;
        V += ${BK} * (long)vs;
% if STAGES > 1:
        slot ^= 1;
        if (k0 + ${BK} < seen) {
            const int left = (int)min(seen - k0 - ${BK}, ${BK}L);
            __local uint4* to = pool + slot * ${SLOT};
${lines.fetch("to", "K", "ks", E, BK, G, "left")}
${lines.fetch(f"(to + {SK})", "V", "vs", EV, BK, G, "left")}
        }
        COMMIT();
% endif
        float s[${NT * 4}], w[${NT * 4}];
${lines.multiply(T, PTX, True, ("s", BK, E, ("own", "qt", BQ), ("across", "kt", BK), True), ("w", BK, EV, ("own", "yt", BQ), ("across", "vt", BK), True))}
${scores.scaled("s", MASK, CAUSAL, 1, NT, BK, "mine0", "k0", "i * 16 + g + (r >> 1) * 8", "t * 2", "j * 8 + (r & 1)", "L", "S")}
        #pragma unroll
        for (int i = 0; i < ${NT * 4}; i++)
            w[i] = (w[i] - mean[i >> 1 & 1]) * EXP2(${"s[i] + low[i >> 1 & 1]" if scores.module.adds(MASK) else "fma(s[i], unit, low[i >> 1 & 1])"});
${frag.packed("p", "w", 1, NT)}
${lines.multiply(T, PTX, True, ("sum", E, BK, ("held", "p"), ("down", "kt", BK), False))}
    }
${frag.store("D", "sum", E, "x.se", "mine0", "L", "scale", 1)}
}
