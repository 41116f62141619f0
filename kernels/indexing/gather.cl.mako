<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, n, r] = x[b, index[b, n, r], r]: one index per element, whatever the dtype.
##
## x (B, D, R), index and out (B, N, R), all contiguous. Out-of-range indices report through err and read row 0.
## Geometry: LOOP global (ceil(B * N / chunk), ceil(R / wide)), one work-item does wide columns of chunk rows of R;
##           WIDE global (R, ceil(N / E), B), local (any, any, 1), each work-item does one column of E rows a group apart;
##           else global (ceil(N * R / E), B), local (any, 1), likewise E elements.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong
## TI         dtype row of the index
## WRAP LOOP WIDE  bool
## E          1 2 4 8, 1 where LOOP: elements whose indices are read together and then what they mean
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
% if WIDE:
    const long r = get_global_id(0), ly = get_local_id(1), high = get_local_size(1), b = get_global_id(2), n0 = (get_global_id(1) - ly) * ${E} + ly;
    if (r >= R) return;
% else:
    const long lx = get_local_id(0), high = get_local_size(0), b = get_global_id(1), n0 = (get_global_id(0) - lx) * ${E} + lx;
% endif
    const long count = ${"N" if WIDE else "N * R"};
    if (n0 >= count) return;
<% at = "(b * N + n) * R + r" if WIDE else "b * count + n" %>\
    ${TI.c} v[${E}];
    long row[${E}];
    ${U} got[${E}];
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
        const long n = min(n0 + e * high, count - 1);
        v[e] = index[${at}];
    }
#pragma unroll
    for (int e = 0; e < ${E}; e++) row[e] = clnn_row(v[e], D, err, code);
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
% if not WIDE:
        const long n = min(n0 + e * high, count - 1), r = R == 1 ? 0 : n % R;
% endif
        got[e] = x[(b * D + row[e]) * R + r];
    }
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
        const long n = n0 + e * high;
        if (n < count) out[${at}] = got[e];
    }
% endif
}
