<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="runs" file="/conv/runs.cl.mako"/>\
<%namespace name="pairs" file="/matmul/pairs.cl.mako"/>\
## Convolution as a matrix product on a CPU, without the matrix of patches: Y[pixel] = epilogue(wt @ patch(pixel) + bias).
##
## wt (groups, M, K) weights; grid: the padded input of conv/grid; Y: any place with its own strides; koff (K): where step k's plane
## starts in the grid, shifted by its tap. A pixel and a step together give one address: grid[koff[k] + offset(pixel)], and pixels of
## one output row are neighbours. The d.sf phases of a strided input gradient are products of the same pixels, each of its own run of steps
## with its own place in Y; six ints of each at the end of koff say which: first step, end, place, and its OD, OH, OW (not read here).
## A work-item computes all of them for its pixels, so that they meet in its cache.
## Geometry: global (panels of NV * W pixels, blocks of MB rows, groups), local (1, 1, 1). A work-item notes the runs of
## neighbouring pixels of its panel once; per block of KB steps it copies those runs into local memory (a copy may overrun
## into the next run, which is written after it), then multiplies as in matmul/cpu.
##
## Parameter  legal values
## TC TB      dtype rows of Y and of bias; wt and grid hold its compute type
## W NV MR KB as in matmul/cpu; M >= MR
## GUARD      True: the grid is the input itself, of d.sc elements, and must not be read past its end
## REACH      None | 0 | 1: after the steps lie, per phase, the first step and the end of those that meet the image, for every depth (0) or row (1)
##            of the output; a panel takes the steps of any of its pixels
## BIAS       "" | m; EPI as in matmul/tile
## USE        "": as above; else wt and grid hold words of two channels, which an instruction spelt so multiplies (see matmul/pairs)
<%
    ACC = TC.acc
    V = f"{ACC}{W}"
    NR = NV * W
    LANES = f"{'long' if ACC in ('double', 'long') else 'int'}{W}"
    AHEAD = 8
    EL = "uint" if USE else ACC     # of wt, grid and panel
%>\
${tile.macros(ACC)}
% if USE:
#undef MAC
#define MAC(x, y, z) dot_words(z, x, y)
${pairs.instruction(TB, W, USE)}
% endif
${vec.vector_io(TC, W)}
% if TC.c == ACC:
${runs.moves(ACC)}
% endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_cpu(IN(${EL}, wt), IN(${EL}, grid), OUT(${TC.c}, Y), IN(${TB.c}, bias), __global const int* restrict koff, const long16 d, const long8 y) {
    __local ${EL}${W} pk[${KB * NV}];
    __local ${EL}* pe = (__local ${EL}*)pk;
    const long M = d.s0, K = d.s1, pixels = d.s2, OD = d.s3, OH = d.s4, OW = d.s5, P = d.s6, GHW = d.s7, GW = d.s8, MB = d.s9, rcs = y.s4, KB = d.sd;
    const long g = get_group_id(2), j0 = get_group_id(0) * ${NR}, jt = 0;
    __global const ${EL}* restrict A = wt_p + wt_o + g * d.sa;
    __global const ${EL}* restrict G = grid_p + grid_o + g * d.sb;
% if BIAS:
    __global const ${TB.c}* restrict bias = bias_p + bias_o + g * M;
% endif
    const ${ACC} alpha = 1, beta = 0;
    int from[${NR}], to[${NR}], copies = 0, n_end = 0;         // what is copied: vectors of the grid, to lanes of the panel
    int lane[${NR}], count[${NR}], runs = 0;                   // what is written: lanes of the panel, to places of the output
    long place[${NR}];
    const long step = y.s3;
    long ow = j0 % OW, oh = j0 / OW % OH, od = j0 / (OW * OH) % OD, n = j0 / (OW * OH * OD);
% if REACH is not None:
    int line[${NR}];
% endif
    while (n_end < ${NR} && j0 + n_end < pixels) {
        const int run = (int)min(OW - ow, min((long)(${NR} - n_end), pixels - j0 - n_end));
        const long src = n * P + od * GHW + oh * GW + ow;
        for (int q = 0; q < run; q += ${W}) { from[copies] = (int)(src + q); to[copies++] = n_end + q; }
% if REACH is not None:
        line[runs] = (int)${"oh" if REACH else "od"};
% endif
        lane[runs] = n_end;
        count[runs] = run;
        place[runs++] = n * y.s0 + od * y.s1 + oh * y.s2 + ow * step;
        n_end += run;
        ow += run;
        if (ow == OW) { ow = 0; if (++oh == OH) { oh = 0; if (++od == OD) { od = 0; n++; } } }
    }
    // the last vectors of a step must not reach into the next one: they are moved back, and keep the lanes of the runs before them
    int inside = copies;
    while (inside > 0 && to[inside - 1] > ${NR - W}) inside--;
    const bool dense = step == 1 && n_end == ${NR} && place[runs - 1] - place[0] == lane[runs - 1];
    const long i_begin = get_group_id(1) * MB, i_end = min(M, i_begin + MB), j_new = 0;
    const int phases = (int)d.sf;
    __global const int* phase = koff + K${f" + 2 * phases * {'OH' if REACH else 'OD'}" if REACH is not None else ""};
    for (int f = 0; f < phases; f++, phase += 6) {
    __global ${TC.c}* out = Y_p + Y_o + g * y.s5 + phase[2];
% if REACH is not None:
    int k_low = phase[1], k_high = phase[0];
    for (int r = 0; r < runs; r++) {
        __global const int* s = koff + K + 2 * (f * ${"OH" if REACH else "OD"} + line[r]);
        k_low = min(k_low, s[0]);
        k_high = max(k_high, s[1]);
    }
    const long k_end = k_high, k_begin = min(k_low, k_high);
% else:
    const long k_begin = phase[0], k_end = phase[1];
% endif
    long k0 = k_begin;
    do {
        const long kc = min(KB, k_end - k0);
        const bool first = k0 == k_begin, last = k0 + kc == k_end;
% if GUARD:
        if (from[copies - 1] + ${W} > d.sc - d.se)                /* the last of the image: no vector may reach past its end */
            for (long k = 0; k < kc; k++) {
                __global const ${EL}* s = G + koff[k0 + k];
                const long room = d.sc - koff[k0 + k];
                for (int r = 0; r < copies; r++)
                    for (int q = 0; q < ${W} && to[r] + q < ${NR}; q++) pe[k * ${NR} + to[r] + q] = from[r] + q < room ? s[from[r] + q] : 0;
            }
        else
% endif
        for (long k = 0; k < kc; k += ${AHEAD}) {
            __global const int* t = koff + k0 + k;
            const int steps = (int)min(${AHEAD}L, kc - k);
            for (int r = 0; r < inside; r++) {
                __global const ${EL}* s = G + from[r];
                __local ${EL}* e = pe + k * ${NR} + to[r];
                if (steps == ${AHEAD}) {
% for q in range(AHEAD):
                    vstore${W}(vload${W}(0, s + t[${q}]), 0, e + ${q * NR});
% endfor
                } else for (int q = 0; q < steps; q++) vstore${W}(vload${W}(0, s + t[q]), 0, e + q * ${NR});
            }
            for (int r = inside; r < copies; r++) {
                const int spare = to[r] - ${NR - W};
                const ${LANES} lanes = (${LANES})(${", ".join(str(q) for q in range(W))}) >= (${LANES})(spare);
                __global const ${EL}* s = G + from[r] - spare;
                __local ${EL}* e = pe + k * ${NR} + ${NR - W};
                for (int q = 0; q < steps; q++) vstore${W}(select(vload${W}(0, e + q * ${NR}), vload${W}(0, s + t[q]), lanes), 0, e + q * ${NR});
            }
        }
        for (long i_new = i_begin; i_new < i_end; i_new += ${MR}) {
            const long i = min(i_new, M - ${MR});
            const bool full = i == i_new && dense${"" if not EPI or "VT" in EPI else " && !last"};
            __global ${TC.c}* c = out + i * rcs + place[0];
            __local const ${EL}${W}* b = pk;
% for r in range(MR):
            __global const ${EL}* a${r} = A + (i + ${r}) * K + k0;
% endfor
<%
    rows_ahead = lambda k: " ".join(f"FETCH(a{r} + {MR} * K + {k});" for r in range(MR))
%>\
            ${tile.fetch_result(MR, NV, W)}
            ${tile.multiply(MR, NV, V, ACC, lambda r: f"a{r}[k]", lambda j: f"b[{j}]", f"b += {NV};", rows_ahead, 4, f"{EL}{W}")}
            if (full) {
                ${tile.store_vectors(MR, NV, W, V, ACC, TC, BIAS, False, EPI, TB)}
            } else {
                ${runs.store(MR, NV, W, V, ACC, TC, TB, BIAS, EPI)}
            }
        }
        k0 += KB;
    } while (k0 < k_end);
    }
}
