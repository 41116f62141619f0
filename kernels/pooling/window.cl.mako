## Walks over pooling windows. Axes are D, H, W; outputs (planes, OD, OH, OW), inputs (planes, ND, NH, NW).
## K S P L are dicts by axis: kernel size, stride, padding, dilation; INSIDE says of each axis that no window leaves the input.
## ADAPTIVE: window o of an axis is [o * N / O, ceil((o + 1) * N / O)).
<%!
    AXES = ("D", "H", "W")
%>
## open: a loop over the inputs i<axis> of the window of output o<axis>; the caller closes one brace.
<%def name="open(a, K, S, P, L, ADAPTIVE, INSIDE)">
% if ADAPTIVE:
    for (long i${a} = o${a} * N${a} / O${a}; i${a} < ((o${a} + 1) * N${a} + O${a} - 1) / O${a}; i${a}++) {
% else:
    for (int k${a} = 0; k${a} < ${K[a]}; k${a}++) {
        const int i${a} = (int)o${a} * ${S[a]} - ${P[a]} + k${a} * ${L[a]};
% if not INSIDE[a]:
        if (i${a} < 0 || i${a} >= N${a}) continue;
% endif
% endif
</%def>
## reach: a loop over the outputs o<axis> whose windows may hold the input i<axis>; the caller closes one brace.
<%def name="reach(a, K, S, P, L, ADAPTIVE)">
<% c = -(-((K[a] - 1) * L[a] + 1) // S[a]) if not ADAPTIVE else 0 %>
% if ADAPTIVE:
    for (long o${a} = i${a} * O${a} / N${a}; o${a} < ((i${a} + 1) * O${a} + N${a} - 1) / N${a}; o${a}++) {
% else:
    for (int c${a} = 0; c${a} < ${c}; c${a}++) {
        const int o${a} = ((int)i${a} + ${P[a]}) / ${S[a]} - c${a};
        if (o${a} < 0 || o${a} >= O${a}) continue;
% endif
</%def>
## first: the first input of the window of output o (an expression) along an axis
<%def name="first(a, o, S, P, L, ADAPTIVE)">\
% if ADAPTIVE:
(${o}) * N${a} / O${a}\
% elif P[a]:
((${o}) * ${S[a]} - ${P[a]} < 0 ? ((${o}) * ${S[a]} - ${P[a]}) + (${P[a]} - (${o}) * ${S[a]} + ${L[a] - 1}) / ${L[a]} * ${L[a]} : (${o}) * ${S[a]} - ${P[a]})\
% else:
(${o}) * ${S[a]}\
% endif
</%def>
## size: how many elements an average over the window of output o counts along an axis
<%def name="size(a, o, K, S, P, ADAPTIVE, PADDED)">\
% if ADAPTIVE:
(((long)(${o}) + 1) * N${a} + O${a} - 1) / O${a} - (long)(${o}) * N${a} / O${a}\
% elif PADDED:
(min((long)(${o}) * ${S[a]} - ${P[a]} + ${K[a]}, N${a} + ${P[a]}) - ((long)(${o}) * ${S[a]} - ${P[a]}))\
% else:
(min((long)(${o}) * ${S[a]} - ${P[a]} + ${K[a]}, N${a}) - max((long)(${o}) * ${S[a]} - ${P[a]}, 0L))\
% endif
</%def>
