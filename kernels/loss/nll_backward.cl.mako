<%inherit file="/base.cl.mako"/>\
## Gradient of loss/nll: gx (outer, n, inner) is 0 but at the target of each position, where it is -w * k (k as in
## loss/cross_entropy_backward). One work-item per element.
##
## Parameter  legal values
## T WEIGHT   as in loss/nll; REDUCTION  none | sum | mean
__kernel void nll_backward(IN(${T.c}, g), IN(${T.acc}, total), IN(long, target), IN(${T.c}, weight), OUT(${T.c}, gx), const long count, const long n,
                           const long inner, const long ignore) {
    PTR_IN(${T.c}, g);
    PTR_IN(${T.acc}, total);
    PTR_IN(long, target);
    PTR_IN(${T.c}, weight);
    PTR_OUT(${T.c}, gx);
    const long at = get_global_id(0);
    if (at >= count) return;
    const long i = at / inner % n, p = at / (inner * n) * inner + at % inner, t = target[p];
    ${T.acc} v = 0;
    if (t == i && t != ignore) {
% if REDUCTION == "none":
        v = -${T.load}(g, p);
% elif REDUCTION == "sum":
        v = -${T.load}(g, 0);
% else:
        v = -${T.load}(g, 0) / total[0];
% endif
% if WEIGHT:
        v *= ${T.load}(weight, t);
% endif
    }
    ${T.store}(gx, at, v);
}
