<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## out[r, :] = sum over the stored elements k of row r of value[place[k]] * dense[column[k], :], in their order: compressed rows times a dense matrix.
##
## start (R + 1), column (nnz), place (nnz), value (nnz), out (R, N), all contiguous; dense (K, >= N) with rows `pitch` apart.
## Geometry: LOOP global (items), local 1: a work-item takes neighbouring rows, chosen so that all have about as many rows and elements together;
##           else global (N, R), any local size.
##
## Parameter  legal values
## T          dtype row of value, dense and out
## TI         dtype row of start, column and place: int32, int64
## PLACED     bool: value k is at place[k], not at k
## LOOP       bool
## W          LOOP: lanes of a vector, 1 2 4 8 16. With N < W dense has W columns or more, of which N count
## complex    W == 1
##
## Limits: a column that is out of range is reported through err and reads row 0; rows that are show in start, which must go from 0 to nnz.
<%
    ACC = T.acc
    V = f"{ACC}{W}" if W > 1 else ACC
    value = f"{T.load}(value, {'place[k]' if PLACED else 'k'})"
%>\
% if T.is_complex:
#define MAC(a, b, c) ((c) + clnn_c_mul_${"d" if ACC == "double2" else "f"}(a, b))
% elif T.is_floating_point:
#define MAC(a, b, c) fma(a, b, c)
% else:
#define MAC(a, b, c) ((a) * (b) + (c))
% endif
static inline long sparse_row(long c, long K, __global int* err, int code) {
    if ((ulong)c < (ulong)K) return c;
    CLNN_FAIL(err, code, c);
    return 0;
}
% if LOOP and W > 1:
${vec.vector_io(T, W)}
% endif
% if LOOP:
<%def name="block(count)">
        {
% for i in range(count):
            ${V} s${i} = 0;
% endfor
            for (long k = begin; k < end; k++) {
                const ${V} v = (${V})(${value});
                __global const ${T.c}* p = dense + sparse_row(column[k], K, err, code) * pitch + j;
% if count > 1:
                __global const ${T.c}* ahead = dense + (long)column[min(k + 6, last)] * pitch + j;
% for i in range(0, count * W * T.itemsize, 64):
                FETCH((__global const char*)ahead + ${i});
% endfor
% endif
% for i in range(count):
                s${i} = MAC(v, ldv_${T.name}(p + ${i * W}), s${i});
% endfor
            }
% for i in range(count):
            stv_${T.name}(to + j + ${i * W}, s${i});
% endfor
        }
</%def>
/* The first row r for which r and the elements before it are at least `work`. */
static inline long sparse_rows_split(__global const ${TI.c}* start, long R, long work) {
    long low = 0, high = R;
    while (low < high) {
        const long r = (low + high) / 2;
        if (r + (long)start[r] < work) low = r + 1;
        else high = r;
    }
    return low;
}
% endif
__kernel void sparse_rows(IN(${TI.c}, start), IN(${TI.c}, column), IN(${TI.c}, place), IN(${T.c}, value), IN(${T.c}, dense), OUT(${T.c}, out),
                          const long R, const long K, const long N, const long pitch, const long nnz, const long items,
                          __global int* err, const int code) {
    PTR_IN(${TI.c}, start); PTR_IN(${TI.c}, column); PTR_IN(${TI.c}, place); PTR_IN(${T.c}, value); PTR_IN(${T.c}, dense); PTR_OUT(${T.c}, out);
% if LOOP:
    const long item = get_global_id(0), all = R + nnz, last = nnz - 1;
    if (item == 0 && (start[0] != 0 || start[R] != nnz)) CLNN_FAIL(err, code, start[0] != 0 ? -1 : R);
    const long r0 = sparse_rows_split(start, R, all * item / items), r1 = item + 1 == items ? R : sparse_rows_split(start, R, all * (item + 1) / items);
    for (long r = r0; r < r1; r++) {
        const long begin = start[r], end = start[r + 1];
        __global ${T.c}* restrict to = out + r * N;
% if W == 1:
        for (long j = 0; j < N; j++) {
            ${ACC} s = 0;
            for (long k = begin; k < end; k++)
                s = MAC(${value}, ${T.load}(dense, sparse_row(column[k], K, err, code) * pitch + j), s);
            ${T.store}(to, j, s);
        }
% else:
        if (N < ${W}) {
            ${V} s = 0;
            for (long k = begin; k < end; k++)
                s = MAC((${V})(${value}), ldv_${T.name}(dense + sparse_row(column[k], K, err, code) * pitch), s);
            ${ACC} lanes[${W}];
            vstore${W}(s, 0, lanes);
            for (long j = 0; j < N; j++) ${T.store}(to, j, lanes[j]);
            continue;
        }
        long j = 0;
        for (; j + ${4 * W} <= N; j += ${4 * W})
            ${block(4)}
        for (; j < N; j += ${W}) {
            j = min(j, N - ${W});           // the last block begins where it ends with the row, and some columns are computed twice
            ${block(1)}
        }
% endif
    }
% else:
    const long j = get_global_id(0), r = get_global_id(1);
    if (j >= N || r >= R) return;
    if (j == 0 && r == 0 && (start[0] != 0 || start[R] != nnz)) CLNN_FAIL(err, code, start[0] != 0 ? -1 : R);
    const long begin = start[r], end = start[r + 1];
    ${ACC} s = 0;
    for (long k = begin; k < end; k++)
        s = MAC(${value}, ${T.load}(dense, sparse_row(column[k], K, err, code) * pitch + j), s);
    ${T.store}(out, r * N + j, s);
% endif
}
