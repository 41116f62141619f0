<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## C[z] = epilogue(alpha * A[z] @ B[z] + beta * C[z] + bias) on a CPU: one launch, no barriers.
##
## A (M, K) any strides; B (K, N) any strides; C (M, N) rows of unit stride; z counts two batch dimensions (B0, B1).
## Geometry: global (panels of NV * W columns, blocks of MB rows, batch), local (1, 1, 1). A work-item owns one panel of B:
## for each block of KB steps it packs its panel into local memory (unless MODE is direct), then runs over its rows in
## register tiles of MR x NV vectors. Rows and columns that do not fill a tile are computed again by a tile moved back
## (direct) or against zeros (packed) and stored with guards, so every C element has the same order of sums in any split.
##
## Parameter  legal values
## TA TB TC   dtype rows; TA must be stored as it is computed (float, double, int, long)
## W NV MR    lanes of a vector (16; 8 for 8-byte types), vectors and rows of the register tile
## KB         most steps in a block of K (local memory: KB * NV * W elements); d.sb <= KB steps are taken
## MODE       direct: B rows have unit stride and N >= NV * W; rows: the same, packed; cols: B columns have unit stride, packed by
##            W x W transposes; table: column j starts at B + table[j] (patches of a convolution), packed like cols;
##            any: packed element by element
## ASTEP      k: A rows have unit stride; m: A columns have; pack: A columns have, and GROUP tiles of rows at a time are packed
##            (with zeros below M), because a walk along K would touch a new page per step; any: no unit stride, packed
##            likewise; panel: A is the output of matmul/panels; table: row i starts at A + table[i] and has unit stride
## GROUP      tiles per pack of A (local memory: GROUP * (KB * MR + 16) elements); 0 where A is not packed
## BIAS       "" | n (one per column) | m (one per row), of dtype TC
## BETA       True: C is read too
## EPI        "" or a C expression in v (see matmul/tile)
##
## Limits: M >= MR unless A is packed or in panels; no split of K (d.s9) with panels; alpha and beta are computed in the compute type.
<%
    ACC = TC.acc
    V = f"{ACC}{W}"
    NR = NV * W
    PACK = MODE != "direct"
    WIDE = 1 << (MR - 1).bit_length()  # a vector that covers the rows of a tile; it may overrun into the next step
%>\
${tile.macros(ACC)}
% for t in dict.fromkeys([TB, TC]):
${vec.vector_io(t, W)}
% endfor
<%def name="pack_rows()">
<% lanes = f"{'long' if TB.acc in ('double', 'long') else 'int'}{W}" %>\
        const long inside = (K - 1) * rbs + N;      /* elements up to the end of the last row */
        for (long k = 0; k < kc; k++) {
            __global const ${TB.c}* s = B + (k0 + k) * rbs + jt;
            if (jt + ${NR} <= N) {
% for j in range(NV):
                pk[k * ${NV} + ${j}] = ldv_${TB.name}(s + ${j * W});
% endfor
            } else if ((k0 + k) * rbs + jt + ${NR} <= inside) {        /* a vector may reach into the next row, of which nothing is kept */
% for j in range(NV):
                pk[k * ${NV} + ${j}] = (${lanes})(${", ".join(str(c + j * W) for c in range(W))}) < (${lanes})(N - jt) ? ldv_${TB.name}(s + ${j * W}) : (${V})0;
% endfor
            } else for (long j = 0; j < ${NR}; j++) ((__local ${ACC}*)pk)[k * ${NR} + j] = jt + j < N ? ${TB.load}(s, j) : 0;
        }
</%def>
<%def name="pack_cols()">
<% column = (lambda c: f"table[jt + j * {W} + {c}]") if MODE == "table" else (lambda c: f"(jt + j * {W} + {c}) * cbs") %>\
            __global const ${TB.c}* s = B + k0;
        for (long j = 0; j < ${NV}; j++) {
            const long n = N - jt - j * ${W};
            long k = 0;
            for (; k + ${W} <= kc; k += ${W}) {
% for c in range(W):
                ${V} t${c} = ${c} < n ? ldv_${TB.name}(s + ${column(c)} + k) : (${V})0;
% endfor
% for c in range(W):
                FETCH(s + ${column(c)} + k + ${2 * W});
% endfor
                ${vec.transpose(V, W, "t")}
% for c in range(W):
                pk[(k + ${c}) * ${NV} + j] = t${c};
% endfor
            }
            for (; k < kc; k++)
                for (long q = 0; q < ${W}; q++) ((__local ${ACC}*)(pk + k * ${NV} + j))[q] = q < n ? ${TB.load}(s + ${column("q")}, k) : 0;
        }
</%def>
<%def name="pack_any()">
        for (long k = 0; k < kc; k++)
            for (long j = 0; j < ${NR}; j++)
                ((__local ${ACC}*)pk)[k * ${NR} + j] = jt + j < N ? ${TB.load}(B, (k0 + k) * rbs + (jt + j) * cbs) : 0;
</%def>
<%def name="pack_a()">
            for (long k = 0; k < kc; k++) {
                __global const ${TA.c}* s = A + ig * ras + (k0 + k) * cas;
% if ASTEP == "pack" and 2 <= WIDE <= 16:
                if (ig + ${GROUP * MR + WIDE} <= M) {
% for t in range(GROUP):
                    vstore${WIDE}(vload${WIDE}(0, s + ${t * MR}), 0, pa + ${t} * plane + k * ${MR});
% endfor
                    continue;
                }
% endif
                for (int t = 0; t < ${GROUP}; t++)
                    for (int r = 0; r < ${MR}; r++)
                        pa[t * plane + k * ${MR} + r] = ig + t * ${MR} + r < M ? s[(t * ${MR} + r) * ras] : 0;
            }
</%def>
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_cpu(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z,
                const ${ACC} alpha, const ${ACC} beta${", __global const int* table" if "table" in (MODE, ASTEP) else ""}) {
    const long M = d.s0, N = d.s1, ras = d.s3, cas = d.s4, rbs = d.s5, cbs = d.s6, rcs = d.s7, MB = d.s8, KB = d.sb;
    const long z0 = get_group_id(2) / z.s0, z1 = get_group_id(2) % z.s0;
    const long K = d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2;  // split-K: batch z0 sums its own run of d.s9 steps
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5;
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
    const long j0 = get_group_id(0) * ${NR}, n_end = N;
    const long jt = ${"j0" if PACK else f"min(j0, N - {NR})"}, j_new = j0 - jt;
    const long i_begin = get_group_id(1) * MB, i_end = min(M, i_begin + MB);
% if PACK:
    __local ${V} pk[${KB * NV}];
% endif
% if GROUP:
    __local ${ACC} pa[${GROUP * (KB * MR + 16)}];
    const int plane = ${KB * MR + 16};
% endif
    long k0 = 0;
    do {
        const long kc = min(KB, K - k0);
        const bool first = k0 == 0, last = k0 + kc == K;
% if PACK:
        ${dict(rows=pack_rows, cols=pack_cols, any=pack_any, table=pack_cols)[MODE]()}
% endif
% if GROUP:
        for (long ig = i_begin; ig < i_end; ig += ${GROUP * MR}) {
            ${pack_a()}
        for (long i_new = ig; i_new < min(i_end, ig + ${GROUP * MR}); i_new += ${MR}) {
            const long i = i_new;
            __local const ${ACC}* a = pa + (i - ig) / ${MR} * plane;
% else:
        for (long i_new = i_begin; i_new < i_end; i_new += ${MR}) {
            const long i = ${"i_new" if ASTEP == "panel" else f"min(i_new, M - {MR})"};
% endif
            const int r_end = (int)min(${MR}L, M - i);
            const bool full = i == i_new && r_end == ${MR} && j_new == 0 && jt + ${NR} <= N;
            __global ${TC.c}* c = C + i * rcs + jt;
% if PACK:
            __local const ${V}* b = pk;
% else:
            __global const ${TB.c}* b = B + k0 * rbs + jt;
% endif
% if ASTEP in ("k", "table"):
% for r in range(MR):
            __global const ${TA.c}* a${r} = A + ${f"table[i + {r}]" if ASTEP == "table" else f"(i + {r}) * ras"} + k0;
% endfor
% elif ASTEP == "panel":
            __global const ${TA.c}* a = A + i * d.s2 + k0 * ${MR};
% elif not GROUP:
            __global const ${TA.c}* a = A + i + k0 * cas;
% endif
<%
    a = (lambda r: f"a{r}[k]") if ASTEP in ("k", "table") else (lambda r: f"a[{r}]")
    b = (lambda j: f"b[{j}]") if PACK else (lambda j: f"ldv_{TB.name}(b + {j * W})")
    step = (f"b += {NV};" if PACK else "b += rbs;") + ("" if ASTEP in ("k", "table") else f" a += {MR};" if GROUP or ASTEP == "panel" else (f" FETCH(a + {2 * MR - 1}); a += cas;" if ASTEP == "m" else " a += cas;"))
%>\
<%
    follow = {"k": lambda r, k: f"a{r} + {MR} * ras + {k}", "panel": lambda r, k: f"a_tile + {MR} * (d.s2 + {k}) + {r * 16}",
              "table": lambda r, k: f"A + table[min(i + {MR + r}, M - 1)] + k0 + {k}"}.get(ASTEP)
    ahead = follow and (lambda k: " ".join(f"FETCH({follow(r, k)});" for r in range(MR)))
%>\
% if ASTEP == "panel":
            __global const ${TA.c}* a_tile = a;
% endif
            ${tile.fetch_result(MR, NV, W)}
            ${tile.multiply(MR, NV, V, ACC, a, b, step, ahead, 4)}
            ${tile.store(MR, NV, W, V, ACC, TC, BIAS, BETA, EPI)}
        }
% if GROUP:
        }
% endif
        k0 += KB;
    } while (k0 < K);
}
