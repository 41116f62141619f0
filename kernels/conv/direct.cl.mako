<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="runs" file="/conv/runs.cl.mako"/>\
## Convolution on a CPU with output channels in the lanes: Y[pixel] = epilogue(sum over steps of X[where the step meets the pixel] * wt[step] + bias).
##
## The image is read in place, an element at a time, so that strides and short rows cost nothing and no patches are copied; a tap that meets no pixel
## of a tile costs nothing either. A step is a tap and a channel: steps of a tap follow each other.
## X (N, groups * C, ID, IH, IW); wt (groups, panels, K, NV * W) of conv/lanes; Y: any place with its own strides; part: room for sums, where K goes in blocks.
## table: per step, where its tap and channel lie, seen from the pixel (K ints); per tap, its steps along D, H, W from there (3 ints); per phase (13):
## first tap, end, place in Y, OD, OH, OW, pixels, least and largest steps of its taps along D, H, W; per item (3): first phase, end, first pixel.
## Geometry: global (items of d.s8 pixels, panels of NV * W output channels, groups), local (1, 1, 1). Tiles of MR pixels are multiplied, RUN pixels
## turned and written at a time. y.s9: elements from a pixel to the next, if vectors may write between them, as all that lies there is this item's.
##
## Parameter  legal values
## T          dtype row of all operands, which is its own compute type
## W NV MR    as in matmul/cpu; RUN: a multiple of MR and of W
## MASKED     False: all taps of all pixels lie inside the image
## IMAGES     True: the same pixel of all images, then the next one, so that a tile's pixels meet the same taps (MASKED, not PAIR)
## PAIR       True: phases come in pairs of the same pixels, the second one's an element behind the first one's and two apart: written together
## BIAS       "" | m; EPI as in matmul/tile, valid on vectors
<%
    A = T.acc
    V = f"{A}{W}"
    NR = NV * W
    I = "long" if A == "double" else "int"
    L = 8 if MR <= 8 else 16      # lanes that hold what is known of a tile's pixels
    tiled = f"(int{L})({', '.join('-1' if r < MR else '0' for r in range(L))})"
%>\
${tile.macros(A)}
${runs.moves(A)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_direct(IN(${A}, wt), IN(${A}, X), OUT(${A}, Y), IN(${A}, bias), __global ${A}* restrict part, __global const int* restrict table, const long16 d,
                 const long16 y) {
    const long M = d.s0, C = d.s1, K = d.s2, ID = d.s3, IH = d.s4, IW = d.s5, plane = d.s6, image = d.s7, PB = d.s8, KT = d.s9, rcs = y.s4;
    const long g = get_group_id(2), o0 = get_group_id(1) * ${NR}, panel = g * get_num_groups(1) + get_group_id(1);
    __global const int* tap = table + K;
    __global const int* item = tap + 3 * d.sa + 13 * d.sb + 3 * get_group_id(0);
    __global const ${A}* restrict G = X_p + X_o + g * C * plane;
    __global const ${A}* restrict weights = wt_p + wt_o + panel * K * ${NR};
    __global ${A}* kept = part + (panel * get_num_groups(0) + get_group_id(0)) * PB * ${2 * NR if PAIR else NR};
% if BIAS:
    __global const ${A}* restrict bias = bias_p + bias_o + g * M;
% endif
    int base[${RUN + L}], place[${RUN + L}];
% if MASKED:
    int z[${RUN + L}], h[${RUN + L}], w[${RUN + L}], inside[${RUN + L}];
% endif
    ${V} sums[${RUN * NV}];
    const int rows = (int)min(${NR}L, M - o0);
    for (int f = item[0]; f < item[1]; f++) {
    __global const int* phase = tap + 3 * d.sa + 13 * f;
    const long OD = phase[3], OH = phase[4], OW = phase[5], p_begin = item[2], p_end = min((long)phase[6], p_begin + PB);
    __global ${A}* restrict out = Y_p + Y_o + g * y.s5 + phase[2] + o0 * rcs;
    int t0 = phase[0];
    bool first = true, last;
% if PAIR:
    const bool second = (f - item[0]) & 1;
    kept += second ? PB * ${NR} : f == item[0] ? 0 : -PB * ${NR};
% endif
    do {
    const int t1 = (int)min((long)phase[1], t0 + KT);
    last = t1 == phase[1];
% if not IMAGES:
    long ow = p_begin % OW, oh = p_begin / OW % OH, od = p_begin / (OW * OH) % OD, n = p_begin / (OW * OH * OD);
% endif
    for (long p0 = p_begin; p0 < p_end; p0 += ${RUN}) {
        const int count = (int)min(${RUN}L, p_end - p0);
% if IMAGES:
        const long N = phase[6] / (OD * OH * OW);
        for (int q = 0; q < count; q++) {
            const long at = (p0 + q) / N, i = (p0 + q) % N, iw = at % OW * y.s8, ih = at / OW % OH * y.s7, iz = at / (OW * OH) * y.s6;
            base[q] = (int)(i * image + (iz * IH + ih) * IW + iw);
            place[q] = (int)(i * y.s0 + at / (OW * OH) * y.s1 + at / OW % OH * y.s2 + at % OW * y.s3);
            z[q] = (int)iz;
            h[q] = (int)ih;
            w[q] = (int)iw;
            inside[q] = iz + phase[7] >= 0 && iz + phase[8] < ID && ih + phase[9] >= 0 && ih + phase[10] < IH && iw + phase[11] >= 0 && iw + phase[12] < IW;
        }
% else:
        for (int q = 0; q < count;) {
            const int some = (int)min(OW - ow, (long)(count - q)), iz = (int)(od * y.s6), ih = (int)(oh * y.s7), iw = (int)(ow * y.s8);
            const int at = (int)(n * image + (iz * IH + ih) * IW + iw), to = (int)(n * y.s0 + od * y.s1 + oh * y.s2 + ow * y.s3), SW = (int)y.s8, step = (int)y.s3;
% if MASKED:
            const bool in = iz + phase[7] >= 0 && iz + phase[8] < ID && ih + phase[9] >= 0 && ih + phase[10] < IH;
            const int low = -phase[11], high = in ? (int)IW - phase[12] : -1;
% endif
            for (int x = 0; x < some; x++) {
                base[q + x] = at + x * SW;
                place[q + x] = to + x * step;
% if MASKED:
                z[q + x] = iz;
                h[q + x] = ih;
                w[q + x] = iw + x * SW;
                inside[q + x] = iw + x * SW >= low & iw + x * SW < high;
% endif
            }
            q += some;
            ow += some;
            if (ow == OW) { ow = 0; if (++oh == OH) { oh = 0; if (++od == OD) { od = 0; n++; } } }
        }
% endif
        for (int q = count; q % ${MR}; q++) {                // places past the last pixel repeat it
            base[q] = base[count - 1];
% if MASKED:
            z[q] = z[count - 1];
            h[q] = h[count - 1];
            w[q] = w[count - 1];
            inside[q] = inside[count - 1];
% endif
        }
        for (int i = 0; i < count; i += ${MR}) {
            __global ${A}* keep = kept + (p0 - p_begin + i) * ${NR};
% for r in range(MR):
            __global const ${A}* a${r} = G + base[i + ${r}];
% endfor
            for (int q = 0; q < rows; q++) FETCH(out + q * rcs + place[i]);     // else every line of the result would be waited for
            ${V} ${", ".join(f"c{r}_{j} = 0" for r in range(MR) for j in range(NV))};
            if (!first) {
% for r in range(MR):
                ${" ".join(f"c{r}_{j} = vload{W}({r * NV + j}, keep);" for j in range(NV))}
% endfor
            }
% if MASKED:
            const bool all_inside = ${" && ".join(f"inside[i + {r}]" for r in range(MR))};
            const int${L} iz = vload${L}(0, z + i), ih = vload${L}(0, h + i), iw = vload${L}(0, w + i), from = vload${L}(0, base + i);
            for (int t = t0; t < t1;) {
                int u = t1;
                int${L} met = -1;
                if (!all_inside) {
                    met = as_int${L}(as_uint${L}(iz + tap[3 * t]) < (uint${L})(uint)ID & as_uint${L}(ih + tap[3 * t + 1]) < (uint${L})(uint)IH
                                     & as_uint${L}(iw + tap[3 * t + 2]) < (uint${L})(uint)IW);
                    if (!any(met & ${tiled})) { t++; continue; }
                    u = all(met | ~${tiled}) ? t + 1 : 0;
                }
                if (u == 0) { ${masked()} t++; continue; }
                ${steps("t", "u")}
                t = u;
            }
% else:
            { ${steps("t0", "t1")} }
% endif
            if (last${' && second' if PAIR else ''}) {
% for r in range(MR):
                ${" ".join(f"sums[(i + {r}) * {NV} + {j}] = c{r}_{j};" for j in range(NV))}
% endfor
            } else {
% for r in range(MR):
                ${" ".join(f"vstore{W}(c{r}_{j}, {r * NV + j}, keep);" for j in range(NV))}
% endfor
            }
        }
        if (last${' && second' if PAIR else ''})
            for (int m = 0; m < count; m += ${W}) {
                const int more = min(${W}, count - m);
                const bool dense = more == ${W} && place[m + ${W - 1}] - place[m] == ${(W - 1) * (2 if PAIR else 1)};
                int from[${W}], length[${W}], runs = 0;      // pixels that follow each other in the output
                for (int q = 0; q < more;) {
                    int n_run = 1;
                    while (q + n_run < more && place[m + q + n_run] - place[m + q + n_run - 1] == ${2 if PAIR else "(int)y.s9"}) n_run++;
                    from[runs] = q;
                    length[runs++] = n_run;
                    q += n_run;
                }
                for (int j = 0; j < ${NV}; j++) {
                    const int left = (int)clamp(M - o0 - j * ${W}, 0L, ${W}L);
                    ${V} e[${W}];
                    {
% for q in range(W):
                        ${V} t${q} = sums[(m + ${q}) * ${NV} + j];
% endfor
                        ${vec.transpose(V, W, "t")}
                        ${" ".join(f"e[{q}] = t{q};" for q in range(W))}
                    }
% if PAIR:
                    ${V} before[${W}];
                    {
                        __global const ${A}* keep = kept - PB * ${NR} + (p0 - p_begin + m) * ${NR} + j * ${W};
% for q in range(W):
                        ${V} t${q} = vload${W}(${q * NV}, keep);
% endfor
                        ${vec.transpose(V, W, "t")}
                        ${" ".join(f"before[{q}] = t{q};" for q in range(W))}
                    }
% endif
                    for (int q = 0; q < left; q++) {
                        __global ${A}* o = out + (j * ${W} + q) * rcs;
% if BIAS or EPI:
                        const long row = o0 + j * ${W} + q;
                        { ${V} v = e[q]; ${runs.finish(V, T, BIAS, EPI)} e[q] = v; }
% if PAIR:
                        { ${V} v = before[q]; ${runs.finish(V, T, BIAS, EPI)} before[q] = v; }
% endif
% endif
% if PAIR:
<% lane = "0123456789abcdef" %>\
                        ${V} both[2];
                        both[0] = (${V})(${", ".join(f"before[q].s{lane[x]}, e[q].s{lane[x]}" for x in range(W // 2))});
                        both[1] = (${V})(${", ".join(f"before[q].s{lane[x]}, e[q].s{lane[x]}" for x in range(W // 2, W))});
                        o--;
                        if (dense) { vstore${W}(both[0], 0, o + place[m]); vstore${W}(both[1], 1, o + place[m]); }
                        else for (int r = 0; r < runs; r++) clnn_put(o + place[m + from[r]], (const ${A}*)both + 2 * from[r], 2 * length[r], 1);
% else:
                        if (dense) vstore${W}(e[q], 0, o + place[m]);
                        else if (runs == more) {
                            const ${A}* v = (const ${A}*)(e + q);
                            for (int x = 0; x < more; x++) o[place[m + x]] = v[x];
                        } else for (int r = 0; r < runs; r++) clnn_put(o + place[m + from[r]], (const ${A}*)(e + q) + from[r], length[r], y.s9);
% endif
                    }
                }
            }
    }
    first = false;
    t0 = t1;
    } while (!last);
    }
}
<%def name="steps(begin, end)">
                const long kc = (${end} - ${begin}) * C;
                __global const int* at = table + ${begin} * C;
                __global const ${A}* b = weights + ${begin} * C * ${NR};
                ${tile.walk(range(MR), range(NV), V, lambda r: f"a{r}[at[k]]", lambda j: f"vload{W}({j}, b)", f"b += {NR};", None, 4)}
</%def>
<%def name="masked()">
                    int mask[${L}], offset[${L}];           // an element that the tap does not meet is one of the image all the same, taken as zero
                    vstore${L}(met, 0, mask);
                    vstore${L}((from + table[t * C]) & met, 0, offset);
                    __global const ${A}* b = weights + t * C * ${NR};
% for r in range(MR):
                    __global const ${A}* s${r} = G + offset[${r}];
                    const ${I} m${r} = mask[${r}];
% endfor
                    for (long c = 0, k = 0; c < C; c++, k += plane, b += ${NR}) {
% for j in range(NV):
                        const ${V} b${j} = vload${W}(${j}, b);
% endfor
% for r in range(MR):
                        { const ${V} x = (${V})(as_${A}(as_${I}(s${r}[k]) & m${r})); ${" ".join(f"c{r}_{j} = MAC(x, b{j}, c{r}_{j});" for j in range(NV))} }
% endfor
                    }
</%def>
