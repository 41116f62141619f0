<%inherit file="/base.cl.mako"/>\
## out = sum(part), or sum(part) / sum(used); total = sum(used), as PyTorch adds up on CPUs: each sum is rounded to T, and the last 16, 256, ... numbers
## are added up apart. Positions where used is 0 do not count.
##
## Parameter  legal values
## T          dtype row of out (float16, bfloat16); part, used and total hold its compute type
## MEAN       0 | 1
## WEIGHT     0 | 1: whether used holds other numbers than 0 and 1; these are counted
<% ACC, R = T.acc, T.round_trip %>\
__kernel void steps(IN(${ACC}, part), IN(${ACC}, used), OUT(${T.c}, out), OUT(${ACC}, total), const long n) {
    PTR_IN(${ACC}, part);
    PTR_IN(${ACC}, used);
    PTR_OUT(${T.c}, out);
    PTR_OUT(${ACC}, total);
    ${ACC} losses[8] = {0}, weights[8] = {0};
    long count = 0;
    for (long i = 0; i < n; i++) {
        if (used[i] == 0)
            continue;
        count++;
        losses[0] = ${R}(losses[0] + ${R}(part[i]));
        weights[0] = ${R}(weights[0] + used[i]);
        for (int j = 0; j < 7 && !(i >> 4 * j & 15); j++) {
            losses[j + 1] = ${R}(losses[j + 1] + losses[j]);
            weights[j + 1] = ${R}(weights[j + 1] + weights[j]);
            losses[j] = weights[j] = 0;
        }
    }
    ${ACC} a = 0, b = 0;
    for (int j = 0; j < 8; j++) {
        a = ${R}(a + losses[j]);
        b = ${R}(b + weights[j]);
    }
% if not WEIGHT:
    b = ${R}((float)count);
% endif
    ${T.store}(out, 0, a${" / b" if MEAN else ""});
    total[0] = b;
}
