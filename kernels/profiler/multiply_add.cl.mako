## How fast the device multiplies and adds when nothing else is in the way: the peak that profiles are compared with.
##
## out (n): the sum of each work-item's accumulators, so that the work cannot be left out.
## Geometry: one work-item per element; each runs `steps` rounds of 8 independent vector multiply-adds.
##
## Parameters
##   WIDTH   1 | 2 | 4 | 8 | 16   floats per vector: 16 fills the registers of a CPU, 4 those of a GPU
<%inherit file="/base.cl.mako"/>
<% V = "float" if WIDTH == 1 else f"float{WIDTH}" %>
__kernel void multiply_add(const long n, const long steps, const float c, __global float* out) {
    const long i = get_global_id(0);
    if (i >= n) return;
    const ${V} m = (${V})(c), s = (${V})((float)i);
% for k in range(8):
    ${V} a${k} = s + ${k}.0f;
% endfor
    for (long step = 0; step < steps; step++) {
% for k in range(8):
        a${k} = fma(a${k}, m, s);
% endfor
    }
    const ${V} total = ${" + ".join(f"a{k}" for k in range(8))};
    out[i] = ${"total" if WIDTH == 1 else " + ".join(f"total.s{'0123456789abcdef'[k]}" for k in range(WIDTH))};
}
