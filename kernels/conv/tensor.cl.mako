<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="frag" file="/matmul/fragments.cl.mako"/>\
<%namespace name="parts" file="/conv/parts.cl.mako"/>\
## Convolutions of 16-bit tensors and their gradients on the tensor cores of NVIDIA's GPUs: Y = epilogue(A @ B + bias), B gathered from the image
## (see conv/parts), sums in float. Two steps of K are a word of both operands.
##
## Geometry: blocks and warps as in matmul/tensor; global (local * ceil(columns / BN), ceil(M / BM), phases * splits * groups).
##
## Parameter  legal values
## ROLE CHECK see conv/parts
## T          dtype row of A and the image, float16 or bfloat16; TC: dtype row of Y and bias, T or float32 (partial sums)
## WX WY MT NT PTX  as in matmul/tensor; BIAS: "" | m; EPI as in matmul/tile
## WA         elements of a load of A along K (1, 2, 4, 8): its address and the stride of its rows are multiples
## WB         > 1, with ROLE "taps": the same of B, whose pixels lie in the image as they lie in the output; 1: each element is gathered alone
## LAST       True, with ROLE "pixels": the channels of the image lie side by side (see conv/turn), 8 of one tap follow each other in K and share an info
<%
    G, BM, BN, WN = 32 * WX * WY, 16 * MT * WY, 8 * NT * WX, 8 * NT
    assert 4 * BM % (2 * G) == 0 and 4 * BN % G == 0
    taps = ROLE == "taps"
    fast = "k" if taps or LAST else "x"
    UNIT = 8 if LAST else 1
    BK = 32 // UNIT                                 # infos of a block
    words = frag.module.words
    SA, SB = words(BM, "k") // 4, words(BN, fast) // 4
    INFO, guard = parts.module.info(CHECK), parts.module.guard
    word = frag.module.column
    quad = lambda p: f"(lid + {p * G}) % {BN // 4} * 4"

    place = lambda row, col: f"out + {row} * rcs + " + (f"{col}" if taps else f"place[(int)({col} - n0)]")
    finish = lambda many, V, col: capture(tile.finish, TC, "float", V, BIAS, False, EPI, "p", "0", many)
    follow = "" if taps else "place[wn + q + 3] - place[wn + q] == 3 && "               # pixels of one row of Y, at an address that allows a vector
    neat = f"{follow}((size_t)({place('row', 'col')}) & {4 * TC.itemsize - 1}) == 0"
    vectors = tile.module.vector_epilogue(EPI)
    pair = lambda lo, hi: f"((uint)({lo}) | (uint)({hi}) << 16)"

    def piece(X, p, W, where):
        """Eight steps of one line by loads of W elements, zero past the end."""
        load = lambda i: f"k + {i} < k_end - k_next ? *(__global const {dict([(8, 'uint4'), (4, 'uint2'), (2, 'uint'), (1, 'ushort')])[W]}*)({where(i)}) : 0"
        found = [load(i) for i in range(0, 8, W)]
        return f"{X}got{p} = (uint4)({', '.join(found if W > 1 else [pair(*found[i:i + 2]) for i in (0, 2, 4, 6)])});"
%>\
#define BLOCK_ROW (int)get_global_id(1)
${parts.macros()}
${frag.helpers(T, TC, PTX)}
${vec.vector_io(TC, 4)}
<%def name="fetch(side)">
% for p in range(BM * 4 // G):
    { __global const ushort* a = A + Aat${p}${"" if taps else " + k_next"}; const int k = (lid & 3) * 8;
      ${piece("A", p, WA, lambda i: f"a + at[({side}) + k + {i}]" if taps else f"a + {i}")} }
% endfor
% for p in range(BN * 4 // G):
% if WB > 1:
    { __global const ushort* b = X + columns[(lid + ${p * G}) / 4].s0; const int k = (lid & 3) * 8;
      ${piece("B", p, WB, lambda i: f"b + steps[({side}) + k + {i}].s0")} }
% elif LAST:
    { const ${INFO} s = steps[(${side}) + (lid & 3)], c = columns[(lid + ${p * G}) / 4];
      Bgot${p} = ${guard(ROLE, CHECK, "s", "c")} ? *(__global const uint4*)(X + s.s0 + c.s0) : (uint4)(0); }
% elif taps:
    { const ${INFO} c = columns[(lid + ${p * G}) / 4];
<% element = lambda i: f"{guard(ROLE, CHECK, f's{i}', 'c')} ? X[s{i}.s0 + c.s0] : 0" %>\
% if p == 0:
      ${" ".join(f"s{i} = steps[({side}) + (lid & 3) * 8 + {i}];" for i in range(8))}
% endif
      Bgot${p} = (uint4)(${", ".join(pair(element(2 * i), element(2 * i + 1)) for i in range(4))}); }
% else:
    { const int k = ${word(BN, G, p)} * 2;
      const ${INFO} lo = steps[(${side}) + k], hi = steps[(${side}) + k + 1];
      const ${INFO} ${", ".join(f"c{i} = columns[{quad(p)} + {i}]" for i in range(4))};
<% element = lambda s, i: f"{guard(ROLE, CHECK, s, f'c{i}')} ? X[{s}.s0 + c{i}.s0] : 0" %>\
      Bgot${p} = (uint4)(${", ".join(pair(element("lo", i), element("hi", i)) for i in range(4))}); }
% endif
% endfor
</%def>
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void conv_tensor(IN(${T.c}, wt), IN(${T.c}, image), OUT(${TC.c}, Y), IN(${TC.c}, bias), __global const int* restrict table, const long16 d, const long8 y) {
    __local uint4 pool[${max(2 * (SA + SB), WX * WY * 4 * (WN + 8))}];
${parts.locals(ROLE, CHECK, BN, BK)}
% if not PTX:
    __local uint exchange[${WX * WY * 32 * (MT * 4 + NT * 2)}];
% endif
    const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5, g = lane >> 2, t = lane & 3;
    const int wm = warp / ${WX} * ${16 * MT}, wn = warp % ${WX} * ${WN};
% if not PTX:
    __local uint* mine = exchange + warp * ${32 * (MT * 4 + NT * 2)};
% endif
${parts.setup(ROLE, CHECK, T, BM, BN, UNIT)}
${parts.columns_of(ROLE, CHECK, BN, G)}
${parts.stage(ROLE, CHECK, BK, G, f"k_begin / {UNIT}", "0", UNIT)}
${parts.stage(ROLE, CHECK, BK, G, f"(k_begin / {UNIT} + {BK})", str(BK), UNIT)}
    barrier(CLK_LOCAL_MEM_FENCE);
% if taps and WB == 1:
    ${INFO} ${", ".join(f"s{i}" for i in range(8))};
% endif
% for p in range(BM * 4 // G):
    const int Aat${p} = (int)min(${frag.module.row("A", p, G)}, M - 1L - m0) * rows_apart${"" if taps else " + (lid & 3) * 8"};
% endfor
    uint4 ${", ".join([f"Agot{p}" for p in range(BM * 4 // G)] + [f"Bgot{p}" for p in range(BN * 4 // G)])};
% for i in range(MT):
    float ${", ".join(f"c{i}_{j}_{r} = 0" for j in range(NT) for r in range(4))};
% endfor
    int k_next = k_begin, side = 0;                             /* the block that is fetched */
    __local uint4* now = pool;
${fetch("0")}
${frag.place("A", BM, G, "k", "now")}
${frag.place("B", BN, G, fast, f"(now + {SA})")}
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k0 = k_begin; k0 < k_end; k0 += 32) {
        k_next = k0 + 32;
${parts.ahead(ROLE, CHECK, f"(k0 / {UNIT} + {2 * BK} + lid)", f"lid < {BK} && ", UNIT)}
${fetch(f"{BK} - side")}
% for s in (0, 1):
${frag.fragments("A", MT, BM, "k", "now", "wm", s)}
${frag.fragments("B", NT, BN, fast, f"(now + {SA})", "wn", s)}
${frag.multiply(MT, NT, PTX, s)}
% endfor
        if (lid < ${BK}) {
            ${parts.keep(ROLE, "side + lid")}
        }
        side = ${BK} - side;
        now = pool + (side ? ${SA + SB} : 0);
${frag.place("A", BM, G, "k", "now")}
${frag.place("B", BN, G, fast, f"(now + {SA})")}
        barrier(CLK_LOCAL_MEM_FENCE);
    }
${parts.results(ROLE, TC, BIAS)}
    const float alpha = 1, beta = 0;
${frag.store(MT, NT, TC, neat if vectors else "", place, finish)}
}
