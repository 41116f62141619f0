<%inherit file="/base.cl.mako"/>\
<%namespace name="frag" file="/attention/fragments.cl.mako"/>\
<%namespace name="scores" file="/attention/scores.cl.mako"/>\
## attention/tensor by the instructions of four warps together (wgmma) of compute capability 9.0: same operands, arguments and order of blocks.
##
## Geometry: local (128 WG, 1), global (local * B * H, blocks of 64 WG queries). A warpgroup owns 64 queries, whose fragments, scores, weights and results are
## registers; a warp has 16 of them, with its fragments where attention/tensor has them. Keys and values come from local memory, BK of each in a slot.
## While one slot is multiplied, asynchronous copies fill the next one.
##
## A slot holds keys, then values: per 64 elements of their rows BK lines of 128 bytes, piece p (16 bytes) of line l at place p ^ (l % 8) (PTX ISA, "Shared Memory
## Matrix Layout", swizzle of 128 bytes). So keys lie along what they are contracted over, values across it.
##
## Parameter  legal values
## T          dtype row: float16 or bfloat16
## E EV       64 or 128
## WG BK      warpgroups: 1, 2; keys of a block: 64 or 128
## STAGES     slots: 1: values are fetched while keys are multiplied, and keys while values are; 2; or 3, so that the product with the values goes on while the next block is waited for
## QL         True: queries stay in local memory, which saves registers
## PTX        True: the instructions, as comments that clnn.runtime.retarget reads; False: spelt out, for tests
## MASK CAUSAL  as in attention/tensor
##
## Limits: scale > 0; offsets inside a tile are 32 bits.
<%
    G, BQ, NT, NO, SK, SV = 128 * WG, 64 * WG, BK // 8, EV // 8, BK * E // 8, BK * EV // 8
    SLOT, SQ = SK + SV, BQ * E // 8 if QL else 0
    kind = T.name.replace("float", "f")
    HIGH = 64 | 1 << 30             # of a matrix descriptor: bytes / 16 from 8 lines to the next 8, and the swizzle of 128 bytes
    listed = lambda first, n: ", ".join(f"%{first + i}" for i in range(n))
    def instructions(N, steps, at, a, b, turned, fresh, wait, from_a=None):
        """Products over `steps` steps of 16: sums from operand 0 on, fragments from operand a on, descriptor operand b; at(i): its steps of 16 bytes.
        fresh: the sums before count as 0; wait: until all are done; from_a(i): the steps of the descriptor that operand a is instead."""
        text = "wgmma.fence.sync.aligned; "
        for i in range(steps):
            p = "q" if fresh and not i else "p"
            left, turns = (f"{{{listed(a + 4 * i, 4)}}}", turned) if from_a is None else ("a", f"0, {turned}")
            text += (f"add.s64 a, %{a}, {from_a(i)}; " if from_a else "") + \
                f"add.s64 b, %{b}, {at(i)}; wgmma.mma_async.sync.aligned.m64n{N}k16.f32.{kind}.{kind} {{{listed(0, N // 2)}}}, {left}, b, {p}, 1, 1, {turns}; "
        return f"//sm_90a:{{ .reg .b64 a, b; .reg .pred p, q; setp.eq.u32 p, 0, 0; setp.ne.u32 q, 0, 0; {text}wgmma.commit_group.sync.aligned; {'wgmma.wait_group.sync.aligned 0; ' if wait else ''}}}"
    tied = lambda name, n, how="+f": ", ".join(f'"{how}"({name}[{i}])' for i in range(n))
%>\
${frag.helpers(T, PTX)}
% if not PTX:
<% load = "clnn_h2f" if T.name == "float16" else "clnn_bf2f" %>\
/* Element e of line l of a tile of `lines`. */
#define AT(tile, lines, l, e) ${load}(((__local const ushort*)((tile) + (e) / 64 * (lines) * 8 + (l) * 8 + ((e) % 64 / 8 ^ (l) % 8)))[(e) % 8])
% endif
% if PTX:
#define FENCE() asm volatile("fence.proxy.async.shared::cta;" : : : "memory")
#define DESCRIPTOR(tile, lead) ((ulong)${HIGH}u << 32 | (lead) << 16 | (uint)(size_t)(tile) >> 4)
% else:
#define FENCE()
% endif
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void attention_warpgroup(IN(${T.c}, Q), IN(${T.c}, K), IN(${T.c}, V), OUT(${T.c}, O), OUT(float, lse), const long8 d, const long16 t16, const float scale
        ${scores.parameters(MASK)}) {
    __local uint4 pool[${STAGES * SLOT + SQ}] __attribute__((aligned(1024)));
% if not PTX:
    __local uint exchange[${WG * 4 * 16 * max(BK // 2, 12)}];
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
    const long L = d.s0, S = d.s1, H = d.s2, z = get_group_id(0), b = z / H, h = z % H;
    const long first = (d.s4 - 1 - get_global_id(1)) * ${BQ}, mine0 = first + warp * 16;
    const int ks = (int)t16.s5, vs = (int)t16.s8;
    __global const ${T.c}* Q = Q_p + Q_o + b * t16.s0 + h * t16.s1;
    __global const ${T.c}* K = K_p + K_o + b * t16.s3 + h / d.s3 * t16.s4;
    __global const ${T.c}* V = V_p + V_o + b * t16.s6 + h / d.s3 * t16.s7;
    __global ${T.c}* O = O_p + O_o + b * t16.s9 + h * t16.sa;
% if not PTX:
    __local uint* mine = exchange + warp * ${16 * max(BK // 2, 12)};
% endif
    const long seen = ${f"min(S, first + {BQ})" if CAUSAL else "S"};
% if QL:
    __local uint4* qt = pool + ${STAGES * SLOT};
    {
        const int left = (int)min(L - first, ${BQ}L), qs = (int)t16.s2;
        Q += first * qs;
${lines("qt", "Q", "qs", E, BQ)}
    }
% endif
    {
        const int left = (int)min(seen, ${BK}L);
${lines("pool", "K", "ks", E, BK)}
${lines(f"(pool + {SK})", "V", "vs", EV, BK) if STAGES > 1 else ""}
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
% if STAGES > 1:
        V += ${BK} * (long)vs;
% endif
% if STAGES == 1:
        {
            const int left = (int)min(seen - k0, ${BK}L);
${lines(f"(pool + {SK})", "V", "vs", EV, BK)}
        }
% else:
        if (k0 + ${BK} < seen) {
            const int left = (int)min(seen - k0 - ${BK}, ${BK}L);
            __local uint4* to = pool + slot * ${SLOT};
${lines("to", "K", "ks", E, BK)}
${lines(f"(to + {SK})", "V", "vs", EV, BK)}
        }
% endif
        COMMIT();
        float s[${NT * 4}];
% if PTX:
        const ulong keys = DESCRIPTOR(kt, 1), values = DESCRIPTOR(vt, ${BK * 8});
% if QL:
        const ulong queries = DESCRIPTOR(qt + warp / 4 * 512, 1);
        asm volatile("${instructions(BK, E // 16, lambda i: i // 4 * BK * 8 + i % 4 * 2, BK // 2, BK // 2 + 1, 0, True, STAGES < 3, lambda i: i // 4 * BQ * 8 + i % 4 * 2)}"
            : ${tied("s", BK // 2, "=f")} : "l"(queries), "l"(keys) : "memory");
% else:
        asm volatile("${instructions(BK, E // 16, lambda i: i // 4 * BK * 8 + i % 4 * 2, BK // 2, BK // 2 + E // 4, 0, True, STAGES < 3)}"
            : ${tied("s", BK // 2, "=f")} : ${tied("q", E // 4, "r")}, "l"(keys) : "memory");
% endif
% if STAGES > 2:
        asm volatile("//sm_90a:wgmma.wait_group.sync.aligned 0;" : ${tied("s", BK // 2)}, ${tied("o", EV // 2)} :: "memory");
% endif
% else:
% if not QL:
        __global const ${T.c}* lo = Q + min(mine0 + g, L - 1) * t16.s2;
        __global const ${T.c}* hi = Q + min(mine0 + g + 8, L - 1) * t16.s2;
% endif
        for (int i = 0; i < ${NT * 4}; i++) {
            const int key = i / 4 * 8 + 2 * t + (i & 1);
            s[i] = 0;
            for (int e = 0; e < ${E}; e++)
                s[i] += ${f"AT(qt, {BQ}, warp * 16 + g + (i & 2) * 4, e)" if QL else T.load + "((i & 2) ? hi : lo, e)"} * AT(kt, ${BK}, key, e);
        }
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
${lines("pool", "K", "ks", E, BK)}
        }
        COMMIT();
% endif
% if PTX:
        asm volatile("${instructions(EV, BK // 16, lambda i: i * 128, EV // 2, EV // 2 + BK // 4, 1, False, STAGES < 3)}"
            : ${tied("o", EV // 2)} : ${tied("p", BK // 4, "r")}, "l"(values) : "memory");
% else:
        /* Word w of p: keys 16 (w / 4) + 8 (w / 2 % 2) + 2 t and the next one, row g + 8 (w % 2). */
        for (int w = 0; w < ${BK // 4}; w++) mine[(g + (w & 1) * 8) * ${BK // 2} + w / 4 * 8 + (w & 2) * 2 + t] = p[w];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < ${NO * 4}; i++)
            for (int key = 0; key < ${BK}; key++)
                o[i] += ${load}((ushort)(mine[(g + (i & 2) * 4) * ${BK // 2} + key / 2] >> (key & 1) * 16)) * AT(vt, ${BK}, key, i / 4 * 8 + 2 * t + (i & 1));
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
    }
% if PTX and STAGES > 2:
    asm volatile("//sm_90a:wgmma.wait_group.sync.aligned 0;" : ${tied("o", EV // 2)} :: "memory");
% endif
${scores.results(T, MASK, 1, NO)}
}
## `rows` rows of X (`size` elements, `stride` apart, an int) to the lines of `tile`; those from `left` on become zeros.
<%def name="lines(tile, X, stride, size, rows)">
<% C = size // 8 %>\
            {
            const int r = lid / ${C}, from = r * ${stride} + lid % ${C} * 8;
            __local uint4* into = ${tile} + lid % ${C} / 8 * ${rows * 8} + r * 8 + (lid % 8 ^ r % 8);
            #pragma unroll
            for (int p = 0; p < ${rows * C // G}; p++)
                COPY16(into + p * ${G // C * 8}, ${X} + (r + p * ${G // C} < left ? from + p * ${G // C} * ${stride} : 0), r + p * ${G // C} < left);
            }
</%def>
