<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out[row, :] = x0[row, :] ++ x1[row, :] ++ ...: several tensors written side by side in one launch, whatever the dtype.
##
## x<k>: rows of n<k> elements, s<k> from one to the next; out: rows of `pitch` elements, of which this launch writes the first n0 + n1 + ... from its offset on.
## Geometry: LOOP global (ceil(sum / seg), ceil(rows / chunk)), local (1, 1); else global (sum, rows), any local size.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong
## K          number of inputs, at least 1
## LOOP       bool
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
    const long j = get_global_id(0), row = get_global_id(1);
    if (j >= ${ends[K]} || row >= rows) return;
    ${U} v;
% for k in range(K):
    ${"else " if k else ""}${f"if (j < {ends[k + 1]}) " if k < K - 1 else ""}v = (x${k}_p + x${k}_o)[row * s${k} + j - (${ends[k]})];
% endfor
    out[row * pitch + j] = v;
% endif
}
