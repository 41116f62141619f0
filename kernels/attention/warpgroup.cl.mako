<%inherit file="/base.cl.mako"/>\
<%namespace name="frag" file="/attention/fragments.cl.mako"/>\
<%namespace name="lines" file="/attention/lines.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## attention/tensor by the instructions of four warps together (wgmma) of compute capability 9.0: same operands, arguments and order of blocks.
##
## Geometry: local (128 WG, 1), global (local * B * H, blocks of 64 WG queries). A warpgroup owns 64 queries, whose scores, weights and results are registers.
## A slot of local memory holds BK keys, then their values, as in attention/lines.
##
## Parameter  legal values
## T          dtype row: float16 or bfloat16
## E EV       64 or 128
## WG BK      warpgroups: 1, 2; keys of a block: 64 or 128
## STAGES     slots: 1: values are fetched while keys are multiplied, and keys while values are; 2: the next block is fetched while one is multiplied; 3: and the
##            product with the values goes on while the next block is waited for
## QL         True: queries stay in local memory; False: in registers
## PTX        True: the instructions, as comments that clnn.runtime.retarget reads; False: spelt out, for tests
## MASK CAUSAL  as in attention/tensor
##
## Limits: scale > 0; offsets inside a tile are 32 bits.
<%
    G, BQ, NT, NO, SK, SV = 128 * WG, 64 * WG, BK // 8, EV // 8, BK * E // 8, BK * EV // 8
    SLOT, SQ = SK + SV, BQ * E // 8 if QL else 0
    words = 8 * max(BK, E)
    tied = lambda name, n: ", ".join(f'"+f"({name}[{i}])' for i in range(n))
%>\
${frag.helpers(T, PTX)}
${lines.helpers(T, PTX)}
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_warpgroup(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), OUT(${T.c}, O), OUT(float, lse), const long8 d, const long16 t16, const float scale
        ${scores.parameters(MASK)}) {
    __local uint4 pool[${STAGES * SLOT + SQ}] __attribute__((aligned(1024)));
% if not PTX:
    __local uint exchange[${WG * 4 * words}];
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
% if not PTX:
    __local uint* mine = exchange + warp * ${words};
% endif
    const long L = d.s0, S = d.s1, H = d.s2, z = get_group_id(0), b = z / H, h = z % H;
    const long first = (d.s4 - 1 - get_global_id(1)) * ${BQ}, mine0 = first + warp * 16;
    const int ks = (int)t16.s5, vs = (int)t16.s8;
    __global const ${T.c}* Q = Q_p + Q_o + b * t16.s0 + h * t16.s1;
    __global const ${T.c}* K = K_p + K_o + b * t16.s3 + h / d.s3 * t16.s4;
    __global const ${T.c}* V = V_p + V_o + b * t16.s6 + h / d.s3 * t16.s7;
    __global ${T.c}* O = O_p + O_o + b * t16.s9 + h * t16.sa;
    const long seen = ${f"min(S, first + {BQ})" if CAUSAL else "S"};
% if QL:
    __local uint4* qt = pool + ${STAGES * SLOT};
    {
        const int left = (int)min(L - first, ${BQ}L), qs = (int)t16.s2;
        Q += first * qs;
${lines.fetch("qt", "Q", "qs", E, BQ, G, "left")}
    }
% endif
    {
        const int left = (int)min(seen, ${BK}L);
${lines.fetch("pool", "K", "ks", E, BK, G, "left")}
% if STAGES > 1:
${lines.fetch(f"(pool + {SK})", "V", "vs", EV, BK, G, "left")}
% endif
    }
    COMMIT();
% if not QL:
${frag.rows("q", "Q", E, "t16.s2", "mine0", "L", 1)}
% endif
    float o[${NO * 4}], m[2], l[2];
    #pragma unroll
    for (int i = 0; i < ${NO * 4}; i++) o[i] = 0;
    #pragma unroll
    for (int i = 0; i < 2; i++) { m[i] = -INFINITY; l[i] = 0; }
    const float unit = scale * 1.44269504f;
    int slot = 0;
    for (long k0 = 0; k0 < seen; k0 += ${BK}) {
        __local const uint4* kt = pool + slot * ${SLOT};
        __local const uint4* vt = kt + ${SK};
        slot = slot == ${STAGES - 1} ? 0 : slot + 1;
        WAIT(0);
        FENCE();
        barrier(CLK_LOCAL_MEM_FENCE);
        K += ${BK} * (long)ks;
% if STAGES == 1:
        {
            const int left = (int)min(seen - k0, ${BK}L);
${lines.fetch(f"(pool + {SK})", "V", "vs", EV, BK, G, "left")}
        }
% else:
        V += ${BK} * (long)vs;
        if (k0 + ${BK} < seen) {
            const int left = (int)min(seen - k0 - ${BK}, ${BK}L);
            __local uint4* to = pool + slot * ${SLOT};
${lines.fetch("to", "K", "ks", E, BK, G, "left")}
${lines.fetch(f"(to + {SK})", "V", "vs", EV, BK, G, "left")}
        }
% endif
        COMMIT();
        float s[${NT * 4}];
${lines.multiply(T, PTX, STAGES < 3, ("s", BK, E, ("own", "qt", BQ) if QL else ("held", "q"), ("across", "kt", BK), True))}
% if PTX and STAGES > 2:
        asm volatile("//sm_90a:wgmma.wait_group.sync.aligned 0;" : ${tied("s", BK // 2)}, ${tied("o", EV // 2)} :: "memory");
% endif
${scores.scaled("s", MASK, CAUSAL, 1, NT, BK, "mine0", "k0", "i * 16 + g + (r >> 1) * 8", "t * 2", "j * 8 + (r & 1)", "L", "S")}
${scores.weights(MASK, 1, NT, NO)}
${frag.packed("p", "s", 1, NT)}
% if STAGES == 1:
        WAIT(0);
        FENCE();
        barrier(CLK_LOCAL_MEM_FENCE);
        V += ${BK} * (long)vs;
        if (k0 + ${BK} < seen) {
            const int left = (int)min(seen - k0 - ${BK}, ${BK}L);
${lines.fetch("pool", "K", "ks", E, BK, G, "left")}
        }
        COMMIT();
% endif
${lines.multiply(T, PTX, STAGES < 3, ("o", EV, BK, ("held", "p"), ("down", "vt", BK), False))}
    }
% if PTX and STAGES > 2:
    asm volatile("//sm_90a:wgmma.wait_group.sync.aligned 0;" : ${tied("o", EV // 2)} :: "memory");
% endif
${scores.results(T, MASK, 1, NO)}
}
