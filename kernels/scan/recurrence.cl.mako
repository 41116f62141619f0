<%inherit file="/base.cl.mako"/>\
## Y[t] = B[t] + A[t - LAG] * Y[t - 1] along the middle dimension of A, B, Y (outer, n, inner), starting from Y[-1] = 0.
##
## Geometry: global (inner, outer), one work-item per sequence.
##
## parameter  values     meaning
## T          dtype row  of A, B and Y
## REVERSE    bool       t runs from the last element to the first
## LAG        0 1        the factor is that of this or of the previous element
## complex    True
<% product = f"clnn_c_mul_{'f' if T.acc == 'float2' else 'd'}(a, y)" if T.is_complex else "a * y" %>\
__kernel void scan_recurrence(IN(${T.c}, A), IN(${T.c}, B), OUT(${T.c}, Y), const long outer, const long n, const long inner) {
    PTR_IN(${T.c}, A);
    PTR_IN(${T.c}, B);
    PTR_OUT(${T.c}, Y);
    const long i = get_global_id(0), o = get_global_id(1);
    if (i >= inner || o >= outer) return;
    const long step = ${"-inner" if REVERSE else "inner"};
    long at = (o * n${" + n - 1" if REVERSE else ""}) * inner + i;
    ${T.acc} y = ${T.load}(B, at);
    ${T.store}(Y, at, y);
    for (long k = 1; k < n; k++) {
        at += step;
        const ${T.acc} b = ${T.load}(B, at), a = ${T.load}(A, at${" - step" if LAG else ""});
        y = b + ${product};
        ${T.store}(Y, at, y);
    }
}
