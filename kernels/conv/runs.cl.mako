## Writing a register tile of a convolution by runs: neighbouring pixels of a row of the output, `step` elements apart in memory.
##
## def                          emits
## moves(ACC)                   clnn_put(o, e, n, step): n values to o[0], o[step], ... in whole vectors, the last of which may overlap the one before. With
##                              step 2 a vector takes what lies between from memory and writes it again: it must be this work-item's, as all between the
##                              first and the last pixel of a run is. clnn_take(e, o, n, step) reads them so
## store(MR, NV, W, ...)        adds what earlier blocks of steps left (unless first), bias and epilogue (if last), and writes rows i_new - i to MR - 1
##
## store expects: runs, lane[], count[], place[] (first lane of the panel, length, place in the output), out, rcs, step (elements from a pixel to the next),
## i, i_new, first, last and the sums c<r>_<j> of tile.multiply.
<%namespace name="tile" file="/matmul/tile.cl.mako"/>\
<%def name="moves(ACC)">
% for name, operands in (("put", f"__global {ACC}* o, const {ACC}* e"), ("take", f"{ACC}* e, __global const {ACC}* o")):
static inline void clnn_${name}(${operands}, const int n, const long step) {
    if (step == 1) {
% for W in (16, 8, 4):
        if (n >= ${W}) {
<% one = (lambda x: f"vstore{W}(vload{W}(0, e + {x}), 0, o + {x});") if name == "put" else (lambda x: f"vstore{W}(vload{W}(0, o + {x}), 0, e + {x});") %>\
            for (int x = 0; x + ${W} <= n; x += ${W}) ${one("x")}
            ${one(f"n - {W}")}
            return;
        }
% endfor
    }
    if (step == 2) {
% for W in (8, 4):
        if (n > ${W}) {                 /* the last vector ends with the last pixel, so that it holds them at odd places */
% if name == "put":
            ${ACC}${2 * W} v;
            for (int x = 0; x + ${W} < n; x += ${W}) { v = vload${2 * W}(0, o + 2 * x); v.even = vload${W}(0, e + x); vstore${2 * W}(v, 0, o + 2 * x); }
            o += 2 * (n - ${W}) - 1;
            v = vload${2 * W}(0, o);
            v.odd = vload${W}(0, e + n - ${W});
            vstore${2 * W}(v, 0, o);
% else:
            for (int x = 0; x + ${W} < n; x += ${W}) vstore${W}(vload${2 * W}(0, o + 2 * x).even, 0, e + x);
            vstore${W}(vload${2 * W}(0, o + 2 * (n - ${W}) - 1).odd, 0, e + n - ${W});
% endif
            return;
        }
% endfor
    }
    for (int x = 0; x < n; x++) ${"o[x * step] = e[x]" if name == "put" else "e[x] = o[x * step]"};
}
% endfor
</%def>
##
<%def name="store(MR, NV, W, V, ACC, TC, TB, BIAS, EPI)">
${tile.sums(MR, NV, V)}
for (int r = (int)(i_new - i); r < ${MR}; r++) {
    const long row = i + r;
    __global ${TC.c}* o = out + row * rcs;
    ${ACC}* e = (${ACC}*)(t + r * ${NV});
    if (!first) {
        ${V} before[${NV}];
        for (int q = 0; q < runs; q++)
% if TC.c == ACC:
            clnn_take((${ACC}*)before + lane[q], o + place[q], count[q], step);
% else:
            for (int x = 0; x < count[q]; x++) ((${ACC}*)before)[lane[q] + x] = ${TC.load}(o, place[q] + x * step);
% endif
        for (int j = 0; j < ${NV}; j++) t[r * ${NV} + j] += before[j];
    }
% if BIAS or EPI:
    if (last) {
% if not EPI or "VT" in EPI:
% for j in range(NV):
        { ${V} v = t[r * ${NV} + ${j}]; ${finish(V, TB, BIAS, EPI)} t[r * ${NV} + ${j}] = v; }
% endfor
% else:
        for (int q = 0; q < ${NV * W}; q++) { ${ACC} v = e[q]; ${finish(ACC, TB, BIAS, EPI)} e[q] = v; }
% endif
    }
% endif
    for (int q = 0; q < runs; q++) {
% if TC.c == ACC:
        clnn_put(o + place[q], e + lane[q], count[q], step);
% else:
        for (int x = 0; x < count[q]; x++) ${TC.store}(o, place[q] + x * step, e[lane[q] + x]);
% endif
    }
}
</%def>
##
<%def name="finish(V, TB, BIAS, EPI)">
% if BIAS:
v += ${TB.load}(bias, row);
% endif
% if EPI:
v = ${EPI.replace("VT", V)};
% endif
</%def>
