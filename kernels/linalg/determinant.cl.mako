<%inherit file="/base.cl.mako"/>\
## Determinants from factorisations: LU (count, n, n), whose elements of the diagonal are `step` apart and whose matrices `far`, pivots
## (count, n) counted from 1. Without LOG: the determinant as sign; with it its sign (-1, 0, 1) and the logarithm of its size; each (count).
##
## Geometry: one work-item per matrix.
##
## parameter  values
## T          float32 float64
## LOG        bool
<% C = T.c %>\
__kernel void linalg_determinant(IN(${C}, LU), IN(int, pivots), OUT(${C}, sign)${", OUT(%s, size)" % C if LOG else ""}, const long count, const long n, const long far,
                                 const long step) {
    PTR_IN(${C}, LU);
    PTR_IN(int, pivots);
    PTR_OUT(${C}, sign);
    const long z = get_global_id(0);
    if (z >= count) return;
    ${C} product = 1, sum = 0;
    for (long k = 0; k < n; k++) {
        const ${C} d = LU[z * far + k * step], turned = pivots[z * n + k] == k + 1 ? d : -d;
% if LOG:
        product *= d != d ? d : (${C})((turned > 0) - (turned < 0));
        sum += ${"clnn_log" if C == "float" else "log"}(fabs(d));
% else:
        product *= turned;
% endif
    }
    sign[z] = product;
% if LOG:
    PTR_OUT(${C}, size);
    size[z] = sum;
% endif
}
