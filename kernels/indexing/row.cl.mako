## Reading an index: shared by the kernels of this folder.
##
## row(WRAP)  defines clnn_row(v, size, err, code): the row that index v means; out of range it reports and gives row 0, so nothing
##            outside the operand is ever touched. WRAP: negative indices count from the end.
<%def name="row(WRAP)">
static inline long clnn_row(long v, long size, __global int* err, int code) {
    const long w = ${"v < 0 ? v + size : v" if WRAP else "v"};
    if (w < 0 || w >= size) { CLNN_FAIL(err, code, v); return 0; }
    return w;
}
</%def>
##
## fold(OP, T)  the C expression that folds value s into destination value d; names d, s
<%def name="fold(OP)" filter="trim">
<% text = dict(add="d + s", mul="d * s", max="(s > d || s != s) ? s : d", min="(s < d || s != s) ? s : d", set="s")[OP] %>${text}
</%def>
