<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Sliding blocks of images as columns, and the sum of columns back into images (its transpose), both gathered.
##
## image (planes, IH, IW), columns (planes, KH * KW, LH * LW), contiguous; block (a, b) takes the rows a * SH - PH + kh * DH and likewise the
## elements b * SW - PW + kw * DW of them.
## Geometry: BACK 0: global (LW, planes * KH * KW * LH) over the columns; BACK 1: global (IW, planes * IH) over the image. With LOOP instead
## (1, rows / chunk), local size 1: a work-item takes `chunk` of these rows, in vectors where the blocks' stride SW is one.
##
## Parameter  legal values
## T          dtype row of both; with BACK 0 any C type of the element's width
## BACK       0: image x to columns y | 1: columns x to image y
## LOOP       bool: the form for CPUs
## ONE        bool: SW is 1 (LOOP only)
<%
    C = T.c if BACK else T
    W = 8 if BACK and T.acc == "double" else 16
%>\
% if BACK and LOOP:
${vec.vector_io(T, W)}
% endif
__kernel void fold(IN(${C}, x), OUT(${C}, y), const long rows, const long IH, const long IW, const long LH, const long LW, const long KH,
                   const long KW, const long SH, const long SW, const long PH, const long PW, const long DH, const long DW, const long chunk) {
    PTR_IN(${C}, x);
    PTR_OUT(${C}, y);
% if LOOP:
    const long end = min(rows, (long)(get_global_id(1) + 1) * chunk);
    for (long row = get_global_id(1) * chunk; row < end; row++) {
% if BACK:
        const long h = row % IH, plane = row / IH;
        for (long w0 = 0; w0 < IW; w0 += 64) {
            const int m = (int)min(64L, IW - w0);
            ${T.acc} sum[64];
            for (int w = 0; w < 64; w++) sum[w] = 0;
            for (long kh = 0; kh < KH; kh++) {
                const long up = h + PH - kh * DH, a = up / SH;
                if (up < 0 || a >= LH || a * SH != up) continue;
                for (long kw = 0; kw < KW; kw++) {
                    const long left = w0 + PW - kw * DW;
                    __global const ${C}* from = x + ((plane * KH * KW + kh * KW + kw) * LH + a) * LW;
% if ONE:
                    const int lo = (int)clamp(-left, 0L, (long)m), hi = (int)clamp(LW - left, (long)lo, (long)m);
                    int w = lo;
                    for (; w + ${W} <= hi; w += ${W})
                        vstore${W}(vload${W}(0, sum + w) + ldv_${T.name}(from + left + w), 0, sum + w);
                    for (; w < hi; w++) sum[w] += ${T.load}(from, left + w);
% else:
                    const long b1 = left + m > 0 ? min(LW, (left + m - 1) / SW + 1) : 0;
                    for (long b = (max(left, 0L) + SW - 1) / SW; b < b1; b++) sum[b * SW - left] += ${T.load}(from, b);
% endif
                }
            }
            for (int w = 0; w < m; w++) ${T.store}(y, row * IW + w0 + w, sum[w]);
        }
% else:
        const long a = row % LH, tap = row / LH % (KH * KW), plane = row / (LH * KH * KW);
        const long h = a * SH - PH + tap / KW * DH, left = tap % KW * DW - PW;
        const int there = h >= 0 && h < IH;
        __global const ${C}* from = x + (plane * IH + clamp(h, 0L, IH - 1)) * IW + left;
        __global ${C}* to = y + row * LW;
        const long lo = there ? min(LW, (max(-left, 0L) + SW - 1) / SW) : LW, hi = max(lo, min(LW, (IW - left + SW - 1) / SW));
        long b = 0;
        for (; b < lo; b++) to[b] = 0;
% if ONE:
        for (; b + ${W} <= hi; b += ${W}) vstore${W}(vload${W}(0, from + b), 0, to + b);
% endif
        for (; b < hi; b++) to[b] = from[b * SW];
        for (; b < LW; b++) to[b] = 0;
% endif
    }
% else:
    const long last = get_global_id(0), row = get_global_id(1);
    if (row >= rows) return;
% if BACK:
    if (last >= IW) return;
    const long h = row % IH, plane = row / IH;
    ${T.acc} sum = 0;
    for (long kh = 0; kh < KH; kh++) {
        const long up = h + PH - kh * DH, a = up / SH;
        if (up < 0 || a >= LH || a * SH != up) continue;
        for (long kw = 0; kw < KW; kw++) {
            const long left = last + PW - kw * DW, b = left / SW;
            if (left < 0 || b >= LW || b * SW != left) continue;
            sum += ${T.load}(x, ((plane * KH * KW + kh * KW + kw) * LH + a) * LW + b);
        }
    }
    ${T.store}(y, row * IW + last, sum);
% else:
    if (last >= LW) return;
    const long a = row % LH, tap = row / LH % (KH * KW), plane = row / (LH * KH * KW);
    const long h = a * SH - PH + tap / KW * DH, w = last * SW - PW + tap % KW * DW;
    const int valid = h >= 0 && h < IH && w >= 0 && w < IW;
    const ${C} v = x[plane * IH * IW + clamp(h, 0L, IH - 1) * IW + clamp(w, 0L, IW - 1)];
    y[row * LW + last] = valid ? v : 0;
% endif
% endif
}
