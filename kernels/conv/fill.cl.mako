<%inherit file="/base.cl.mako"/>\
## What a convolution leaves where no tap meets an element: Y[n, c, i] = epilogue(bias[c]).
##
## Y (N, C, row); d = (C, row). Geometry: global (ceil(row / 4096), N * C), local (1, 1): a work-item writes 4096 elements.
##
## Parameter  legal values
## TC TB      dtype rows of Y and of bias
## BIAS       "" | m; EPI as in matmul/tile
<% ACC = TC.acc %>\
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_fill(OUT(${TC.c}, Y), IN(${TB.c}, bias), const long8 d) {
    const long C = d.s0, row = d.s1, plane = get_global_id(1), begin = get_global_id(0) * 4096, end = min(row, begin + 4096);
    __global ${TC.c}* restrict out = Y_p + Y_o + plane * row;
    ${ACC} v = ${f"{TB.load}(bias_p + bias_o, plane % C)" if BIAS else "0"};
% if EPI:
    v = ${EPI.replace("VT", ACC)};
% endif
    for (long i = begin; i < end; i++) ${TC.store}(out, i, v);
}
