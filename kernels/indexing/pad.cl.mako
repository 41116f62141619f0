<%inherit file="/base.cl.mako"/>\
## out = x with its last RANK dimensions extended by values of its own.
##
## x (outer, i0, i1, ...), out (outer, o0, o1, ...), contiguous; b<d> elements come before dimension d (negative: are cut off).
## Geometry: LOOP global (ceil(outer * all other o / chunk)), chunk rows per work-item (CPUs); else global (o of the last dimension, outer * all other o).
## Any local size. Limits: see clnn.nn.functional.pad on sizes.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong ulong2
## RANK       1..3
## MODE       reflect replicate circular
## LOOP       bool
__kernel void pad(IN(${U}, x), OUT(${U}, out), const long rows, const long chunk,
                  ${", ".join(f"const long i{d}, const long o{d}, const long b{d}" for d in range(RANK))}) {
% if LOOP:
    const long first = get_global_id(0) * chunk;
    for (long row = first; row < min(rows, first + chunk); row++) {
% else:
    const long row = get_global_id(1), last = get_global_id(0);
    if (row >= rows || last >= o${RANK - 1}) return;
% endif
    long rest = row, at = 0, step = i${RANK - 1};
% for d in range(RANK - 2, -1, -1):
    {
        const long place = rest % o${d};
        rest /= o${d};
        ${source(d)}
        at += k * step;
        step *= i${d};
    }
% endfor
    __global const ${U}* restrict from = x_p + x_o + rest * step + at;
    __global ${U}* restrict to = out_p + out_o + row * o${RANK - 1};
% if LOOP:
    const long b = b${RANK - 1}, lo = max(b, (long)0), hi = max(lo, min(o${RANK - 1}, b + i${RANK - 1}));    /* out[lo..hi) is x itself */
    for (long place = 0; place < lo; place++) { ${source(RANK - 1)} to[place] = from[k]; }
    long j = lo;
% if U != "ulong2":
    for (; j + 16 <= hi; j += 16) vstore16(vload16(0, from + j - b), 0, to + j);
% endif
    for (; j < hi; j++) to[j] = from[j - b];
    for (long place = hi; place < o${RANK - 1}; place++) { ${source(RANK - 1)} to[place] = from[k]; }
    }
% else:
    const long place = last;
    ${source(RANK - 1)}
    to[last] = from[k];
% endif
}
<%def name="source(d)">\
% if MODE == "reflect":
long k = place < b${d} ? b${d} - place : place - b${d}; k = k >= i${d} ? 2 * (i${d} - 1) - k : k;\
% elif MODE == "replicate":
const long k = clamp(place - b${d}, (long)0, i${d} - 1);\
% else:
long k = place - b${d}; k = k < 0 ? k + i${d} : k >= i${d} ? k - i${d} : k;\
% endif
</%def>
