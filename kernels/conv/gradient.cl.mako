<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="pairs" file="/matmul/pairs.cl.mako"/>\
## Weight gradient of a convolution on a CPU: Y[s, g, (c, tap), o] = sum over the pixels of split s of grid[(c, tap) at pixel] * dY[o, pixel].
##
## grid: the padded input of conv/grid, not in phases: d.s7, d.s8 and d.sd lead from a depth, a row and a pixel to the next; dY (N, groups * O, OD, OH,
## OW) contiguous; table (M): where a (channel, tap) starts in the grid; Y (splits, groups, M, e.s1) contiguous, columns padded to whole panels;
## conv/gradient_sum makes the weights of it.
## DIRECT: Y is dW (groups, O, M) itself, for pixels that fit one block: rows are turned while they are in cache, and no sums are written twice.
## Geometry: global (panels of NV * W output channels, blocks of MB rows, groups * splits), local (1, 1, 1). A work-item takes d.sa rows of dY
## (rows of all images count on), d.sb at a time: it packs its channels of them by W x W transposes into local memory, then multiplies with
## the grid read in place, row by row, so that the zeros around the image cost nothing.
##
## Parameter  legal values
## T          dtype row of dY
## DIRECT     True: T is also the dtype row of Y, splits and passes are one; e.s1 is the pitch otherwise
## USE        "": as above; else N counts pairs of images, the grid holds words of both (see conv/grid), and an instruction spelt so multiplies them
## W NV MR    as in matmul/cpu; KB: most pixels of d.sb rows (local memory: (KB + W) * NV * W elements); ROWS: most rows, d.sb <= ROWS
<%
    ACC = T.acc
    V = f"{ACC}{W}"
    NR = NV * W
    EL = "uint" if USE else ACC
    RUN = 48                # rows that are turned at once: a multiple of W and of most MR
%>\
${tile.macros(ACC)}
${vec.vector_io(T, W)}
% if USE:
#undef MAC
#define MAC(x, y, z) dot_words(z, x, y)
${pairs.instruction(T, W, USE)}
#define OF_IMAGE(p) (convert_uint${W}(vload${W}(0, p)) | convert_uint${W}(vload${W}(0, (p) + e.s0)) << 16)
#define ONE_OF_IMAGE(p, i) ((uint)(p)[i] | (uint)(p)[(i) + e.s0] << 16)
% else:
#define OF_IMAGE(p) ldv_${T.name}(p)
#define ONE_OF_IMAGE(p, i) ${T.load}(p, i)
% endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_gradient(IN(${EL}, grid), IN(${T.c}, dY), OUT(${T.c if DIRECT else ACC}, Y), __global const int* restrict table, const long16 d, const long8 e) {
    __local ${EL}${W} pk[${(KB + W) * NV}];
    int from[${ROWS}];
    const long M = d.s0, O = d.s1, N = d.s2, rows = d.s3, OW = d.s4, OH = d.s5, P = d.s6, GHW = d.s7, GW = d.s8, MB = d.s9, SW = d.sd;
    const long groups = e.s2, g = get_group_id(2) % groups, split = get_group_id(2) / groups, plane = rows * OW, o0 = get_group_id(0) * ${NR};
    __global const ${EL}* restrict G = grid_p + grid_o + g * d.sc;
    __global const ${T.c}* restrict end = dY_p + dY_o + ${"(2 * N - 1)" if USE else "N"} * e.s0;
% if DIRECT:
    __global ${T.c}* restrict Y = Y_p + Y_o + (g * O + o0) * M;
    ${V} turned[${(RUN + MR) * NV}];
% else:
    __global ${ACC}* restrict Y = Y_p + Y_o + get_group_id(2) % groups * M * e.s1 + split * groups * M * e.s1 + o0;
% endif
    const long q_end = min(N * rows, (split + 1) * d.sa), i_begin = get_group_id(1) * MB, i_end = min(M, i_begin + MB);
    bool first = true;
    for (long q0 = split * d.sa; q0 < q_end; q0 += d.sb) {
        const long nq = min(d.sb, q_end - q0);
        long at = 0;
        for (long q = q0; q < q0 + nq;) {                        // the part of an image
            const long n = q / rows, row = q % rows, more = min(q0 + nq - q, rows - row), steps = more * OW;
            __global const ${T.c}* src = dY_p + dY_o + ${"2 * " if USE else ""}n * e.s0 + (g * O + o0) * plane + row * OW;
            for (int j = 0; j < ${NV}; j++, src += ${W} * plane) {
                const long left = O - o0 - j * ${W};
                for (long k = 0; k < steps; k += ${W})
                    if (left > 0 && src + min(${W}L, left) * plane - plane + k + ${W} <= end) {  // channels past the last repeat it
% for c in range(W):
                        ${EL}${W} t${c} = OF_IMAGE(src + min(${c}L, left - 1) * plane + k);
% endfor
                        ${vec.transpose(f"{EL}{W}", W, "t")}
% for c in range(W):
                        pk[(at + k + ${c}) * ${NV} + j] = t${c};
% endfor
                    } else for (long x = k; x < min(steps, k + ${W}); x++) {
                        __local ${EL}* o = (__local ${EL}*)(pk + (at + x) * ${NV} + j);
                        for (int c = 0; c < ${W}; c++) o[c] = c < left ? ONE_OF_IMAGE(src, c * plane + x) : 0;
                    }
            }
            for (long r = row; r < row + more; r++) from[q++ - q0] = (int)(n * P + r / OH * GHW + r % OH * GW);
            at += steps;
        }
% if DIRECT:
        for (long run = i_begin; run < i_end; run += ${RUN}) {
            for (long i = run; i < min(run + ${RUN}, i_end); i += ${MR}) {
                ${rows_of()}
% for r in range(MR):
                ${" ".join(f"turned[(i - run + {r}) * {NV} + {j}] = c{r}_{j};" for j in range(NV))}
% endfor
            }
            for (long m = run; m < min(run + ${RUN}, i_end); m += ${W})
                for (int j = 0; j < ${NV}; j++) {
% for c in range(W):
                    ${V} t${c} = turned[(m - run + ${c}) * ${NV} + j];
% endfor
                    ${vec.transpose(V, W, "t")}
                    const int left = (int)clamp(O - o0 - j * ${W}, 0L, ${W}L), more = (int)min(${W}L, i_end - m);
                    __global ${T.c}* o = Y + j * ${W} * M + m;
                    if (more == ${W}) {
% for c in range(W):
                        if (${c} < left) stv_${T.name}(o + ${c} * M, t${c});
% endfor
                    } else {
                        ${V} t[${W}];
% for c in range(W):
                        t[${c}] = t${c};
% endfor
                        const ${ACC}* s = (const ${ACC}*)t;
                        for (int c = 0; c < left; c++)
                            for (int r = 0; r < more; r++) ${T.store}(o, c * M + r, s[c * ${W} + r]);
                    }
                }
        }
% else:
        for (long i = i_begin; i < i_end; i += ${MR}) {
            ${rows_of()}
            ${V} t[${MR * NV}];
% for r in range(MR):
            ${" ".join(f"t[{r * NV + j}] = c{r}_{j};" for j in range(NV))}
% endfor
            for (int r = 0; r < ${MR} && i + r < i_end; r++) {
                __global ${ACC}* o = Y + (i + r) * e.s1;
% for j in range(NV):
                vstore${W}(first ? t[r * ${NV} + ${j}] : t[r * ${NV} + ${j}] + vload${W}(${j}, o), ${j}, o);
% endfor
            }
        }
% endif
        first = false;
    }
}
<%def name="rows_of()">
% for r in range(MR):
            __global const ${EL}* a${r} = G + table[min(i + ${r}, M - 1)];
            ${V} ${", ".join(f"c{r}_{j} = 0" for j in range(NV))};
% endfor
            __local const ${EL}${W}* b = pk;
            for (int q = 0; q < nq; q++) {
                const long stop = from[q] + OW * SW;
                for (long k = from[q]; k < stop; k += SW, b += ${NV}) {
% for j in range(NV):
                    const ${EL}${W} b${j} = b[${j}];
% endfor
% for r in range(MR):
                    { const ${EL}${W} x = (${EL}${W})(a${r}[k]); ${" ".join(f"c{r}_{j} = MAC(x, b{j}, c{r}_{j});" for j in range(NV))} }
% endfor
                }
            }
</%def>
