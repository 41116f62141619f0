<%inherit file="/base.cl.mako"/>\
## An image of 16-bit elements with its channels side by side: X (N, C, P) -> Y (N, P, C), P the places of an image.
##
## Geometry: local (32, 8, 1), global (32 * ceil(P / 64), 8 * ceil(C / 64), N). A work-group turns 64 x 64 elements in local memory. C is even.
__kernel __attribute__((reqd_work_group_size(32, 8, 1)))
void conv_turn(IN(ushort, X), OUT(ushort, Y), const long8 d) {
    __local ushort tile[64 * 66];
    const long C = d.s0, P = d.s1, p0 = get_group_id(0) * 64L, c0 = get_global_id(1) / 8 * 64L, image = get_global_id(2) * C * P;
    __global const ushort* restrict from = X_p + X_o + image;
    __global ushort* restrict to = Y_p + Y_o + image;
    const int lx = get_local_id(0), ly = get_local_id(1);
% for i in range(8):
    { const long c = min(c0 + ly + ${8 * i}, C - 1);
      tile[(ly + ${8 * i}) * 66 + lx] = from[c * P + min(p0 + lx, P - 1)];
      tile[(ly + ${8 * i}) * 66 + lx + 32] = from[c * P + min(p0 + lx + 32, P - 1)]; }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    const long c = c0 + 2 * lx;
% for i in range(8):
    { const int p = ly + ${8 * i};
      if (c < C && p0 + p < P) *(__global uint*)(to + (p0 + p) * C + c) = tile[2 * lx * 66 + p] | (uint)tile[(2 * lx + 1) * 66 + p] << 16; }
% endfor
}
