<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
## The k first elements of each part of a row in sort order (ties: the lower position first), in that order, for small k. Made for GPUs.
##
## x (rows, L); values (rows, parts, k), indices (rows, parts, k) int64, all contiguous; part p has the elements from L * p / parts on. Limit: L < 2^31.
## A work-group keeps a part in registers; in each round the work-items' firsts are compared, and the one whose element comes first looks for its next.
## Geometry: global (rows * parts * LOCAL), local (LOCAL).
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
## LOCAL      power of two
## K          1 .. 32: LOCAL * K >= elements of a part >= k
<%
    UK = "ulong" if T.itemsize == 8 else "uint"
    A = 1 << LOCAL.bit_length() // 2
    A = min(A, LOCAL)
%>\
${order.key(T, DESC)}
% if T.itemsize == 8:
#define LOOK(k, p) { const ulong v = k; const int w = p; if (v < most || (v == most && w < place)) { most = v; place = w; } }
% else:
#define LOOK(k, p) { const ulong v = k; most = min(most, v); }             /* the key, then the place in the part */
% endif
__kernel void first(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), const long L, const long k, const long parts) {
    __local ulong lk[${LOCAL}], mk[${A}];
% if T.itemsize == 8:
    __local int lp[${LOCAL}], mp[${A}];
% endif
    const int l = get_local_id(0);
    const long group = get_group_id(0), row = group / parts, part = group % parts, lo = L * part / parts;
    const int here = (int)(L * (part + 1) / parts - lo);
    __global const ${T.c}* restrict from = x_p + x_o + row * L + lo;
    uint left = 0;
% for i in range(K):
    const ${UK} v${i} = l + ${i * LOCAL} < here ? clnn_key(from[l + ${i * LOCAL}]) : (${UK})-1;
    left |= (l + ${i * LOCAL} < here) << ${i};
% endfor
    int search = 1, at = 0x7fffffff;
    ${UK} best = (${UK})-1;
    for (long j = 0; j < k; j++) {
        if (search) {
            best = (${UK})-1; at = 0x7fffffff;
% for i in range(K):
            if ((left >> ${i} & 1) && (v${i} < best || at == 0x7fffffff)) { best = v${i}; at = l + ${i * LOCAL}; }
% endfor
        }
        ulong most = ${"best" if T.itemsize == 8 else "(ulong)best << 32 | (ulong)at"};
        lk[l] = most;
% if T.itemsize == 8:
        int place = at;
        lp[l] = place;
% endif
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < ${A}) {
#pragma unroll 4
            for (int s = l + ${A}; s < ${LOCAL}; s += ${A}) LOOK(lk[s], lp[s])
            mk[l] = most;
% if T.itemsize == 8:
            mp[l] = place;
% endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        most = mk[0];
% if T.itemsize == 8:
        place = mp[0];
% endif
#pragma unroll 4
        for (int s = 1; s < ${A}; s++) LOOK(mk[s], mp[s])
% if T.itemsize < 8:
        const int place = (int)most;
% endif
        search = place == at;
        if (search) {
            values_p[values_o + group * k + j] = from[at];
            indices_p[indices_o + group * k + j] = lo + at;
            left &= ~(1u << (uint)(at / ${LOCAL}));
        }
    }
}
