<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="frag" file="/matmul/fragments.cl.mako"/>\
## The product of matmul/tensor for operands whose rows (or columns) begin at multiples of 16 bytes: they are copied into local memory without passing through
## registers, STAGES - 1 blocks of K ahead, and read from there 8 rows of 16 bytes at a time (ldmatrix). One barrier per block.
##
## Operands, geometry, warps and words as in matmul/tensor; groups go down 8 rows of blocks before the next column, so that those at work share the cache.
## An operand lies in local memory in pieces of 16 bytes, which are what is copied and what ldmatrix reads:
##     "k"  [X][4]: row x holds a block of K, 64 bytes. Piece c of it stands at c ^ (x / 2 % 4)
##     "x"  [steps of K][C]: C pieces along X. Piece c of step k stands at c ^ swizzle(k), below
## so that 8 pieces that are read together, and 8 that are written together, lie in different banks.
##
## Parameter  legal values
## TA TB TC   as in matmul/tensor; bytes with AFAST and BFAST "k" only
## WX WY MT NT PTX BIAS BETA EPI  as in matmul/tensor; MT a power of two, NT a power of two from 2 on
## AFAST BFAST  "k" or "x": the index of unit stride of A (m, k) and B (k, n). The other strides are multiples of 16 bytes; extents are any
## STAGES     blocks of K in local memory, 3 or more: 64 (BM + BN) bytes each
##
## PTX=False copies and reads the same places in plain OpenCL C.
<%
    G, BM, BN, WM, WN = 32 * WX * WY, 16 * MT * WY, 8 * NT * WX, 16 * MT, 8 * NT
    SIZE = TA.itemsize
    BK, LANES = 64 // SIZE, 16 // SIZE
    SA, S = 64 * BM, 64 * (BM + BN)
    ACC = TC.acc
    pool = max(STAGES * S // 16, WX * WY * 4 * (WN + 8))
    vectors = tile.module.vector_epilogue(EPI)
    place = lambda row, col: f"C + {row} * rcs + {col}"
    finish = lambda many, V, col: capture(tile.finish, TC, ACC, V, BIAS, BETA, EPI, "p", col, many)
    plain = lambda fast: fast == "x" and SIZE == 4        # what ldmatrix, which turns pairs of 16 bits, cannot turn
    assert SIZE > 1 or AFAST == BFAST == "k"

    def swizzle(k, C):
        C = min(C, 8)
        return f"({k} << 1 & {min(C - 1, 6)})" if SIZE == 4 else f"({k} >> {3 - (C.bit_length() - 1)} & {C - 1})"

    def place_of(fast, BX, line, i, s):
        """Byte of tile i (16 rows) and step s, from that of tile 0 and step 0 on."""
        return f"({line} ^ {32 * s}) + {1024 * i}" if fast == "k" else f"({line} ^ {32 * i}) + {s * 16 * BX * SIZE}"

    def word_of(BX, line, q, k):
        """Byte of a float 4 q columns and k steps further."""
        return f"({line} ^ {(q & 7) * 16}) + {(q & ~7) * 16 + k * BX * 4}"
%>\
${frag.helpers(TB, TC, PTX, TA)}
${vec.vector_io(TC, 4)}
% if PTX:
#define COPY(to, from, n) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"((size_t)(from)), "r"(n) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define READ4(turn, x0, x1, x2, x3, at) asm volatile("ldmatrix.sync.aligned.m8n8.x4" turn ".shared.b16 {%0, %1, %2, %3}, [%4];" ${"\\"}
    : "=r"(x0), "=r"(x1), "=r"(x2), "=r"(x3) : "r"(at) : "memory")
static inline uint read1(const uint at) { uint x; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(at) : "memory"); return x; }
#define WORD(at) read1(at)
% else:
static inline void copy16(__local uchar* to, __global const uchar* from, const int n) {
    for (int i = 0; i < 16; i++) to[i] = i < n ? from[i] : 0;
}
#define COPY(to, from, n) copy16((__local uchar*)pool + (to), (__global const uchar*)(from), n)
#define COMMIT
#define WAIT(n)
#define WORD(at) (*(__local const uint*)((__local const uchar*)pool + (at)))
#define HALF(at) (uint)(*(__local const ushort*)((__local const uchar*)pool + (at)))
% endif
<%def name="line(X, BX, WX, fast)">
/* Where lane l of a warp that begins at row or column w finds its piece of tile 0 and step 0 (its float, where it reads those). */
static inline int ${X}line(const int w, const int l) {
<% C = BX * SIZE // 16 %>\
% if plain(fast):
    return (l & 3) * ${16 * C} + (((w >> 2) + (l >> 4)) ^ ${swizzle("(l & 3)", C)}) * 16 + (l >> 2 & 3) * 4;
% elif fast == "k":
    const int x = w + ${"(l & 15)" if X == "A" else "(l & 7) + (l >> 4) * 8"};
    return x * 64 + (${"(l >> 4)" if X == "A" else "(l >> 3 & 1)"} ^ (x >> 1 & 3)) * 16;
% else:
    const int k = ${"(l & 7) + (l >> 4) * 8" if X == "A" else "(l & 15)"};
    return k * ${16 * C} + (((w >> 3) + ${"(l >> 3 & 1)" if X == "A" else "(l >> 4)"}) ^ ${swizzle("k", C)}) * 16;
% endif
}
</%def>
<%def name="offsets(X, T, BX, fast, xs, ks, x0, end)">
<% C = BX * SIZE // 16 %>\
% if fast == "k":
% for p in range(BX * 4 // G):
    const int ${X}at${p} = (int)(min((lid >> 2) + ${p * G // 4}L, ${end} - 1 - ${x0}) * ${xs} + (lid & 3) * ${LANES});
% endfor
    const int ${X}to = (lid >> 2) * 64 + ((lid & 3) ^ (lid >> 3 & 3)) * 16;
% else:
<% assert G % C == 0 and G // C % (4 if SIZE == 4 else 8) == 0 %>\
    const int ${X}k = lid / ${C}, ${X}x = lid % ${C} * ${LANES}, ${X}wide = (int)max(0L, min(${end} - ${x0} - ${X}x, ${LANES}L)) * ${SIZE};
    const int ${X}at0 = (int)(${X}x + ${X}k * ${ks}), ${X}step = ${G // C} * (int)${ks};
    const int ${X}to = ${X}k * ${16 * C} + (lid % ${C} ^ ${swizzle(f"{X}k", C)}) * 16;
% endif
</%def>
<%def name="copy(X, BX, fast, to)">
<% C = BX * SIZE // 16 %>\
% if fast == "k":
    { const int n = max(0, min(min(left, ${BK}) * ${SIZE} - (lid & 3) * 16, 16));
      ${" ".join(f"COPY({to} + {X}to + {p * G * 16}, {X} + {X}at{p}, n);" for p in range(BX * 4 // G))} }
% else:
    ${" ".join(f"COPY({to} + {X}to + {p * G * 16}, {X} + {X}at0 + {p} * {X}step, {X}k + {p * G // C} < left ? {X}wide : 0);" for p in range(BX * 4 // G))}
% endif
</%def>
<%def name="copies(to)">
${copy("A", BM, AFAST, to)}
${copy("B", BN, BFAST, f"{to} + {SA}")}
    COMMIT;
    A += ${BK} * cas;
    B += ${BK} * rbs;
    left -= ${BK};
</%def>
## The registers of step s of the block at byte `source`.
<%def name="read(X, tiles, BX, fast, source, s)">
<% name = X.lower() + str(s) %>\
% if plain(fast):
% for i in range(tiles):
    ${" ".join(f"{name}{i}_{h * (2 if X == 'A' else 1) + r} = WORD({source} + {word_of(BX, f'{X}l', 4 * i + 2 * r if X == 'A' else 2 * i, 8 * s + 4 * h)});"
               for h in (0, 1) for r in range(2 if X == "A" else 1))}
% endfor
% else:
% for i in range(tiles if X == "A" else tiles // 2):
<% into = [f"{name}{i}_{r}" for r in range(4)] if X == "A" else [f"{name}{2 * i + r // 2}_{r % 2}" for r in range(4)] %>\
% if PTX:
    READ4("${".trans" if fast == "x" else ""}", ${", ".join(into)}, ${source} + ${place_of(fast, BX, f"{X}l", i, s)});
% elif fast == "k":
    ${" ".join(f"{v} = WORD({source} + {place_of(fast, BX, f'{X}line(w{X}, {8 * r} + g)', i, s)} + 4 * t);" for r, v in enumerate(into))}
% else:
    ${" ".join(f"{v} = HALF({source} + {place_of(fast, BX, f'{X}line(w{X}, {8 * r} + 2 * t)', i, s)} + 2 * g)"
               f" | HALF({source} + {place_of(fast, BX, f'{X}line(w{X}, {8 * r + 1} + 2 * t)', i, s)} + 2 * g) << 16;" for r, v in enumerate(into))}
% endif
% endfor
% endif
</%def>
<%def name="step(s)">
% if SIZE == 4:
    ${" ".join(f"a{s}{i}_{r} = tf32(a{s}{i}_{r});" for i in range(MT) for r in range(4))}
    ${" ".join(f"b{s}{j}_{h} = tf32(b{s}{j}_{h});" for j in range(NT) for h in (0, 1))}
% endif
${frag.multiply(MT, NT, PTX, s)}
</%def>
${line("A", BM, WY, AFAST)}
${line("B", BN, WX, BFAST)}
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void matmul_pipeline(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z, const ${ACC} alpha, const ${ACC} beta) {
    __local uint4 pool[${pool}] __attribute__((aligned(128)));
% if not PTX:
    __local uint exchange[${WX * WY * 32 * (MT * 4 + NT * 2)}];
% endif
    const long M = d.s0, N = d.s1, ras = d.s3, cas = d.s4, rbs = d.s5, cbs = d.s6, rcs = d.s7;
    const long z0 = get_global_id(2) / z.s0, z1 = get_global_id(2) % z.s0;
    const int K = (int)(d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2);
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
    const int wm = warp / ${WX} * ${WM}, wn = warp % ${WX} * ${WN};
    const uint across = get_num_groups(0), id = (uint)get_group_id(1) * across + (uint)get_group_id(0), band = 8 * across;
    const uint top = id / band * 8, high = min(8u, (uint)get_num_groups(1) - top), inside = id % band;
    const long m0 = (long)(top + inside % high) * ${BM}, n0 = (long)(inside / high) * ${BN};
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4 + m0 * ras;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5 + n0 * cbs;
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
% if PTX:
    const uint base = (uint)(size_t)pool;
% else:
    __local uint* mine = exchange + warp * ${32 * (MT * 4 + NT * 2)};
    const uint base = 0;
    const int wA = wm, wB = wn;
% endif
    const int Al = Aline(wm, lane), Bl = Bline(wn, lane);
${offsets("A", TA, BM, AFAST, "ras", "cas", "m0", "M")}
${offsets("B", TB, BN, BFAST, "cbs", "rbs", "n0", "N")}
% for i in range(MT):
    ${ACC} ${", ".join(f"c{i}_{j}_{r} = 0" for j in range(NT) for r in range(4))};
% endfor
    uint ${", ".join(f"{n}" for s in (0, 1) for n in [f"a{s}{i}_{r}" for i in range(MT) for r in range(4)] + [f"b{s}{j}_{h}" for j in range(NT) for h in (0, 1)])};
    int left = K;
% for stage in range(STAGES - 1):
${copies(f"base + {stage * S}")}
% endfor
    uint now = base, to = base + ${(STAGES - 1) * S};
    WAIT(${STAGES - 2});
    barrier(CLK_LOCAL_MEM_FENCE);
${read("A", MT, BM, AFAST, "now", 0)}
${read("B", NT, BN, BFAST, f"now + {SA}", 0)}
    for (int k0 = 0; k0 < K; k0 += ${BK}) {
${read("A", MT, BM, AFAST, "now", 1)}
${read("B", NT, BN, BFAST, f"now + {SA}", 1)}
${copies("to")}
${step(0)}
        to = now;
        now = now == base + ${(STAGES - 1) * S} ? base : now + ${S};
        WAIT(${STAGES - 2});
        barrier(CLK_LOCAL_MEM_FENCE);
${read("A", MT, BM, AFAST, "now", 0)}
${read("B", NT, BN, BFAST, f"now + {SA}", 0)}
${step(1)}
    }
    WAIT(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool first = true, last = true;
% if vectors:
    const bool neat = (((size_t)C | (size_t)(rcs * ${TC.itemsize})) & ${4 * TC.itemsize - 1}) == 0;
% endif
${frag.store(MT, NT, TC, "neat" if vectors else "", place, finish)}
}
