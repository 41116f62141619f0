## What the attention kernels for CPUs share: functions of vectors, the mask, parameters of mask and dropout.
<%namespace name="lanes" file="/common/lanes.cl.mako"/>\
<%namespace name="vec" file="/matmul/vec.cl.mako"/>\
<%def name="functions(MASK)">
${lanes.functions()}
% if MASK:
${vec.vector_io(MASK, 16)}
/* Scores x of keys j.. of a query, masked; m points at the query's row of the mask, whose keys lie m3 apart and end at S. */
static inline float16 masked(float16 x, __global const ${MASK.c}* m, long m3, long j, long S) {
<% kind = "int" if MASK.name == "bool" else "float" %>\
    ${kind}16 t;
    if (m3 == 1 && j + 16 <= S) t = ldv_${MASK.name}(m + j);
    else {
        ${kind} e[16];
        for (int q = 0; q < 16; q++) e[q] = ${MASK.load}(m, min(j + q, S - 1) * m3);
        t = vload16(0, e);
    }
% if MASK.name == "bool":
    return t != 0 ? x : (float16)-INFINITY;
% else:
    return x + t;
% endif
}
% endif
</%def>
<%def name="parameters(MASK, DROP)">
% if MASK:
        , IN(${MASK.c}, mask), const long m0, const long m1, const long m2, const long m3
% endif
% if DROP:
        , const long seed, const long draw, const long limit, const float gain
% endif
</%def>
