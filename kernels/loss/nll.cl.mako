<%inherit file="/base.cl.mako"/>\
## Negative log-likelihood: part[p] = -w * x[t], used[p] = w for position p = (outer, inner) of x (outer, n, inner); 0 where t == ignore.
## One work-item per position.
##
## Parameter  legal values
## T          dtype row of x and weight; part and used hold its compute type; target is int64
## WEIGHT     0 | 1
__kernel void nll(IN(${T.c}, x), IN(long, target), IN(${T.c}, weight), OUT(${T.acc}, part), OUT(${T.acc}, used), const long rows, const long n,
                  const long inner, const long ignore, __global int* err, const int code) {
    PTR_IN(${T.c}, x);
    PTR_IN(long, target);
    PTR_IN(${T.c}, weight);
    PTR_OUT(${T.acc}, part);
    PTR_OUT(${T.acc}, used);
    const long p = get_global_id(0);
    if (p >= rows) return;
    const long t = target[p];
    ${T.acc} value = 0, w = 0;
    if (t != ignore) {
        if (t < 0 || t >= n) {
            CLNN_FAIL(err, code, t);
        } else {
            w = ${f"{T.load}(weight, t)" if WEIGHT else "1"};
            value = -w * ${T.load}(x, p / inner * n * inner + t * inner + p % inner);
        }
    }
    part[p] = value;
    used[p] = w;
}
