<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Sorts many short rows, eight at a time in the lanes of vectors, by Batcher's odd-even merge network: 64-bit words of a key and its position have an
## order without ties, so the sort is stable. Or gives the element at one place of each sorted row, and its position. Made for CPUs.
##
## x (rows, L), L <= N, contiguous; values, indices int64: (rows, place), the first elements of each sorted row, or (rows) where one is picked.
## place: how many are kept, 1 .. L, or which one, 0 .. L - 1.
## Geometry: global (rows / chunk rounded up), local (1); chunk is a multiple of 8.
##
## Parameter  legal values
## T          dtype row of the values, of at most 4 bytes
## DESC       bool: greatest first
## N          8 | 16 | 32 | 64
## WHAT       sort | place: number `place` of the row | median: the lower median, or a NaN if there is one | nanmedian: of what is not NaN
<%
    NAN_KEY = f"0x{(1 << 8 * T.itemsize) - 1:x}ul"
    UNROLLED = N <= 16                   # longer ones take drivers too long to build
    BLOCKS = range(0, N, 8) if UNROLLED else ["b"]
    LOOP = "" if UNROLLED else f"for (int b = 0; b < {N}; b += 8)"

    def network():
        """The same pairs as the loop has."""
        for p in (1 << s for s in range(N.bit_length() - 1)):
            for k in (p >> s for s in range(p.bit_length())):
                yield from ((i, i + k) for j in range(k & p - 1, N - k, 2 * k) for i in range(j, min(j + k, N - k)) if i ^ i + k < 2 * p)

%>
${order.key(T, DESC)}
${order.key(T, DESC, 8)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void sort_lanes(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), const long rows, const long L, const long place, const long chunk) {
    const long begin = get_global_id(0) * chunk, end = min(rows, begin + chunk);
    const long8 step = (long8)(0, 1, 2, 3, 4, 5, 6, 7);
    for (long row = begin; row < end; row += 8) {
        const int some = (int)min(8L, end - row);
        __global const ${T.c}* restrict from = x_p + x_o + row * L;
        uint keys[${8 * N}];
        if ((row + 7) * L + ${N} <= rows * L)             /* whole vectors read on into the rows that follow */
            for (int r = 0; r < 8; r++)
                for (int i = 0; i < ${N}; i += 8) vstore8(clnn_keys(from + r * L + i), 0, keys + r * ${N} + i);
        else
            for (int r = 0; r < some; r++)
                for (int i = 0; i < L; i++) keys[r * ${N} + i] = clnn_key(from[r * L + i]);
        ulong8 v[${N}];
        ${LOOP}
% for b in BLOCKS:
        {
            const long8 at = step + ${b};
            const ulong8 tail = as_ulong8(at) | as_ulong8(at >= (long8)(L));          /* what is no element comes last */
            ulong8 ${", ".join(f"t{r} = (convert_ulong8(vload8(0, keys + {r * N} + {b})) << 32) | tail" for r in range(8))};
${vec.transpose("ulong8", 8, "t")}
            ${" ".join(f"v[{b} + {r}] = t{r};" for r in range(8))}
        }
% endfor
% if UNROLLED:
% for i, j in network():
        { const ulong8 a = v[${i}], b = v[${j}]; v[${i}] = a < b ? a : b; v[${j}] = a < b ? b : a; }
% endfor
% else:
        for (int p = 1; p < ${N}; p <<= 1)
            for (int k = p; k > 0; k >>= 1)
                for (int j = k & (p - 1); j < ${N} - k; j += 2 * k)
                    for (int i = j; i < min(j + k, ${N} - k); i++)
                        if ((i ^ (i + k)) < 2 * p) {
                            const ulong8 a = v[i], b = v[i + k];
                            v[i] = a < b ? a : b;
                            v[i + k] = a < b ? b : a;
                        }
% endif
% if WHAT == "sort":
        int at[${8 * N}];
        ${LOOP}
% for b in BLOCKS:
        {
            ulong8 ${", ".join(f"t{r} = v[{b} + {r}]" for r in range(8))};
${vec.transpose("ulong8", 8, "t")}
            ${" ".join(f"vstore8(convert_int8(t{r} & 0xfffffffful), 0, at + {r * N} + {b});" for r in range(8))}
        }
% endfor
        for (int r = 0; r < some; r++) {
            __global ${T.c}* restrict to = values_p + values_o + (row + r) * place;
            __global long* restrict where = indices_p + indices_o + (row + r) * place;
            int i = 0;
            for (; i + 8 <= place; i += 8) vstore8(convert_long8(vload8(0, at + r * ${N} + i)), 0, where + i);
            for (; i < place; i++) where[i] = at[r * ${N} + i];
            for (i = 0; i < place; i++) to[i] = from[r * L + at[r * ${N} + i]];
        }
% else:
        long8 want = place;
% if WHAT != "place":
        long8 nans = 0;
        for (int i = 0; i < L; i++) nans -= (v[i] >> 32) == (ulong8)(${NAN_KEY});
% if WHAT == "median":
        want = nans > 0 ? (long8)(L) - nans : want;
% else:
        want = ((long8)(L - 1) - nans) >> 1;
        want = want < 0 ? (long8)0 : want;
% endif
% endif
        ulong8 found = v[0];
        for (int i = 1; i < L; i++) found = want == (long8)(i) ? v[i] : found;
        ulong at[8];
        vstore8(found & 0xfffffffful, 0, at);
        for (int r = 0; r < some; r++) {
            values_p[values_o + row + r] = from[r * L + (int)at[r]];
            indices_p[indices_o + row + r] = (long)at[r];
        }
% endif
    }
}
