<%inherit file="/base.cl.mako"/>\
<%namespace name="mat" file="/linalg/matrix.cl.mako"/>\
<%namespace name="blk" file="/linalg/blocks.cl.mako"/>\
## Solves with one or two larger triangular matrices on CPUs, as linalg/substitute: each block of B rows that is solved is taken from all rows that
## are left, in tiles that registers hold.
##
## B (count_b, n, r) with strides bb (0: one for all), rb and cb, or identity matrices where eye; X (count, n, r), column by column; room: count matrices
## whose rows have (blocks * B + W) elements, B = NV * W.
## first, second (count, n, n): matrices whose rows are contiguous, with strides b1 and b2 (0: one for all) and r1 and r2; upper (up) or lower triangles,
## with ones on the diagonal where unit; passes: how many of them. exchange, pivots, bp: as in linalg/substitute.
##
## Geometry: global (blocks of columns, count), local 1
##
## parameter  values         meaning
## T          float32 float64
## W          8 16           lanes of a vector along rows
## NV         number         vectors of a block
## R, P       numbers        rows and vectors of a tile that registers hold; P divides NV
<%
    C, V, B = T.c, f"{T.c}{W}", NV * W
%>\
${blk.functions(T, W, NV, R, P)}
__kernel ${mat.attr.alone(W)}
void linalg_substitute_blocks(IN(${C}, first), IN(${C}, second), IN(int, pivots), IN(${C}, B), OUT(${C}, X), OUT(${C}, room), const long rows, const long r,
                              const long b1, const long r1, const long b2, const long r2, const long bp, const long bb, const long rb, const long cb,
                              const long eye, const long exchange, const long passes, const long4 how) {
    PTR_IN(${C}, first);
    PTR_IN(${C}, second);
    PTR_IN(int, pivots);
    PTR_IN(${C}, B);
    PTR_OUT(${C}, X);
    PTR_OUT(${C}, room);
    const long z = get_global_id(1), s = ${blk.attr.room("r", B, W)};
    const int n = (int)rows, own = (int)get_global_id(0) * ${B}, width = min(${B}, (int)r - own);
    __global ${C}* w = room + z * n * s + own;
    __global const int* other = pivots + z * bp;
    ${V} u[${B * NV}];
    int order[${B}];
    for (int c = 0; c < ${B}; c++) order[c] = own + c;
    if (eye) {
        for (int i = 0; i < n; i++)
            for (int v = 0; v < ${NV}; v++) vstore${W}((${V})0, v, w + i * s);
        for (int c = 0; c < width; c++) w[(own + c) * s + c] = 1;
        // Instead of its rows the columns of the result change places: an identity matrix remains a triangle.
        for (int k = n - 1; k >= 0 && exchange == 1; k--) {
            const int p = clamp(other[k] - 1, 0, n - 1);
            for (int c = 0; c < ${B}; c++) order[c] = order[c] == k ? p : order[c] == p ? k : order[c];
        }
    } else {
        block_read(B + z * bb + own * cb, rb, cb, w, s, n, width);
        for (int k = 0; k < n && exchange == 1; k++) {
            const int p = clamp(other[k] - 1, 0, n - 1);
            if (p != k) block_exchange(w, s, k, p);
        }
    }
    const int blocks = (n + ${B - 1}) / ${B};
    for (int pass = 0; pass < passes; pass++) {
        const int up = (int)(pass ? how.s2 : how.s0), unit = (int)(pass ? how.s3 : how.s1), skipped = eye && !pass ? (up ? blocks - 1 - own / ${B} : own / ${B}) : 0;
        const long ls = pass ? r2 : r1;
        __global const ${C}* l = pass ? second + z * b2 : first + z * b1;
        for (int step = skipped; step < blocks; step++) {
            const int k = (up ? blocks - 1 - step : step) * ${B}, wide = min(${B}, n - k);
            block_solve(w + k * s, s, l + k * ls + k, ls, u, wide, up, unit);
            if (up) block_subtract(w, s, l + k, ls, u, k, wide);
            else block_subtract(w + (k + wide) * s, s, l + (k + wide) * ls + k, ls, u, n - k - wide, wide);
        }
    }
    for (int k = n - 1; k >= 0 && exchange == 2; k--) {
        const int p = clamp(other[k] - 1, 0, n - 1);
        if (p != k) block_exchange(w, s, k, p);
    }
    block_write(w, s, X + z * n * r, n, order, n, width);
}
