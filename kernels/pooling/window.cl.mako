## Walks over pooling windows. Axes are D, H, W; outputs (planes, OD, OH, OW), inputs (planes, ND, NH, NW).
## K S P L are dicts by axis: kernel size, stride, padding, dilation; INSIDE says of each axis that no window leaves the input.
## ADAPTIVE: window o of an axis is [o * N / O, ceil((o + 1) * N / O)); 1: computed in 64 bits, 2: in 32, which vectorises.
<%!
    def bounds(a, o, ADAPTIVE):
        """(first input, end) of the adaptive window of output o."""
        N, O = (f"(int)N{a}", f"(int)O{a}") if ADAPTIVE == 2 else (f"N{a}", f"O{a}")
        return f"({o}) * {N} / {O}", f"((({o}) + 1) * {N} + {O} - 1) / {O}"

    def outputs(a, ADAPTIVE):
        """(first output, end) of those whose adaptive windows hold input i<axis>."""
        N, O = (f"(int)N{a}", f"(int)O{a}") if ADAPTIVE == 2 else (f"N{a}", f"O{a}")
        return f"i{a} * {O} / {N}", f"((i{a} + 1) * {O} + {N} - 1) / {N}"

    def whole(ADAPTIVE):
        return "long" if ADAPTIVE == 1 else "int"
%>
## open: a loop over the inputs i<axis> of the window of output o<axis>; the caller closes one brace.
<%def name="open(a, K, S, P, L, ADAPTIVE, INSIDE)">
% if ADAPTIVE:
<% first, end = bounds(a, f"({whole(ADAPTIVE)})o{a}", ADAPTIVE) %>\
    for (${whole(ADAPTIVE)} i${a} = ${first}, e${a} = ${end}; i${a} < e${a}; i${a}++) {
% else:
    for (int k${a} = 0; k${a} < ${K[a]}; k${a}++) {
        const int i${a} = (int)o${a} * ${S[a]} - ${P[a]} + k${a} * ${L[a]};
% if not INSIDE[a]:
        if (i${a} < 0 || i${a} >= (int)N${a}) continue;
% endif
% endif
</%def>
## reach: a loop over the outputs o<axis> whose windows may hold the input i<axis>; the caller closes one brace.
<%def name="reach(a, K, S, P, L, ADAPTIVE)">
<% c = -(-((K[a] - 1) * L[a] + 1) // S[a]) if not ADAPTIVE else 0 %>
% if ADAPTIVE:
<% first, end = outputs(a, ADAPTIVE) %>\
    for (${whole(ADAPTIVE)} o${a} = ${first}, e${a} = ${end}; o${a} < e${a}; o${a}++) {
% else:
    for (int c${a} = 0; c${a} < ${c}; c${a}++) {
        const int o${a} = ((int)i${a} + ${P[a]}) / ${S[a]} - c${a};
        if (o${a} < 0 || o${a} >= (int)O${a}) continue;
% endif
</%def>
## span: b<axis> and e<axis>, the first input of the window of output o<axis> and its end, both inside the input; without dilation
<%def name="span(a, K, S, P, ADAPTIVE, INSIDE)">
% if ADAPTIVE:
<% first, end = bounds(a, f"({whole(ADAPTIVE)})o{a}", ADAPTIVE) %>\
        const int b${a} = (int)(${first}), e${a} = (int)(${end});
% elif INSIDE[a]:
        const int b${a} = (int)o${a} * ${S[a]} - ${P[a]}, e${a} = b${a} + ${K[a]};
% else:
        const int b${a} = max((int)o${a} * ${S[a]} - ${P[a]}, 0), e${a} = min((int)o${a} * ${S[a]} - ${P[a]} + ${K[a]}, (int)N${a});
% endif
</%def>
## bounds_of: sets b<axis> and e<axis> to the first input of the adaptive window of output o<axis> and its end
<%def name="bounds_of(a, ADAPTIVE)">\
<% first, end = bounds(a, f"({whole(ADAPTIVE)})o{a}", ADAPTIVE) %>b${a} = (int)(${first}); e${a} = (int)(${end});\
</%def>
## outer: l<axis> and t<axis>, the first and the last output whose windows hold an input from i (an expression) to `until`; without dilation
<%def name="outer(a, K, S, P, ADAPTIVE, i=None, until=None, names=None)">
<%
    i = i or f"i{a}"
    until = until or i
    low, top = (outputs(a, ADAPTIVE)[n].replace(f"i{a}", f"({whole(ADAPTIVE)})({e})") for n, e in enumerate((i, until)))
    if not ADAPTIVE:
        low, top = f"({i} + {P[a]} < {K[a]} ? 0 : ({i} + {P[a] - K[a]}) / {S[a]} + 1)", f"min((int)(({until} + {P[a]}) / {S[a]} + 1), (int)O{a})"
%>\
<% l, t = (names or f"l{a}, t{a}").split(", ") %>\
        const ${whole(ADAPTIVE)} ${l} = (${whole(ADAPTIVE)})${low}, ${t} = (${whole(ADAPTIVE)})(${top}) - 1;
</%def>
## first: the first input of the window of output o (an expression) along an axis
<%def name="first(a, o, S, P, L, ADAPTIVE)">\
% if ADAPTIVE:
(${bounds(a, o, ADAPTIVE)[0]})\
% elif P[a]:
((${o}) * ${S[a]} - ${P[a]} < 0 ? ((${o}) * ${S[a]} - ${P[a]}) + (${P[a]} - (${o}) * ${S[a]} + ${L[a] - 1}) / ${L[a]} * ${L[a]} : (${o}) * ${S[a]} - ${P[a]})\
% else:
(${o}) * ${S[a]}\
% endif
</%def>
## size: how many elements an average over the window of output o counts along an axis
<%def name="size(a, o, K, S, P, ADAPTIVE, PADDED)">\
% if ADAPTIVE:
<% first, end = bounds(a, f"({whole(ADAPTIVE)})({o})", ADAPTIVE) %>\
(${end} - ${first})\
% elif PADDED:
(min((int)(${o}) * ${S[a]} - ${P[a]} + ${K[a]}, (int)N${a} + ${P[a]}) - ((int)(${o}) * ${S[a]} - ${P[a]}))\
% else:
(min((int)(${o}) * ${S[a]} - ${P[a]} + ${K[a]}, (int)N${a}) - max((int)(${o}) * ${S[a]} - ${P[a]}, 0))\
% endif
</%def>
