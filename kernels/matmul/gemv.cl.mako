<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## A matrix times a vector, or a few, on a CPU: y[z] = epilogue(alpha * P[z] v[z] + beta * y[z] + bias), as the product C = A @ B whose B is one
## column (P is A) or whose A is one row, or a few (P is B.T). Bound by reading P, which is read in runs as long as they go, a few at a time.
##
## rows: P has unit stride along the sum, and so has v. A work-item owns MB elements of y. Four rows of P are summed at a time, U vectors of each;
## the lanes of W rows are added by one butterfly.
## cols: P is B.T and has unit stride along y. A work-item owns MB elements of y, whose sums stay in local memory; eight steps of the sum are taken
## at a time, for all MR rows of A.
## Geometry: global (blocks of MB elements of y, 1, batch), local (1, 1, 1); z counts two batch dimensions.
##
## Parameter  legal values
## TA TB TC   dtype rows of one compute type
## W          lanes of a vector (16; 8 for 8-byte types)
## P          a | b: the operand that is the matrix
## MODE       rows | cols
## MR         rows of A in cols, 1 to 4; else 1
## BIAS BETA EPI  as in matmul/cpu
##
## Limits: the order of sums depends on the sum's length and W alone; MB is a multiple of W; at most 2^31 elements in a block of y.
<%
    ACC = TC.acc
    V = f"{ACC}{W}"
    TP, TV = (TA, TB) if P == "a" else (TB, TA)
    R, U, Q, ROOM, SPAN = 4, 2, 8, 2048 // MR // W * W, 512
    ALONG = BIAS == ("m" if P == "a" else "n")          # one value of the bias per element of y, else one for all
    SPREAD = "n" if ALONG else "m" if BIAS else ""
    LANES = f"{'long' if ACC in ('double', 'long') else 'int'}{W}"
    VECTORS = not EPI or "VT" in EPI
%>\
${tile.macros(ACC)}
% for t in dict.fromkeys([TA, TB, TC]):
${vec.vector_io(t, W)}
% endfor
<%def name="keep(sums, at, n, y='y', of_row='0')">\
## Finish and store n <= W elements of y from the vector `sums`; `at` is the first one's number, `of_row` the row of C where y is one.
            if (os == 1 && ${n} == ${W}${"" if VECTORS else " && false"}) {
                const long row = ${of_row};
                ${V} v = ${sums} * alpha;
                __global ${TC.c}* p = ${y} + ${at};
                ${tile.finish(TC, ACC, V, SPREAD, BETA, EPI if VECTORS else "", "p", at, True)}
                stv_${TC.name}(p, v);
            } else {
                ${ACC} each[${W}];
                vstore${W}(${sums}, 0, each);
                for (long q = 0; q < ${n}; q++) {
                    const long row = ${f"{at} + q" if P == "a" else of_row};
                    ${ACC} v = each[q] * alpha;
                    __global ${TC.c}* p = ${y} + (${at} + q) * os;
                    ${tile.finish(TC, ACC, ACC, SPREAD if ALONG else "", BETA, "", "p", f"{at} + q", False)}
% if BIAS and not ALONG:
                    v += ${TC.load}(bias, ${of_row});
% endif
% if EPI:
                    v = ${EPI.replace("VT", ACC)};
% endif
                    ${TC.store}(p, 0, v);
                }
            }
</%def>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_gemv(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z,
                 const ${ACC} alpha, const ${ACC} beta) {
    const long z0 = get_group_id(2) / z.s0, z1 = get_group_id(2) % z.s0;
    const long K = d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2;  // split-K: batch z0 sums its own run of d.s9 steps
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5;
    __global ${TC.c}* restrict y = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
    const bool first = true, last = true;
% if P == "a":
    __global const ${TP.c}* restrict matrix = A;
    __global const ${TV.c}* restrict x = B;
    const long M = d.s0, step = d.s3, xs = d.s5, os = d.s7;
% else:
    __global const ${TP.c}* restrict matrix = B;
    __global const ${TV.c}* restrict x = A;
    const long M = d.s1, step = d.${"s6" if MODE == "rows" else "s5"}, xs = d.s4, os = 1;
% endif
    const long begin = get_group_id(0) * d.s8, end = min(M, begin + d.s8);
% if MODE == "rows":
    const long whole = K / ${W} * ${W};
    const ${LANES} fresh = (${LANES})(${", ".join(map(str, range(W)))}) >= (${LANES})(whole + ${W} - K);    /* lanes of the last vector that were not read */
    for (long i0 = begin; i0 < end; i0 += ${W}) {
        ${V} sums[${W}];
        for (int g = 0; g < ${W}; g++) sums[g] = 0;
        for (int g = 0; g < ${W} && i0 + g < end; g += ${R}) {
% for r in range(R):
            __global const ${TP.c}* a${r} = matrix + min(i0 + g + ${r}, M - 1) * step;      /* rows past the end repeat the last one; they are not stored */
% endfor
            ${V} ${", ".join(f"c{r}_{u} = 0" for r in range(R) for u in range(U))};
            long k = 0;
            for (; k + ${U * W} <= K; k += ${U * W}) {
% for u in range(U):
                const ${V} x${u} = ldv_${TV.name}(x + k + ${u * W});
% endfor
% for r in range(R):
                ${" ".join(f"c{r}_{u} = MAC(ldv_{TP.name}(a{r} + k + {u * W}), x{u}, c{r}_{u});" for u in range(U))}
% endfor
            }
            for (; k < whole; k += ${W}) {
                const ${V} x0 = ldv_${TV.name}(x + k);
                ${" ".join(f"c{r}_0 = MAC(ldv_{TP.name}(a{r} + k), x0, c{r}_0);" for r in range(R))}
            }
            if (whole < K && whole) {
                const ${V} x0 = fresh ? ldv_${TV.name}(x + K - ${W}) : (${V})0;
                ${" ".join(f"c{r}_1 = MAC(fresh ? ldv_{TP.name}(a{r} + K - {W}) : ({V})0, x0, c{r}_1);" for r in range(R))}
            } else for (; k < K; k++) {
                const ${ACC} x0 = ${TV.load}(x, k);
                ${" ".join(f"c{r}_1.s0 = MAC({TP.load}(a{r}, k), x0, c{r}_1.s0);" for r in range(R))}
            }
            ${" ".join(f"sums[g + {r}] = c{r}_0 + c{r}_1;" for r in range(R))}
        }
        ${V} ${", ".join(f"s{g} = sums[{g}]" for g in range(W))};
        ${vec.lane_sums(V, W, "s")}
        const int n = (int)min(${W}L, end - i0);
        {
${keep("s0", "i0", "n")}\
        }
    }
% else:
    /* sums over SPAN steps, added up in totals: long sums lose less */
    __local ${V} part[${MR}][${ROOM // W}], total[${MR}][${ROOM // W}];
    for (long j0 = begin; j0 < end; j0 += ${ROOM}) {
        const long width = min(${ROOM}L, end - j0);
        const int n = (int)(width / ${W}), over = (int)(width % ${W}), used = n + (over > 0);
        for (int r = 0; r < ${MR}; r++)
            for (int j = 0; j < used; j++) total[r][j] = 0;
        for (long k0 = 0; k0 < K; k0 += ${SPAN}) {
            const long k_end = min(K, k0 + ${SPAN});
            for (int r = 0; r < ${MR}; r++)
                for (int j = 0; j < used; j++) part[r][j] = 0;
            long k = k0;
            for (; k + ${Q} <= k_end; k += ${Q}) {
                ${steps(Q)}
            }
            for (; k < k_end; k++) {
                ${steps(1)}
            }
            for (int r = 0; r < ${MR}; r++)
                for (int j = 0; j < used; j++) total[r][j] += part[r][j];
        }
        for (int r = 0; r < ${MR}; r++) {
            __global ${TC.c}* c = y + r * d.s7;
            for (int j = 0; j < used; j++) {
                const int here = j < n ? ${W} : over;
                const long at = j0 + j * ${W};
${keep("total[r][j]", "at", "here", "c", "r")}\
            }
        }
    }
% endif
}
<%def name="steps(Q)">\
% for q in range(Q):
                __global const ${TP.c}* a${q} = matrix + (k + ${q}) * step + j0;
                const ${ACC} ${", ".join(f"x{r}_{q} = {TV.load}(x, {r} * d.s3 + (k + {q}) * xs)" for r in range(MR))};
% endfor
                for (int j = 0; j < n; j++) {
                    ${V} ${", ".join(f"s{r} = part[{r}][j]" for r in range(MR))};
% for q in range(Q):
                    { const ${V} b = ldv_${TP.name}(a${q} + j * ${W}); ${" ".join(f"s{r} = MAC(b, ({V})x{r}_{q}, s{r});" for r in range(MR))} }
% endfor
                    ${" ".join(f"part[{r}][j] = s{r};" for r in range(MR))}
                }
                for (int j = 0; j < over; j++) {
% for r in range(MR):
                    { __local ${ACC}* s = (__local ${ACC}*)(part[${r}] + n) + j; ${ACC} v = *s;
                      ${" ".join(f"v = MAC({TP.load}(a{q}, n * {W} + j), x{r}_{q}, v);" for q in range(Q))} *s = v; }
% endfor
                }
</%def>\
