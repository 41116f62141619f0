<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
## Y = epilogue(P[0] + P[1] + ... + bias): adds the partial results of a convolution whose steps were split, in a fixed order.
##
## Y: d.s0 elements, d.s2 of each of d.s3 channels after another; P: d.s1 such results in the compute type.
## Geometry: global (ceil(d.s0 / W)), any local size.
##
## Parameter  legal values
## TC         dtype row of Y; BIAS: "" | m; EPI as in matmul/tile
## W          elements of a work-item: 4 where they belong to one channel and EPI takes vectors, else 1
<%
    ACC, V = TC.acc, TC.acc if W == 1 else f"{TC.acc}{W}"
%>\
% if W > 1:
${vec.vector_io(TC, W)}
% endif
__kernel void conv_sum(IN(${ACC}, P), OUT(${TC.c}, Y), IN(${TC.c}, bias), const long8 d) {
    const long i = get_global_id(0) * ${W}, count = d.s0;
    if (i >= count) return;
    __global const ${ACC}* P = P_p + P_o + i;
% if BIAS:
    PTR_IN(${TC.c}, bias);
    const long row = i / d.s2 % d.s3;
% endif
    const bool first = true, last = true;
    ${V} v = 0;
    for (int s = 0; s < (int)d.s1; s++, P += count) v += *(__global const ${V}*)P;
    __global ${TC.c}* p = Y_p + Y_o + i;
    ${tile.finish(TC, ACC, V, BIAS, False, EPI, "p", "0", W > 1)}
    ${f"{TC.store}(p, 0, v)" if W == 1 else f"stv_{TC.name}(p, v)"};
}
