<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
<%namespace name="rank" file="/sorting/rank.cl.mako"/>\
## Stable radix sort of long rows in passes over 8 bits: count the digits of each tile, add the counts up, move. Within a tile elements are sorted in local
## memory before they are written, so that those of one digit are written side by side. Made for GPUs.
##
## Tiles of LOCAL * K elements, `tiles` of them per row. Limit: L < 2^31. Places are int32, keys UK (rows, L).
## Kernel       geometry                                       what it does
## radix_count  global (tiles * LOCAL, rows), local (LOCAL, 1) table[row, tile, digit] (WHOLE) or table[row, digit, tile] = how often
##                                                             what is not WHOLE is then added up by sorting/scan, with totals[row, digit]
## radix_move   as radix_count                                 elements to their places. FIRST: keys are made of x (rows, L) less `base` and places count
##                                                             0, 1, ...; LAST: values and int64 indices are written instead of keys and places
##
## Parameter   legal values
## T           dtype row of x
## DESC        bool: greatest first
## LOCAL       power of two up to 256; local memory: bytes_of of rank.cl.mako, 1024, and LOCAL * (K + 1) keys
## K           4, 8, 16
## WHOLE       bool: few tiles, whose counts each work-group adds up by itself
## FIRST LAST  bool: of the passes
<%
    UK = "ulong" if T.itemsize == 8 else "uint"
    TILE, EACH = LOCAL * K, -(-256 // LOCAL)
%>\
${order.key(T, DESC)}
% if LAST:
${order.unkey(T, DESC)}
% endif
% if FIRST:
#define SOURCE ${T.c}
#define KEY(at) (clnn_key(source[at]) - (${UK})base)
% else:
#define SOURCE ${UK}
#define KEY(at) source[at]
% endif
__kernel void radix_count(IN(SOURCE, x), OUT(int, table), const long L, const long tiles, const long shift, const long base) {
    __local uint count[1024];                                              /* four of each digit, as many work-items may count the same one */
    const int l = get_local_id(0);
    const long tile = get_group_id(0), row = get_global_id(1);
    __global const SOURCE* restrict source = x_p + x_o + row * L + tile * ${TILE};
    const int here = (int)min((long)${TILE}, L - tile * ${TILE}), s = (int)shift;
    for (int d = l; d < 1024; d += ${LOCAL}) count[d] = 0;
% for i in range(K):
    const int a${i} = l + ${i * LOCAL} < here ? (int)(KEY(l + ${i * LOCAL}) >> s) & 255 : -1;
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% for i in range(K):
    if (a${i} >= 0) atomic_inc(count + (a${i} * 4 + (l & 3)));             /* whole numbers: the order does not matter */
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    __global int* to = table_p + table_o + row * 256 * tiles;
    for (int d = l; d < 256; d += ${LOCAL})
        to[${"tile * 256 + d" if WHOLE else "d * tiles + tile"}] = (int)(count[4 * d] + count[4 * d + 1] + count[4 * d + 2] + count[4 * d + 3]);
}

__kernel void radix_move(IN(SOURCE, x), IN(int, places), ${f"OUT({T.c}, values), OUT(long, indices)" if LAST else f"OUT({UK}, values), OUT(int, indices)"},
                         IN(int, table), IN(int, totals), IN(${T.c}, original), const long L, const long tiles, const long shift, const long base) {
    __local ${UK} keys[${TILE + LOCAL}];
    __local int shifts[256];                                               /* what leads from a place in the sorted tile to one in the sorted row */
    ${rank.memory(LOCAL, K)}
    const long tile = get_group_id(0), row = get_global_id(1);
    const int first = (int)(tile * ${TILE}), here = (int)min((long)${TILE}, L - first), s = (int)shift;
    __global const SOURCE* restrict source = x_p + x_o + row * L + first;
% for i in range(K):
    { const uint q = l + ${i * LOCAL}; keys[q + q / ${K}] = q < here ? KEY(q) : (${UK})-1; }
% endfor
    {   /* where the digits of this tile begin: in the row, after those of tiles before, and in the tile */
        ulong v = 0;
        uint before[${EACH}], own[${EACH}], total[${EACH}];
        for (int e = 0; e < ${EACH}; e++) {
            const int d = l * ${EACH} + e;
% if WHOLE:
            __global const int* t = table_p + table_o + row * 256 * tiles + d;
            before[e] = own[e] = total[e] = 0;
            for (long k = 0; k < tiles; k += 8) {
% for u in range(8):
                const uint t${u} = k + ${u} < tiles ? (uint)t[(k + ${u}) * 256] : 0;
% endfor
% for u in range(8):
                total[e] += t${u}; before[e] += k + ${u} < tile ? t${u} : 0; own[e] = k + ${u} == tile ? t${u} : own[e];
% endfor
            }
% else:
            __global const int* t = table_p + table_o + (row * 256 + d) * tiles + tile;
            total[e] = (uint)totals_p[totals_o + row * 256 + d];
            before[e] = (uint)t[0];
            own[e] = (tile + 1 < tiles ? (uint)t[1] : total[e]) - before[e];
% endif
            v += (ulong)total[e] | (ulong)own[e] << 32;
        }
        const ulong sum = v;
        __local ulong* wide = (__local ulong*)pool;
        ${rank.add_up(LOCAL, "ulong", "wide")}
        v -= sum;
        for (int e = 0; e < ${EACH}; e++) {
            shifts[l * ${EACH} + e] = (int)((uint)v + before[e] - (uint)(v >> 32));
            v += (ulong)total[e] | (ulong)own[e] << 32;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ${rank.registers(K)}
    ${rank.begin(K)}
    ${rank.by_byte(LOCAL, K, lambda q: f"keys[{q} + {q} / {K}] >> s")}
    __global ${T.c if LAST else UK}* restrict v2 = values_p + values_o + row * L;
    __global ${"long" if LAST else "int"}* restrict p2 = indices_p + indices_o + row * L;
% for i in range(K):
    const uint from${i} = moved[l + ${i * LOCAL}];
    const ${UK} k${i} = keys[from${i} + from${i} / ${K}];
% endfor
% if not FIRST:
    barrier(CLK_LOCAL_MEM_FENCE);
    __local int* place = (__local int*)keys;
    __global const int* restrict p = places_p + places_o + row * L + first;
% for i in range(K):
    if (l + ${i * LOCAL} < here) place[l + ${i * LOCAL}] = p[l + ${i * LOCAL}];
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% endif
% for i in range(K):
    if (l + ${i * LOCAL} < here) {
        const int to = shifts[(uint)(k${i} >> s) & 255] + l + ${i * LOCAL}, at = ${f"first + (int)from{i}" if FIRST else f"place[from{i}]"};
        v2[to] = ${f"clnn_unkey(k{i} + ({UK})base, original_p + original_o + row * L + at)" if LAST else f"k{i}"};
        p2[to] = at;
    }
% endfor
}
