<%inherit file="/base.cl.mako"/>\
<%namespace name="rank" file="/sorting/rank.cl.mako"/>\
## Exclusive sums of int32 rows, in place: tiles of TILE elements each, then the tiles' totals, then the totals added to the tiles.
##
## data (rows, n); totals (rows, tiles) int32. One work-group of LOCAL work-items sums a tile.
## Kernel      geometry
## scan_tiles  global (tiles * LOCAL, rows), local (LOCAL, 1): sums each tile and writes its total
## scan_add    global (n, rows), any local size: adds totals[tile], which was summed itself
## scan_rows   global (rows * LOCAL), local (LOCAL): whole rows, one work-group each; totals (rows). Made for GPUs
##
## Parameter   legal values
## LOCAL       1, or a power of two up to the work-group limit
## TILE        multiple of LOCAL
<% PER = TILE // LOCAL %>\
__kernel void scan_tiles(OUT(int, data), OUT(int, totals), const long n) {
    __local int part[${LOCAL}];
    const int l = get_local_id(0);
    const long tile = get_group_id(0), tiles = get_num_groups(0), row = get_global_id(1);
    __global int* d = data_p + data_o + row * n;
    const long lo = min(n, tile * ${TILE} + l * ${PER}), hi = min(n, lo + ${PER});
    int sum = 0;
    for (long i = lo; i < hi; i++) sum += d[i];
    part[l] = sum;
% if LOCAL > 1:
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 1; s < ${LOCAL}; s <<= 1) {
        const int v = l >= s ? part[l - s] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        part[l] += v;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
% endif
    int at = part[l] - sum;
    for (long i = lo; i < hi; i++) { const int v = d[i]; d[i] = at; at += v; }
    if (l == ${LOCAL - 1}) totals_p[totals_o + row * tiles + tile] = at;
}

__kernel void scan_add(OUT(int, data), IN(int, totals), const long n, const long tiles) {
    const long i = get_global_id(0), row = get_global_id(1);
    if (i >= n) return;
    data_p[data_o + row * n + i] += totals_p[totals_o + row * tiles + i / ${TILE}];
}

__kernel void scan_rows(OUT(int, data), OUT(int, totals), const long n) {
    __local uint part[${2 * LOCAL}];
    __local uint all[1];
    const int l = get_local_id(0);
    const long row = get_group_id(0);
    __global int* d = data_p + data_o + row * n;
    uint before = 0;
    for (long start = 0; start < n; start += ${4 * LOCAL}) {
        const long at = start + 4 * l;
% for i in range(4):
        const uint w${i} = at + ${i} < n ? (uint)d[at + ${i}] : 0;
% endfor
        uint v = w0 + w1 + w2 + w3;
        ${rank.add_up(LOCAL)}
        if (l == ${LOCAL - 1}) all[0] = v;
        v += before - (w0 + w1 + w2 + w3);
% for i in range(4):
        if (at + ${i} < n) d[at + ${i}] = (int)v;
        v += w${i};
% endfor
        barrier(CLK_LOCAL_MEM_FENCE);
        before += all[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) totals_p[totals_o + row] = (int)before;
}
