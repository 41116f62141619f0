## Sorting a tile of LOCAL * K keys in local memory by four bits at a time, stably: every work-item counts the digits of K neighbours in registers, a sum over
## (digit, work-item) says where they go. What moves are 16 bits, four of a key and its place in the tile; keys stay where they are until the end.
##
## LOCAL is a power of two, K 4, 8 or 16; LOCAL * K <= 4096. Names that the kernels have: l (the local id), pool, part, moved, counts.
##
## def                     gives
## memory(LOCAL, K)        the local memory and its names; begins a kernel
## bytes_of(LOCAL, K)      how much that is
## add_up(LOCAL, C, part)  v = the sum of v of the work-items up to this one; C: uint or ulong. A barrier must lie between two of them.
## registers(K)            declares e0 .. of the K neighbours: the place in the tile, from bit 12 on what to sort by, from bit 20 on where that leads
## begin(K)                e0 .. = the places as they are
## read(LOCAL, K)          e0 .. = what was moved, with a barrier after it
## by_byte(LOCAL, K, key)  moved = the places of e0 .., sorted by the low 8 bits of key(place), which is read once; ends with a barrier
## by_four(LOCAL, K, key)  the same by four bits
<%!
def pad(at, K):
    return f"({at} + {at} / {K})"


def bytes_of(LOCAL, K):
    return max(36 * LOCAL + 8 * LOCAL, 2 * LOCAL * K, 16 * LOCAL)
%>
<%def name="memory(LOCAL, K)">
    __local uint4 pool[${-(-bytes_of(LOCAL, K) // 16)}];
    __local uint* counts = (__local uint*)pool;                            /* (9, LOCAL): digits d and d + 8 share a word; the last row ends up as sums */
    __local uint* part = counts + ${9 * LOCAL};                            /* (2, LOCAL) */
    __local ushort* moved = (__local ushort*)pool;                         /* in place of the counts */
    const int l = get_local_id(0);
</%def>
##
<%def name="add_up(LOCAL, C='uint', part='part')">
<% steps = [4 ** e for e in range(6) if 4 ** e < LOCAL] %>\
    ${part}[l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
% for n, s in enumerate(steps):
<% old, new = (n % 2) * LOCAL, (n + 1) % 2 * LOCAL %>\
    v += (l >= ${s} ? ${part}[${old} + l - ${s}] : (${C})0) + (l >= ${2 * s} ? ${part}[${old} + l - ${2 * s}] : (${C})0) + (l >= ${3 * s} ? ${part}[${old} + l - ${3 * s}] : (${C})0);
% if n + 1 < len(steps):
    ${part}[${new} + l] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
% endfor
</%def>
##
<%def name="ranks(LOCAL, K)">
<% halves = -(-K // 8) %>\
    {
        ulong ${", ".join(f"c{h} = 0" for h in range(halves))};            /* sixteen counts of up to 8 keys each */
% for i in range(K):
        { const int s = (int)(e${i} >> 12 & 15) * 4; e${i} |= ((uint)(c${i // 8} >> s) & 15) << 20; c${i // 8} += (ulong)1 << s; }
% endfor
% for i in range(8, K):
        e${i} += ((uint)(c0 >> (int)(e${i} >> 12 & 15) * 4) & 15) << 20;
% endfor
% for j in range(8):
        counts[${j * LOCAL} + l] = ${" + ".join(f"(((uint)c{h} >> {4 * j}) & 15) + ((((uint)(c{h} >> 32) >> {4 * j}) & 15) << 16)" for h in range(halves))};
% endfor
        counts[${8 * LOCAL} + l] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        uint v = 0;
% for j in range(9):
        const uint w${j} = counts[l * 9 + ${j}];
        v += w${j};
% endfor
        const uint sum = v;
        ${add_up(LOCAL)}
        v -= sum;
% for j in range(9):
        counts[l * 9 + ${j}] = v;
% if j < 8:
        v += w${j};
% endif
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint low = counts[${8 * LOCAL}] << 16;                       /* digits of 8 and above come after all of those below */
% for i in range(K):
        e${i} += (((counts[(e${i} >> 12 & 7) * ${LOCAL} + l] + low) >> (e${i} >> 11 & 16)) & 0xffff) << 20;
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
    }
</%def>
##
<%def name="registers(K)">
    uint ${", ".join(f"e{i}" for i in range(K))};
</%def>
##
<%def name="begin(K)">
% for i in range(K):
    e${i} = l * ${K} + ${i};
% endfor
</%def>
##
<%def name="read(LOCAL, K)">
<% V = "uint2" if K == 4 else "uint4" %>\
    {
        __local const ${V}* from = (__local const ${V}*)moved + l * ${max(1, K // 8)};
% for h in range(max(1, K // 8)):
        const ${V} f${h} = from[${h}];
% endfor
% for i in range(K):
        e${i} = f${i // 8}.s${i % 8 // 2} ${">> 16" if i % 2 else "& 0xffff"};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
    }
</%def>
##
<%def name="by_byte(LOCAL, K, key)">
% for i in range(K):
    e${i} |= ((uint)(${key(f"e{i}")}) & 255) << 12;
% endfor
    ${ranks(LOCAL, K)}
% for i in range(K):
    moved[e${i} >> 20] = (ushort)((e${i} & 0xfff) | (e${i} >> 16 & 15) << 12);
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    ${read(LOCAL, K)}
    ${ranks(LOCAL, K)}
% for i in range(K):
    moved[e${i} >> 20] = (ushort)(e${i} & 0xfff);
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
</%def>
##
<%def name="by_four(LOCAL, K, key)">
% for i in range(K):
    e${i} |= ((uint)(${key(f"e{i}")}) & 15) << 12;
% endfor
    ${ranks(LOCAL, K)}
% for i in range(K):
    moved[e${i} >> 20] = (ushort)(e${i} & 0xfff);
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
</%def>
