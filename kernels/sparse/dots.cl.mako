<%inherit file="/base.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## out[k] = sum over n of left[row[k], n] * right[column[k], n]: the elements of left @ right.T at given places.
##
## place (2, nnz) of rows and columns, left (R, N), right (C, N), out (nnz), all contiguous.
## Geometry: LOOP global (ceil(nnz / chunk)), local 1: a work-item takes chunk neighbouring elements;
##           else global (LANES, nnz), local (LANES, 1): the lanes share a sum, which a tree in local memory completes.
##
## Parameter  legal values
## T          dtype row of left, right and out
## LOOP       bool
## W          LOOP: lanes of a vector, 1 or 8 (8-byte types) or 16
## LANES      powers of two
## complex    W == 1
##
## Limits: a place that is out of range is reported through err and reads row 0.
<%
    ACC = T.acc
    V = f"{ACC}{W}" if W > 1 else ACC
%>\
% if T.is_complex:
#define MAC(a, b, c) ((c) + clnn_c_mul_${"d" if ACC == "double2" else "f"}(a, b))
% else:
#define MAC(a, b, c) ((a) * (b) + (c))
% endif
% if LOOP and W > 1:
${vec.vector_io(T, W)}
static inline ${ACC} sparse_dots_lanes(${V} s) {
<% w, name = W, "s" %>\
% while w > 2:
<% w //= 2 %>\
    const ${ACC}${w} s${w} = ${name}.lo + ${name}.hi;
<% name = f"s{w}" %>\
% endwhile
    return ${name}.x + ${name}.y;
}
% endif
/* A row number within bounds. A wrong one is noted and reported later: a report inside a loop would hold the loop up. */
#define NUMBER ${"ulong"}
#define ROW(c, K) (bad |= (NUMBER)(c) >= (NUMBER)(K), (long)min((NUMBER)(c), (NUMBER)((K) - 1)))
__kernel ${"__attribute__((reqd_work_group_size(1, 1, 1)))" if LOOP else ""}
void sparse_dots(IN(long, place), IN(${T.c}, left), IN(${T.c}, right), OUT(${T.c}, out), const long nnz, const long R, const long C, const long N,
                          const long chunk, __global int* err, const int code) {
    PTR_IN(long, place); PTR_IN(${T.c}, left); PTR_IN(${T.c}, right); PTR_OUT(${T.c}, out);
    int bad = 0;
% if LOOP:
    const long first = get_global_id(0) * chunk, past = min(nnz, first + chunk);
    for (long k = first; k < past; k++) {
        __global const ${T.c}* a = left + ROW(place[k], R) * N;
        __global const ${T.c}* b = right + ROW(place[nnz + k], C) * N;
        __global const ${T.c}* ahead = right + place[nnz + min(k + 6, nnz - 1)] * N;
        FETCH(ahead);
        FETCH((__global const char*)ahead + 64);
        ${ACC} s = 0;
        long n = 0;
% if W > 1:
        ${V} s0 = 0, s1 = 0;
        for (; n + ${2 * W} <= N; n += ${2 * W}) {
            s0 = MAC(ldv_${T.name}(a + n), ldv_${T.name}(b + n), s0);
            s1 = MAC(ldv_${T.name}(a + n + ${W}), ldv_${T.name}(b + n + ${W}), s1);
        }
        if (n + ${W} <= N) {
            s0 = MAC(ldv_${T.name}(a + n), ldv_${T.name}(b + n), s0);
            n += ${W};
        }
        if (N >= ${W}) s = sparse_dots_lanes(s0 + s1);
% endif
        for (; n < N; n++) s = MAC(${T.load}(a, n), ${T.load}(b, n), s);
        ${T.store}(out, k, s);
    }
% else:
    __local ${ACC} parts[${LANES}];
    const long k = get_global_id(1);
    const int lane = get_local_id(0);
    ${ACC} s = 0;
    if (k < nnz) {
        const long a = ROW(place[k], R) * N, b = ROW(place[nnz + k], C) * N;
        for (long n = lane; n < N; n += ${LANES}) s = MAC(${T.load}(left, a + n), ${T.load}(right, b + n), s);
    }
    parts[lane] = s;
<% half = LANES // 2 %>\
% while half:
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < ${half}) parts[lane] = parts[lane] + parts[lane + ${half}];
<% half //= 2 %>\
% endwhile
    if (lane == 0 && k < nnz) ${T.store}(out, k, parts[0]);
% endif
    if (bad) CLNN_FAIL(err, code, max(R, C));
}
