<%inherit file="/base.cl.mako"/>\
## An operand of 32-bit elements laid out along K for matmul/warpgroup: X (z, K, N), rows of unit stride -> Y (z, N, K) without gaps.
##
## d: K, N, stride of X's rows; z: matrices of the inner batch dimension, steps of X along the outer and the inner one.
## Geometry: local (32, 8, 1), global (32 * ceil(N / 64), 8 * ceil(K / 64), batch). A work-group turns 64 x 64 elements in local memory.
__kernel __attribute__((reqd_work_group_size(32, 8, 1)))
void matmul_turn(IN(uint, X), OUT(uint, Y), const long16 d, const long8 z) {
    __local uint tile[64 * 65];
    const long K = d.s0, N = d.s1, n0 = get_group_id(0) * 64L, k0 = get_group_id(1) * 64L, batch = get_global_id(2);
    __global const uint* restrict from = X_p + X_o + batch / z.s0 * z.s1 + batch % z.s0 * z.s2;
    __global uint* restrict to = Y_p + Y_o + batch * K * N;
    const int lx = get_local_id(0), ly = get_local_id(1);
    const long left = min(n0 + lx, N - 1), right = min(n0 + lx + 32, N - 1);
    uint v[16];
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        const long k = min(k0 + ly + 8 * i, K - 1) * d.s2;
        v[2 * i] = from[k + left];
        v[2 * i + 1] = from[k + right];
    }
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        tile[(ly + 8 * i) * 65 + lx] = v[2 * i];
        tile[(ly + 8 * i) * 65 + lx + 32] = v[2 * i + 1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int i = 0; i < 8; i++) {
        const int n = ly + 8 * i;
        if (n0 + n < N) {
            if (k0 + lx < K) to[(n0 + n) * K + k0 + lx] = tile[lx * 65 + n];
            if (k0 + lx + 32 < K) to[(n0 + n) * K + k0 + lx + 32] = tile[(lx + 32) * 65 + n];
        }
    }
}
