<%inherit file="/base.cl.mako"/>\
<%namespace name="rows" file="/softmax/rows.cl.mako"/>\
## out = sum(part), or sum(part) / sum(used); total = sum(used). One row of n positions, in a fixed order.
##
## Parameter  legal values
## T          dtype row of out; part, used and total hold its compute type
## FORM       loop | group; LANES 64; MEAN 0 | 1
<% ACC, ADD = T.acc, lambda a, b: f"{a} + {b}" %>\
__kernel void finish(IN(${ACC}, part), IN(${ACC}, used), OUT(${T.c}, out), OUT(${ACC}, total), const long n, const long chunk) {
    PTR_IN(${ACC}, part);
    PTR_IN(${ACC}, used);
    PTR_OUT(${T.c}, out);
    PTR_OUT(${ACC}, total);
    const long inner = 1;
${rows.begin(FORM, "1L")}
${rows.fold(FORM, LANES, ACC, "a", T.zero, ADD, lambda i: f"const E_T e = part[{i}];")}
${rows.fold(FORM, LANES, ACC, "b", T.zero, ADD, lambda i: f"const E_T e = used[{i}];")}
${rows.store_row(FORM, f"{T.store}(out, 0, a_{' / b_' if MEAN else ''}); total[0] = b_;")}
${rows.end(FORM)}
}
