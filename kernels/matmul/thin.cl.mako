<%inherit file="/base.cl.mako"/>\
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
## The product of matmul/gpu where C has up to four rows (P is B) or columns (P is A): bound by reading the matrix P, which every work-item does
## by itself, element by element along K, several at a time; the sums of the work-items of a line meet in local memory.
##
## Geometry: a group owns LI lines of P, that is elements of C's long side, and has LK work-items for each.
##   along K    P's elements are nearer to each other along K: local (LK, LI, 1), global (LK, lines, batch)
##   across K   else: local (LI, LK, 1), global (lines, LK, batch)
##
## Parameter  legal values
## TA TB TC   dtype rows of one compute type
## P          a | b: the operand that is the matrix; R: rows or columns of the other one, 1 to 4
## ALONG      True | False: neighbouring work-items are neighbours along K
## LI LK      work-group; LK is a power of two
## BIAS BETA EPI  as in matmul/cpu
##
## Limits: the order of sums depends on K and LK alone.
<%
    ACC = TC.acc
    TP, TV = (TA, TB) if P == "a" else (TB, TA)
    k_axis, i_axis = (0, 1) if ALONG else (1, 0)
%>\
${tile.macros(ACC)}
__kernel __attribute__((reqd_work_group_size(${"%d, %d" % ((LK, LI) if ALONG else (LI, LK))}, 1)))
void matmul_thin(IN(${TA.c}, A), IN(${TB.c}, B), OUT(${TC.c}, C), IN(${TC.c}, bias), const long16 d, const long8 z,
                 const ${ACC} alpha, const ${ACC} beta) {
    __local ${ACC} pool[${R * LI * LK}];
    const long z0 = get_global_id(2) / z.s0, z1 = get_global_id(2) % z.s0;
    const long K = d.s9 ? min(d.s9, d.s2 - z0 * d.s9) : d.s2, rcs = d.s7;
    __global const ${TA.c}* restrict A = A_p + A_o + z0 * z.s1 + z1 * z.s4;
    __global const ${TB.c}* restrict B = B_p + B_o + z0 * z.s2 + z1 * z.s5;
    __global ${TC.c}* restrict C = C_p + C_o + z0 * z.s3 + z1 * z.s6;
% if BIAS:
    PTR_IN(${TC.c}, bias);
% endif
% if P == "a":
    const long lines = d.s0, pi = d.s3, pk = d.s4, vk = d.s5, vr = d.s6;
% else:
    const long lines = d.s1, pi = d.s6, pk = d.s5, vk = d.s4, vr = d.s3;
% endif
    const int lk = get_local_id(${k_axis}), li = get_local_id(${i_axis});
    const long i = get_global_id(${i_axis});
    __global const ${TP.c}* restrict matrix = ${P.upper()} + min(i, lines - 1) * pi;      /* lines past the end repeat the last one and are not stored */
    __global const ${TV.c}* restrict x = ${"B" if P == "a" else "A"};
    ${ACC} ${", ".join(f"c{r} = 0" for r in range(R))};
#if defined(CLNN_NVIDIA) || defined(CLNN_AMD)   /* loads on their way at a time */
#pragma unroll 8
#endif
    for (long k = lk; k < K; k += ${LK}) {
        const ${ACC} p = ${TP.load}(matrix, k * pk);
        ${" ".join(f"c{r} = MAC(p, {TV.load}(x, k * vk{f' + {r} * vr' if r else ''}), c{r});" for r in range(R))}
    }
    __local ${ACC}* mine = pool + li * ${LK} + lk;
    ${" ".join(f"mine[{r * LI * LK}] = c{r};" for r in range(R))}
<% s = LK // 2 %>\
% while s:
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lk < ${s}) { ${" ".join(f"mine[{r * LI * LK}] += mine[{r * LI * LK + s}];" for r in range(R))} }
<% s //= 2 %>\
% endwhile
    if (lk != 0 || i >= lines) return;
    const bool first = true, last = true;
% for r in range(R):
    { const long ${f"row = i, col = {r}" if P == "a" else f"row = {r}, col = i"};
      __global ${TC.c}* p = C + row * rcs + col;
      ${ACC} v = mine[${r * LI * LK}] * alpha;
      ${tile.finish(TC, ACC, ACC, BIAS, BETA, EPI, "p", "col", False)}
      ${TC.store}(p, 0, v); }
% endfor
}
