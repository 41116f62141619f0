## Vectors along a row of a pooling, for CPUs: one output per lane forward, one input per lane and phase backward.
## Outputs of a row lie S inputs apart. Backward, input S * m + r has phase r; tap k of phase r is output m + d, d = (r + P - k L) / S.
<%!
    LANE = "0123456789abcdef"

    def index_type(ACC):
        """The integer type as wide as the compute type: comparisons of vectors then give masks that fit both."""
        return "long" if ACC in ("double", "long") else "int"

    def beyond(K, S, L):
        """How far the elements of one lane reach, as the loads of `strided` are made."""
        return max((K - 1) * L, S - 1 if S in (2, 4) else 0)

    def strided(T, W, S, p, at):
        """C text of W elements S apart from the pointer p + at on. Whole vectors are loaded so that they end with the last element wanted."""
        if S == 1:
            return f"ldv_{T.name}({p} + {at})"
        if S in (2, 4):
            phase = min(at, S - 1)
            return f"every{S}_{phase}_{T.name}({p} + {at - phase})"
        return f"({T.acc}{W})({', '.join(f'{T.load}({p}, {at + l * S})' for l in range(W))})"

    def phases(K, S, P, L):
        """By phase the offsets d of the outputs that an input takes part in, in the order in which gradients are added."""
        return [[(r + P - k * L) // S for k in range(K) if (r + P - k * L) % S == 0] for r in range(S)]

    def within(IV, W, m, d, end="OW"):
        """C text of a mask of the lanes l for which m + l + d is an output of the row."""
        lanes = f"({IV})({', '.join(map(str, range(W)))})"
        return (f"({lanes} >= ({IV})({-d} - (int){m})) & " if d < 0 else "") + f"({lanes} < ({IV})((int)({end} - {m}) - ({d})))"

    def woven(V, W, S, j, name):
        """C text of vector j of S that hold the lanes of name0.. taken in turn."""
        places = [divmod(j * W + l, S) for l in range(W)]
        return f"{name}0" if S == 1 else f"({V})({', '.join(f'{name}{r}.s{LANE[m]}' for m, r in places)})"
%>
## functions: every<S>_<phase>_<dtype>, W elements 2 or 4 apart of which the first is number `phase`
<%def name="functions(T, W, S)">
<% HALF = ("even", "odd") %>\
% for step in (2, 4) if S == 4 else (2,) if S == 2 else ():
% for phase in range(step):
static inline ${T.acc}${W} every${step}_${phase}_${T.name}(__global const ${T.c}* p) {
% if step == 2:
    const ${T.acc}${W} a = ldv_${T.name}(p), b = ldv_${T.name}(p + ${W});
% else:
    const ${T.acc}${W} a = every2_${phase % 2}_${T.name}(p), b = every2_${phase % 2}_${T.name}(p + ${2 * W});
% endif
    return (${T.acc}${W})(a.${HALF[phase // (step // 2)]}, b.${HALF[phase // (step // 2)]});
}
% endfor
% endfor
</%def>
## rows: the loop over `chunk` rows of SIZE elements per work-item: row `row` is row (nD, nH) of plane n; the caller closes one brace.
<%def name="rows(SIZE, H, D)">\
    const long row_begin = get_global_id(0) * chunk, row_end = min(count / ${SIZE}, row_begin + chunk);
    int nH = (int)(row_begin % ${H}), nD = (int)(row_begin / ${H} % ${D});
    long n = row_begin / (${H} * ${D});
    for (long row = row_begin; row < row_end; row++, nH++) {
        if (nH == (int)${H}) { nH = 0; nD++; }
        if (nD == (int)${D}) { nD = 0; n++; }
</%def>
## margins: FIRST and LAST of a `spread` over a row of inputs, whose vector of lanes m reads the outputs m + d of all d in D. Lanes whose output is none of the
## row read its neighbours, as long as these lie in memory: `within` leaves them out. In planes at the ends of memory, vectors keep to where all are.
<%def name="margins(W, s, D, first, last, when='true')">\
        const bool roomy = ${when} && plane >= ${max(0, -min(D))} && plane + OD * OH * OW + max(0L, NW / ${s} - OW + ${max(D)}) <= count / (ND * NH * NW) * (OD * OH * OW);
        const long first_whole = roomy ? 0 : ${first}, last_whole = roomy ? NW / ${s} - ${W} : ${last} - ${W};
</%def>
## spread: calls whole(w) for vectors that start in first .. last and one(w) for the elements before and after them; a last vector may
## do some of the elements before it again. STEP elements belong to a lane.
<%def name="spread(W, STEP, SIZE, first, last, one, whole)">\
        const long first = ${first}, last = ${last};
        long w = 0;
        const long head = last < first ? ${SIZE} : min(${SIZE}, first * ${STEP});
        #pragma clang loop vectorize(disable) interleave(disable) unroll(disable)
        for (; w < head; w++) { ${one("w")} }
        if (last >= first) for (long m = first; m <= last + ${W - 1}; m += ${W}) {
            const long w0 = min(m, last);
            ${whole("w0")}
            w = (w0 + ${W}) * ${STEP};
        }
        #pragma clang loop vectorize(disable) interleave(disable) unroll(disable)
        for (; w < ${SIZE}; w++) { ${one("w")} }
</%def>
## wide: the statements take(p) for the elements from the pointer `line` on of the W-axis window [bW, eW), as vectors of W of them from p on. The last vector
## may hold elements of the one before it again: take(p, again) gets the number of those.
<%def name="wide(W, take)">\
            int i = bW;
            for (; i + ${W} <= eW; i += ${W}) { ${take("i", "")} }
            if (i < eW) { ${take(f"eW - {W}", f"i - eW + {W}")} }
</%def>
## put_run: the first n of sum[] as elements of a row, the last vector over some of those before it
<%def name="put_run(T, W, to, n)">\
            if (${n} >= ${W}) {
                for (int l = 0; l + ${W} <= ${n}; l += ${W}) stv_${T.name}(${to} + l, vload${W}(0, sum + l));
                stv_${T.name}(${to} + ${n} - ${W}, vload${W}(0, sum + ${n} - ${W}));
            } else for (int l = 0; l < ${n}; l++) ${T.store}(${to}, l, sum[l]);
</%def>
## runs: a row of inputs in blocks of 64 from w0 on, whose gradients the statements add() leave in sum[64], which the caller declares; the declarations `reach` say which outputs of a row
## of outputs have windows in the block.
<%def name="runs(T, W, add, reach, to)">\
        for (long w0 = 0; w0 < NW; w0 += 64) {
            const int width = (int)min(64L, NW - w0);
            ${reach}
            for (int l = 0; l < ${64 // W}; l++) vstore${W}((${T.acc}${W})(0), l, sum);
            ${add()}
            __global ${T.c}* part = ${to} + row * NW + w0;
            ${put_run(T, W, "part", "width")}
        }
</%def>
