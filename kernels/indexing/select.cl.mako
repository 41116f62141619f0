<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, n, :] = x[b, index[n], :]: whole rows by number, whatever their dtype.
##
## x (B, D, R) with `pitch` elements from one row to the next, R unless B is 1; index (N) and out (B, N, R) contiguous. Out-of-range indices report
## through err and read row 0.
## Geometry: LOOP global (ceil(N / chunk), B), one work-item copies chunk rows;
##           WIDE global (R, ceil(N / E), B), local (any, any, 1), each work-item copies one column of E rows a group apart;
##           else global (ceil(N * R / E), B), local (any, 1), likewise E elements.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong ulong2
## TI         dtype row of the index
## WRAP       bool: negative indices count from the end
## LOOP WIDE  bool
## E          1 2 4 8, 1 where LOOP: rows, or elements, whose indices are read together and then what they mean
${ix.row(WRAP)}
% if LOOP:
${ix.pick(U, TI, WRAP)}
${ix.move(U)}
% endif
__kernel void index_rows(IN(${U}, x), IN(${TI.c}, index), OUT(${U}, out), const long D, const long N, const long R, const long chunk,
                         const long pitch, __global int* err, const int code) {
    PTR_IN(${U}, x); PTR_IN(${TI.c}, index); PTR_OUT(${U}, out);
% if LOOP:
    const long b = get_global_id(1), n0 = get_global_id(0) * chunk, n1 = min(N, n0 + chunk);
    if (R == 1 && pitch == 1) {
        clnn_pick(out + b * N + n0, x + b * D, index + n0, n1 - n0, D, 1, 0, err, code);
        return;
    }
    for (long n = n0; n < n1; n++) {
        const long row = clnn_row(index[n], D, err, code);
        clnn_move(out + (b * N + n) * R, x + (b * D + row) * pitch, R);
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
    ${TI.c} v[${E}];
    long row[${E}];
    ${U} got[${E}];
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
        const long n = min(n0 + e * high, count - 1);
        v[e] = index[${"n" if WIDE else "R == 1 ? n : n / R"}];
    }
#pragma unroll
    for (int e = 0; e < ${E}; e++) row[e] = clnn_row(v[e], D, err, code);
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
        const long n = min(n0 + e * high, count - 1);
        got[e] = x[(b * D + row[e]) * pitch + ${"r" if WIDE else "(R == 1 ? 0 : n % R)"}];
    }
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
        const long n = n0 + e * high;
        if (n < count) out[${"(b * N + n) * R + r" if WIDE else "b * count + n"}] = got[e];
    }
% endif
}
