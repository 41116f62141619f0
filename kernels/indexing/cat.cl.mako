<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[row, :] = x0[row, :] ++ x1[row, :] ++ ...: several tensors written side by side in one launch, whatever the dtype.
##
## x<k>: rows of n<k> elements, s<k> from one to the next; out: rows of `pitch` elements, of which this launch writes the first n0 + n1 + ... from its offset on.
## Geometry: LOOP global (ceil(sum / seg), ceil(rows / chunk)), local (1, 1); else global (ceil(sum / across), ceil(rows / down)), any local
##           size: each work-item writes E elements, a group apart.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong ulong2
## K          number of inputs, at least 1
## LOOP       bool
## E          1 2 4 8, 1 where LOOP; DOWN bool: in as many rows, else columns
<% ends = ["0"] + ["+".join(f"n{j}" for j in range(k + 1)) for k in range(K)] %>\
% if LOOP:
${ix.move(U)}
% endif
__kernel void cat(${", ".join(f"IN({U}, x{k})" for k in range(K))}, OUT(${U}, out), ${", ".join(f"const long n{k}" for k in range(K))},
                  ${", ".join(f"const long s{k}" for k in range(K))}, const long rows, const long pitch, const long seg, const long chunk) {
    PTR_OUT(${U}, out);
% if LOOP:
    const long lo = get_global_id(0) * seg, hi = min(${ends[K]}, lo + seg);
    const long first = get_global_id(1) * chunk, last = min(rows, first + chunk);
    for (long row = first; row < last; row++) {
        __global ${U}* restrict to = out + row * pitch;
% for k in range(K):
        {
            const long a = max(lo, (long)(${ends[k]})), b = min(hi, (long)(${ends[k + 1]}));
            clnn_move(to + a, x${k}_p + x${k}_o + row * s${k} - (${ends[k]}) + a, b - a);
        }
% endfor
    }
% else:
    const long lx = get_local_id(0), ly = get_local_id(1), wide = get_local_size(0), high = get_local_size(1);
    const long j0 = ${"get_global_id(0)" if DOWN else f"(get_global_id(0) - lx) * {E} + lx"}, row0 = ${f"(get_global_id(1) - ly) * {E} + ly" if DOWN else "get_global_id(1)"};
    if (j0 >= ${ends[K]} || row0 >= rows) return;
    ${U} v[${E}];
#pragma unroll
    for (int e = 0; e < ${E}; e++) {       /* what lies outside is read from the last place inside */
        const long j = ${"j0" if DOWN else f"min(j0 + e * wide, {ends[K]} - 1)"}, row = ${"min(row0 + e * high, rows - 1)" if DOWN else "row0"};
        __global const ${U}* from = x0_p + x0_o + row * s0 + j;
% for k in range(1, K):
        if (j >= ${ends[k]}) from = x${k}_p + x${k}_o + row * s${k} + j - (${ends[k]});
% endfor
        v[e] = *from;
    }
#pragma unroll
    for (int e = 0; e < ${E}; e++) {
        const long j = ${"j0" if DOWN else "j0 + e * wide"}, row = ${"row0 + e * high" if DOWN else "row0"};
        if (${"row < rows" if DOWN else f"j < {ends[K]}"}) out[row * pitch + j] = v[e];
    }
% endif
}
