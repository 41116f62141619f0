## What attention on tensor cores is made of: tiles of rows in local memory, fragments in registers, the instructions.
##
## mma.m16n8k16 multiplies 16 rows of A by 8 columns of B over 16 elements. Lane l = 4 g + t of a warp holds, in words of two elements (PTX ISA,
## "Matrix Fragments for mma.m16n8k16"):
##     A  a[0]: row g, elements 2 t and 2 t + 1    a[1]: row g + 8, the same    a[2], a[3]: the same rows, 8 elements on
##     B  b0: column g, elements 2 t and 2 t + 1   b1: 8 elements on
##     C  d[0], d[1]: row g, columns 2 t and 2 t + 1    d[2], d[3]: the same of row g + 8
## so that two neighbouring tiles of C, rounded and packed, are a fragment of A: weights go from one product into the next without memory.
##
## A *tile* is ROWS rows of 16-byte chunks in local memory, an odd number of chunks apart: the eight rows that ldmatrix reads at once then lie in
## different banks. Rows of an odd number of chunks have one more, whose content is multiplied by zeros or not stored.
##
## def                              emits
## helpers(T, PTX)                  pack, MMA, LDSM and LDSM_T (ldmatrix), COPY16 with COMMIT and WAIT (cp.async), QUAD (lane ^ 1 or 2), EXP2
## fetch / clear                    rows from global memory to a tile; zeros into its last chunk
## rows(...)                        fragments of A from rows in global memory
## across(...)                      c += A X', X the rows of a tile (contracted over their elements)
## down(...)                        c += A X, contracted over the rows of a tile
## packed(...)                      fragments of A from tiles of C
## Loops over fragments are unrolled, so that their arrays are registers.
##
## PTX=False spells the instructions out in plain OpenCL C: the lanes of a warp exchange what they hold through local memory (between barriers). That is
## for tests on devices without tensor cores, and slow. Expects lid, lane, g, t
## and, where not PTX, pool: what all tiles lie in, and mine: 192 words of local memory for each warp.
<%!
    def chunks(size):
        """16-byte chunks of a row of `size` elements."""
        return size // 8

    def pitch(size):
        """Chunks from row to row of a tile: odd."""
        return size // 8 + 1 | 1

    def steps(size):
        """Instructions along `size` elements."""
        return -(-size // 16)
%>\
<%def name="helpers(T, PTX)">
<% kind, name = T.name.replace("float", "f"), T.name %>\
% if PTX:
static inline uint pack(float lo, float hi) { uint r; asm("cvt.rn.${kind}x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
static inline float exp2_fast(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
#define EXP2(x) exp2_fast(x)
#define MMA(d, a, b0, b1) asm("mma.sync.aligned.m16n8k16.row.col.f32.${kind}.${kind}.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" ${"\\"}
    : "=f"((d)[0]), "=f"((d)[1]), "=f"((d)[2]), "=f"((d)[3]) ${"\\"}
    : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1), "f"((d)[0]), "f"((d)[1]), "f"((d)[2]), "f"((d)[3]))
% for macro, turn in (("LDSM", ""), ("LDSM_T", ".trans")):
#define ${macro}(r, p) asm volatile("ldmatrix.sync.aligned.m8n8.x4${turn}.shared.b16 {%0, %1, %2, %3}, [%4];" ${"\\"}
    : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"((uint)(size_t)(p)) : "memory")
% endfor
#define COPY16(to, from, given) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"((uint)(size_t)(to)), "l"((size_t)(from)), "r"((given) ? 16 : 0) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" : : : "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" : : : "memory")
#define QUAD(r, v, n) asm volatile("shfl.sync.bfly.b32 %0, %1, " #n ", 0x1f, 0xffffffff;" : "=f"(r) : "f"(v))
% else:
<% load, store = ("clnn_h2f", "clnn_f2h") if name == "float16" else ("clnn_bf2f", "clnn_f2bf") %>\
#define pack(lo, hi) ((uint)${store}(lo) | (uint)${store}(hi) << 16)
#define EXP2(x) exp2(x)
#define DOT(x, y) (${load}((ushort)(x)) * ${load}((ushort)(y)) + ${load}((ushort)((x) >> 16)) * ${load}((ushort)((y) >> 16)))
static inline void mma_spelt(__local uint* mine, int lane, float* d, const uint* a, uint b0, uint b1) {
    const int g = lane >> 2, t = lane & 3;
    for (int r = 0; r < 4; r++) mine[r * 32 + lane] = a[r];
    mine[128 + lane] = b0;
    mine[160 + lane] = b1;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int w = 0; w < 8; w++) {
        const int h = w >> 2, u = w & 3;
        const uint x = mine[64 * h + 4 * g + u], y = mine[64 * h + 32 + 4 * g + u], p = mine[128 + 32 * h + 8 * t + u], q = mine[132 + 32 * h + 8 * t + u];
        d[0] += DOT(x, p); d[1] += DOT(x, q); d[2] += DOT(y, p); d[3] += DOT(y, q);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
/* Four matrices of 8 rows of 16 bytes, whose addresses lanes 8 m.. give: a lane gets word t of row g, or (turned) elements g of rows 2 t and 2 t + 1. */
static inline void matrices_spelt(__local uint* mine, int lane, uint* r, __local const uint4* pool, __local const uint4* p, bool turned) {
    const int g = lane >> 2, t = lane & 3;
    mine[lane] = (uint)(p - pool);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int m = 0; m < 4; m++)
        if (turned) {
            __local const ushort* lo = (__local const ushort*)(pool + mine[8 * m + 2 * t]);
            __local const ushort* hi = (__local const ushort*)(pool + mine[8 * m + 2 * t + 1]);
            r[m] = (uint)lo[g] | (uint)hi[g] << 16;
        } else r[m] = ((__local const uint*)(pool + mine[8 * m + g]))[t];
    barrier(CLK_LOCAL_MEM_FENCE);
}
static inline float quad_spelt(__local uint* mine, int lane, float v, int n) {
    mine[lane] = as_uint(v);
    barrier(CLK_LOCAL_MEM_FENCE);
    const float r = as_float(mine[lane ^ n]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return r;
}
#define MMA(d, a, b0, b1) mma_spelt(mine, lane, d, a, b0, b1)
#define LDSM(r, p) matrices_spelt(mine, lane, r, pool, p, false)
#define LDSM_T(r, p) matrices_spelt(mine, lane, r, pool, p, true)
#define COPY16(to, from, given) (*(to) = (given) ? *(__global const uint4*)(from) : (uint4)(0))
#define COMMIT()
#define WAIT(n)
#define QUAD(r, v, n) ((r) = quad_spelt(mine, lane, v, n))
% endif
</%def>
##
## ROWS rows of X (elements of `size`, `stride` apart, an int) to `tile`; those from `left` on become zeros.
<%def name="fetch(tile, X, size, stride, ROWS, G, left)">
<% C, all = chunks(size), ROWS * chunks(size) %>\
    #pragma unroll
    for (int p = 0; p < ${-(-all // G)}; p++) {
        const int e = lid + p * ${G}, r = e / ${C}, c = e % ${C};
        ${f"if (e < {all}) " if all % G else ""}COPY16(${tile} + r * ${pitch(size)} + c, ${X} + (r < ${left} ? r * ${stride} + c * 8 : 0), r < ${left});
    }
</%def>
## Before the first barrier.
<%def name="clear(tile, size, ROWS, G)">
% if chunks(size) % 2:
    for (int r = lid; r < ${ROWS}; r += ${G}) (${tile})[r * ${pitch(size)} + ${chunks(size)}] = (uint4)(0);
% endif
</%def>
## Fragments name[] of MT tiles of 16 rows of X from `first` on, `stride` apart; rows from `end` on repeat the last.
<%def name="rows(name, X, size, stride, first, end, MT)">
<% KS = steps(size) %>\
    uint ${name}[${MT * KS * 4}];
    #pragma unroll
    for (int i = 0; i < ${MT}; i++) {
        __global const uint* lo = (__global const uint*)(${X} + min(${first} + i * 16 + g, ${end} - 1) * ${stride}) + t;
        __global const uint* hi = (__global const uint*)(${X} + min(${first} + i * 16 + g + 8, ${end} - 1) * ${stride}) + t;
        #pragma unroll
        for (int k = 0; k < ${KS}; k++) {
            uint* a = ${name} + (i * ${KS} + k) * 4;
            a[0] = lo[k * 8];
            a[1] = hi[k * 8];
% if chunks(size) % 2:
            a[2] = k < ${KS - 1} ? lo[k * 8 + 4] : 0;
            a[3] = k < ${KS - 1} ? hi[k * 8 + 4] : 0;
% else:
            a[2] = lo[k * 8 + 4];
            a[3] = hi[k * 8 + 4];
% endif
        }
    }
</%def>
## Tiles c[MT][NT] += fragments a[MT][size] times the NT * 8 rows of `tile`, turned. NT is even.
<%def name="across(c, a, tile, size, MT, NT)">
<% KS, P = steps(size), pitch(size) %>\
    {
    __local const uint4* at = ${tile} + ((lane >> 4) * 8 + (lane & 7)) * ${P} + (lane >> 3 & 1);
    #pragma unroll
    for (int k = 0; k < ${KS}; k++) {
        #pragma unroll
        for (int j = 0; j < ${NT}; j += 2) {
            uint b[4];
            LDSM(b, at + j * ${8 * P} + k * 2);
            #pragma unroll
            for (int i = 0; i < ${MT}; i++) {
                MMA(${c} + (i * ${NT} + j) * 4, ${a} + (i * ${KS} + k) * 4, b[0], b[1]);
                MMA(${c} + (i * ${NT} + j + 1) * 4, ${a} + (i * ${KS} + k) * 4, b[2], b[3]);
            }
        }
    }
    }
</%def>
## Tiles c[MT][size / 8] += fragments a[MT][KS] times 16 * KS rows of `tile`.
<%def name="down(c, a, tile, size, MT, KS)">
<% NT, P = chunks(size), pitch(size) %>\
    {
    __local const uint4* at = ${tile} + ((lane >> 3 & 1) * 8 + (lane & 7)) * ${P} + (lane >> 4);
    #pragma unroll
    for (int k = 0; k < ${KS}; k++) {
        #pragma unroll
        for (int j = 0; j < ${NT}; j += 2) {
            uint b[4];
            LDSM_T(b, at + k * ${16 * P} + j);
            #pragma unroll
            for (int i = 0; i < ${MT}; i++) {
                MMA(${c} + (i * ${NT} + j) * 4, ${a} + (i * ${KS} + k) * 4, b[0], b[1]);
                ${f"if (j + 1 < {NT}) " if NT % 2 else ""}MMA(${c} + (i * ${NT} + j + 1) * 4, ${a} + (i * ${KS} + k) * 4, b[2], b[3]);
            }
        }
    }
    }
</%def>
## Fragments name[MT][NT / 2] from tiles c[MT][NT].
<%def name="packed(name, c, MT, NT)">
    uint ${name}[${MT * NT * 2}];
    #pragma unroll
    for (int i = 0; i < ${MT * NT // 2}; i++) {
        #pragma unroll
        for (int r = 0; r < 4; r++) ${name}[i * 4 + r] = pack(${c}[i * 8 + r * 2], ${c}[i * 8 + r * 2 + 1]);
    }
</%def>
## Tiles c[MT][size / 8] times `factor` to rows of X from `first` on, those before `end`.
<%def name="store(X, c, size, stride, first, end, factor, MT)">
    #pragma unroll
    for (int i = 0; i < ${MT * 2}; i++) {
        const long row = ${first} + i * 8 + g;
        if (row < ${end}) {
            __global uint* to = (__global uint*)(${X} + row * ${stride}) + t;
            #pragma unroll
            for (int j = 0; j < ${chunks(size)}; j++) {
                const float* v = ${c} + (i / 2 * ${chunks(size)} + j) * 4 + i % 2 * 2;
                to[j * 4] = pack(v[0] * ${factor}, v[1] * ${factor});
            }
        }
    }
</%def>
