## Parts of kernels that keep one matrix per work-group in w, mostly local memory: rows of s elements; work-item l of all.
<%!
    def alone(W):
        return "__attribute__((reqd_work_group_size(1, 1, 1)))" if W > 1 else ""

    def lanes(T, W):
        return f"({'int' if T.itemsize == 4 else 'long'}{W})(" + ", ".join(map(str, range(W))) + ")"
%>\
## read: w = the m x n matrix at p, of strides rs and cs, with zeros behind the rows
<%def name="read(T, W, p, m, n)">
    {
        __global const ${T.c}* p = ${p};
% if W > 1:
        if (cs == 1) {
            for (int i = 0; i < ${m}; i++) {
                int j = 0;
                for (; j + ${W} <= ${n}; j += ${W}) vstore${W}(vload${W}(0, p + i * rs + j), 0, w + i * s + j);
                for (; j < s; j++) w[i * s + j] = j < ${n} ? p[i * rs + j] : 0;
            }
        } else
% endif
        for (int e = l; e < ${m} * s; e += all) {
            const int i = e / s, j = e % s;
            w[e] = j < ${n} ? p[i * rs + j * cs] : 0;
        }
    }
</%def>
## write: the m x n matrix at p, column by column, = w
<%def name="write(T, W, p, m, n)">
    {
        __global ${T.c}* p = ${p};
% if W > 1:
        for (int j = 0; j < ${n}; j += ${W}) {
            const int width = min(${W}, ${n} - j);
            for (int i = 0; i < ${m}; i++) {
                ${T.c} t[${W}];
                vstore${W}(vload${W}(0, w + i * s + j), 0, t);
                if (width == ${W}) {
% for c in range(W):
                    p[(j + ${c}) * ${m} + i] = t[${c}];
% endfor
                } else for (int c = 0; c < width; c++) p[(j + c) * ${m} + i] = t[c];
            }
        }
% else:
        for (int e = l; e < ${m} * ${n}; e += all) p[e] = w[e % ${m} * s + e / ${m}];
% endif
    }
</%def>
## subtract: from the vectors at column j of some rows, own times the row's element of head; four rows at a time
<%def name="subtract(W, first, last)">
            int i = ${first};
            for (; i + 4 <= ${last}; i += 4) {
% for r in range(4):
                vstore${W}(vload${W}(0, w + (i + ${r}) * s + j) - head[i + ${r}] * own, 0, w + (i + ${r}) * s + j);
% endfor
            }
            for (; i < ${last}; i++) vstore${W}(vload${W}(0, w + i * s + j) - head[i] * own, 0, w + i * s + j);
</%def>
