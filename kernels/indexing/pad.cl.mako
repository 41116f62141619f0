<%inherit file="/base.cl.mako"/>\
## out = x with its last RANK dimensions extended by values of its own, or by `value`.
##
## x (outer, i0, i1, ...), out (outer, o0, o1, ...), contiguous; b<d> elements come before dimension d (negative: are cut off, but not by MODE constant).
## Geometry: LOOP global (ceil(outer * all other o / chunk)), chunk rows per work-item (CPUs); else global (o of the last dimension, outer * all other o).
## Any local size. Limits: see clnn.nn.functional.pad on sizes.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong ulong2
## RANK       at least 1
## MODE       reflect replicate circular constant
## LOOP       bool
<% CONSTANT = MODE == "constant" %>\
__kernel void pad(IN(${U}, x), OUT(${U}, out), const long rows, const long chunk,
                  ${f"const {U} value, " if CONSTANT else ""}${", ".join(f"const long i{d}, const long o{d}, const long b{d}" for d in range(RANK))}) {
% if LOOP:
    const long first = get_global_id(0) * chunk;
    for (long row = first; row < min(rows, first + chunk); row++) {
% else:
    const long row = get_global_id(1), last = get_global_id(0);
    if (row >= rows || last >= o${RANK - 1}) return;
% endif
    long rest = row, at = 0, step = i${RANK - 1};
% if CONSTANT:
    bool inside = true;
% endif
% for d in range(RANK - 2, -1, -1):
    {
        const long place = rest % o${d};
        rest /= o${d};
        ${source(d)}
% if CONSTANT:
        inside = inside && k >= 0 && k < i${d};
% endif
        at += k * step;
        step *= i${d};
    }
% endfor
    __global const ${U}* restrict from = x_p + x_o + rest * step + at;
    __global ${U}* restrict to = out_p + out_o + row * o${RANK - 1};
% if LOOP:
    const long b = b${RANK - 1}, lo = ${"!inside ? o%d : " % (RANK - 1) if CONSTANT else ""}max(b, (long)0);
    const long hi = max(lo, min(o${RANK - 1}, b + i${RANK - 1}));    /* out[lo..hi) is x itself */
    ${outside("0", "lo")}
    long j = lo;
% if U != "ulong2":
    for (; j + 16 <= hi; j += 16) vstore16(vload16(0, from + j - b), 0, to + j);
% endif
    for (; j < hi; j++) to[j] = from[j - b];
    ${outside("hi", f"o{RANK - 1}")}
    }
% else:
    const long place = last;
    ${source(RANK - 1)}
% if CONSTANT:
    to[last] = inside && k >= 0 && k < i${RANK - 1} ? from[k] : value;
% else:
    to[last] = from[k];
% endif
% endif
}
<%def name="outside(first, end)">\
% if MODE == "constant" and U != "ulong2":
{
        long place = ${first};
        for (; place + 16 <= ${end}; place += 16) vstore16((${U}16)value, 0, to + place);
        for (; place < ${end}; place++) to[place] = value;
    }\
% elif MODE == "constant":
for (long place = ${first}; place < ${end}; place++) to[place] = value;\
% else:
for (long place = ${first}; place < ${end}; place++) { ${source(RANK - 1)} to[place] = from[k]; }\
% endif
</%def>
<%def name="source(d)">\
% if MODE == "reflect":
long k = place < b${d} ? b${d} - place : place - b${d}; k = k >= i${d} ? 2 * (i${d} - 1) - k : k;\
% elif MODE == "replicate":
const long k = clamp(place - b${d}, (long)0, i${d} - 1);\
% elif MODE == "constant":
const long k = place - b${d};\
% else:
long k = place - b${d}; k = k < 0 ? k + i${d} : k >= i${d} ? k - i${d} : k;\
% endif
</%def>
