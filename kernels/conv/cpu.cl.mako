<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## Convolution as a matrix product on a CPU, without the matrix of patches: Y[pixel] = epilogue(wt @ patch(pixel) + bias).
##
## wt (groups, M, K) weights; grid: the padded input of conv/grid; Y: any place with its own strides, so that a phase of a
## strided input gradient can be written; koff (K): where step k's plane starts in the grid, shifted by its tap. A pixel and a
## step together give one address: grid[koff[k] + offset(pixel)], and pixels of one output row are neighbours.
## Geometry: global (panels of NV * W pixels, blocks of MB rows, groups), local (1, 1, 1). A work-item notes the runs of
## neighbouring pixels of its panel once; per block of KB steps it copies those runs into local memory (a copy may overrun
## into the next run, which is written after it), then multiplies as in matmul/cpu.
##
## Parameter  legal values
## TC TB      dtype rows of Y and of bias; wt and grid hold its compute type
## W NV MR KB as in matmul/cpu; M >= MR
## GUARD      True: the grid is the input itself, of d.sc elements, and must not be read past its end
## REACH      None | 0 | 1: after koff lie the first step and the end of those that meet the image, for every depth (0) or row (1) of the output;
##            a panel takes the steps of any of its pixels
## BIAS       "" | m; EPI as in matmul/tile
<%
    ACC = TC.acc
    V = f"{ACC}{W}"
    NR = NV * W
%>\
${tile.macros(ACC)}
${vec.vector_io(TC, W)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_cpu(IN(${ACC}, wt), IN(${ACC}, grid), OUT(${TC.c}, Y), IN(${TB.c}, bias), __global const int* restrict koff, const long16 d, const long8 y) {
    __local ${V} pk[${KB * NV + 1}];
    __local ${ACC}* pe = (__local ${ACC}*)pk;
    const long M = d.s0, K = d.s1, pixels = d.s2, OD = d.s3, OH = d.s4, OW = d.s5, P = d.s6, GHW = d.s7, GW = d.s8, MB = d.s9, rcs = y.s4, KB = d.sd;
    const long g = get_group_id(2), j0 = get_group_id(0) * ${NR}, jt = 0;
    __global const ${ACC}* restrict A = wt_p + wt_o + g * d.sa;
    __global const ${ACC}* restrict G = grid_p + grid_o + g * d.sb;
    __global ${TC.c}* restrict out = Y_p + Y_o + g * y.s5;
% if BIAS:
    __global const ${TB.c}* restrict bias = bias_p + bias_o + g * M;
% endif
    const ${ACC} alpha = 1, beta = 0;
    int from[${NR}], to[${NR}], runs = 0, n_end = 0;
    long place[${NR}];
    long ow = j0 % OW, oh = j0 / OW % OH, od = j0 / (OW * OH) % OD, n = j0 / (OW * OH * OD);
% if REACH is not None:
    int k_low = (int)K, k_high = 0;
% endif
    while (n_end < ${NR} && j0 + n_end < pixels) {
        const int run = (int)min(OW - ow, min((long)(${NR} - n_end), pixels - j0 - n_end));
        const long src = n * P + od * GHW + oh * GW + ow, dst = n * y.s0 + od * y.s1 + oh * y.s2 + ow * y.s3;
        for (int q = 0; q < run; q += ${W}) { from[runs] = (int)(src + q); to[runs++] = n_end + q; }
        for (int q = 0; q < run; q++) place[n_end + q] = dst + q * y.s3;
% if REACH is not None:
        { __global const int* s = koff + K + 2 * ${"oh" if REACH else "od"}; k_low = min(k_low, s[0]); k_high = max(k_high, s[1]); }
% endif
        n_end += run;
        ow += run;
        if (ow == OW) { ow = 0; if (++oh == OH) { oh = 0; if (++od == OD) { od = 0; n++; } } }
    }
    const bool dense = n_end == ${NR} && place[${NR - 1}] - place[0] == ${NR - 1};
    const long i_begin = get_group_id(1) * MB, i_end = min(M, i_begin + MB), j_new = 0;
% if REACH is not None:
    const long k_end = k_high, k_begin = min(k_low, k_high);
% else:
    const long k_end = K, k_begin = 0;
% endif
    long k0 = k_begin;
    do {
        const long kc = min(KB, k_end - k0);
        const bool first = k0 == k_begin, last = k0 + kc == k_end;
        for (long k = 0; k < kc; k++) {
            __global const ${ACC}* s = G + koff[k0 + k];
% if GUARD:
            const long room = d.sc - koff[k0 + k];
            for (int r = 0; r < runs; r++) {
                if (from[r] + ${W} <= room) vstore${W}(vload${W}(0, s + from[r]), 0, pe + k * ${NR} + to[r]);
                else for (int q = 0; q < ${W}; q++) pe[k * ${NR} + to[r] + q] = from[r] + q < room ? s[from[r] + q] : 0;
            }
% else:
            for (int r = 0; r < runs; r++) vstore${W}(vload${W}(0, s + from[r]), 0, pe + k * ${NR} + to[r]);
% endif
        }
        for (long i_new = i_begin; i_new < i_end; i_new += ${MR}) {
            const long i = min(i_new, M - ${MR});
            const int r_end = ${MR};
            const bool full = i == i_new && dense;
            __global ${TC.c}* c = out + i * rcs + place[0];
            __local const ${V}* b = pk;
% for r in range(MR):
            __global const ${ACC}* a${r} = A + (i + ${r}) * K + k0;
% endfor
<%
    rows_ahead = lambda k: " ".join(f"FETCH(a{r} + {MR} * K + {k});" for r in range(MR))
%>\
            ${tile.fetch_result(MR, NV, W)}
            ${tile.multiply(MR, NV, V, ACC, lambda r: f"a{r}[k]", lambda j: f"b[{j}]", f"b += {NV};", rows_ahead, 4)}
            ${tile.store(MR, NV, W, V, ACC, TC, BIAS, False, EPI, "out + row * rcs + place[j]", TB)}
        }
        k0 += KB;
    } while (k0 < k_end);
}
