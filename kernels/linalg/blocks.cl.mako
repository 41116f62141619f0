## Parts of kernels for CPUs that work on a matrix in memory in blocks of NV vectors of W columns: rows at w, s elements apart, of which a work-item owns
## one block. The distance of rows is no power of 2 (`room`), or they would share few places of the first cache.
<%!
    def room(n, B, W):
        """Elements from one row to the next."""
        return f"(({n} + {B - 1}) / {B} * {B} + {W})"
%>\
<%namespace name="lanes" file="/fourier/lanes.cl.mako"/>\
## functions: copies of a block to and from matrices of any strides, and products of a block of rows
<%def name="functions(T, W, NV, R, P)">\
<%
    C, V, B = T.c, f"{T.c}{W}", NV * W
    turn = "\n            ".join(lanes.attr.square(V, W // 4, W, "v"))
    column = lanes.attr.columns(W // 4, W)
%>\
/* a square of W x W: its rows lie `from` apart, its columns become rows number order[0], order[1], ... that lie `to` apart */
static __attribute__((noinline)) void block_turn(__global const ${C}* x, const long from, __global ${C}* y, const long to, const int* order) {
    ${V} ${", ".join(f"v{r} = vload{W}(0, x + {r} * from)" for r in range(W))};
            ${turn}
% for c in range(W):
    vstore${W}(v${column[c]}, 0, y + order[${c}] * to);
% endfor
}
/* w = `width` columns at p, and zeros behind them */
static __attribute__((noinline)) void block_read(__global const ${C}* p, const long rs, const long cs, __global ${C}* w, const long s, const int rows, const int width) {
    int done = 0, order[${W}];
    for (int c = 0; c < ${W}; c++) order[c] = c;
    if (rs == 1 && width == ${B})
        for (int c = 0; c < ${B}; c += ${W})
            for (done = 0; done + ${W} <= rows; done += ${W}) block_turn(p + done + c * cs, cs, w + done * s + c, s, order);
    for (int i = done; i < rows; i++) {
        if (cs == 1 && width == ${B})
            for (int c = 0; c < ${B}; c += ${W}) vstore${W}(vload${W}(0, p + i * rs + c), 0, w + i * s + c);
        else
            for (int c = 0; c < ${B}; c++) w[i * s + c] = c < width ? p[i * rs + c * cs] : 0;
    }
}
/* columns number order[0], order[1], ... at p, whose elements are neighbours, = the `width` columns of w */
static __attribute__((noinline)) void block_write(__global const ${C}* w, const long s, __global ${C}* p, const long cs, const int* order,
                                            const int rows, const int width) {
    int done = 0;
    if (width == ${B})
        for (int c = 0; c < ${B}; c += ${W})
            for (done = 0; done + ${W} <= rows; done += ${W}) block_turn(w + done * s + c, s, p + done, cs, order + c);
    for (int i = done; i < rows; i++)
        for (int c = 0; c < width; c++) p[i + order[c] * cs] = w[i * s + c];
}
/* u: the square of ${B} x ${B} at x turned */
static __attribute__((noinline)) void block_columns(__global const ${C}* x, const long s, ${C}* u) {
    for (int i = 0; i < ${B}; i += ${W})
        for (int c = 0; c < ${B}; c += ${W}) {
            __global const ${C}* from = x + i * s + c;
            ${V} ${", ".join(f"v{r} = vload{W}(0, from + {r} * s)" for r in range(W))};
            ${turn}
% for c in range(W):
            vstore${W}(v${column[c]}, 0, u + (c + ${c}) * ${B} + i);
% endfor
        }
}
static inline void block_exchange(__global ${C}* w, const long s, const int a, const int b) {
    for (int v = 0; v < ${NV}; v++) {
        const ${V} t = vload${W}(v, w + a * s);
        vstore${W}(vload${W}(v, w + b * s), v, w + a * s);
        vstore${W}(t, v, w + b * s);
    }
}
/* `rows` rows of a block at w less those at l (`depth` elements, neighbours, rows ls apart) times the vectors u */
static __attribute__((noinline)) void block_subtract(__global ${C}* w, const long s, __global const ${C}* l, const long ls, const ${V}* u,
                                            const int rows, const int depth) {
    int i = 0;
% for rows in (R, 1) if R > 1 else (1,):
    for (; i + ${rows} <= rows; i += ${rows}) {
% for p in range(0, NV, P):
    {
% for r in range(rows):
        ${V} ${", ".join(f"c{r}_{v} = vload{W}({p + v}, w + (i + {r}) * s)" for v in range(P))};
% endfor
        for (int q = 0; q < depth; q++) {
            const ${V} ${", ".join(f"b{v} = u[q * {NV} + {p + v}]" for v in range(P))};
% for r in range(rows):
            const ${V} a${r} = (${V})l[(i + ${r}) * ls + q];
            ${" ".join(f"c{r}_{v} = fma(-a{r}, b{v}, c{r}_{v});" for v in range(P))}
% endfor
        }
% for r in range(rows):
        ${" ".join(f"vstore{W}(c{r}_{v}, {p + v}, w + (i + {r}) * s);" for v in range(P))}
% endfor
    }
% endfor
    }
% endfor
}
/* u = `wide` rows of a block at w solved with the upper or lower triangle at l, whose diagonal is taken as ones where `unit`; w = u */
static __attribute__((noinline)) void block_solve(__global ${C}* w, const long s, __global const ${C}* l, const long ls, ${V}* u,
                                            const int wide, const int up, const int unit) {
    for (int done = 0; done < wide; done += ${R}) {
        const int some = min(${R}, wide - done), t = up ? wide - done - some : done, end = up ? t + some : 0;
        block_subtract(w + t * s, s, l + t * ls + end, ls, u + end * ${NV}, some, done);
        for (int e = 0; e < some; e++) {
            const int i = up ? t + some - 1 - e : t + e;
            for (int v = 0; v < ${NV}; v++) {
                ${V} own = vload${W}(v, w + i * s);
                for (int q = up ? i + 1 : t; q < (up ? t + some : i); q++) own -= l[i * ls + q] * u[q * ${NV} + v];
                if (!unit) own /= l[i * ls + i];
                u[i * ${NV} + v] = own;
                vstore${W}(own, v, w + i * s);
            }
        }
    }
}
</%def>
