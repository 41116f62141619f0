<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/conv/planes_tile.cl.mako"/>\
## Depthwise convolution of 1 to 3 dimensions on a CPU with W planes in the lanes of vectors, so that short rows and any stride fill them; also the
## gradient of the input. A work-item turns a tile of W planes into local memory, computes there, and turns the result back.
##
## X (planes, source sizes), k (taps of an output channel in a row), Y (planes, result sizes): plane p of Y reads SOURCES planes of X from p * SOURCES / d.s2 on.
## table: 16 numbers per tile (launcher: Planes), then for each depth and each row of Y the first tap that meets X, how many do, and where the first meets it.
## Geometry: global (d.sd * d.se), local (1): of all blocks of W planes, every d.sd-th has the same weights, and d.se work-items share those.
##
## Parameter  legal values
## T          dtype row
## W          lanes: planes at a time
## P          steps along a row of the result at a time, which share weights
## TAPS       results of a step, next to each other: tuples of (tap of a row, place in the source); KW taps of a row in all
## STEP       how far apart in the source steps are
## SOURCES    source planes of a result
## SLAB       vectors of local memory: weights, source, result
## BIAS       True: one value per plane modulo d.s1; EPI: as in matmul/tile, valid on vectors
<%
    ACC, V = T.acc, f"{T.acc}{W}"
    N = len(TAPS)
%>\
${vec.vector_io(T, W)}
${tile.places(T, W)}
${tile.take(T, W)}
${tile.put(T, W)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_planes(IN(${T.c}, X), IN(${T.c}, k), OUT(${T.c}, Y), IN(${T.c}, bias), __global const int* restrict table, const long16 d, const long8 e) {
    __local ${V} slab[${SLAB}];
    __local ushort from[${SLAB}], to[${SLAB}];
    PTR_IN(${T.c}, X); PTR_IN(${T.c}, k); PTR_OUT(${T.c}, Y);
    const long planes = d.s0, O = d.s1, source = d.s3, result = d.s4;
    const int IH = d.s5, IW = d.s6, OH = d.s7, OW = d.s8, tiles = d.s9, pitch = d.sa, wide = d.sb, area = d.sc, period = d.sd, shares = d.se, OD = d.sf;
    const int KD = e.s0, KH = e.s1, kd_step = e.s2, id_step = e.s3, kh_step = e.s4, ih_step = e.s5;
    const int number = get_group_id(0) % period;
    const long share = get_group_id(0) / period, blocks = ((planes + ${W - 1}) / ${W} - number + period - 1) / period;
    __local ${V}* const taken = slab + ${SOURCES * KW} * KD * KH, * const done = taken + e.s6;
    __global const int* of_depth = table + 16 * tiles, * of_row = of_depth + 3 * OD;
    __local ${ACC}* weights = (__local ${ACC}*)slab;
% if BIAS:
    ${ACC} b_[${W}];
% endif
    for (int l = 0; l < ${W}; l++) {
        const long o = min((long)number * ${W} + l, planes - 1) % O, each = ${SOURCES * KW} * KD * KH;
        for (int t = 0; t < each; t++) weights[t * ${W} + l] = ${T.load}(k, o * each + t);
% if BIAS:
        b_[l] = ${T.load}(bias_p + bias_o, o);
% endif
    }
% if BIAS:
    const ${V} b = vload${W}(0, b_);
% endif
    int last = -1;
    for (long m = blocks * tiles * share / shares; m < blocks * tiles * (share + 1) / shares; m++) {
        const int number_of = m / blocks;
        const long p0 = (number + period * (m % blocks)) * ${W};
        __global const int* t = table + 16 * number_of;
        const int depths = t[9], rows = t[11], cols = t[13], start = t[14], out_depths = t[1], out_rows = t[3], out_cols = t[6];
        if (last != number_of) {
            last = number_of;
            places(from, depths * rows, cols, pitch, start);
            places(to, out_depths * out_rows, out_cols, wide, t[7]);
            for (int r = 0; r < depths * rows; r++)
                for (int c = 0; c < pitch; c++)
                    if (c < start || c >= start + cols)
                        for (int j = 0; j < ${SOURCES}; j++) taken[j * area + r * pitch + c] = 0;
        }
        long at[${W}];
        for (int l = 0; l < ${W}; l++) at[l] = min(p0 + l, planes - 1) * ${SOURCES} / d.s2 * source;
        for (int j = 0; j < ${SOURCES}; j++)
            take(X + j * source + ((long)t[8] * IH + t[10]) * IW + t[12], at, depths, rows, cols, (long)IH * IW, IW, taken + j * area, from);
        for (int z = 0; z < out_depths; z++)
            for (int y = 0; y < out_rows; y++) {
                __global const int* dz = of_depth + 3 * (t[0] + z), * dy = of_row + 3 * (t[2] + y);
                const int kd = dz[0], nd = dz[1], id = dz[2] - t[8], kh = dy[0], nh = dy[1], ih = dy[2] - t[10];
                for (int n = 0; n < t[4]; n++) {
                    ${V} ${", ".join(f"v{q}_{p} = {'b' if BIAS else '0'}" for p in range(P) for q in range(N))};
                    for (int j = 0; j < ${SOURCES}; j++)
                        for (int a = 0; a < nd; a++)
                            for (int c = 0; c < nh; c++) {
                                __local const ${V}* x = taken + j * area + ((id + a * id_step) * rows + ih + c * ih_step) * pitch + n * ${P * STEP};
                                __local const ${V}* w = slab + ((j * KD + kd + a * kd_step) * KH + kh + c * kh_step) * ${KW};
% for q, taps in enumerate(TAPS):
% for kw, place in taps:
                                { const ${V} u = w[${kw}];
% for p in range(P):
                                  v${q}_${p} = fma(u, x[${p * STEP + place}], v${q}_${p});
% endfor
                                }
% endfor
% endfor
                            }
                    __local ${V}* r = done + (z * out_rows + y) * wide + n * ${P * N};
% for p in range(P):
% for q in range(N):
                    { ${V} v = v${q}_${p};
% if EPI:
                      v = ${EPI.replace("VT", V)};
% endif
                      r[${p * N + q}] = v; }
% endfor
% endfor
                }
            }
        put(Y + p0 * result + ((long)t[0] * OH + t[2]) * OW + t[5], result, (int)min((long)${W}, planes - p0), out_depths, out_rows, out_cols,
            (long)OH * OW, OW, done, to);
    }
}
