<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, n, r] = x[b, index[b, n, r], r]: one index per element, whatever the dtype.
##
## x (B, D, R), index and out (B, N, R), all contiguous. Out-of-range indices report through err and read row 0.
## Geometry: LOOP global (ceil(B * N / chunk), ceil(R / wide)), one work-item does wide columns of chunk rows of R; else global (N * R, B). Any local size.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong
## TI         dtype row of the index
## WRAP LOOP  bool
${ix.row(WRAP)}
% if LOOP:
${ix.pick(U, TI, WRAP)}
% endif
__kernel void gather(IN(${U}, x), IN(${TI.c}, index), OUT(${U}, out), const long B, const long D, const long N, const long R,
                     const long chunk, const long wide, __global int* err, const int code) {
    PTR_IN(${U}, x); PTR_IN(${TI.c}, index); PTR_OUT(${U}, out);
% if LOOP:
    const long first = get_global_id(0) * chunk, last = min(B * N, first + chunk);
    if (first >= last) return;
    if (N == 1 && R == 1) {
        clnn_pick(out + first, x + first * D, index + first, last - first, D, 1, D, err, code);
        return;
    }
    const long left = get_global_id(1) * wide, columns = min(wide, R - left);
    long b = first / N, n = first - b * N;
    for (long row = first; row < last; b++, n = 0) {
        const long m = min(last - row, N - n);      /* the rest of this b, as far as the work-item goes */
        if (R == 1) clnn_pick(out + row, x + b * D, index + row, m, D, 1, 0, err, code);
        else for (long q = row; q < row + m; q++) clnn_pick(out + q * R + left, x + b * D * R + left, index + q * R + left, columns, D, R, 1, err, code);
        row += m;
    }
% else:
    const long i = get_global_id(0), b = get_global_id(1);
    if (i >= N * R) return;
    const long r = R == 1 ? 0 : i % R, at = b * N * R + i;
    out[at] = x[(b * D + clnn_row(index[at], D, err, code)) * R + r];
% endif
}
