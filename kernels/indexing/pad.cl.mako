<%inherit file="/base.cl.mako"/>\
## out = x with its last RANK dimensions extended by values of its own.
##
## x (outer, i0, i1, ...), out (outer, o0, o1, ...), contiguous; b<d> elements come before dimension d (negative: are cut off).
## Geometry: global (o of the last dimension, outer * all other o), any local size. Limits: see clnn.nn.functional.pad on sizes.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong
## RANK       1..3
## MODE       reflect replicate circular
__kernel void pad(IN(${U}, x), OUT(${U}, out), const long rows,
                  ${", ".join(f"const long i{d}, const long o{d}, const long b{d}" for d in range(RANK))}) {
    const long last = get_global_id(0), row = get_global_id(1);
    if (last >= o${RANK - 1}) return;
    long rest = row, at = 0, step = 1;
% for d in range(RANK - 1, -1, -1):
    {
% if d == RANK - 1:
        long k = last - b${d};
% else:
        long k = rest % o${d} - b${d};
        rest /= o${d};
% endif
% if MODE == "reflect":
        k = k < 0 ? -k : k;
        k = k >= i${d} ? 2 * (i${d} - 1) - k : k;
% elif MODE == "replicate":
        k = clamp(k, (long)0, i${d} - 1);
% else:
        k = k < 0 ? k + i${d} : k >= i${d} ? k - i${d} : k;
% endif
        at += k * step;
        step *= i${d};
    }
% endfor
    out_p[out_o + row * o${RANK - 1} + last] = x_p[x_o + rest * step + at];
}
