## The block product of the kernels for GPUs: operands go from global memory into tiles in local memory, [BK][X + PAD] elements of the compute type each,
## and from there in vectors into a register tile per work-item.
##
## def                            emits
## offsets / fetch / place        an operand's way into its tile through registers, in pieces of neighbouring elements that one load brings: the next block
##                                is fetched while one is multiplied
## load                           the same way for operands in any layout, element by element and without registers to hold them
## multiply(TM, TN, LX, LY, ...)  BK steps of the register tile: c<r>_<q> are vectors of V columns, V = min(TN, 4)
## store(...)                     writes the tile: scale, add to C, bias, epilogue; vectors where addresses allow them
##
## A work-item (lx, ly) owns groups of V rows that begin at ly V and lie LY V apart, and groups of V columns that begin at lx V and lie LX V apart: it reads
## whole vectors of a tile, and neighbours read vectors that follow each other.
<%!
    PAD = 4     # elements after a row of a tile: keeps rows aligned, and spreads the writes of loads along K over the banks

    def width(T, X, BK, G, fast):
        """Elements of a piece."""
        return min(4, 16 // T.itemsize, X if fast == "x" else BK, max(1, BK * X // G))

    def pieces(T, X, BK, G, fast):
        """Pieces of a work-item."""
        return -(-X * BK // (width(T, X, BK, G, fast) * G))

    def vector(c, n):
        return c if n == 1 else f"{c}{n}"

    def lane(v, i, n):
        return v if n == 1 else f"{v}.s{i}"
%>\
## X: name of the operand's pointer, which moves along K; T: its dtype; BX: its rows or columns per group; fast: "k" or "x", the index that loads step
## through; xs, ks: strides; x0, end: first row or column of the group, and how many there are. Those past the end repeat the last one: what they give is
## not stored.
<%def name="offsets(X, T, BX, BK, G, fast, xs, ks, x0, end)">
<% w = width(T, BX, BK, G, fast) %>\
% for p in range(pieces(T, BX, BK, G, fast)):
<% same = p and G % ((BK if fast == "k" else BX) // w) == 0 %>\
% if fast == "k":
    const int ${X}k${p} = ${f"{X}k0" if same else f"(lid + {p * G}) % {BK // w} * {w}"};
    const long ${X}x${p} = min((lid + ${p * G}) / ${BK // w} + 0L, ${end} - 1 - ${x0});
% elif same:
    const int ${X}k${p} = ${X}k0 + ${p * G * w // BX};
% else:
    const int ${X}k${p} = (lid + ${p * G}) / ${BX // w};
    const long ${X}x${p} = min((lid + ${p * G}) % ${BX // w} * ${w} + 0L, ${end} - ${w} - ${x0});
% endif
    const int ${X}at${p} = ${f"{X}at0 + {p * G * w // BX} * (int){ks}" if same and fast == "x" else f"(int)({X}x{p} * {xs} + {X}k{p} * {ks})"};
    ${vector(T.c, w)} ${X}got${p};
% endfor
</%def>
##
<%def name="fetch(X, T, BX, BK, G, fast)">
<% V = vector(T.c, width(T, BX, BK, G, fast)) %>\
% for p in range(pieces(T, BX, BK, G, fast)):
    ${X}got${p} = ${X}k${p} < left ? *(__global const ${V}*)(${X} + ${X}at${p}) : (${V})(0);
% endfor
</%def>
##
<%def name="place(X, T, BX, BK, G, fast, ACC, tile)">
<% w = width(T, BX, BK, G, fast) %>\
% for p in range(pieces(T, BX, BK, G, fast)):
<% parts = [f"{T.load}((const {T.c}*)&{X}got{p}, {i})" for i in range(w)] %>\
    ${f"if (lid + {p * G} < {BX * BK // w})" if BX * BK % (w * G) else ""}
% if fast == "k":
    { __local ${ACC}* to = ${tile} + ${X}k${p} * ${BX + PAD} + (lid + ${p * G}) / ${BK // w};
      ${" ".join(f"to[{i * (BX + PAD)}] = {parts[i]};" for i in range(w))} }
% else:
    *(__local ${vector(ACC, w)}*)(${tile} + ${X}k${p} * ${BX + PAD} + (lid + ${p * G}) % ${BX // w} * ${w}) = (${vector(ACC, w)})(${", ".join(parts)});
% endif
% endfor
</%def>
##
## index: the text of the address of element (k, x) from X on.
<%def name="load(X, T, BX, BK, G, fast, tile, x0, end, index)">
        for (int e = lid; e < ${BK * BX}; e += ${G}) {
% if fast == "k":
            const int k = e % ${BK}, x = e / ${BK};
% else:
            const int k = e / ${BX}, x = e % ${BX};
% endif
            ${tile}[k * ${BX + PAD} + x] = k < left && ${x0} + x < ${end} ? ${T.load}(${X}, ${index}) : 0;
        }
</%def>
##
<%def name="multiply(TM, TN, LX, LY, BK, ACC)">
<%
    VM, VN = min(TM, 4), min(TN, 4)
    LA, LB = LY * TM + PAD, LX * TN + PAD
%>\
#ifdef CLNN_NVIDIA      /* its assembler keeps 8 x 8 floats and the next block in 128 registers, which lets two groups share a multiprocessor, only of all steps */
#pragma unroll
#else
#pragma unroll 2
#endif
    for (int k = 0; k < ${BK}; k++) {
% for q in range(TN // VN):
        const ${vector(ACC, VN)} y${q} = *(__local const ${vector(ACC, VN)}*)(lb + k * ${LB} + lx * ${VN} + ${q * LX * VN});
% endfor
% for r in range(TM // VM):
        const ${vector(ACC, VM)} x${r} = *(__local const ${vector(ACC, VM)}*)(la + k * ${LA} + ly * ${VM} + ${r * LY * VM});
% endfor
% for r in range(TM):
        ${" ".join(f"c{r}_{q} = MAC(({vector(ACC, VN)})({lane(f'x{r // VM}', r % VM, VM)}), y{q}, c{r}_{q});" for q in range(TN // VN))}
% endfor
    }
</%def>
##
## finish(vec, v, col): the text of tile.finish; place(row, col): the address of C's element. Expects m0, n0, M, N. neat: the condition under which the
## vector at (row, col) may be written as one, "" for never.
<%def name="store(TM, TN, LX, LY, ACC, TC, neat, place, finish)">
<%
    VM, VN = min(TM, 4), min(TN, 4)
    V = vector(ACC, VN)
%>\
% for r in range(TM):
    { const long row = m0 + ly * ${VM} + ${r // VM * LY * VM + r % VM};
% for q in range(TN // VN):
      { const long col = n0 + lx * ${VN} + ${q * LX * VN};
        const ${V} sum = c${r}_${q} * alpha;
% if neat:
        if (${neat} && row < M && col + ${VN} <= N) {
            __global ${TC.c}* p = ${place("row", "col")};
            ${V} v = sum;
            ${finish(True, V, "col")}
% if TC.c == ACC:
            *(__global ${V}*)p = v;
% else:
            stv_${TC.name}(p, v);
% endif
        } else
% endif
        {
% for u in range(VN):
            if (row < M && col + ${u} < N) {
                __global ${TC.c}* p = ${place("row", f"(col + {u})")};
                ${ACC} v = ${lane("sum", u, VN)};
                ${finish(False, ACC, f"col + {u}")} ${TC.store}(p, 0, v);
            }
% endfor
        } }
% endfor
    }
% endfor
</%def>
