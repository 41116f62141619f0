## A band of padded input rows in local memory, for depthwise convolutions: plain text in the caller's scope.
##
## def            emits
## sizes(KH)      rows, first, skip and wide of the band, which is zeroed; expects d's IH IW OH OW SH ph pw dh dw band pitch
## fill(T, W)     loads the rows that output rows y0.. read; expects src, the plane of the image, and x_end, the end of all of them
<%def name="sizes(KH)">
    const int IH = d.s0, IW = d.s1, OH = d.s2, OW = d.s3, SH = d.s6, ph = d.s7, pw = d.s8, dh = d.s9, dw = d.sa, band = d.sb, pitch = d.sc;
    const int rows = (band - 1) * SH + (${KH} - 1) * dh + 1, first = max(pw, 0), skip = max(-pw, 0), wide = clamp(IW - skip, 0, pitch - first);
    for (int q = 0; q < rows * pitch; q++) slab[q] = 0;
</%def>
<%def name="fill(T, W)">
<% I = f"{'long' if T.acc == 'double' else 'int'}{W}" %>\
        for (int r = 0; r < rows; r++) {
            const int ih = y0 * SH - ph + r;
            __local ${T.acc}* l = slab + r * pitch + first;
            if (ih < 0 || ih >= IH) { for (int q = 0; q < wide; q++) l[q] = 0; continue; }
            __global const ${T.c}* s = src + ih * IW + skip;
            int q = 0;
            for (; q + ${W} <= wide; q += ${W}) vstore${W}(ldv_${T.name}(s + q), 0, l + q);
            if (q < wide && wide >= ${W}) vstore${W}(ldv_${T.name}(s + wide - ${W}), 0, l + wide - ${W});
            else if (q < wide && s + ${W} <= x_end)
                vstore${W}(select((${T.acc}${W})0, ldv_${T.name}(s), (${I})(${", ".join(map(str, range(W)))}) < (${I})wide), 0, l);
            else for (; q < wide; q++) l[q] = ${T.load}(s, q);
        }
</%def>
<%def name="pixels(p, V, W, STRIDE)">\
% if STRIDE == 1:
vload${W}(0, ${p})\
% else:
(${V})(vload${W}(0, ${p}).even, vload${W}(1, ${p}).even)\
% endif
</%def>
