<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
## out = x with its last RANK dimensions extended by values of its own, or by `value`.
##
## x (outer, i0, i1, ...), out (outer, o0, o1, ...), contiguous; b<d> elements come before dimension d (negative: are cut off, but not by MODE constant).
## Geometry: LOOP global (ceil(outer * all other o / chunk), ceil(o of the last dimension / span)), a work-item does `span` places of chunk rows (CPUs);
## else global (o of the last dimension, outer * all other o).
## Any local size. Limits: see clnn.nn.functional.pad on sizes.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong ulong2
## RANK       at least 1
## MODE       reflect replicate circular constant
## LOOP       bool
<%
    CONSTANT, last = MODE == "constant", RANK - 1
    sizes = ", ".join(f"const long i{d}, const long o{d}, const long b{d}" for d in range(RANK))
%>\
% if LOOP:
${ix.move(U)}
% endif
__kernel void pad(IN(${U}, x), OUT(${U}, out), const long rows, const long chunk, const long span, ${f"const {U} value, " if CONSTANT else ""}${sizes}) {
% if LOOP:
    const long first = get_global_id(0) * chunk, end = min(rows, first + chunk);
    const long start = get_global_id(1) * span, stop = min(start + span, o${last});
    if (first >= end || start >= stop) return;
${places("first")}
    for (long row = first; row < end; row++) {
% else:
    const long row = get_global_id(1), at${last} = get_global_id(0);
    if (row >= rows || at${last} >= o${last}) return;
${places("row")}
% endif
    long from_row = outer;
% if CONSTANT:
    bool inside = true;
% endif
% for d in range(last):
    {
        ${source(d, f"at{d}")}
% if CONSTANT:
        inside = inside && k >= 0 && k < i${d};
% endif
        from_row = from_row * i${d} + k;
    }
% endfor
    __global const ${U}* restrict from = x_p + x_o + from_row * i${last};
    __global ${U}* restrict to = out_p + out_o + row * o${last};
% if LOOP:
    const long b = b${last}, lo = ${"!inside ? stop : " if CONSTANT else ""}clamp(b, start, stop);
    const long hi = clamp(b + i${last}, lo, stop);           /* out[lo..hi) is x itself */
    ${outside("start", "lo")}
    clnn_move(to + lo, from + lo - b, hi - lo);
    ${outside("hi", "stop")}
% for d in range(last - 1, -1, -1):
    if (++at${d} == o${d}) { at${d} = 0;
% endfor
    outer++;${" }" * last}
    }
% else:
    ${source(last, f"at{last}")}
% if CONSTANT:
    to[at${last}] = inside && k >= 0 && k < i${last} ? from[k] : value;
% else:
    to[at${last}] = from[k];
% endif
% endif
}
## places: where the row lies along each dimension but the last
<%def name="places(row)">\
    long outer = ${row};
% for d in range(RANK - 2, -1, -1):
    long at${d} = outer % o${d};
    outer /= o${d};
% endfor
</%def>
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
_Pragma("clang loop vectorize(disable)") for (long place = ${first}; place < ${end}; place++) { ${source(RANK - 1, "place")} to[place] = from[k]; }\
% endif
</%def>
<%def name="source(d, place)">\
% if MODE == "reflect":
long k = ${place} < b${d} ? b${d} - ${place} : ${place} - b${d}; k = k >= i${d} ? 2 * (i${d} - 1) - k : k;\
% elif MODE == "replicate":
const long k = clamp(${place} - b${d}, (long)0, i${d} - 1);\
% elif MODE == "constant":
const long k = ${place} - b${d};\
% else:
long k = ${place} - b${d}; k = k < 0 ? k + i${d} : k >= i${d} ? k - i${d} : k;\
% endif
</%def>
