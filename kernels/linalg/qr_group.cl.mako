<%inherit file="/base.cl.mako"/>\
## Q and R by Householder's reflections, with the signs of LAPACK: a work-item per column of a matrix in local memory.
##
## A (count, m, n) with strides batch, rs and cs; column by column: Q (count, m, few), R (count, few, n), where few is min(m, n), or m for all of Q.
## packed: R is as LAPACK has it, (count, m, n) with the reflections below the diagonal, and Q their factors (count, min(m, n)); few is m.
##
## Geometry: a work-group per matrix, of at least as many work-items as A and Q have columns.
##
## parameter  values         meaning
## T          float32 float64
## ROOM       number         most numbers of A and of Q with rows of m, or m + 1 where that is even
## LEAST      number         most rows or columns, whichever are fewer
## VECTORS    bool           Q is asked for
<% C = T.c %>\
__kernel void linalg_qr_group(IN(${C}, A), OUT(${C}, Q), OUT(${C}, R), const long rows, const long columns, const long few, const long batch,
                              const long rs, const long cs, const long packed) {
    PTR_IN(${C}, A);
    PTR_OUT(${C}, Q);
    PTR_OUT(${C}, R);
    __local ${C} w[${ROOM}], factors[${LEAST}];
    const long z = get_group_id(0);
    const int m = (int)rows, n = (int)columns, wide = (int)few, s = m | 1, steps = min(m, n), l = get_local_id(0), all = get_local_size(0);
    for (int e = l; e < m * n; e += all) {
        const int j = e / m, i = e - j * m;
        w[j * s + i] = A[z * batch + i * rs + j * cs];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __local ${C}* own = w + l * s;
    for (int k = 0; k < steps; k++) {
        __local ${C}* v = w + k * s;
        if (l == k) {
            ${C} large = 0, sum = 0;
            for (int i = k; i < m; i++) large = fmax(large, fabs(v[i]));
            const ${C} unit = large > 0 ? large : (${C})1, first = v[k] / unit;     // squares of small ones may be none
            for (int i = k + 1; i < m; i++) sum = fma(v[i] / unit, v[i] / unit, sum);
            ${C} tau = 0;
            if (sum != 0) {
                const ${C} size = sqrt(fma(first, first, sum)), beta = first < 0 ? size : -size;
                tau = (beta - first) / beta;
                for (int i = k + 1; i < m; i++) v[i] = v[i] / unit / (first - beta);
                v[k] = beta * unit;
            }
            factors[k] = tau;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l > k && l < n) {
            ${C} dot = own[k];
            for (int i = k + 1; i < m; i++) dot = fma(v[i], own[i], dot);
            dot *= factors[k];
            own[k] -= dot;
            for (int i = k + 1; i < m; i++) own[i] = fma(-dot, v[i], own[i]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int e = l; e < wide * n; e += all) {
        const int j = e / wide, i = e - j * wide;
        R[z * wide * n + e] = packed || i <= j ? w[j * s + i] : 0;
    }
    if (packed) for (int k = l; k < steps; k += all) Q[z * steps + k] = factors[k];
% if VECTORS:
    __local ${C} x[${ROOM}];
    if (l < wide) {
        __local ${C}* q = x + l * s;
        for (int i = 0; i < m; i++) q[i] = i == l;
        for (int k = min(l, steps - 1); k >= 0; k--) {          // later ones leave this column as it is
            __local const ${C}* v = w + k * s;
            ${C} dot = q[k];
            for (int i = k + 1; i < m; i++) dot = fma(v[i], q[i], dot);
            dot *= factors[k];
            q[k] -= dot;
            for (int i = k + 1; i < m; i++) q[i] = fma(-dot, v[i], q[i]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = l; e < m * wide; e += all) {
        const int j = e / m, i = e - j * m;
        Q[z * m * wide + e] = x[j * s + i];
    }
% endif
}
