## Convolutions on GPUs as products whose patches are gathered from the image itself, without a padded copy: places, guards and the staging of steps.
##
## ROLE  "pixels"  forward and input gradient: A = weights (M, K), columns of B = pixels, steps = (channel, tap). With SPREAD the weights are read as they lie:
##                 a table, d.s7 ints from the start of the other, says where in a row each step is
##       "taps"    weight gradient: A = output gradient, columns of B = (channel, tap), steps = pixels of all images one after the other
##
## Element (pixel, tap) of B lies at pixel.s0 + tap.s0 of the image, where the pixel meets the tap inside it, and is zero elsewhere:
##
## CHECK "mask"    int2: a pixel's s1 has a bit for each of its tap rows that meets the image (depths, then rows, then columns); a tap's s1 names its bits.
##                 31 bits in all
##       "places"  int4: s1..s3 of a pixel are the place of its corner along D, H, W, those of a tap the way from there; the sums are compared with the size
##
## table: infos of the taps, one per step (pixels) or column (taps) of a group, and d.s6 ints from its start records of 12 ints per phase: first step, steps,
##        start in Y, OD, OH, OW, where infos of the depths, rows and columns of pixels stand in the table (a pixel's is their sum), -, -, -
## d      M, stride of rows of A, columns (taps), images, phases (taps: 1), splits of K, see above, stride of images of A (taps) or see SPREAD, -, -, stride of groups of A,
##        of groups of the image, ID, IH, IW, stride of images of the image
## y      strides of Y: image, depth, row, column, row of the product, group, split
##
## def                       emits
## macros, setup, results    sizes, pointers and this group's part of K: k_begin .. k_end
## columns                   infos and places of the group's columns, in local memory
## store                     the block of a work-group to Y
## stage / ahead / keep      infos of the steps of a block into local memory: at once, or read early and written late; UNIT: steps that share an info
<%!
    def info(CHECK):
        return "int4" if CHECK == "places" else "int2"

    def never(ROLE, CHECK):
        """A step that meets no column."""
        return "(int4)(0, 1 << 30, 0, 0)" if CHECK == "places" else "(int2)(0, (int)(1u << 31))" if ROLE == "pixels" else "(int2)(0)"

    def meets(CHECK, pixel, tap):
        if CHECK == "mask":
            return f"(({pixel} & {tap}) == {tap})"
        return "(" + " && ".join(f"(uint)({pixel}.s{i + 1} + {tap}.s{i + 1}) < (uint){size}" for i, size in enumerate(("ID", "IH", "IW"))) + ")"

    def guard(ROLE, CHECK, step, column):
        """Do a step and a column meet inside the image?"""
        pixel, tap = (column, step) if ROLE == "pixels" else (step, column)
        return meets(CHECK, f"{pixel}.s1", f"{tap}.s1") if CHECK == "mask" else meets(CHECK, pixel, tap)
%>\
<%def name="macros()">
#define PHASE (int)((uint)get_global_id(2) % (uint)d.s4)
#define SPLIT (int)((uint)get_global_id(2) / (uint)d.s4 % (uint)d.s5)
#define GROUP (long)((uint)get_global_id(2) / (uint)d.s4 / (uint)d.s5)
</%def>
##
<%def name="locals(ROLE, CHECK, BN, BK, SPREAD=False)">
    __local ${info(CHECK)} columns[${BN}], steps[${2 * BK}];
% if ROLE == "pixels":
    __local long place[${BN}];
% endif
% if ROLE == "taps" or SPREAD:
    __local int at[${2 * BK}];
% endif
</%def>
##
## Declares `found`, the info of pixel `p` of all images, and its place: n, od, oh, ow.
<%def name="pixel(CHECK, p)">
        const uint flat = (uint)(${p}), line = flat / (uint)OW, slab = line / (uint)OH;
        const int ow = (int)(flat - line * (uint)OW), oh = (int)(line - slab * (uint)OH), n = (int)(slab / (uint)OD), od = (int)(slab - (uint)n * (uint)OD);
        ${"const int4" if CHECK == "places" else "const int2"} sum = of_depth[od] + of_row[oh] + of_column[ow];
        ${"const int4 found = (int4)(sum.s0 + n * NS, sum.s1, sum.s2, sum.s3)" if CHECK == "places" else "const int2 found = (int2)(sum.s0 + n * NS, sum.s1)"};
</%def>
##
## BM, BN: the group's block; A, X, out and bias point at its rows or group.
<%def name="setup(ROLE, CHECK, T, BM, BN, UNIT=1, SPREAD=False)">
    const int M = (int)d.s0, splits = (int)d.s5, images = (int)d.s3, rows_apart = (int)d.s1, NS = (int)d.sf, m0 = BLOCK_ROW * ${BM};
    const long n0 = get_group_id(0) * ${BN};
    __global const int* restrict record = table + d.s6 + 12 * PHASE;
    const int OD = record[3], OH = record[4], OW = record[5];
    __global const ${info(CHECK)}* restrict of_depth = (__global const ${info(CHECK)}*)(table + record[6]);
    __global const ${info(CHECK)}* restrict of_row = (__global const ${info(CHECK)}*)(table + record[7]);
    __global const ${info(CHECK)}* restrict of_column = (__global const ${info(CHECK)}*)(table + record[8]);
% if CHECK == "places":
    const int ID = (int)d.sc, IH = (int)d.sd, IW = (int)d.se;
% endif
    __global const ${T.c}* restrict A = wt_p + wt_o + GROUP * d.sa + (long)m0 * rows_apart;
    __global const ${T.c}* restrict X = image_p + image_o + GROUP * d.sb;
% if ROLE == "pixels":
    const long N = (long)images * OD * OH * OW;
    const int K = n0 < N ? record[1] : 0;                       /* phases may have fewer pixels than the first */
    __global const ${info(CHECK)}* restrict taps = (__global const ${info(CHECK)}*)table + record[0]${f' / {UNIT}' if UNIT > 1 else ''};
    ${"__global const int* restrict where = table + d.s7 + record[0]" if SPREAD else "A += record[0]"};
% else:
    const int K = images * rows_apart, AS = (int)d.s7;          /* a row of A has the pixels of an image */
    const long N = d.s2;
% endif
    const int share = ((K + splits - 1) / splits + 31) / 32 * 32, k_begin = min(K, SPLIT * share), k_end = min(K, k_begin + share);
</%def>
##
## What only the end needs, after the loop over K: until then it would occupy registers.
<%def name="results(ROLE, TC, BIAS)">
    __global ${TC.c}* restrict out = Y_p + Y_o + GROUP * y.s5 + SPLIT * y.s6 + table[d.s6 + 12 * PHASE + 2];
% if BIAS:
    __global const ${TC.c}* restrict bias = bias_p + bias_o + GROUP * d.s0;
% endif
    const long rcs = y.s4;
    const bool first = true, last = true;
</%def>
##
<%def name="columns_of(ROLE, CHECK, BN, G)">
    for (int e = lid; e < ${BN}; e += ${G}) {
% if ROLE == "taps":
        columns[e] = ((__global const ${info(CHECK)}*)table)[min(n0 + e, N - 1)];
% else:
        ${pixel(CHECK, "min(n0 + e, N - 1)")}
        place[e] = n * y.s0 + od * y.s1 + oh * y.s2 + ow * y.s3;
        columns[e] = found;
% endif
    }
</%def>
##
## Declares `next` (and `next_at`), the info of step `k`, or of steps k UNIT on.
<%def name="ahead(ROLE, CHECK, k, only='', UNIT=1, SPREAD=False)">
    ${info(CHECK)} next = ${never(ROLE, CHECK)};
% if ROLE == "taps" or SPREAD:
    int next_at = 0;
% endif
    if (${only}${k}${f' * {UNIT}' if UNIT > 1 else ''} < k_end) {
% if ROLE == "pixels":
        next = taps[${k}];
% if SPREAD:
        next_at = where[${k}];
% endif
% else:
        ${pixel(CHECK, k)}
        next = found;
        next_at = n * AS + (od * OH + oh) * OW + ow;
% endif
    }
</%def>
##
<%def name="keep(ROLE, place, SPREAD=False)">
    steps[${place}] = next;
% if ROLE == "taps" or SPREAD:
    at[${place}] = next_at;
% endif
</%def>
##
<%def name="stage(ROLE, CHECK, BK, G, k, side, UNIT=1, SPREAD=False)">
    for (int e = lid; e < ${BK}; e += ${G}) {
        ${ahead(ROLE, CHECK, f"({k} + e)", "", UNIT, SPREAD)}
        ${keep(ROLE, f"{side} + e", SPREAD)}
    }
</%def>
##
## The register tiles c<r>_<q> of matmul/blocks through local memory to Y, row by row of the tiles: straight from registers, the addresses of all of them would
## take as many again. neat: the condition under which four elements at (row, col) may be written as one, "" for never; finish, place as in matmul/blocks.
## runs: the condition, the same for the whole group, under which that is worth a try: else neighbours write neighbouring elements, one by one.
<%def name="store(TM, TN, LX, LY, ACC, TC, neat, runs, place, finish)">
<%
    VM, VN, BN = min(TM, 4), min(TN, 4), LX * TN
    V = ACC if VN == 1 else f"{ACC}{VN}"
%>\
    __local ${ACC}* sums = (__local ${ACC}*)pool;
% for r in range(TM):
    barrier(CLK_LOCAL_MEM_FENCE);
% for q in range(TN // VN):
    *(__local ${V}*)(sums + ly * ${BN} + ${q * LX * VN} + lx * ${VN}) = c${r}_${q};
% endfor
    barrier(CLK_LOCAL_MEM_FENCE);
% if neat:
    if (${runs}) for (int e = lid; e < ${LY * BN // VN}; e += ${LX * LY}) {
        const int line = e / ${BN // VN}, q = e % ${BN // VN} * ${VN}, row = m0 + line * ${VM} + ${r // VM * LY * VM + r % VM};
        __local const ${ACC}* sum = sums + line * ${BN} + q;
        if (row < M && n0 + q + ${VN} <= N && ${neat}) {
            __global ${TC.c}* p = ${place("row", "q")};
            ${V} v = *(__local const ${V}*)sum;
            ${finish(True, V)}
% if TC.c == ACC:
            *(__global ${V}*)p = v;
% else:
            stv_${TC.name}(p, v);
% endif
        } else for (int u = 0; u < ${VN} && row < M && n0 + q + u < N; u++) {
            ${one("q + u", "sum[u]", TC, ACC, place, finish)}
        }
    } else
% endif
    for (int e = lid; e < ${LY * BN}; e += ${LX * LY}) {
        const int line = e / ${BN}, q = e % ${BN}, row = m0 + line * ${VM} + ${r // VM * LY * VM + r % VM};
        if (row < M && n0 + q < N) {
            ${one("q", "sums[e]", TC, ACC, place, finish)}
        }
    }
% endfor
</%def>
##
<%def name="one(q, sum, TC, ACC, place, finish)">
            __global ${TC.c}* p = ${place("row", f"({q})")};
            ${ACC} v = ${sum};
            ${finish(False, ACC)}
            ${TC.store}(p, 0, v);
</%def>
