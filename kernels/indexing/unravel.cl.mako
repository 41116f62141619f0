<%inherit file="/base.cl.mako"/>\
## out[k, d] = index along dimension d of flat position flat[k].
##
## flat (n), out (n, RANK), int64, contiguous. Geometry: global (n), any local size.
##
## Parameter  legal values
## RANK       number of dimensions, at least 1
__kernel void unravel(IN(long, flat), OUT(long, out), const long n, ${", ".join(f"const long s{d}" for d in range(RANK))}) {
    const long k = get_global_id(0);
    if (k >= n) return;
    PTR_OUT(long, out);
    long rest = flat_p[flat_o + k];
% for d in range(RANK - 1, -1, -1):
    out[k * ${RANK} + ${d}] = ${f"rest % s{d}" if d else "rest"};
% if d:
    rest /= s${d};
% endif
% endfor
}
