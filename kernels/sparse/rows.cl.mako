<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## out[r, :] = sum over the stored elements k of row r of value[place[k]] * dense[column[k], :], in their order: compressed rows times a dense matrix.
##
## start (R + 1), column (nnz), place (nnz), value (nnz), out (R, N), all contiguous; dense (K, N) with rows `pitch` apart.
## Geometry: LOOP global (items), local 1: a work-item takes neighbouring rows, chosen so that all have about as many rows and elements together;
##           else global (N, R), any local size.
##
## Parameter  legal values
## T          dtype row of value, dense and out
## TI         dtype row of start, column and place: int32, int64
## PLACED     bool: value k is at place[k], not at k
## LOOP       bool
## W          LOOP: lanes of a vector, 8 (8-byte types) or 16, at most N; or 1
## FEW        LOOP with W == 1: N where that is below 16, else 0. Sums then stay in registers
## complex    W == 1
##
## Limits: a column that is out of range is reported through err and reads row 0; rows that are show in start, which must go from 0 to nnz.
<%
    ACC = T.acc
    V = f"{ACC}{W}" if W > 1 else ACC
    pieces, at = [], 0                  # (lanes, first column) of what makes up FEW columns
    for w in (8, 4, 2, 1):
        while FEW - at >= w and (w == 1 or not T.is_complex and T.c != "ushort"):
            pieces.append((w, at))
            at += w
    value = f"{T.load}(value, {'place[k]' if PLACED else 'k'})"
%>\
% if T.is_complex:
#define MAC(a, b, c) ((c) + clnn_c_mul_${"d" if ACC == "double2" else "f"}(a, b))
% else:
#define MAC(a, b, c) ((a) * (b) + (c))
% endif
/* A row number within bounds. The greatest one asked for is kept and reported later: a report inside a loop would hold the loop up. */
#define NUMBER ${"uint" if TI.itemsize == 4 else "ulong"}
#define ROW(c, K) (top = max(top, (NUMBER)(c)), (long)min((NUMBER)(c), (NUMBER)((K) - 1)))
% if LOOP and W > 1:
${vec.vector_io(T, W)}
% endif
% if LOOP:
<%def name="block(count)">
        {
<% offsets = [str(i * W) for i in range(count - 1)] + ["far"] %>\
% for i in range(count):
            ${V} s${i} = 0;
% endfor
            for (long k = begin; k < end; k++) {
                const ${V} v = (${V})(${value});
                __global const ${T.c}* p = dense + ROW(column[k], K) * pitch + j;
% if count > 1:
                __global const ${T.c}* ahead = dense + (long)column[min(k + 6, last)] * pitch + j;
% for i in range(0, count * W * T.itemsize, 64):
                FETCH((__global const char*)ahead + ${i});
% endfor
% endif
% for i, o in enumerate(offsets):
                s${i} = MAC(v, ldv_${T.name}(p + ${o}), s${i});
% endfor
            }
% for i, o in enumerate(offsets):
            stv_${T.name}(to + j + ${o}, s${i});
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
__kernel ${"__attribute__((reqd_work_group_size(1, 1, 1)))" if LOOP else ""}
void sparse_rows(IN(${TI.c}, start), IN(${TI.c}, column), IN(${TI.c}, place), IN(${T.c}, value), IN(${T.c}, dense), OUT(${T.c}, out),
                          const long R, const long K, const long N, const long pitch, const long nnz, const long items,
                          __global int* err, const int code) {
    PTR_IN(${TI.c}, start); PTR_IN(${TI.c}, column); PTR_IN(${TI.c}, place); PTR_IN(${T.c}, value); PTR_IN(${T.c}, dense); PTR_OUT(${T.c}, out);
    NUMBER top = 0;
% if LOOP:
    const long item = get_global_id(0), all = R + nnz, last = nnz - 1;
    const long r0 = sparse_rows_split(start, R, all * item / items), r1 = item + 1 == items ? R : sparse_rows_split(start, R, all * (item + 1) / items);
    for (long r = r0; r < r1; r++) {
        const long begin = start[r], end = start[r + 1];
        __global ${T.c}* restrict to = out + r * N;
% if FEW:
% for w, first in pieces:
        ${ACC}${w if w > 1 else ""} s${first} = 0;
% endfor
        for (long k = begin; k < end; k++) {
            const ${ACC} v = ${value};
            __global const ${T.c}* p = dense + ROW(column[k], K) * pitch;
% for w, first in pieces:
% if w == 1:
            s${first} = MAC(v, ${T.load}(p, ${first}), s${first});
% else:
            s${first} = MAC((${ACC}${w})(v), convert_${ACC}${w}(vload${w}(0, p + ${first})), s${first});
% endif
% endfor
        }
% for w, first in pieces:
% if w == 1:
        ${T.store}(to, ${first}, s${first});
% else:
        vstore${w}(convert_${T.c}${w}(s${first}), 0, to + ${first});
% endif
% endfor
% elif W == 1:
        for (long j = 0; j < N; j++) {
            ${ACC} s = 0;
            for (long k = begin; k < end; k++)
                s = MAC(${value}, ${T.load}(dense, ROW(column[k], K) * pitch + j), s);
            ${T.store}(to, j, s);
        }
% else:
        long j = 0, far = ${3 * W};
        for (; N - j > ${4 * W}; j += ${4 * W})
            ${block(4)}
        far = N - ${W} - j;                 // the last vector ends with the row, and repeats some columns of the one before
        if (far > ${2 * W}) ${block(4)}
        else if (far > ${W}) ${block(3)}
        else if (far > 0) ${block(2)}
        else ${block(1)}
% endif
    }
% else:
    const long j = get_global_id(0), r = get_global_id(1);
    if (j >= N || r >= R) return;
    const long begin = start[r], end = start[r + 1];
    ${ACC} s = 0;
    for (long k = begin; k < end; k++)
        s = MAC(${value}, ${T.load}(dense, ROW(column[k], K) * pitch + j), s);
    ${T.store}(out, r * N + j, s);
% endif
    if (top >= (NUMBER)K || start[0] != 0 || start[R] != nnz) CLNN_FAIL(err, code, max(R, K));
}
