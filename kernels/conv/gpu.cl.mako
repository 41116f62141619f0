<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="blocks" file="/matmul/blocks.cl.mako"/>\
<%namespace name="parts" file="/conv/parts.cl.mako"/>\
## Convolutions and their gradients as products in local-memory tiles, for any GPU: Y = epilogue(A @ B + bias), B gathered from the image (see conv/parts).
##
## Geometry: local (LX, LY, 1), global (LX * ceil(columns / (LX * TN)), LY * ceil(M / (LY * TM)), phases * splits * groups). A work-group owns a
## (LY * TM) x (LX * TN) block, a work-item TM x TN elements of it. The next block of K is fetched into registers while one is multiplied, and put into the
## other of two tiles; which elements the steps of the one after that meet is read meanwhile.
##
## Parameter  legal values
## ROLE CHECK see conv/parts
## T          dtype row of A and the image; TC: dtype row of Y and bias, T or its compute type (partial sums of splits lie y.s6 elements apart)
## LX LY      work-group size, powers of two; TM TN: elements of a work-item (4, 8); BK: steps of a block (8, 16, 32)
## WA         elements of a load of A along K (1, 2, 4), up to 16 bytes: its address and the stride of its rows are multiples
## SPREAD     with ROLE "pixels": the weights are read as they lie, see conv/parts; WA is 1
## WB         > 1, with ROLE "taps": the same of B, whose pixels lie in the image as they lie in the output; 1: each element is gathered alone
## BIAS       "" | m; EPI as in matmul/tile
<%
    ACC = TC.acc
    BM, BN, G = LY * TM, LX * TN, LX * LY
    pad, vector = blocks.module.PAD, blocks.module.vector
    INFO, guard = parts.module.info(CHECK), parts.module.guard
    taps = ROLE == "taps"
    place = lambda row, q: f"out + {row} * rcs + " + (f"n0 + {q}" if taps else f"place[{q}]")
    VN = min(TN, 4)
    follow = "" if taps else f"place[q + {VN - 1}] - place[q] == {VN - 1} && "          # columns that follow each other in Y
    neat = f"{follow}((size_t)({place('row', 'q')}) & {VN * TC.itemsize - 1}) == 0"
    runs = f"(rcs & {VN - 1}) == 0" + ("" if taps else " && y.s3 == 1")
    vectors = tile.module.vector_epilogue(EPI)
    finish = lambda vec, V: capture(tile.finish, TC, ACC, V, BIAS, False, EPI, "p", "0", False)
    SIZE = BK * (BM + BN + 2 * pad)
    fast = "k" if taps else "x"
    pieces = lambda X, w: -(-BK * X // (w * G))
    own = lambda p: f"(lid + {p * G})" if p else "lid"
    # Quotient and remainder of piece p of a work-item by n, such that pieces share what they can.
    over = lambda p, n: str(p * G // n) if n % G == 0 else f"(lid / {n} + {p * G // n})" if p * G % n == 0 else f"({own(p)} / {n})"
    rest = lambda p, n: f"(lid + {p * G % n})" if n % G == 0 else f"(lid % {n})" if p * G % n == 0 else f"({own(p)} % {n})"
    along, line = lambda p, w: f"({rest(p, BK // w)} * {w})", lambda p, w: over(p, BK // w)         # step and line of a piece that loads along K
    step = lambda p: along(p, 1) if taps else over(p, BN)
    column = lambda p: line(p, 1) if taps else rest(p, BN)
    # What all pieces of a work-item share is kept in registers: the column, or the step.
    held = [] if WB > 1 else sorted({(p * G) % BN for p in range(pieces(BN, 1))}) if not taps else []
%>\
<%def name="fetch(side)">
% for p in range(pieces(BM, WA)):
% if taps or SPREAD:
    Agot${p} = ${along(p, WA)} < k_end - k_next ? *(__global const ${vector(T.c, WA)}*)(A + Aat${p} + at[(${side}) + ${along(p, WA)}]) : (${vector(T.c, WA)})(0);
% else:
    Agot${p} = ${along(p, WA)} < k_end - k_next ? *(__global const ${vector(T.c, WA)}*)(A + Aat${p} + k_next) : (${vector(T.c, WA)})(0);
% endif
% endfor
% if taps and WB == 1 and G % BK == 0:
    { const ${INFO} s = steps[(${side}) + lid % ${BK}];
% for p in range(pieces(BN, 1)):
      { const ${INFO} c = columns[${f"min({column(p)}, {BN - 1})" if BK * BN % G else column(p)}]; Bgot${p} = ${guard(ROLE, CHECK, "s", "c")} ? X[s.s0 + c.s0] : 0; }
% endfor
    }
% else:
% for p in range(pieces(BN, WB)):
% if WB > 1:
    Bgot${p} = ${along(p, WB)} < k_end - k_next ? *(__global const ${vector(T.c, WB)}*)(X + columns[${f"min({line(p, WB)}, {BN - 1})" if BK * BN % (WB * G) else line(p, WB)}].s0 + steps[(${side}) + ${along(p, WB)}].s0) : (${vector(T.c, WB)})(0);
% else:
    { const ${INFO} s = steps[(${side}) + ${f"min({step(p)}, {BK - 1})" if BK * BN % G else step(p)}], c = ${"columns[" + column(p) + "]" if taps else f"c{(p * G) % BN}"};
      Bgot${p} = ${guard(ROLE, CHECK, "s", "c")} ? X[s.s0 + c.s0] : 0; }
% endif
% endfor
% endif
</%def>
<%def name="into(X, BX, w, p, to)">
<% load = [f"{T.load}((const {T.c}*)&{X}got{p}, {i})" for i in range(w)] %>\
    ${f"if ({own(p)} < {BK * BX // w})" if BK * BX % (w * G) else ""} { __local ${ACC}* to = ${to} + ${along(p, w)} * ${BX + pad} + ${line(p, w)}; ${" ".join(f"to[{i * (BX + pad)}] = {load[i]};" for i in range(w))} }
</%def>
<%def name="put()">
% for p in range(pieces(BM, WA)):
${into("A", BM, WA, p, "la")}
% endfor
% for p in range(pieces(BN, WB)):
% if taps:
${into("B", BN, WB, p, "lb")}
% else:
    ${f"if ({own(p)} < {BK * BN})" if BK * BN % G else ""} lb[${step(p)} * ${BN + pad} + ${column(p)}] = ${T.load}((const ${T.c}*)&Bgot${p}, 0);
% endif
% endfor
</%def>
#define BLOCK_ROW ((int)get_global_id(1) / ${LY})
${parts.macros()}
${tile.macros(ACC)}
% if vectors:
${vec.vector_io(TC, VN)}
% endif
__kernel __attribute__((reqd_work_group_size(${LX}, ${LY}, 1)))
void conv_gpu(IN(${T.c}, wt), IN(${T.c}, image), OUT(${TC.c}, Y), IN(${TC.c}, bias), __global const int* restrict table, const long16 d, const long8 y) {
    __local ${ACC}4 pool[${-(-2 * SIZE // 4)}];
${parts.locals(ROLE, CHECK, BN, BK, SPREAD)}
    const int lx = get_local_id(0), ly = get_local_id(1), lid = ly * ${LX} + lx;
${parts.setup(ROLE, CHECK, T, BM, BN, 1, SPREAD)}
${parts.columns_of(ROLE, CHECK, BN, G)}
${parts.stage(ROLE, CHECK, BK, G, "k_begin", "0", 1, SPREAD)}
${parts.stage(ROLE, CHECK, BK, G, f"(k_begin + {BK})", str(BK), 1, SPREAD)}
    barrier(CLK_LOCAL_MEM_FENCE);
% for x in held:
    const ${INFO} c${x} = columns[${f"(lid + {x}) % {BN}"}];
% endfor
% for p in range(pieces(BM, WA)):
    const int Aat${p} = (int)min(${line(p, WA)}, M - 1 - m0) * rows_apart${"" if taps or SPREAD else f" + {along(p, WA)}"};
    ${vector(T.c, WA)} Agot${p};
% endfor
    ${vector(T.c, WB)} ${", ".join(f"Bgot{p}" for p in range(pieces(BN, WB)))};
% for r in range(TM):
    ${vector(ACC, VN)} ${", ".join(f"c{r}_{q} = 0" for q in range(TN // VN))};
% endfor
    __local ${ACC}* la = (__local ${ACC}*)pool;
    __local ${ACC}* lb = la + ${BK * (BM + pad)};
    int k_next = k_begin, side = 0;                             /* the block that is fetched */
${fetch("0")}
${put()}
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k0 = k_begin; k0 < k_end; k0 += ${BK}) {
        k_next = k0 + ${BK};
% if G >= BK:
${parts.ahead(ROLE, CHECK, f"(k0 + {2 * BK} + lid)", f"lid < {BK} && ", 1, SPREAD)}
% endif
${fetch(f"{BK} - side")}
${blocks.multiply(TM, TN, LX, LY, BK, ACC)}
% if G >= BK:
        if (lid < ${BK}) {
            ${parts.keep(ROLE, "side + lid", SPREAD)}
        }
% else:
${parts.stage(ROLE, CHECK, BK, G, f"(k0 + {2 * BK})", "side", 1, SPREAD)}
% endif
        side = ${BK} - side;
        la = (__local ${ACC}*)pool + (side ? ${SIZE} : 0);
        lb = la + ${BK * (BM + pad)};
${put()}
        barrier(CLK_LOCAL_MEM_FENCE);
    }
${parts.results(ROLE, TC, BIAS)}
${parts.store(TM, TN, LX, LY, ACC, TC, neat if vectors else "", runs, place, finish)}
}
