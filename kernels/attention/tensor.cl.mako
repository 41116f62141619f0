<%inherit file="/base.cl.mako"/>\
<%namespace name="frag" file="/attention/fragments.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## O = softmax(scale * Q @ K' + mask) @ V of 16-bit operands on the tensor cores of NVIDIA's GPUs (compute capability 8.0 on), sums in float
## (Dao, "FlashAttention-2", 2023): scores and weights of a block of queries stay in registers.
##
## Q (B, H, L, E), K (B, H / groups, S, E), V (B, H / groups, S, EV), O (B, H, L, EV) by the strides t, unit stride in the last dimension, all others and all
## offsets multiples of 8 elements; lse (B * H, L): log of the sum of exponentials, +Inf for a query that sees no key (its output is 0).
## Geometry: local (32 W, 1), global (local * B * H, blocks of queries). A warp owns 16 MT queries. A tile of BK keys is multiplied while the values of
## the same keys are fetched, and the values while the next keys are. The blocks that see the most keys are started first.
##
## Parameter  legal values
## T          dtype row: float16 or bfloat16
## E EV       multiples of 8
## W MT BK    warps, tiles of 16 queries of each, keys of a block (a multiple of 16)
## PTX        True: the instructions; False: spelt out, for tests
## MASK       None, or the dtype row of a mask read by strides: bool keeps where true, floats are added; CAUSAL 0 | 1: query i sees keys 0..i
##
## Limits: scale > 0; offsets inside a tile are 32 bits.
<%
    G, BQ, NT, NO = 32 * W, 16 * MT * W, BK // 8, EV // 8
    KP, VP = frag.module.pitch(E), frag.module.pitch(EV)
%>\
${frag.helpers(T, PTX)}
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_tensor(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), OUT(${T.c}, O), OUT(float, lse), const long8 d, const long16 t16, const float scale
        ${scores.parameters(MASK)}) {
    __local uint4 pool[${BK * (KP + VP)}];
% if not PTX:
    __local uint exchange[${W * 192}];
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
    const long L = d.s0, S = d.s1, H = d.s2, z = get_group_id(0), b = z / H, h = z % H;
    const long first = (d.s4 - 1 - get_global_id(1)) * ${BQ}, mine0 = first + warp * ${16 * MT};
    const int ks = (int)t16.s5, vs = (int)t16.s8;
    __global const ${T.c}* Q = Q_p + Q_o + b * t16.s0 + h * t16.s1;
    __global const ${T.c}* K = K_p + K_o + b * t16.s3 + h / d.s3 * t16.s4;
    __global const ${T.c}* V = V_p + V_o + b * t16.s6 + h / d.s3 * t16.s7;
    __global ${T.c}* O = O_p + O_o + b * t16.s9 + h * t16.sa;
    __local uint4* kt = pool;
    __local uint4* vt = pool + ${BK * KP};
% if not PTX:
    __local uint* mine = exchange + warp * 192;
% endif
    const long seen = ${f"min(S, first + {BQ})" if CAUSAL else "S"};
    ${frag.clear("kt", E, BK, G)}
    {
        const int left = (int)min(seen, ${BK}L);
${frag.fetch("kt", "K", E, "ks", BK, G, "left")}
    }
    COMMIT();
${frag.rows("q", "Q", E, "t16.s2", "mine0", "L", MT)}
    float o[${MT * NO * 4}], m[${MT * 2}], l[${MT * 2}];
    #pragma unroll
    for (int i = 0; i < ${MT * NO * 4}; i++) o[i] = 0;
    #pragma unroll
    for (int i = 0; i < ${MT * 2}; i++) { m[i] = -INFINITY; l[i] = 0; }
    const float unit = scale * 1.44269504f;
    for (long k0 = 0; k0 < seen; k0 += ${BK}) {
        WAIT(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        {
            const int left = (int)min(seen - k0, ${BK}L);
${frag.fetch("vt", "V", EV, "vs", BK, G, "left")}
        }
        COMMIT();
        float s[${MT * NT * 4}];
        #pragma unroll
        for (int i = 0; i < ${MT * NT * 4}; i++) s[i] = 0;
${frag.across("s", "q", "kt", E, MT, NT)}
${scores.scaled("s", MASK, CAUSAL, MT, NT, BK, "mine0", "k0", "i * 16 + g + (r >> 1) * 8", "t * 2", "j * 8 + (r & 1)", "L", "S")}
${scores.weights(MASK, MT, NT, NO)}
${frag.packed("p", "s", MT, NT)}
        WAIT(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        K += ${BK} * (long)ks;
        V += ${BK} * (long)vs;
        if (k0 + ${BK} < seen) {
            const int left = (int)min(seen - k0 - ${BK}, ${BK}L);
${frag.fetch("kt", "K", E, "ks", BK, G, "left")}
        }
        COMMIT();
${frag.down("o", "p", "vt", EV, MT, BK // 16)}
    }
${scores.results(T, MASK, MT, NO)}
}
