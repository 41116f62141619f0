<%inherit file="/base.cl.mako"/>\
## Sliding blocks of images as columns, and the sum of columns back into images (its transpose), both gathered.
##
## image (planes, IH, IW), columns (planes, KH * KW, LH * LW), contiguous; block (a, b) takes the rows a * SH - PH + kh * DH and likewise the
## elements b * SW - PW + kw * DW of them.
## Geometry: BACK 0: global (LW, planes * KH * KW * LH) over the columns; BACK 1: global (IW, planes * IH) over the image.
##
## Parameter  legal values
## T          dtype row of both; with BACK 0 any C type of the element's width
## BACK       0: image x to columns y | 1: columns x to image y
<% C = T.c if BACK else T %>\
__kernel void fold(IN(${C}, x), OUT(${C}, y), const long rows, const long IH, const long IW, const long LH, const long LW, const long KH,
                   const long KW, const long SH, const long SW, const long PH, const long PW, const long DH, const long DW) {
    PTR_IN(${C}, x);
    PTR_OUT(${C}, y);
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
}
