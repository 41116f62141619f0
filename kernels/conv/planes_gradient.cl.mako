<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/conv/planes_tile.cl.mako"/>\
## Weight gradient of a depthwise convolution of 1 to 3 dimensions on a CPU: dW[o, tap] = sum over images and pixels of dY[n, o, pixel] * X[n, o / mult, pixel at tap].
## Tiles of both are turned into local memory with a channel per lane, as in conv/planes.
##
## X (N, C, sizes), dY (N, O, sizes) with O = C * mult = C * d.s2, dW (d.se, O, taps): a sum of each share of the images. table as for conv/planes.
## Geometry: global (blocks of W channels * d.se), local (1).
##
## Parameter  legal values
## T          dtype row of X and dY; TO: of dW, the compute type where there are several shares
## W P STEP SLAB   as in conv/planes
## KW DILATION     taps of a row, and how far apart in the source
<%
    ACC, V = T.acc, f"{T.acc}{W}"
    SETS = 2 if KW < 4 else 1       # sums per tap: as many additions as a processor has under way
%>\
${vec.vector_io(T, W)}
${tile.places(T, W)}
${tile.take(T, W)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_planes_gradient(IN(${T.c}, X), IN(${T.c}, dY), OUT(${TO.c}, dW), __global const int* restrict table, const long16 d, const long8 e) {
    __local ${V} slab[${SLAB}];
    __local ushort from[${SLAB}], to[${SLAB}];
    PTR_IN(${T.c}, X); PTR_IN(${T.c}, dY); PTR_OUT(${TO.c}, dW);
    const long N = d.s0, O = d.s1, source = d.s3, result = d.s4;
    const int IH = d.s5, IW = d.s6, OH = d.s7, OW = d.s8, tiles = d.s9, pitch = d.sa, wide = d.sb, shares = d.se, OD = d.sf;
    const int KD = e.s0, KH = e.s1, each = KD * KH * ${KW};
    const long o0 = get_group_id(0) / shares * ${W}, share = get_group_id(0) % shares, end = N * tiles * (share + 1) / shares;
    __local ${V}* const taken = slab + each, * const done = taken + e.s6;
    __global const int* of_depth = table + 16 * tiles, * of_row = of_depth + 3 * OD;
    for (int q = 0; q < each; q++) slab[q] = 0;
    int last = -1;
    for (long m = N * tiles * share / shares; m < end; m++) {
        const int tile = m / N;
        const long n = m % N;
        __global const int* t = table + 16 * tile;
        const int depths = t[9], rows = t[11], cols = t[13], start = t[14], out_depths = t[1], out_rows = t[3], out_cols = t[6];
        if (last != tile) {
            last = tile;
            places(from, depths * rows, cols, pitch, start);
            places(to, out_depths * out_rows, out_cols, wide, 0);
            for (int r = 0; r < depths * rows; r++)
                for (int c = 0; c < pitch; c++)
                    if (c < start || c >= start + cols) taken[r * pitch + c] = 0;
        }
        long at[${W}];
        for (int l = 0; l < ${W}; l++) at[l] = (n * O + min(o0 + l, O - 1)) / d.s2 * source;
        take(X + ((long)t[8] * IH + t[10]) * IW + t[12], at, depths, rows, cols, (long)IH * IW, IW, taken, from);
        for (int l = 0; l < ${W}; l++) at[l] = (n * O + min(o0 + l, O - 1)) * result;
        take(dY + ((long)t[0] * OH + t[2]) * OW + t[5], at, out_depths, out_rows, out_cols, (long)OH * OW, OW, done, to);
        for (int kd = 0; kd < KD; kd++)
            for (int kh = 0; kh < KH; kh++) {
                ${V} ${", ".join(f"s{kw}_{i} = 0" for kw in range(KW) for i in range(SETS))};
                for (int z = 0; z < out_depths; z++) {
                    __global const int* dz = of_depth + 3 * (t[0] + z);
                    if (kd < dz[0] || kd >= dz[0] + dz[1]) continue;
                    const int first = (dz[2] - t[8] + (kd - dz[0]) * (int)e.s3) * rows - t[10];
                    for (int y = 0; y < out_rows; y++) {
                        __global const int* dy = of_row + 3 * (t[2] + y);
                        if (kh < dy[0] || kh >= dy[0] + dy[1]) continue;
                        __local const ${V}* x = taken + (first + dy[2] + (kh - dy[0]) * (int)e.s5) * pitch;
                        __local const ${V}* g = done + (z * out_rows + y) * wide;
                        int c = 0;
                        for (; c + ${P} <= out_cols; c += ${P}) { ${add(P)} }
                        for (; c < out_cols; c++) { ${add(1)} }
                    }
                }
% for kw in range(KW):
                slab[(kd * KH + kh) * ${KW} + ${kw}] += ${" + ".join(f"s{kw}_{i}" for i in range(SETS))};
% endfor
            }
    }
    for (int l = 0; l < ${W} && o0 + l < O; l++)
        for (int q = 0; q < each; q++) ${TO.store}(dW, (share * O + o0 + l) * each + q, ((__local const ${ACC}*)slab)[q * ${W} + l]);
}
<%def name="add(count)">
% for p in range(count):
                            { const ${V} v = g[c + ${p}];
% for kw in range(KW):
                              s${kw}_${p % SETS} = fma(v, x[c * ${STEP} + ${p * STEP + kw * DILATION}], s${kw}_${p % SETS});
% endfor
                            }
% endfor
</%def>
