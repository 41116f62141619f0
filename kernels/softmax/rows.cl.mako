## Work on rows of n elements of a dense (outer, n, inner) array, in the forms that drivers like. A template calls begin, any number of
## fold and each, then end. Element i of a row lies at place(FORM)(i).
##   loop   local size 1, inner 1: a work-item takes `chunk` rows one after another; LANES partial results keep loops vectorised (PoCL)
##   block  local size 1: a work-item takes 64 rows side by side, one per vector lane: short rows and columns (PoCL)
##   group  inner 1: one work-group of LANES work-items per row, combined in local memory (GPUs, Intel)
##   item   inner 1: one work-item per row, for short rows
##   column one work-item per row, neighbouring work-items on neighbouring columns; global (inner, outer)
## In each form partial results are folded in a fixed order.
<%!
    def place(FORM):
        if FORM == "block":
            return lambda i: f"base + {i} * step + l * side"
        return (lambda i: f"base + {i} * inner") if FORM == "column" else (lambda i: f"base + {i}")
%>
<%def name="expo(T)">
## rows_exp: exp for arguments <= 0 (x less its maximum), 2 ulp. Where the driver's exp does not vectorise well (PoCL), branch-free code:
## 2^k * e^r with k rounded by adding a large number, whose low bits then are the exponent; results below 3e-38 become 0.
% if T.acc == "float":
#ifdef CLNN_OWN_MATH
static inline float rows_exp(const float x) {
    const float c = x < -86.5f ? -86.5f : x;
    const float t = fma(c, 1.44269504f, 12582912.0f), k = t - 12582912.0f;
    float r = fma(k, -0.693359375f, c);
    r = fma(k, 2.12194440e-4f, r);
    float q = fma(r, fma(r, fma(r, fma(r, 0.001394644786f, 0.008366582376f), 0.04166628206f), 0.1666654300f), 0.5000000062f);
    q = fma(r * r, q, r);
    return x < -86.5f ? 0.0f : as_float(as_int(1.0f + q) + (as_int(t) << 23));
}
#else
#define rows_exp exp
#endif
% else:
#define rows_exp exp
% endif
</%def>
<%def name="begin(FORM, rows='rows')">
% if FORM == "loop":
    const long row_begin = get_global_id(0) * chunk, row_end = min(${rows}, row_begin + chunk);
    for (long row = row_begin; row < row_end; row++) {
    const long base = row * n;
#define row_at row
% elif FORM == "block":
    ## side by side: the columns of one outer index, or, with inner 1, consecutive rows
    const long wide = inner > 1 ? inner : ${rows}, blocks = (wide + 63) / 64, block = get_global_id(0);
    const long first = block % blocks * 64, step = inner, side = inner > 1 ? 1 : n;
    const long base = block / blocks * n * inner + first * side;
    const int width = (int)min(64L, wide - first);
    if (block / blocks * wide >= ${rows}) return;
#define row_at (inner > 1 ? block / blocks * inner + first + l : first + l)
% elif FORM == "group":
    const int lane = get_local_id(0);
    const long row = get_group_id(0), base = row * n;
#define row_at row
% elif FORM == "column":
    const long column = get_global_id(0), row = get_global_id(1) * inner + column;
    if (column >= inner) return;
    const long base = get_global_id(1) * n * inner + column;
#define row_at row
% else:
    const long row = get_global_id(0);
    if (row >= ${rows}) return;
    const long base = row * n;
#define row_at row
% endif
</%def>
<%def name="end(FORM)">
% if FORM == "loop":
    }
% endif
</%def>
## fold: `name` becomes combine over i of the value that the statements element(i) leave in `e` (in block form an array over l).
<%def name="fold(FORM, LANES, ACC, name, init, combine, element, n='n')">
% if FORM == "loop" and LANES > 1:
    ${ACC} part_${name}[${LANES}];
    for (int l = 0; l < ${LANES}; l++) part_${name}[l] = ${init};
    {   /* values first, then their sums: compilers vectorise the two loops better than one */
        ${ACC} staged[256];
        for (long i0 = 0; i0 < ${n}; i0 += 256) {
            const int m_ = (int)min(256L, ${n} - i0), whole = m_ / ${LANES} * ${LANES};
            for (int l = 0; l < m_; l++) {
                ${element("(i0 + l)")}
                staged[l] = e;
            }
            for (int q = 0; q < whole; q += ${LANES})
                for (int l = 0; l < ${LANES}; l++) part_${name}[l] = ${combine(f"part_{name}[l]", "staged[q + l]")};
            for (int l = 0; l < m_ - whole; l++) part_${name}[l] = ${combine(f"part_{name}[l]", "staged[whole + l]")};
        }
    }
    for (int s = ${LANES // 2}; s > 0; s >>= 1)
        for (int l = 0; l < s; l++) part_${name}[l] = ${combine(f"part_{name}[l]", f"part_{name}[l + s]")};
    const ${ACC} ${name} = part_${name}[0];
% elif FORM == "block":
    ${ACC} ${name}[64];
    for (int l = 0; l < 64; l++) ${name}[l] = ${init};
    for (long i = 0; i < ${n}; i++)
        for (int l = 0; l < width; l++) {
            ${element("i")}
            ${name}[l] = ${combine(f"{name}[l]", "e")};
        }
% elif FORM == "group":
    __local ${ACC} part_${name}[${LANES}];
    ${ACC} mine_${name} = ${init};
    for (long i = lane; i < ${n}; i += ${LANES}) {
        ${element("i")}
        mine_${name} = ${combine(f"mine_{name}", "e")};
    }
    part_${name}[lane] = mine_${name};
    barrier(CLK_LOCAL_MEM_FENCE);
    <% s = LANES // 2 %>
% while s > 0:
    if (lane < ${s}) part_${name}[lane] = ${combine(f"part_{name}[lane]", f"part_{name}[lane + {s}]")};
    barrier(CLK_LOCAL_MEM_FENCE);
    <% s //= 2 %>
% endwhile
    const ${ACC} ${name} = part_${name}[0];
% else:
    ${ACC} ${name} = ${init};
    for (long i = 0; i < ${n}; i++) {
        ${element("i")}
        ${name} = ${combine(name, "e")};
    }
% endif
</%def>
## each_row: a value per row from others; in `text` a name with an underscore at its end is such a value and row_at the row's number.
<%def name="each_row(FORM, ctype, name, text)">
<% import re %>
% if FORM == "block":
    ${ctype} ${name}[64];
    for (int l = 0; l < width; l++) ${name}[l] = ${re.sub(r"\b(\w+?)_\b", r"\1[l]", text)};
% else:
    const ${ctype} ${name} = ${re.sub(r"\b(\w+?)_\b", r"\1", text)};
% endif
</%def>
## store_row: `statement` once per row, with names as in each_row.
<%def name="store_row(FORM, statement)">
<% import re %>
% if FORM == "block":
    for (int l = 0; l < width; l++) { ${re.sub(r"\b(\w+?)_\b", r"\1[l]", statement)} }
% else:
    ${"if (lane == 0) " if FORM == "group" else ""}{ ${re.sub(r"\b(\w+?)_\b", r"\1", statement)} }
% endif
</%def>
## each: the statements body(i) for every i of the row.
<%def name="each(FORM, LANES, body, n='n')">
% if FORM == "group":
    for (long i = lane; i < ${n}; i += ${LANES}) {
        ${body("i")}
    }
% elif FORM == "block":
    for (long i = 0; i < ${n}; i++)
        for (int l = 0; l < width; l++) {
            ${body("i")}
        }
% else:
    for (int i = 0; i < (int)${n}; i++) {
        ${body("i")}
    }
% endif
</%def>
