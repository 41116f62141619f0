<%inherit file="/base.cl.mako"/>\
<%namespace name="rank" file="/sorting/rank.cl.mako"/>\
## indexing/compact for GPUs: a work-group finds the elements of a tile, puts their places next to each other in local memory, and writes in that order.
##
## x (n) contiguous; counts (tiles) int32. Geometry: global (tiles * LOCAL), local (LOCAL); `chunk` is LOCAL * 16. Limit: n < 2^31 tiles.
## Kernel         what it does
## count_nonzero  counts[c] = how many in tile c
## find_nonzero   out[d, k] = index of the k-th along dimension d, int64; counts were added up
## rank_nonzero   out[i] = how many in x[0..i], int64, one less where CHANGED; counts were added up
## find_runs      values[k] = what y has where x has the k-th, out[k] = its position, where PLACES
## run_lengths    from each position to the next, the last to n; global (count), any local size
##
## Parameter  legal values
## T          dtype row of x
## RANK       dimensions of x, whose sizes s0.. find_nonzero takes; 1: positions in flat x
## CHANGED    False: what is not zero, True: the first element and what is not equal to the one before
## PLACES     True | False: of find_runs
## U          C type of the elements of y
## SMALL      bool: n < 2^31
## LOCAL      power of two up to 256
<%
    TILE, I = 16 * LOCAL, "uint" if SMALL else "ulong"
    hit = (lambda i: f"(first + {i} == 0 || {T.load}(x, {i}) != {T.load}(x, {i} - 1))") if CHANGED else lambda i: f"({T.load}(x, {i}) != 0)"
%>\
<%def name="begin()">
    const int l = get_local_id(0);
    const long first = get_group_id(0) * (long)${TILE};
    const int here = (int)min((long)${TILE}, n - first);
    __global const ${T.c}* restrict x = x_p + x_o + first;
% for i in range(16):
    const uint h${i} = l + ${i * LOCAL} < here ? (uint)${hit(f"(l + {i * LOCAL})")} : 0;
% endfor
</%def>
## v = how many this work-item has of sixteen neighbours, whose flags are the bytes of `mine`; then those up to the last of them
<%def name="tell()">
    __local uint4 flags[${LOCAL}];
    __local uint part[${2 * LOCAL}];
    __local uchar* flag = (__local uchar*)flags;
% for i in range(16):
    flag[l + ${i * LOCAL}] = (uchar)h${i};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint4 mine = flags[l];
    const uint4 bits = popcount(mine);
    uint v = bits.s0 + bits.s1 + bits.s2 + bits.s3;
    const uint sum = v;
    ${rank.add_up(LOCAL)}
</%def>
## found[j] = the place in the tile of the j-th that is there
<%def name="collect()">
    __local ushort found[${TILE}];
    ${tell()}
    v -= sum;
% for i in range(16):
    if (mine.s${i // 4} >> ${i % 4 * 8} & 1) found[v++] = (ushort)(l * 16 + ${i});
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    const long c = get_group_id(0), k = counts_p[counts_o + c], count = total_p[total_o];
    const int some = (int)((c + 1 < chunks ? counts_p[counts_o + c + 1] : count) - k);
</%def>
__kernel void count_nonzero(IN(${T.c}, x), OUT(int, counts), const long n, const long chunk, const long chunks) {
    __local uint part[${2 * LOCAL}];
    ${begin()}
    uint v = ${" + ".join(f"h{i}" for i in range(16))};
    ${rank.add_up(LOCAL)}
    if (l == ${LOCAL - 1}) counts_p[counts_o + get_group_id(0)] = (int)v;
}

__kernel void find_nonzero(IN(${T.c}, x), IN(int, counts), IN(int, total), OUT(long, out), const long chunk, const long chunks,
                           ${", ".join(f"const long s{d}" for d in range(RANK))}) {
    const long n = ${" * ".join(f"s{d}" for d in range(RANK))};
    ${begin()}
    ${collect()}
    PTR_OUT(long, out);
    for (int j = l; j < some; j += ${LOCAL}) {
        ${I} i = (${I})(first + found[j]);
% for d in range(RANK - 1, 0, -1):
        const ${I} rest${d} = i / (${I})s${d};
        out[count * ${d} + k + j] = (long)(i - rest${d} * (${I})s${d});
        i = rest${d};
% endfor
        out[k + j] = (long)i;
    }
}

__kernel void rank_nonzero(IN(${T.c}, x), IN(int, counts), OUT(long, out), const long n, const long chunk, const long chunks) {
    __local ushort up[${TILE}];
    ${begin()}
    ${tell()}
    v -= sum;
% for i in range(16):
    v += mine.s${i // 4} >> ${i % 4 * 8} & 1;
    up[l * 16 + ${i}] = (ushort)v;
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    PTR_OUT(long, out);
    const long k = counts_p[counts_o + get_group_id(0)]${" - 1" if CHANGED else ""};
    for (int j = l; j < here; j += ${LOCAL}) out[first + j] = k + up[j];
}

__kernel void find_runs(IN(${T.c}, x), IN(int, counts), IN(int, total), IN(${U}, y), OUT(${U}, values), OUT(long, out), const long n, const long chunk,
                        const long chunks) {
    ${begin()}
    ${collect()}
    PTR_IN(${U}, y); PTR_OUT(${U}, values); PTR_OUT(long, out);
    for (int j = l; j < some; j += ${LOCAL}) {
        values[k + j] = y[first + found[j]];
% if PLACES:
        out[k + j] = first + found[j];
% endif
    }
}
% if CHANGED:

__kernel void run_lengths(IN(long, at), OUT(long, lengths), const long count, const long n) {
    const long k = get_global_id(0);
    if (k >= count) return;
    PTR_IN(long, at);
    lengths_p[lengths_o + k] = (k + 1 < count ? at[k + 1] : n) - at[k];
}
% endif
