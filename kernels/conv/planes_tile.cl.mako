<%namespace name="lanes" file="/fourier/lanes.cl.mako"/>\
## Tiles of W planes in local memory with a plane per lane, for depthwise convolutions: C functions.
##
## def                emits
## places(T, W)       places(at, rows, cols, pitch, first): at[] of the elements of a tile in their order, rows of `pitch` vectors whose elements begin at `first`
## take(T, W)         take(x, planes, depths, rows, cols, depth, row, tile, at): elements of the W planes at x + planes[lane] into the tile
## put(T, W)          put(y, plane, count, depths, rows, cols, depth, row, tile, at): back into `count` planes, which lie `plane` apart
<%!
    def piece(T):
        """Elements of 16 bytes, within which lanes change places cheaply."""
        return 2 if T.acc == "double" else 4
%>\
<%def name="places(T, W)">
static inline void places(__local ushort* at, const int rows, const int cols, const int pitch, const int first) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) at[r * cols + c] = r * pitch + first + c;
}
</%def>
<%def name="runs()">
    int length = cols, lines = rows, layers = depths;       // rows that follow each other make one run
    if (cols == row) { length *= rows; lines = 1; }
    if (lines == 1 && length == depth) { length *= depths; layers = 1; }
</%def>
<%def name="turn(T, W)">
% for line in lanes.module.square(f"{T.acc}{W}", piece(T), W, "t"):
                ${line}
% endfor
</%def>
<%def name="take(T, W)">
<% V, order = f"{T.acc}{W}", lanes.module.columns(piece(T), W) %>\
static inline void take(__global const ${T.c}* x, const long* planes, const int depths, const int rows, const int cols, const long depth, const long row,
                        __local ${V}* tile, __local const ushort* at) {
    ${runs()}
    for (int z = 0; z < layers; z++)
        for (int y = 0; y < lines; y++, at += length) {
            __global const ${T.c}* from = x + z * depth + y * row;
            int q = 0;
            while (q < length) {
                if (q + ${W} > length) {
                    if (length < ${W} || length - q <= 2) break;
                    q = length - ${W};                      // the last elements again rather than fewer
                }
% for l in range(W):
                ${V} t${l} = ldv_${T.name}(from + planes[${l}] + q);
% endfor
                ${turn(T, W)}
% for l, c in enumerate(order):
                tile[at[q + ${l}]] = t${c};
% endfor
                q += ${W};
            }
            for (; q < length; q++) {
                ${T.acc} t[${W}];
% for l in range(W):
                t[${l}] = ${T.load}(from + planes[${l}], q);
% endfor
                tile[at[q]] = vload${W}(0, t);
            }
        }
}
</%def>
<%def name="put(T, W)">
<% V, order = f"{T.acc}{W}", lanes.module.columns(piece(T), W) %>\
static inline void put(__global ${T.c}* y, const long plane, const int count, const int depths, const int rows, const int cols, const long depth,
                       const long row, __local const ${V}* tile, __local const ushort* at) {
    ${runs()}
    for (int z = 0; z < layers; z++)
        for (int r = 0; r < lines; r++, at += length) {
            __global ${T.c}* to = y + z * depth + r * row;
            int q = 0;
            while (q < length) {
                if (q + ${W} > length) {
                    if (length < ${W} || length - q <= 2) break;
                    q = length - ${W};
                }
% for l in range(W):
                ${V} t${l} = tile[at[q + ${l}]];
% endfor
                ${turn(T, W)}
                if (count == ${W}) {
% for l, c in enumerate(order):
                    stv_${T.name}(to + ${l} * plane + q, t${c});
% endfor
                } else {
% for l, c in enumerate(order[:-1]):
                    if (count > ${l}) stv_${T.name}(to + ${l} * plane + q, t${c});
% endfor
                }
                q += ${W};
            }
            for (; q < length; q++) {
                ${T.acc} t[${W}];
                vstore${W}(tile[at[q]], 0, t);
                for (int l = 0; l < count; l++) ${T.store}(to + l * plane, q, t[l]);
            }
        }
}
</%def>
