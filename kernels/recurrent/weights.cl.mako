<%inherit file="/base.cl.mako"/>\
## Hidden weights (K*H, H) of a recurrent layer in vectors of four, as recurrent/sequence and its backward read them: wt (d.s1 rows, d.s0 vectors).
##
## Forward  row k holds what unit k of the last state adds to: vector v is the four gates of unit v (the fourth of gru zero), or units 4v to 4v + 3 where there is one gate.
## BACK     the rows as they are, filled up with zeros.   Rows from the last on are zero.
## Geometry: global (rows, vectors), BACK (vectors, rows): reads are side by side. d = (vectors, rows, H, 0).
##
## Parameter  legal values
## T          dtype row (float); wt has its compute type;  GATES  4 | 3 | 1;  BACK  0 | 1
<% A = T.acc %>\
__kernel void recurrent_weights(IN(${T.c}, w), OUT(${A}, wt), const long4 d) {
    const long v = get_global_id(${0 if BACK else 1}), k = get_global_id(${1 if BACK else 0}), H = d.s2;
    if (v >= d.s0 || k >= d.s1) return;
    PTR_IN(${T.c}, w);
    ${A}4 x = 0;
% for i in range(4):
% if BACK:
    if (k < ${GATES} * H && 4 * v + ${i} < H) x.s${i} = ${T.load}(w, k * H + 4 * v + ${i});
% elif GATES == 1:
    if (k < H && 4 * v + ${i} < H) x.s${i} = ${T.load}(w, (4 * v + ${i}) * H + k);
% elif i < GATES:
    if (k < H) x.s${i} = ${T.load}(w, (${i} * H + v) * H + k);
% endif
% endfor
    vstore4(x, k * d.s0 + v, wt_p + wt_o);
}
