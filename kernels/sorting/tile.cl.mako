<%inherit file="/base.cl.mako"/>\
<%namespace name="order" file="/sorting/key.cl.mako"/>\
<%namespace name="rank" file="/sorting/rank.cl.mako"/>\
## Sorts rows of up to LOCAL * K elements, one work-group per row, in local memory, by four bits at a time (sorting/rank). Stable. Made for GPUs.
##
## x, values (rows, L) and indices (rows, L) int64, contiguous. Geometry: global (rows * LOCAL), local (LOCAL).
##
## Parameter  legal values
## T          dtype row of the values
## DESC       bool: greatest first
## LOCAL      power of two up to 256; local memory: bytes_of of rank.cl.mako and LOCAL * (K + 1) keys
## K          4, 8, 16
<%
    UK = "ulong" if T.itemsize == 8 else "uint"
    TILE, BYTES = LOCAL * K, 1 if T.name == "bool" else T.itemsize
%>\
${order.key(T, DESC)}
${order.unkey(T, DESC)}
__kernel void tile(IN(${T.c}, x), OUT(${T.c}, values), OUT(long, indices), const long L) {
    __local ${UK} keys[${TILE + LOCAL}];
    ${rank.memory(LOCAL, K)}
    const long row = get_group_id(0);
    const int here = (int)L;
    __global const ${T.c}* restrict source = x_p + x_o + row * L;
% for i in range(K):
    { const uint q = l + ${i * LOCAL}; keys[q + q / ${K}] = q < here ? clnn_key(source[q]) : (${UK})-1; }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    ${rank.registers(K)}
    ${rank.begin(K)}
    for (int s = 0; s < ${8 * BYTES}; s += 8) {
        if (s > 0) {
            ${rank.read(LOCAL, K)}
        }
        ${rank.by_byte(LOCAL, K, lambda q: f"keys[{q} + {q} / {K}] >> s")}
    }
% for i in range(K):
    if (l + ${i * LOCAL} < here) {
        const uint at = moved[l + ${i * LOCAL}];
        values_p[values_o + row * L + l + ${i * LOCAL}] = clnn_unkey(keys[at + at / ${K}], source + at);
        indices_p[indices_o + row * L + l + ${i * LOCAL}] = at;
    }
% endfor
}
