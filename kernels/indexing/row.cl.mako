## Reading an index: shared by the kernels of this folder.
##
## row(WRAP)  defines clnn_row(v, size, err, code): the row that index v means; out of range it reports and gives row `miss`, 0 for what reads, so that
##            nothing outside the operand is ever touched, and -1 or `size` for what writes, which leaves it out. WRAP: negative indices count from the end.
<%def name="row(WRAP, miss=0)">
static inline long clnn_row(long v, long size, __global int* err, int code) {
    const long w = ${"v < 0 ? v + size : v" if WRAP else "v"};
    if ((ulong)w >= (ulong)size) { CLNN_FAIL(err, code, v); return ${miss}; }
    return w;
}
</%def>
##
## pick(U, TI, WRAP)  defines clnn_pick(to, from, index, n, size, step, unit, err, code): to[k] = from[index[k] * step + k * unit] without a branch per
##                element. Elements are loaded one by one, as gathering instructions are no faster: on Intel's runtime sixteen after their indices have been
##                checked in a vector, elsewhere in a loop after one over all indices. The one unsigned comparison matters: PoCL's code for two signed ones
##                is 7 times slower.
<%def name="pick(U, TI, WRAP)">
<% row = "(v < 0 ? v + size : v)" if WRAP else "v" %>\
${apart()}static inline void clnn_pick(__global ${U}* APART to, __global const ${U}* APART from, __global const ${TI.c}* APART index, long n, long size,
                             long step, long unit, __global int* err, int code) {
% if U != "ulong2":
#ifdef CLNN_INTEL_CPU
    for (; n >= 16; n -= 16, to += 16, index += 16, from += 16 * unit) {
% for h in range(2):
        long8 v${h} = convert_long8(vload8(${h}, index));
% if WRAP:
        v${h} = v${h} < 0 ? v${h} + size : v${h};
% endif
% endfor
        if (any(as_ulong8(v0) >= (ulong8)size) | any(as_ulong8(v1) >= (ulong8)size))
            for (int k = 0; k < 16; k++) to[k] = from[clnn_row(index[k], size, err, code) * step + k * unit];
        else
            vstore16((${U}16)(${", ".join(f"from[v{k // 8}.s{k % 8} * step + {k} * unit]" for k in range(16))}), 0, to);
    }
#endif
% endif
    for (long k0 = 0; k0 < n; k0 += 256) {
        const int m = (int)min((long)256, n - k0);
        ulong worst = 0;
        for (int k = 0; k < m; k++) {
            const long v = index[k0 + k];
            worst = max(worst, (ulong)${row});
        }
        if (worst >= (ulong)size)
            for (int k = 0; k < m; k++) to[k0 + k] = from[clnn_row(index[k0 + k], size, err, code) * step + (k0 + k) * unit];
        else {
            #pragma clang loop vectorize(disable)
            for (int k = 0; k < m; k++) {
                const long v = index[k0 + k];
                to[k0 + k] = from[${row} * step + (k0 + k) * unit];
            }
        }
    }
}
</%def>
##
## move(U)  defines clnn_move(to, from, n): a run of n elements in whole vectors, the last of which may overlap the one before; not every driver makes
##          vectors of the loop, and short runs would be mostly its rest.
<%def name="move(U)">
${apart()}
static inline void clnn_move(__global ${U}* APART to, __global const ${U}* APART from, long n) {
% if U != "ulong2":
% for W, before in ((16, ""), (8, "else "), (4, "else ")):
    ${before}if (n >= ${W}) {
        for (long j = 0; j + ${W} <= n; j += ${W}) vstore${W}(vload${W}(0, from + j), 0, to + j);
        vstore${W}(vload${W}(0, from + n - ${W}), 0, to + n - ${W});
    }
% endfor
    else
% endif
    for (long j = 0; j < n; j++) to[j] = from[j];
}
</%def>
##
<%def name="apart()">
#if defined(CLNN_POCL) || defined(CLNN_INTEL_CPU)
#define APART restrict
#else
#define APART                   /* Oclgrind 21.10 stops at an intrinsic that inlining makes of it */
#endif
</%def>
##
## fold(OP, T)  the C expression that folds value s into destination value d; names d, s
<%def name="fold(OP, T)" filter="trim">
<% times = f"clnn_c_mul_{'d' if 'double' in T.acc else 'f'}(d, s)" if T.is_complex else "d * s" %>\
<% text = dict(add="d + s", mul=times, max="(s > d || s != s) ? s : d", min="(s < d || s != s) ? s : d", set="s")[OP] %>${text}
</%def>
