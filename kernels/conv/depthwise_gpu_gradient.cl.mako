<%inherit file="/base.cl.mako"/>\
## Weight gradient of a depthwise convolution on a GPU: dW[o, tap] = sum over images and places of dY[n, o, place] * X[n, o / mult, place at tap].
##
## X (N, O / mult, ID, IH, IW), dY (N, O, OD, OH, OW), P (splits, O, taps) in the compute type: partial sums, which conv/depthwise_gpu_sum adds up; or, with one
## split, dW (O, taps). Geometry: global (O * KD * KH / TROWS * G, splits), local (G, 1): a group sums one channel, and TROWS rows of its taps, over one
## share of the (image, depth, ROWS rows, column) there are; each item takes every G-th of these, with a sum per tap.
##
## Parameter  legal values
## T          dtype row; TO: that of the result
## G          a power of two; SEGMENTS: sums per tap of the first step in local memory, a divisor of G; CHUNK: taps in local memory at a time
## K S D P    taps, stride, dilation and zeros before, (d, h, w) each; D[1] and S[1] are known here, so that rows of X are shared
## FLAT       as in conv/depthwise_gpu
## ROWS       rows of dY that an item takes together, RAGGED: OH is no multiple of that; TROWS: a divisor of K[1]
## limits: as conv/depthwise_gpu, and less than 2^31 work-items' worth of shares
<%
    ACC = T.acc
    BLOCKS = K[1] // TROWS
    TAPS = TROWS * K[2]
    ys = sorted({r * S[1] + t * D[1] for r in range(ROWS) for t in range(TROWS)})
%>\
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void conv_depthwise_gpu_gradient(IN(${T.c}, X), IN(${T.c}, dY), OUT(${TO.c}, dW), const long16 d, const long8 e) {
    __local ${ACC} part[${CHUNK * (G + SEGMENTS)}];
    __local ${ACC} sums[${CHUNK * SEGMENTS}];
    const int ID = d.s0, IH = d.s1, IW = d.s2, OD = d.s3, OH = d.s4, OW = d.s5, down = d.s6, mult = d.s7, O = d.s8, lid = get_local_id(0);
    const uint all = d.s9, share = d.sa;
    const int step_x = e.s0, step_y = e.s1, step_z = e.s2;      // G places on: columns, rows of blocks and what lies above them
    const uint group = (get_global_id(0) - lid) / ${G}, split = get_global_id(1);
    const uint kh0 = group % ${BLOCKS} * ${TROWS}, kd = group / ${BLOCKS} % ${K[0]}, o = group / ${BLOCKS * K[0]};
    const long plane = (long)ID * IH * IW, out_plane = (long)OD * OH * OW;
    const uint end = min(all, (split + 1) * share);
    uint at = split * share + lid;
    int x = at % OW, y = at / OW % down, z = at / OW / down;
% for t in range(TAPS):
    ${ACC} t${t} = 0;
% endfor
    for (; at < end; at += ${G}) {
        const long n = ${"z" if FLAT else "z / OD"};
        const int od = ${"0" if FLAT else "z - (int)n * OD"};
        const int iz = od * ${S[0]} + (int)kd * ${D[0]} - ${P[0]}, left = x * ${S[2]} - ${P[2]}, top = y * ${ROWS * S[1]} + (int)kh0 * ${D[1]} - ${P[1]};
        const bool deep = (uint)iz < (uint)ID;
        __global const ${T.c}* restrict g = dY_p + dY_o + (n * O + o) * out_plane + (od * OH + y * ${ROWS}) * OW + x;
        __global const ${T.c}* restrict src = X_p + X_o + (n * (O / mult) + o / mult) * plane + (deep ? iz * IH * IW : 0);
% for r in range(ROWS):
% if r and RAGGED:
        const bool out${r} = y * ${ROWS} + ${r} < OH;
        const ${ACC} g${r} = out${r} ? ${T.load}(g, ${r} * OW) : 0;
% else:
        const ${ACC} g${r} = ${T.load}(g, ${r} * OW);
% endif
% endfor
% for tw in range(K[2]):
        const bool in${tw} = (uint)(left + ${tw * D[2]}) < (uint)IW;
% endfor
% for iy in ys:
        {   const bool in = deep && (uint)(top + ${iy}) < (uint)IH;
            __global const ${T.c}* restrict p = src + (long)((top + ${iy}) * IW + left);
% for tw in range(K[2]):
            { const ${ACC} v = in && in${tw} ? ${T.load}(p, ${tw * D[2]}) : 0;
% for r in range(ROWS):
% for th in range(TROWS):
% if r * S[1] + th * D[1] == iy:
              t${th * K[2] + tw} = fma(g${r}, ${f"out{r} ? v : 0" if r and RAGGED else "v"}, t${th * K[2] + tw});
% endif
% endfor
% endfor
            }
% endfor
        }
% endfor
        x += step_x;
        y += step_y;
        z += step_z;
        if (x >= OW) { x -= OW; y++; }
        if (y >= down) { y -= down; z++; }
    }
    __global ${TO.c}* restrict out = dW_p + dW_o + ((long)split * O + o) * ${K[0] * K[1] * K[2]} + (kd * ${K[1]} + kh0) * ${K[2]};
% for first in range(0, TAPS, CHUNK):
<% taps = range(first, min(first + CHUNK, TAPS)) %>\
% if first:
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
% for t in taps:
    part[${(t - first) * (G + SEGMENTS)} + lid] = t${t};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int q = lid; q < ${len(taps) * SEGMENTS}; q += ${G}) {
        __local const ${ACC}* l = part + q / ${SEGMENTS} * ${G + SEGMENTS} + q % ${SEGMENTS};
        ${ACC} sum = 0;
        for (int j = 0; j < ${G}; j += ${SEGMENTS}) sum += l[j];
        sums[q] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int q = lid; q < ${len(taps)}; q += ${G}) {
        ${ACC} sum = 0;
        for (int j = 0; j < ${SEGMENTS}; j++) sum += sums[q * ${SEGMENTS} + j];
        ${TO.store}(out, ${first} + q, sum);
    }
% endfor
}
