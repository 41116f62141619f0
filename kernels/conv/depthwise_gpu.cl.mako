<%inherit file="/base.cl.mako"/>\
## Depthwise convolution on a GPU in one to three dimensions, and its input gradient with any stride, straight from the image: memory decides their speed.
##
## X (N, CX, ID, IH, IW), k (KD * KH * KW taps per channel), Y (N, O, OD, OH, OW). Output channel o adds up what SOURCES channels of X, from
## o / MULT * SOURCES on, give with the taps of channels o * SOURCES.. of k: forward that is one channel, for a gradient those that o was multiplied to.
## Forward, place y meets tap t at y * stride + t * dilation - before of X; a gradient's at (y + before - t * dilation) / stride, where that is whole.
## Geometry: global (items, N), local (G, 1). An item owns ROWS rows of COLS neighbouring columns, its neighbour the next columns: so they read and write
## memory side by side, what a row of X gives to several rows of Y is read once, and which taps meet is known when the kernel is built.
##
## Parameter  legal values
## T          dtype row; G: work-items of a group
## FORWARD    False: the input gradient
## K S D P    taps, stride, dilation and zeros before, (d, h, w) each
## MULT SOURCES  see above; one of them is 1
## ROWS COLS  outputs of an item: COLS is 1, for a gradient S[2], of which ROWS is a multiple of S[1] there
## FLAT       True: no depth (ID, OD, K[0] and S[0] are 1, P[0] is 0)
## LOOP       True: a loop over the rows of taps, of which there are many; ROWS is 1 then
## BIAS       True: one value per output channel; EPI: as in matmul/tile
## limits: an image of X and one of Y have less than 2^31 elements
<%
    ACC = T.acc
    TAPS = K[0] * K[1] * K[2]

    def met(axis, places, taps):
        """(output, tap, place in X relative to that of the item) of all that meet."""
        found = []
        for r in range(places):
            for t in taps:
                at = r * S[axis] + t * D[axis] if FORWARD else r + P[axis] - t * D[axis]
                if FORWARD or at % S[axis] == 0:
                    found.append((r, t, at if FORWARD else at // S[axis]))
        return found

    def quotient(n, at):
        """n / d by a product: the factor and the shift are two halves of a word (``magic`` in clnn/ops/_conv_depthwise.py)."""
        return f"mul_hi({n} << 1, (uint)d.{at}) >> (uint)(d.{at} >> 32)"

    rows = [(0, 0, 0)] if LOOP else met(1, ROWS, range(K[1]))
    cols = met(2, COLS, range(K[2]))
    xs = sorted({x for _, _, x in cols})
    ys = sorted({y for _, _, y in rows})
    used = sorted({(th, tw) for _, th, _ in rows for _, tw, _ in cols})
    start = lambda axis, block, size: f"{block} * {size * S[axis]} - {P[axis]}" if FORWARD else f"{block} * {size // S[axis]}"
%>\
__kernel __attribute__((reqd_work_group_size(${G}, 1, 1)))
void conv_depthwise_gpu(IN(${T.c}, X), IN(${T.c}, k), OUT(${T.c}, Y), IN(${T.c}, bias), const long16 d) {
    const int ID = d.s0, IH = d.s1, IW = d.s2, OD = d.s3, OH = d.s4, OW = d.s5;
    const uint across = d.s6, down = d.s8, items = d.sa, item = get_global_id(0);
    const long n = get_global_id(1), plane = (long)ID * IH * IW;
    if (item >= items) return;
    const uint band = ${quotient("item", "s7")}, above = ${quotient("band", "s9")};
    const int column = item - band * across, block = band - above * down, ${"o = above, od = 0" if FLAT else "o = above / (uint)OD, od = above - o * OD"};
    __global const ${T.c}* restrict w = k_p + k_o + (long)o * ${SOURCES * TAPS};
    const int left = ${start(2, "column", COLS)}, top = ${"0" if LOOP else start(1, "block", ROWS)};
% for j, x in enumerate(xs):
    const bool in${j} = (uint)(left + ${x}) < (uint)IW;
% endfor
% for r in range(ROWS):
    ${ACC} ${", ".join(f"v{r}_{c} = 0" for c in range(COLS))};
% endfor
    __global const ${T.c}* restrict image = X_p + X_o + n * d.sb + (long)(o / ${MULT} * ${SOURCES}) * plane;
    for (int m = 0; m < ${SOURCES}; m++, image += plane, w += ${TAPS}) {
% if FLAT:
        { __global const ${T.c}* restrict src = image; __global const ${T.c}* restrict wd = w; const bool deep = true;
% else:
        for (int kd = 0; kd < ${K[0]}; kd++) {
            ${along("z", 0, "od", "kd", "ID")}
            const bool deep = (uint)z < (uint)ID;
            __global const ${T.c}* restrict src = image + (deep ? z * IH * IW : 0);
            __global const ${T.c}* restrict wd = w + kd * ${K[1] * K[2]};
% endif
% if LOOP:
            for (int kh = 0; kh < ${K[1]}; kh++) {
            ${along("y1", 1, "block", "kh", "IH")}
% else:
            { const int y1 = top;
% endif
% for th, tw in used:
            const ${ACC} w${th}_${tw} = ${T.load}(wd, ${f"kh * {K[2]} + {tw}" if LOOP else th * K[2] + tw});
% endfor
% for y in ys:
            {   const bool in = deep && (uint)(y1 + ${y}) < (uint)IH;
                __global const ${T.c}* restrict p = src + (long)((y1 + ${y}) * IW + left);
% for j, x in enumerate(xs):
                { const ${ACC} x = in && in${j} ? ${T.load}(p, ${x}) : 0;
% for r, th, ry in rows:
% for c, tw, cx in cols:
% if ry == y and cx == x:
                  v${r}_${c} = fma(w${th}_${tw}, x, v${r}_${c});
% endif
% endfor
% endfor
                }
% endfor
            }
% endfor
            }
        }
    }
    __global ${T.c}* restrict out = Y_p + Y_o + n * d.sc + (o * OD + od) * OH * OW;
% if BIAS:
    const ${ACC} b = ${T.load}(bias_p + bias_o, o);
% endif
% for r in range(ROWS):
% for c in range(COLS):
    {   const int y = block * ${ROWS} + ${r}, x = column * ${COLS} + ${c};
        ${ACC} v = v${r}_${c}${" + b" if BIAS else ""};
% if EPI:
        v = ${EPI.replace("VT", ACC)};
% endif
        if (y < OH${" && x < OW" if COLS > 1 else ""}) ${T.store}(out, y * OW + x, v); }
% endfor
% endfor
}
<%def name="along(name, axis, at, tap, size)">
## The place that a tap of a loop meets, or the next tap where it meets none.
% if FORWARD:
            const int ${name} = ${at} * ${S[axis]} + ${tap} * ${D[axis]} - ${P[axis]};
% elif S[axis] == 1:
            const int ${name} = ${at} + ${P[axis]} - ${tap} * ${D[axis]};
% else:
            const int ${name}_s = ${at} + ${P[axis]} - ${tap} * ${D[axis]}, ${name} = ${name}_s >= 0 ? ${name}_s / ${S[axis]} : -1;
            if (${name}_s >= 0 && ${name} * ${S[axis]} != ${name}_s) continue;
% endif
</%def>
