<%inherit file="/base.cl.mako"/>\
<%namespace name="lanes" file="/scan/lanes.cl.mako"/>\
## out[row, k] = xk[row]: single columns written side by side on CPUs, whatever the dtype; vectors of 16 rows of each are turned in registers.
##
## x<k> (rows), out (rows, K), all contiguous. Geometry: global (ceil(rows / chunk)), local 1; chunk is a multiple of 16.
##
## Parameter  legal values
## U          C type of the element's width: uchar ushort uint ulong
## K          number of inputs, 2..15
__kernel void interleave(${", ".join(f"IN({U}, x{k})" for k in range(K))}, OUT(${U}, out), const long rows, const long chunk) {
% for k in range(K):
    PTR_IN(${U}, x${k});
% endfor
    PTR_OUT(${U}, out);
    long row = get_global_id(0) * chunk;
    const long end = min(rows, row + chunk);
    for (; row + 16 <= end; row += 16) {
% for k in range(K):
        const ${U}16 v${k} = vload16(0, x${k} + row);
% endfor
% for q, sources in enumerate(lanes.attr.places(K, 16, lambda f: f % K * 16 + f // K)):
        vstore16(${lanes.attr.gathered("v", U, 16, sources, "0")}, ${q}, out + row * ${K});
% endfor
    }
    for (; row < end; row++) {
% for k in range(K):
        out[row * ${K} + ${k}] = x${k}[row];
% endfor
    }
}
