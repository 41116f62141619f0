<%inherit file="/base.cl.mako"/>\
## dW[g, o, c] = A' m A of the planes m = Y[0, g, :, o, c] + Y[1, g, :, o, c] + ... that conv/winograd_gradient left: 3 x 3 weights of 16 sums.
##
## Y (splits, groups, 16, O, pitch), pitch a multiple of 16 and at least C; dW (groups, O, C, 9) contiguous; d = (O, C, pitch, splits).
## Geometry: global (ceil(C / 16), O, groups), local (1, 1, 1): 16 channels per work-item.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_winograd_gradient_sum(IN(float, Y), OUT(float, dW), const long8 d) {
    const long O = d.s0, C = d.s1, pitch = d.s2, splits = d.s3, g = get_group_id(2), o = get_group_id(1), c = get_group_id(0) * 16;
    const long plane = O * pitch, step = get_num_groups(2) * 16 * plane;
    __global const float* restrict y = Y_p + Y_o + (g * 16 * O + o) * pitch + c;
    __global float* restrict out = dW_p + dW_o + ((g * O + o) * C + c) * 9;
    float16 m[16], a[12];
    for (int p = 0; p < 16; p++) {
        m[p] = 0;
        for (long s = 0; s < splits; s++) m[p] += vload16(0, y + p * plane + s * step);
    }
    for (int j = 0; j < 4; j++) {
        a[j] = m[j] + m[4 + j] + m[8 + j];
        a[4 + j] = m[4 + j] - m[8 + j];
        a[8 + j] = m[4 + j] + m[8 + j] - m[12 + j];
    }
    float e[144];
    for (int i = 0; i < 3; i++) {
        vstore16(a[4 * i] + a[4 * i + 1] + a[4 * i + 2], 3 * i, e);
        vstore16(a[4 * i + 1] - a[4 * i + 2], 3 * i + 1, e);
        vstore16(a[4 * i + 1] + a[4 * i + 2] - a[4 * i + 3], 3 * i + 2, e);
    }
    const int count = (int)min(16L, C - c);
    for (int q = 0; q < count; q++)
        for (int t = 0; t < 9; t++) out[q * 9 + t] = e[t * 16 + q];
}
