<%inherit file="/base.cl.mako"/>\
<%namespace name="ix" file="/indexing/row.cl.mako"/>\
<%namespace name="rank" file="/sorting/rank.cl.mako"/>\
## out[b, index[b, n]] = fold(that, src[b, n]), in the order of n: a work-group sorts the destinations of one b in local memory, stably (sorting/rank), and the
## work-item at the start of a run of equal ones folds it. So every run gives equal bits. Made for GPUs.
##
## out (B, D) and index (B, N) contiguous; src walks with strides (sb, sn). Geometry: global (B * LOCAL), local (LOCAL). Limits: N <= LOCAL * K, D < 2^31.
##
## Parameter  legal values
## T TI       dtype rows of out/src and of the index
## OP         add mul max min set
## complex    OP in ("add", "mul", "set")
## WRAP       bool: negative indices count from the end
## FOURS      1 .. 8: so many times four bits hold all destinations
## LOCAL K    power of two up to 256; 4, 8, 16
<% TILE, MASK = LOCAL * K, (1 << 4 * FOURS) - 1 %>\
__kernel void scatter_tiles(OUT(${T.c}, out), IN(${TI.c}, index), IN(${T.c}, src), const long D, const long N, const long sb, const long sn,
                            __global int* err, const int code) {
    __local uint keys[${TILE + LOCAL}];
    __local ${T.acc} values[${TILE}];
    ${rank.memory(LOCAL, K)}
    const long b = get_group_id(0);
    const int here = (int)N;
    PTR_OUT(${T.c}, out); PTR_IN(${TI.c}, index); PTR_IN(${T.c}, src);
% for i in range(K):
    { const int q = l + ${i * LOCAL};
      uint to = 0xffffffffu;
      if (q < here) {
        const long v = index[b * N + q], row = ${"v < 0 ? v + D : v" if WRAP else "v"};
        if ((ulong)row < (ulong)D) to = (uint)row; else CLNN_FAIL(err, code, v);
        values[q] = ${T.load}(src, b * sb + q * sn);
      }
      keys[q + q / ${K}] = to; }
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
    ${rank.registers(K)}
    ${rank.begin(K)}
% for s in range(0, FOURS, 2):
% if s:
    ${rank.read(LOCAL, K)}
% endif
% if s + 1 < FOURS:
    ${rank.by_byte(LOCAL, K, lambda q: f"keys[{q} + {q} / {K}] >> {4 * s}")}
% else:
    ${rank.by_four(LOCAL, K, lambda q: f"keys[{q} + {q} / {K}] >> {4 * s}")}
% endif
% endfor
#define TO(j) keys[moved[j] + moved[j] / ${K}]
% for i in range(K):
    { const int j = l + ${i * LOCAL};
      const uint mine = TO(j) & ${MASK}u;
      if (j < here && (j == 0 || (TO(j - 1) & ${MASK}u) != mine)) {
        ${T.acc} d = ${T.zero};
        int some = 0;
        for (int m = j; m < here; m++) {
            const uint at = moved[m], to = keys[at + at / ${K}];
            if ((to & ${MASK}u) != mine) break;
            if (to == 0xffffffffu) continue;                               /* one that is none of the destinations */
            if (!some) { d = ${T.load}(out, b * D + mine); some = 1; }
            const ${T.acc} s = values[at];
            d = ${ix.fold(OP, T)};
        }
        if (some) { ${T.store}(out, b * D + mine, d); }
      } }
% endfor
}
