## Blocks of reflections I - V T V^T of B = NV * W columns, for kernels that have linalg/blocks.
<%def name="functions(T, W, NV, R, P)">\
<%
    C, V, B = T.c, f"{T.c}{W}", NV * W
%>\
/* u = the products of the columns of v with those of w */
static __attribute__((noinline)) void block_products(__global const ${C}* w, const long s, __global const ${C}* v, const long vs, ${V}* u, const int rows) {
    int q = 0;
% for many in (R, 1):
    for (; q + ${many} <= ${B}; q += ${many}) {
% for p in range(0, NV, P):
    {
        ${V} ${", ".join(f"c{r}_{k} = 0" for r in range(many) for k in range(P))};
        for (int i = 0; i < rows; i++) {
            const ${V} ${", ".join(f"b{k} = vload{W}({p + k}, w + i * s)" for k in range(P))};
% for r in range(many):
            const ${V} a${r} = (${V})v[i * vs + q + ${r}];
            ${" ".join(f"c{r}_{k} = fma(a{r}, b{k}, c{r}_{k});" for k in range(P))}
% endfor
        }
% for r in range(many):
        ${" ".join(f"u[(q + {r}) * {NV} + {p + k}] = c{r}_{k};" for k in range(P))}
% endfor
    }
% endfor
    }
% endfor
}
/* t: T of the reflections v, transposed */
static __attribute__((noinline)) void block_factors(__global const ${C}* v, const long s, const ${C}* tau, __global ${C}* t, const int rows) {
    ${V} u[${B * NV}];
    block_products(v, s, v, s, u, rows);
    const ${C}* g = (const ${C}*)u;
    for (int j = 0; j < ${B}; j++) {
        ${V} own[${NV}];
        for (int k = 0; k < ${NV}; k++) own[k] = 0;
        for (int q = 0; q < j; q++)
            for (int k = 0; k < ${NV}; k++) own[k] -= tau[j] * g[q * ${B} + j] * vload${W}(k, t + q * ${B});
        for (int k = 0; k < ${NV}; k++) vstore${W}(own[k], k, t + j * ${B});
        t[j * ${B} + j] = tau[j];
    }
}
/* w less V T^T V^T w, or less V T V^T w where `back` */
static __attribute__((noinline)) void block_apply(__global ${C}* w, const long s, __global const ${C}* v, const long vs, __global const ${C}* t, const int rows,
                                                  const int back) {
    ${V} u[${B * NV}], x[${B * NV}];
    block_products(w, s, v, vs, u, rows);
    for (int j = 0; j < ${B}; j++) {
        ${V} ${", ".join(f"c{k} = 0" for k in range(NV))};
        for (int q = back ? j : 0; q < (back ? ${B} : j + 1); q++) {
            const ${V} a = (${V})t[back ? q * ${B} + j : j * ${B} + q];
            ${" ".join(f"c{k} = fma(a, u[q * {NV} + {k}], c{k});" for k in range(NV))}
        }
        ${" ".join(f"x[j * {NV} + {k}] = c{k};" for k in range(NV))}
    }
    block_subtract(w, s, v, vs, x, rows, ${B});
}
</%def>
