## What a matrix product on tensor cores is made of: operands in local memory as words, fragments in registers, the instruction.
##
## A *word* is 32 bits: two 16-bit elements or four bytes that follow each other along K, or one float rounded to tf32. The instruction multiplies 16 rows by
## 8 columns over 8 words. Of its fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16", "...m16n8k8" and "...m16n8k32") lane l = 4 g + t of a warp holds
##     A  a0: row g, word t    a1: row g + 8, word t    a2: row g, word t + 4    a3: row g + 8, word t + 4
##     B  b0: column g, word t    b1: column g, word t + 4
##     C  c0, c1: row g, columns 2 t and 2 t + 1    c2, c3: the same of row g + 8
## which in words is the same for all types. A block of K is 16 words, two instructions deep. Which of the 16 an instruction calls its word t is
## free as long as A and B agree: step s takes word 4 t + 2 s + h for t + 4 h, so that a lane's words of both steps lie side by side.
##
## An operand with X rows (A) or columns (B) per group lies in local memory in one of two ways, chosen by the index that its wide loads step through:
##     "k"  B: [X][16], a uint4 per lane and column holds both steps. A: [X / 16][step][lane], a uint4 per lane holds a0..a3, which stand in neighbouring
##          registers; so a work-item that fills it loads row g and row g + 8. Reads and writes of 32 lanes touch memory that follows each other.
##     "x"  [16][X + 8], rows in the order in which instructions take them: read word by word (8 t + g: 32 different banks)
##
## def                                        emits
## helpers(T, TC, PTX, A)                     words of T: WORDS(v) rounds four of them, STORE4, MMA or DOT; A: A's dtype where it differs from T, B's
## offsets / fetch / place                    global memory -> registers -> local memory, in pieces of 4 words
## fragments(..., s)                          the registers of step s
## multiply(MT, NT, PTX, s)                   c += a b for all tiles of a warp
## store(...)                                 the tiles to C: scale, bias, epilogue
##
## PTX=False spells the instruction out in plain OpenCL C: lanes exchange their fragments through local memory (between barriers), and each
## computes its four elements of C. That is for tests on devices without tensor cores, and slow.
<%!
    SHAPES = {"float16": ("m16n8k16", "f16"), "bfloat16": ("m16n8k16", "bf16"), "float32": ("m16n8k8", "tf32"), "int8": ("m16n8k32", "s8"),
              "uint8": ("m16n8k32", "u8")}

    def words(X, fast):
        """Words of local memory of X rows or columns."""
        return X * 16 if fast == "k" else 16 * (X + 8)

    def row(X, p, G):
        """The row or column of the group that piece p of a work-item lies in, for operands stored as "k"."""
        e = f"(lid + {(p // 2 if X == 'A' else p) * G})"
        return f"({e} / 32 * 16 + {e} / 4 % 8 + {p % 2 * 8}L)" if X == "A" else f"{e} / 4L"

    def column(BX, G, p):
        """The word along K of piece p of a work-item, for operands stored as "x"."""
        return f"(lid / {BX // 4} + {p * G * 4 // BX})" if G % (BX // 4) == 0 else f"((lid + {p * G}) / {BX // 4})"

    def word(parts):
        """A word of guarded elements, the first of them in its low bits."""
        if len(parts) == 1:
            return f"as_uint({parts[0]})"
        U, bits = ("ushort", 16) if len(parts) == 2 else ("uchar", 8)
        return f"({' | '.join(f'(uint)({U})({part}) << {i * bits}' for i, part in enumerate(parts))})"

    def guarded(X, k, at, zero):
        """Element at `at`, or zero where step k is past the end."""
        return f"{k} < left ? {X}[{at}] : {zero}"

    def piece(X, p, ks, per, zero):
        """Four words of one row: 4 per elements along K from X's offset p on."""
        return ", ".join(word([guarded(X, f"k + {n}", f"{X}at{p} + {n} * {ks}", zero) for n in range(i * per, i * per + per)]) for i in range(4))

    def across(X, p, ks, per, zero):
        """Four words of four rows x0..x3 and one word along K."""
        return ", ".join(word([guarded(X, f"k + {h}", f"{X}at{p} + x{i} + {h} * {ks}", zero) for h in range(per)]) for i in range(4))
%>\
<%def name="helpers(T, TC, PTX, A=None)">
<%
    shape, kind = SHAPES[T.name]
    ACC, R = ("s32", "r") if T.itemsize == 1 else ("f32", "f")
    kind = f"{SHAPES[(A or T).name][1]}.{kind}"
%>\
% if T.itemsize == 4 and PTX:
static inline uint tf32(uint v) { uint r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(as_float(v))); return r; }
% elif T.itemsize == 4:
/* To nearest, ties away from zero, 10 bits of mantissa. What is not finite has no bits to lose but a NaN's own. */
static inline uint tf32(uint v) { return ((v & 0x7f800000u) == 0x7f800000u ? v | (v & 0x1fffu ? 0x400000u : 0u) : v + 0x1000u) & 0xffffe000u; }
% endif
% if T.itemsize == 4:
#define WORDS(v) (uint4)(tf32((v).s0), tf32((v).s1), tf32((v).s2), tf32((v).s3))
% else:
#define WORDS(v) (v)
% endif
% if TC.itemsize == 2 and PTX:
static inline uint pack(float lo, float hi) { uint r; asm("cvt.rn.${TC.name.replace('float', 'f')}x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
% elif TC.itemsize == 2:
#define pack(lo, hi) ((uint)${"clnn_f2h" if TC.name == "float16" else "clnn_f2bf"}(lo) | (uint)${"clnn_f2h" if TC.name == "float16" else "clnn_f2bf"}(hi) << 16)
% endif
% if TC.itemsize == 2:
#define STORE4(p, v) (*(__global ushort4*)(p) = as_ushort4((uint2)(pack((v).s0, (v).s1), pack((v).s2, (v).s3))))
% else:
#define STORE4(p, v) (*(__global ${TC.c}4*)(p) = (v))
% endif
% if PTX:
#define MMA(d, a, b) asm volatile("mma.sync.aligned.${shape}.row.col.${ACC}.${kind}.${ACC} {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" ${"\\"}
    : "=${R}"(d##_0), "=${R}"(d##_1), "=${R}"(d##_2), "=${R}"(d##_3) ${"\\"}
    : "r"(a##_0), "r"(a##_1), "r"(a##_2), "r"(a##_3), "r"(b##_0), "r"(b##_1), "${R}"(d##_0), "${R}"(d##_1), "${R}"(d##_2), "${R}"(d##_3))
% elif T.itemsize == 1:
#define DOT(x, y) (${" + ".join(f"(int)({(A or T).c})((x) >> {8 * i}) * (int)({T.c})((y) >> {8 * i})" for i in range(4))})
% elif T.itemsize == 4:
#define DOT(x, y) (as_float(x) * as_float(y))
% else:
<% load = "clnn_h2f" if T.name == "float16" else "clnn_bf2f" %>\
#define DOT(x, y) (${load}((ushort)(x)) * ${load}((ushort)(y)) + ${load}((ushort)((x) >> 16)) * ${load}((ushort)((y) >> 16)))
% endif
</%def>
##
## X: name of the operand's pointer, "A" or "B", which stands at its first row or column of the group and moves along K; xs, ks: strides; x0, end: first row
## or column of the group, and how many there are in all. Those past the end repeat the last one: what they give is not stored.
<%def name="offsets(X, T, BX, G, fast, wide, xs, ks, x0, end)">
% for p in range(BX * 4 // G):
% if fast == "k":
    const int ${X}at${p} = (int)(min(${row(X, p, G)}, ${end} - 1 - ${x0}) * ${xs} + (lid & 3) * ${16 // T.itemsize} * ${ks});
% elif p and G % (BX // 4) == 0:
    const int ${X}at${p} = ${X}at0 + ${p * G * 16 // T.itemsize // BX} * (int)${ks};
% else:
    const int ${X}at${p} = (int)(min((lid + ${p * G}) % ${BX // 4} * 4L, ${end} - ${4 if wide else 1} - ${x0}) * ${xs} + (lid + ${p * G}) / ${BX // 4} * ${4 // T.itemsize} * ${ks});
% endif
    uint4 ${X}got${p};
% endfor
</%def>
##
<%def name="fetch(X, T, BX, G, fast, wide, xs, ks, x0, end)">
<%
    per = 4 // T.itemsize
    zero = "0.0f" if per == 1 else "0"
%>\
% for p in range(BX * 4 // G):
% if wide and (fast == "k" or per == 1):
    ${X}got${p} = ${f"(lid & 3) * {4 * per}" if fast == "k" else column(BX, G, p)} < left ? *(__global const uint4*)(${X} + ${X}at${p}) : (uint4)(0);
% elif fast == "k":
    { const int k = (lid & 3) * ${4 * per}; ${X}got${p} = (uint4)(${piece(X, p, ks, per, zero)}); }
% elif wide and per == 4:
    { const int k = ${column(BX, G, p)} * 4;
      const uint ${", ".join(f"r{i} = k + {i} < left ? *(__global const uint*)({X} + {X}at{p} + {i} * {ks}) : 0" for i in range(4))};
      const uint2 u = (uint2)((r0 & 0x00ff00ffu) | (r1 & 0x00ff00ffu) << 8, (r0 >> 8 & 0x00ff00ffu) | (r1 & 0xff00ff00u)),
                  v = (uint2)((r2 & 0x00ff00ffu) | (r3 & 0x00ff00ffu) << 8, (r2 >> 8 & 0x00ff00ffu) | (r3 & 0xff00ff00u)),
                  lo = (u & 0xffffu) | v << 16, hi = u >> 16 | (v & 0xffff0000u);
      ${X}got${p} = (uint4)(lo, hi); }
% elif wide:
    { const int k = ${column(BX, G, p)} * 2;
      const uint2 lo = k < left ? *(__global const uint2*)(${X} + ${X}at${p}) : (uint2)(0), hi = k + 1 < left ? *(__global const uint2*)(${X} + ${X}at${p} + ${ks}) : (uint2)(0);
      ${X}got${p} = (uint4)((lo.s0 & 0xffffu) | hi.s0 << 16, lo.s0 >> 16 | (hi.s0 & 0xffff0000u), (lo.s1 & 0xffffu) | hi.s1 << 16, lo.s1 >> 16 | (hi.s1 & 0xffff0000u)); }
% else:
    { const int k = ${column(BX, G, p)} * ${per};
      const long x = (lid + ${p * G}) % ${BX // 4} * 4, last = ${end} - 1 - ${x0};
% for i in range(4):
      const long x${i} = (min(x + ${i}, last) - min(x, last)) * ${xs};
% endfor
      ${X}got${p} = (uint4)(${across(X, p, ks, per, zero)}); }
% endif
% endfor
</%def>
##
<%def name="place(X, BX, G, fast, to)">
% for p in range(BX * 4 // G):
% if fast == "k" and X == "B":
    ${to}[lid + ${p * G}] = WORDS(${X}got${p});
% elif fast == "k" and p % 2:
    { const uint4 u = WORDS(${X}got${p - 1}), v = WORDS(${X}got${p});
      __local uint4* q = ${to} + (lid + ${p // 2 * G}) / 32 * 64 + lane;
      q[0] = (uint4)(u.s0, v.s0, u.s1, v.s1);
      q[32] = (uint4)(u.s2, v.s2, u.s3, v.s3); }
% elif fast == "x":
    { const int w = ${column(BX, G, p)};
      ${to}[((w >> 1 & 1) * 8 + (w & 1) * 4 + (w >> 2)) * ${(BX + 8) // 4} + (lid + ${p * G}) % ${BX // 4}] = WORDS(${X}got${p}); }
% endif
% endfor
</%def>
##
## The registers of step s: a<s><i>_<r> of tile i or b<s><j>_<h>. at: first row or column of the warp.
<%def name="fragments(X, tiles, BX, fast, source, at, s)">
<% name, size, parts = X.lower() + str(s), *((16, 2) if X == "A" else (8, 1)) %>\
% for i in range(tiles):
% if fast == "x":
    const uint ${", ".join(f"{name}{i}_{h * parts + r} = ((__local const uint*)({source}))[({s * 8 + h * 4} + t) * {BX + 8} + {at} + {i * size + r * 8} + g]" for h in (0, 1) for r in range(parts))};
% elif X == "A":
    const uint4 ${name}q${i} = ${source}[(${at} + ${i * 16}) * 4 + ${s * 32} + lane];
    const uint ${", ".join(f"{name}{i}_{r} = {name}q{i}.s{r}" for r in range(4))};
% else:
% if s == 0:
    const uint4 bq${i} = ${source}[(${at} + ${i * 8} + g) * 4 + t];
% endif
    const uint ${name}${i}_0 = bq${i}.s${2 * s}, ${name}${i}_1 = bq${i}.s${2 * s + 1};
% endif
% endfor
</%def>
##
<%def name="multiply(MT, NT, PTX, s)">
% if PTX:
% for i in range(MT):
% for j in range(NT):
    MMA(c${i}_${j}, a${s}${i}, b${s}${j});
% endfor
% endfor
% else:
% for i in range(MT):
    ${" ".join(f"mine[{(i * 4 + r) * 32} + lane] = a{s}{i}_{r};" for r in range(4))}
% endfor
% for j in range(NT):
    ${" ".join(f"mine[{(MT * 4 + j * 2 + h) * 32} + lane] = b{s}{j}_{h};" for h in (0, 1))}
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int w = 0; w < 8; w++) {
        /* Word w of row r of A stands in a[(r >= 8) + 2 (w >= 4)] of lane 4 (r % 8) + w % 4, that of column q of B in b[w >= 4] of lane 4 q + w % 4. */
        const int h = w >> 2, u = w & 3;
% for i in range(MT):
        const uint x${i} = mine[(${i * 4} + 2 * h) * 32 + 4 * g + u], y${i} = mine[(${i * 4 + 1} + 2 * h) * 32 + 4 * g + u];
% endfor
% for j in range(NT):
        { const uint p = mine[(${MT * 4 + j * 2} + h) * 32 + 8 * t + u], q = mine[(${MT * 4 + j * 2} + h) * 32 + 8 * t + 4 + u];
% for i in range(MT):
          c${i}_${j}_0 += DOT(x${i}, p); c${i}_${j}_1 += DOT(x${i}, q); c${i}_${j}_2 += DOT(y${i}, p); c${i}_${j}_3 += DOT(y${i}, q);
% endfor
        }
% endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
</%def>
##
## The tiles of a warp through local memory, so that rows are written in vectors. place(row, col): the address of C's element; neat: the condition
## under which the four elements there may be written as one, "" for never; finish(vec, V, col): the text of tile.finish. Expects m0, n0, M, N, wm, wn.
<%def name="store(MT, NT, TC, neat, place, finish)">
<% WN, ACC = NT * 8, TC.acc %>\
    __local ${ACC}* rows = (__local ${ACC}*)pool + warp * ${16 * (WN + 8)};
% for i in range(MT):
% for j in range(NT):
    vstore2((${ACC}2)(c${i}_${j}_0, c${i}_${j}_1), 0, rows + g * ${WN + 8} + ${j * 8} + 2 * t);
    vstore2((${ACC}2)(c${i}_${j}_2, c${i}_${j}_3), 0, rows + (g + 8) * ${WN + 8} + ${j * 8} + 2 * t);
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = lane; e < ${4 * WN}; e += 32) {
        const int q = e % ${WN // 4} * 4;
        __local const ${ACC}* sums = rows + e / ${WN // 4} * ${WN + 8} + q;
        const long row = m0 + wm + ${i * 16} + e / ${WN // 4}, col = n0 + wn + q;
% if neat:
        if (row < M && col + 4 <= N && ${neat}) {
            __global ${TC.c}* p = ${place("row", "col")};
            ${ACC}4 v = *(__local const ${ACC}4*)sums * alpha;
            ${finish(True, ACC + "4", "col")}
            STORE4(p, v);
        } else
% endif
        for (int u = 0; row < M && u < 4 && col + u < N; u++) {
            __global ${TC.c}* p = ${place("row", "(col + u)")};
            ${ACC} v = sums[u] * alpha;
            ${finish(False, ACC, "col + u")}
            ${TC.store}(p, 0, v);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
% endfor
</%def>
