<%inherit file="/base.cl.mako"/>\
<%namespace name="pairs" file="/matmul/pairs.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Y[z, i, k]: the words of A (M, d.s2 steps of K, any strides) for matmul/words, G neighbouring steps of K in 32 bits, zeros behind the last.
##
## Geometry: global (pieces of CHUNK words along K, strips of d.s9 rows, batch), local (1, 1, 1).
##
## Parameter  legal values
## T          dtype row of A: bfloat16, int8, uint8
## W CHUNK    lanes of a vector; words of a row that a work-item writes, a multiple of W
## READ       rows: as A's rows lie, or without order; cols: A's columns have unit stride, blocks of W x W words are turned in registers
##
## Of int8 each number becomes a byte that is greater by 128.
<% G, FLIP = 4 // T.itemsize, " ^ 0x80808080u" if T.name == "int8" else "" %>\
${pairs.reading(T, W)}
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_interleave(IN(${T.c}, X), OUT(uint, Y), const long16 d, const long8 z) {
    const long M = d.s0, steps = d.s2, K = (steps + ${G - 1}) / ${G}, ras = d.s3, cas = d.s4, b = get_global_id(2);
    const long begin = get_global_id(0) * ${CHUNK}, end = min(K, begin + ${CHUNK}), row_end = min(M, (long)(get_global_id(1) + 1) * d.s9);
    __global const ${T.c}* restrict X = X_p + X_o + (b / z.s0) * z.s1 + (b % z.s0) * z.s4;
    __global uint* restrict Y = Y_p + Y_o + b * M * K;
    long row = get_global_id(1) * d.s9;
% if READ == "cols":
    for (; row + ${W} <= row_end; row += ${W}) {
        long k = begin;
        for (; k + ${W} <= end && (k + ${W}) * ${G} <= steps; k += ${W}) {
            __global const ${T.c}* x = X + k * ${G} * cas + row;
% for c in range(W):
            uint${W} t${c} = words(x + ${c * G} * cas, cas, ${G})${FLIP};
% endfor
            ${vec.transpose(f"uint{W}", W, "t")}
% for c in range(W):
            vstore${W}(t${c}, 0, Y + (row + ${c}) * K + k);
% endfor
        }
        for (; k < end; k++) {
            const uint${W} t = words(X + k * ${G} * cas + row, cas, (int)min(${G}L, steps - k * ${G}))${FLIP};
% for c in range(W):
            Y[(row + ${c}) * K + k] = t.s${"0123456789abcdef"[c]};
% endfor
        }
    }
% endif
    for (; row < row_end; row++) {
        __global uint* y = Y + row * K;
        __global const ${T.c}* x = X + row * ras;
        long k = begin;
        if (cas == 1)
            for (; k + ${W} <= end && (k + ${W}) * ${G} <= steps; k += ${W}) vstore${W}(vload${W}(0, (__global const uint*)(x + k * ${G}))${FLIP}, 0, y + k);
        for (; k < end; k++) y[k] = word(x + k * ${G} * cas, cas, (int)min(${G}L, steps - k * ${G}))${FLIP};
    }
}
