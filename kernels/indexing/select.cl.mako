<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[b, n, :] = x[b, index[n], :]: whole rows by number, whatever their dtype.
##
## x (B, D, R), index (N), out (B, N, R), all contiguous. Out-of-range indices report through err and read row 0.
## Geometry: LOOP global (ceil(N / chunk), B), one work-item copies chunk rows;
##           WIDE global (R, N, B); else global (N * R, B). Any local size.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong ulong2
## TI         dtype row of the index
## WRAP       bool: negative indices count from the end
## LOOP WIDE  bool
${ix.row(WRAP)}
% if LOOP:
${ix.pick(U, TI, WRAP)}
${ix.move(U)}
% endif
__kernel void index_rows(IN(${U}, x), IN(${TI.c}, index), OUT(${U}, out), const long D, const long N, const long R, const long chunk,
                         __global int* err, const int code) {
    PTR_IN(${U}, x); PTR_IN(${TI.c}, index); PTR_OUT(${U}, out);
% if LOOP:
    const long b = get_global_id(1), n0 = get_global_id(0) * chunk, n1 = min(N, n0 + chunk);
    if (R == 1) {
        clnn_pick(out + b * N + n0, x + b * D, index + n0, n1 - n0, D, 1, 0, err, code);
        return;
    }
    for (long n = n0; n < n1; n++) {
        const long row = clnn_row(index[n], D, err, code);
        clnn_move(out + (b * N + n) * R, x + (b * D + row) * R, R);
    }
% elif WIDE:
    const long r = get_global_id(0), n = get_global_id(1), b = get_global_id(2);
    if (r >= R) return;
    out[(b * N + n) * R + r] = x[(b * D + clnn_row(index[n], D, err, code)) * R + r];
% else:
    const long i = get_global_id(0), b = get_global_id(1);
    if (i >= N * R) return;
    const long n = R == 1 ? i : i / R;
    out[b * N * R + i] = x[(b * D + clnn_row(index[n], D, err, code)) * R + (i - n * R)];
% endif
}
