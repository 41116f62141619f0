<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="frag" file="/matmul/fragments.cl.mako"/>\
## C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias) by the instructions of four warps together (wgmma) of compute capability 9.0, sums in float, or in int
## of bytes.
##
## A (M, K), B (K, N) with 16 bytes in a row along one index each; C (M, N) rows of unit stride; z counts two batch dimensions, or runs of K (split-K).
## float operands are taken as tf32 (the instruction reads 10 bits of their mantissa).
## Geometry: local (128 WG, 1, 1), global (local * ceil(N / BN) * ceil(M / BM), 1, batch), BM = 64 WG. A work-group owns a BM x BN block of C, its
## warpgroup w the rows from 64 w on. A step of K is 128 bytes. Blocks are numbered so that RASTER rows of them run side by side, and share what they read.
##
## Local memory has STAGES slots. While one is multiplied, asynchronous copies fill those of the next STAGES - 2 steps; the one in between is still read by
## the product before. A slot holds A, then B, in the layouts that the instruction reads with its swizzle of 128 bytes (PTX ISA, "Shared Memory Matrix
## Layout"): lines of 128 bytes, piece p (16 bytes) of line l at place p ^ (l % 8).
##     "k"  a line per row of A or column of B, along K
##     "x"  per 64 rows or columns 64 lines, one per step of K (16-bit operands only)
##
## Parameter  legal values
## TA TB TC   dtype rows: TA is TB, one of float16, bfloat16, float32, and TC is TA or float32; or TA int8 or uint8, TB int8, TC int32
## WG         warpgroups: 1, 2; BN: a multiple of 64, at most 256; STAGES >= 3
## AFAST BFAST  "k" or "x": the index of unit stride; other strides, extents along this one and addresses are multiples of 16 bytes
## PTX        True: the instructions; False: spelt out, for tests
## BIAS BETA EPI  as in matmul/cpu
##
## The instructions belong to the processor sm_90a, for which no OpenCL compiler builds: they are comments until clnn.runtime.retarget reads them.
##
## Limits: offsets inside a block are 32 bits; barriers stand at the top level; the loop bounds are the same for the whole group.
<%
    G, BM, NT, E, RASTER = 128 * WG, 64 * WG, BN // 8, 16 // TA.itemsize, 8
    BK = 8 * E
    SA, SB = BM * 8, BN * 8         # uint4 of a slot
    pool = max(STAGES * (SA + SB), WG * 4 * 4 * (BN + 8))
    assert SA % G == 0 and SB % G == 0 and STAGES >= 3 and (TA.itemsize == 2 or AFAST == BFAST == "k")
    ACC, R = TC.acc, "r" if TC.acc == "int" else "f"
    SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32", "int8": "s8", "uint8": "u8"}
    sums = [f"c0_{j}_{r}" for j in range(NT) for r in range(4)]
    # What the copies of one operand are made of: pieces per work-item, pieces of 16 bytes side by side, lines that a round of all work-items covers
    A = ("A", SA // G, 8 if AFAST == "k" else BM // 8, AFAST, "ras", "cas", "M - 1 - m0", "M - m0")
    B = ("B", SB // G, 8 if BFAST == "k" else BN // 8, BFAST, "cbs", "rbs", "N - 1 - n0", "N - n0")
    # A matrix descriptor's high words: bytes / 16 from 8 lines to the next 8, and the swizzle of 128 bytes; its steps of 16 bytes per instruction
    HIGH = 64 | 1 << 30
    advance = {"k": 2, "x": 128}
    lead = {"k": 1, "x": 512}
    vectors = tile.module.vector_epilogue(EPI)
    place = lambda row, col: f"C + {row} * rcs + {col}"
    finish = lambda many, V, col: capture(tile.finish, TC, ACC, V, BIAS, BETA, EPI, "p", col, many)
    shape = f"m64n{BN}k{2 * E}.{'s32' if R == 'r' else 'f32'}.{SHORT[TA.name]}.{SHORT[TB.name]}"
    turns = ("" if R == "r" else ", 1, 1") + (f", {int(AFAST == 'x')}, {int(BFAST == 'x')}" if TA.itemsize == 2 else "")
    regs = ", ".join(f"%{i}" for i in range(len(sums)))
    da, db = f"%{len(sums)}", f"%{len(sums) + 1}"
    steps = " ".join(f"add.s64 a, {da}, {i * advance[AFAST]}; add.s64 b, {db}, {i * advance[BFAST]}; "
                     f"wgmma.mma_async.sync.aligned.{shape} {{{regs}}}, a, b, p{turns};" for i in range(4))
%>\
${frag.helpers(TB, TC, PTX, TA)}
${vec.vector_io(TC, 4)}
<%def name="offsets(X, pieces, across, fast, xs, ks, last, end)">
% if fast == "k":
% for p in range(pieces):
    const int ${X}at${p} = (int)(min((long)(lid / 8 + ${p * G // 8}), ${last}) * ${xs}) + lid % 8 * ${E};
% endfor
    const int ${X}to = lid / 8 * 8 + (lid % 8 ^ lid / 8 % 8);
% else:
    const int ${X}line = lid / ${across}, ${X}at0 = (int)(${X}line * ${ks} + min((long)(lid % ${across} * ${E}), ${end} - ${E}));
    const int ${X}to = lid % ${across} / 8 * 512 + ${X}line * 8 + (lid % 8 ^ ${X}line % 8);
% endif
</%def>
## The copies of the operand's next step into a slot.
<%def name="copies(X, pieces, across, fast, xs, ks, last, end)">
% for p in range(pieces):
% if fast == "k":
    COPY(${"now" if X == "A" else f"now + {SA}"} + ${X}to + ${p * G}, ${X} + ${X}at${p}, lid % 8 * ${E} < left);
% else:
    COPY(${"now" if X == "A" else f"now + {SA}"} + ${X}to + ${p * G // across * 8}, ${X} + ${X}at0 + ${p * G // across} * (int)${ks}, ${X}line + ${p * G // across} < left);
% endif
% endfor
</%def>
<%def name="fetch(slot)">
    { __local uint4* now = pool + ${slot} * ${SA + SB};
${copies(*A)}
${copies(*B)}
      COMMIT;
      A += ${BK} * cas;
      B += ${BK} * rbs;
      left -= ${BK}; }
</%def>
% if PTX:
#define COPY(to, from, there) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((uint)(size_t)(to)), "l"((size_t)(from)), "r"((there) ? 16 : 0) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
% else:
#define COPY(to, from, there) *(to) = (there) ? *(__global const uint4*)(from) : (uint4)(0)
#define COMMIT
/* Element k of line x (a row or column) of an operand in its slot. */
% for X, T, fast in (("A", TA, AFAST), ("B", TB, BFAST)):
% if fast == "k":
#define AT_${X}(s, x, k) ((__local const ${T.c}*)((s) + (x) * 8 + ((k) / ${E} ^ (x) % 8)))[(k) % ${E}]
% else:
#define AT_${X}(s, x, k) ((__local const ${T.c}*)((s) + (x) / 64 * 512 + (k) * 8 + ((x) % 64 / ${E} ^ (k) % 8)))[(x) % ${E}]
% endif
% endfor
<% load = {"float16": "clnn_h2f", "bfloat16": "clnn_bf2f", "float32": "TRUNCATED"}.get(TA.name, "(int)") %>\
#define TRUNCATED(v) as_float(as_uint(v) & 0xffffe000u)
% endif
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void matmul_warpgroup(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z,
                      const ${ACC} alpha, const ${ACC} beta) {
    __local uint4 pool[${pool}] __attribute__((aligned(1024)));
    const long M = d.s0, N = d.s1, ras = d.s3, cas = d.s4, rbs = d.s5, cbs = d.s6, rcs = d.s7;
    const long z0 = get_global_id(2) / z.s0, z1 = get_global_id(2) % z.s0;
    const int K = (int)(d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2);
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
    const int down = (int)((M + ${BM - 1}) / ${BM}), right = (int)((N + ${BN - 1}) / ${BN}), band = get_group_id(0) / (${RASTER} * right) * ${RASTER};
    const int tall = min(down - band, ${RASTER}), at = get_group_id(0) % (${RASTER} * right);
    const long m0 = (long)(band + at % tall) * ${BM}, n0 = (long)(at / tall) * ${BN};
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4 + m0 * ras;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5 + n0 * cbs;
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
    const int wm = warp * 16, wn = 0;
${offsets(*A)}
${offsets(*B)}
    ${ACC} ${", ".join(f"{c} = 0" for c in sums)};
    int left = K;
% for s in range(STAGES - 2):
${fetch(s)}
% endfor
    const int rounds = (K + ${BK - 1}) / ${BK};
    for (int i = 0; i < rounds; i++) {
        __local const uint4* a = pool + i % ${STAGES} * ${SA + SB} + warp / 4 * 512;
        __local const uint4* b = pool + i % ${STAGES} * ${SA + SB} + ${SA};
% if PTX:
        asm volatile("cp.async.wait_group ${STAGES - 3};" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        barrier(CLK_LOCAL_MEM_FENCE);
        { const ulong da = (ulong)${HIGH}u << 32 | ${lead[AFAST]} << 16 | (uint)(size_t)a >> 4, db = (ulong)${HIGH}u << 32 | ${lead[BFAST]} << 16 | (uint)(size_t)b >> 4;
          asm volatile("//sm_90a:{ .reg .b64 a, b; .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.fence.sync.aligned; ${steps} wgmma.commit_group.sync.aligned; }"
            : ${", ".join(f'"+{R}"({c})' for c in sums)} : "l"(da), "l"(db) : "memory"); }
${fetch(f"((i + {STAGES - 2}) % {STAGES})")}
        asm volatile("//sm_90a:wgmma.wait_group.sync.aligned 1;" ::: "memory");
% else:
        barrier(CLK_LOCAL_MEM_FENCE);
${fetch(f"((i + {STAGES - 2}) % {STAGES})")}
        for (int k = 0; k < ${BK}; k++) {
            const ${ACC} x = ${load}(AT_A(a, warp % 4 * 16 + g, k)), y = ${load}(AT_A(a, warp % 4 * 16 + g + 8, k));
% for j in range(NT):
            { const ${ACC} p = ${load}(AT_B(b, ${8 * j} + 2 * t, k)), q = ${load}(AT_B(b, ${8 * j + 1} + 2 * t, k));
              c0_${j}_0 += x * p; c0_${j}_1 += x * q; c0_${j}_2 += y * p; c0_${j}_3 += y * q; }
% endfor
        }
% endif
    }
% if PTX:
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    asm volatile("//sm_90a:wgmma.wait_group.sync.aligned 0;" : ${", ".join(f'"+{R}"({c})' for c in sums)} :: "memory");
% endif
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool first = true, last = true;
% if vectors:
    const bool neat = (((size_t)C | (size_t)(rcs * ${TC.itemsize})) & ${4 * TC.itemsize - 1}) == 0;
% endif
${frag.store(1, NT, TC, "neat" if vectors else "", place, finish)}
}
