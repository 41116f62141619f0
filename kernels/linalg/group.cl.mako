## What the kernels share in which a work-group has a matrix in local memory (*_group).
##
## scale(T)   defines group_scale(w, size, part, back): divides `size` numbers in local memory by a power of two, `back`, so that the largest is of size 1. True
##            where one is not finite: all are 0 then. part: two numbers per work-item. Called by all of the group, which it leaves in step.
## pairs()    defines group_pair(k, round, n, p, q): pair k of round 0 ... n - 2 in which n players, an even number, meet one another
<%def name="scale(T)">
<%
    C = T.c
    integer, bits, most = ("int", 23, 253) if C == "float" else ("long", 52, 2045)
%>\
static int group_scale(__local ${C}* w, const int size, __local ${C}* part, ${C}* back) {
    const int l = get_local_id(0), all = get_local_size(0);
    ${C} large = 0, sum = 0;
    for (int e = l; e < size; e += all) {
        large = fmax(large, fabs(w[e]));
        sum = fma(w[e], (${C})0, sum);
    }
    part[2 * l] = large;
    part[2 * l + 1] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < all; k++) {
        large = fmax(large, part[2 * k]);
        sum += part[2 * k + 1];
    }
    const int bad = sum != 0;
    const ${integer} exponent = clamp(as_${integer}(large) >> ${bits}, (${integer})1, (${integer})${most});
    const ${C} by = as_${C}((${most + 1} - exponent) << ${bits});
    *back = as_${C}(exponent << ${bits});
    for (int e = l; e < size; e += all) w[e] = bad ? (${C})0 : w[e] * by;
    barrier(CLK_LOCAL_MEM_FENCE);
    return bad;
}
</%def>
<%def name="pairs()">
static void group_pair(const int k, const int round, const int n, int* p, int* q) {
    const int up = round + k, down = round - k;
    *p = k == 0 ? n - 1 : up >= n - 1 ? up - n + 1 : up;
    *q = down < 0 ? down + n - 1 : down;
}
</%def>
