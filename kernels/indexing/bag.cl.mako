## What the kernels over bags of rows share. Bag b holds the elements begin .. end of the index: `each` of them, or those between two offsets.
##
## parameters(TI, EVEN)   the kernel's parameters that say so
## span(EVEN)             begin and end of bag b
<%def name="parameters(TI, EVEN)" filter="trim">
IN(${TI.c}, index), IN(${TI.c}, offsets), const long V, const long E, const long B, const long N, const long each, const long padding, __global int* err,
                      const int code, const int order
</%def>
<%def name="span(EVEN)">\
% if EVEN:
        const long begin = b * each, end = begin + each;
% else:
        long begin = offsets[b], end = b + 1 < each ? (long)offsets[b + 1] : N;     /* `each`: how many offsets there are */
        if (b == 0 ? begin != 0 : begin < 0 || begin > N) { CLNN_FAIL(err, order, begin); begin = 0; }
        if (end < begin || end > N) { CLNN_FAIL(err, order, end); end = begin; }
% endif
</%def>
