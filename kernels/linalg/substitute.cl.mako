<%inherit file="/base.cl.mako"/>\
## Solves with one or two small triangular matrices: X = second^-1 first^-1 B, with rows exchanged before or afterwards.
##
## B (count_b, n, r) with strides bb (0: one for all), rb and cb, or identity matrices where eye; X (count, n, r), column by column.
## Matrices (count, n, n) stand at A with strides ba (0: one for all), ra and ca: the first is its upper (up) or lower triangle, with ones on its diagonal where unit. With passes = 2 the same
## for the second one with ra2, ca2, up2, unit2; with 0 rows are only exchanged.
## exchange: 1: row k of B changes place with row pivots[k] - 1, in order, before; 2: those of X in the opposite order afterwards; pivots (count, n) with
## strides bp (0 or n).
##
## Geometry: global (columns, or blocks of W columns; count), local (LOCAL or fewer, 1); W is 1 where LOCAL is not.
##
## parameter  values         meaning
## T          float32 float64
## W          1 8 16         columns of a work-item
## N          number         most rows
## LOCAL      number         most work-items of a group
<%
    C, V = T.c, T.c + (str(W) if W > 1 else "")
    R = 8 if W > 1 else 1
    X = "x[%s]" if W > 1 else "x[(%s) * LOCAL_ + l]"
%>\
#define LOCAL_ ${LOCAL}
__kernel ${"__attribute__((reqd_work_group_size(1, 1, 1)))" if LOCAL == 1 else ""}
void linalg_substitute(IN(${C}, A), IN(int, pivots), IN(${C}, B), OUT(${C}, X), const long rows, const long r, const long ba, const long bp,
                       const long bb, const long rb, const long cb, const long eye, const long exchange, const long passes, const long8 how) {
    PTR_IN(${C}, A);
    PTR_IN(int, pivots);
    PTR_IN(${C}, B);
    PTR_OUT(${C}, X);
% if W > 1:
    ${V} x[${N}];
% else:
    __local ${C} x[${N * LOCAL}];
% endif
    const long z = get_global_id(1), first = get_global_id(0) * ${W};
    const int n = (int)rows, l = get_local_id(0), width = (int)min((long)${W}, r - first);
    if (width <= 0) return;
    for (int i = 0; i < n; i++) {
        const long at = z * bb + i * rb + first * cb;
% if W > 1:
        if (!eye && cb == 1 && width == ${W}) x[i] = vload${W}(0, B + at);
        else {
            ${C} t[${W}];
            for (int c = 0; c < ${W}; c++) t[c] = eye ? (${C})(i == first + c) : c < width ? B[at + c * cb] : 0;
            x[i] = vload${W}(0, t);
        }
% else:
        ${X % "i"} = eye ? (${C})(i == first) : B[at];
% endif
    }
    for (int k = 0; k < n && exchange == 1; k++) {
        const int p = clamp(pivots[z * bp + k] - 1, 0, n - 1);
        const ${V} t = ${X % "k"};
        ${X % "k"} = ${X % "p"};
        ${X % "p"} = t;
    }
    for (int pass = 0; pass < passes; pass++) {
        // An upper triangle is a lower one that is read from its end.
        const int up = (int)(pass ? how.s6 : how.s2), unit = (int)(pass ? how.s7 : how.s3), at = up ? n - 1 : 0, step = up ? -1 : 1;
        const long ra = (pass ? how.s4 : how.s0) * step, ca = (pass ? how.s5 : how.s1) * step;
        __global const ${C}* a = A + z * ba + at * (ra + ca) * step;
        int i = 0;
% if W > 1:
        for (; i + ${R} <= n; i += ${R}) {                // rows together: each vector that is read serves all of them
% for u in range(R):
            __global const ${C}* row${u} = a + (i + ${u}) * ra;
            ${V} s${u} = ${X % f"at + (i + {u}) * step"};
% endfor
            for (int j = 0; j < i; j++) {
                const ${V} v = ${X % "at + j * step"};
% for u in range(R):
                s${u} -= row${u}[j * ca] * v;
% endfor
            }
% for u in range(R):
            if (!unit) s${u} /= row${u}[(i + ${u}) * ca];
            ${X % f"at + (i + {u}) * step"} = s${u};
% for q in range(u + 1, R):
            s${q} -= row${q}[(i + ${u}) * ca] * s${u};
% endfor
% endfor
        }
% endif
        for (; i < n; i++) {
            __global const ${C}* row = a + i * ra;
            ${V} s0 = ${X % "at + i * step"}, s1 = 0, s2 = 0, s3 = 0;
            int j = 0;
            for (; j + 4 <= i; j += 4) {
% for u in range(4):
                s${u} -= row[(j + ${u}) * ca] * ${X % f"at + (j + {u}) * step"};
% endfor
            }
            for (; j < i; j++) s0 -= row[j * ca] * ${X % "at + j * step"};
            s0 = (s0 + s1) + (s2 + s3);
            ${X % "at + i * step"} = unit ? s0 : s0 / row[i * ca];
        }
    }
    for (int k = n - 1; k >= 0 && exchange == 2; k--) {
        const int p = clamp(pivots[z * bp + k] - 1, 0, n - 1);
        const ${V} t = ${X % "k"};
        ${X % "k"} = ${X % "p"};
        ${X % "p"} = t;
    }
    __global ${C}* y = X + (z * r + first) * n;
    for (int i = 0; i < n; i++) {
% if W > 1:
        ${C} t[${W}];
        vstore${W}(x[i], 0, t);
        if (width == ${W}) {
% for c in range(W):
            y[${c} * n + i] = t[${c}];
% endfor
        } else for (int c = 0; c < width; c++) y[c * n + i] = t[c];
% else:
        y[i] = ${X % "i"};
% endif
    }
}
