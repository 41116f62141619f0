<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[i] = the row number that K indices mean together: (i0 * size1 + i1) * size2 + i2 ..., negative ones counted from the end.
##
## Indices and out (n), contiguous, int64. Geometry: global (n), any local size.
##
## Parameter  legal values
## K          number of indices
${ix.row(True)}
__kernel void linear(${", ".join(f"IN(long, i{k})" for k in range(K))}, OUT(long, out), ${", ".join(f"const long d{k}" for k in range(K))},
                     const long n, __global int* err, ${", ".join(f"const int c{k}" for k in range(K))}) {
    const long i = get_global_id(0);
    if (i >= n) return;
    PTR_OUT(long, out);
    long at = 0;
% for k in range(K):
    { PTR_IN(long, i${k}); at = at * d${k} + clnn_row(i${k}[i], d${k}, err, c${k}); }
% endfor
    out[i] = at;
}
