## Work on rows of n elements of a dense (outer, n, inner) array, in the forms that drivers like. A template calls begin, any number of
## fold and each, then end. Element i of a row lies at place(FORM)(i).
##   vector local size 1, inner 1: a work-item takes `chunk` rows one after another in vectors of 16 (double: 8) elements (CPUs)
##   loop   local size 1, inner 1: a work-item takes `chunk` rows one after another; LANES partial results keep loops vectorised (PoCL)
##   block  local size 1: a work-item takes 64 rows side by side, one per vector lane: short rows and columns (PoCL)
##   few    local size 1, inner 1: rows of fewer elements than a vector has lanes, as many together; `chunk` is a multiple of that (CPUs)
##   several  the same for longer rows, of up to 128 elements
##   wide   local size 1, inner > 1: a work-item takes `chunk` neighbouring columns (at most 256), in vectors of them (CPUs)
##   group  inner 1: one work-group of LANES work-items per row, combined in local memory (GPUs, Intel); LANES of 128 and more are for long rows (GPUs)
##   team-P-G-K-V  inner 1: P work-items per row in groups of G, both powers of two; each keeps the K elements of every operand that it needs (GPUs):
##          once(FORM, T, name...) reads these operands after begin, of which statements of fold and each then speak as of memory. V > 1: as aligned
##          vectors of so many elements, of which n and K are multiples; `each` then stores to place(FORM)(i) alone
##   item   inner 1: one work-item per row, for short rows
##   column one work-item per row, neighbouring work-items on neighbouring columns; global (inner, outer)
## In each form partial results are folded in a fixed order. Statements given to fold and each are written with LD_<dtype>(p, i) and
## ST_<dtype>(p, i, v) for elements of rows, LC_<dtype>(p, i) for those of operands that all rows share and the type E_T, which stand for one element,
## or for a vector of them in the forms vector, few, several and wide; HIT_<compute type>(i, t) is 1 for element t, else 0. Values of the row are called
## value(FORM)(name). Forms of vectors may visit an element twice, as their last vector of longer rows ends with the row.
<%!
    AHEAD = "#if defined(CLNN_NVIDIA) || defined(CLNN_AMD)\n#pragma unroll 4\n#endif\n"     # GPUs: several loads on their way at a time
    import re

    def one(text, ACC):
        """The statements for a single element."""
        text = re.sub(r"\bRV\((\w+)\)", r"\1[l]", text)
        text = re.sub(r"\bHIT_\w+\(([^,]*), ([^()]*)\)", r"(int)((\1) == (\2))", text)
        return re.sub(r"\bE_T\b", ACC, re.sub(r"\bST_(\w+)\(", r"store_\1(", re.sub(r"\b(?:LD|LC)_(\w+)\(", r"load_\1(", text)))

    def many(text, ACC):
        """The statements for a vector."""
        text = re.sub(r"(\bHIT_\w+\([^,]*, )RV\((\w+)\)", r"\1\2", text)
        text = re.sub(r"\bRV\((\w+)\)", lambda m: lanes_of(m[1], ACC), text)
        return re.sub(r"\bE_T\b", ACC + str(width(ACC)), re.sub(r"\b(LD|LC|ST|HIT)_(\w+)\(", r"\1V_\2(", text))

    def lanes_of(name, ACC):
        """The vector of a private array from l on, in the form wide: what vload and vstore make of these is taken apart by PoCL."""
        return f"(*({ACC}{width(ACC)}*)({name} + l))"

    def width(ACC):
        return 8 if ACC == "double" else 16

    def index(ACC):
        return "long8" if ACC == "double" else "int16"

    TOGETHER = ("few", "several")
    VECTORS = ("vector", "wide", *TOGETHER)
    COLUMNS = 256           # of a work-item in the form wide, at most

    def value(FORM):
        """How statements of fold and each name a value that belongs to the row."""
        if FORM == "wide":
            return lambda name: f"RV({name})"
        return (lambda name: name + "[l]") if FORM == "block" or FORM in TOGETHER else (lambda name: name)

    def team(FORM):
        """(work-items of a row, of a group, elements of each, of a vector), or nothing in other forms."""
        return tuple(map(int, FORM.split("-")[1:])) if FORM.startswith("team-") else ()

    def sized(FORM):
        """What tells a compiler the size of groups, which leaves each work-item so many registers."""
        return f"__attribute__((reqd_work_group_size({team(FORM)[1]}, 1, 1))) " if team(FORM) else ""

    def held(text, ACC, V=1):
        """The statements for the element `slot` of a work-item, which was read; it is stored where there is one, or put into a vector."""
        text = re.sub(r"\bLD_\w+\((\w+), [^()]*\)", r"kept_\1[slot]", text)
        stored = (r"(\w+), base \+ i, ", rf"store_\1(put_\2, slot % {V}, ") if V > 1 else ("", r"if (inside) store_\1(")
        return one(re.sub(r"\bST_(\w+)\(" + stored[0], stored[1], text), ACC)

    long_rows = lambda FORM, LANES: FORM == "group" and LANES >= 128    # a group has a row that it reads again and again
    def place(FORM):
        if FORM == "block":
            return lambda i: f"base + {i} * step + l * side"
        if FORM == "wide":
            return lambda i: f"base + {i} * inner + l"
        return (lambda i: f"base + {i} * inner") if FORM == "column" else (lambda i: f"base + {i}")
%>
<%namespace name="vec" file="/matmul/vec.cl.mako"/>
<%namespace name="whole" file="/softmax/vector.cl.mako"/>
<%namespace name="few" file="/softmax/few.cl.mako"/>
<%namespace name="wide" file="/softmax/wide.cl.mako"/>
<%namespace name="loops" file="/softmax/loop.cl.mako"/>
<%namespace name="group" file="/softmax/team.cl.mako"/>
<%namespace name="exponential" file="/softmax/exponential.cl.mako"/>
## vectors: LDV_<dtype> and STV_<dtype> for each of the dtypes, where the form needs them.
<%def name="vectors(FORM, *dtypes)">
% if FORM == "wide":
${wide.functions({d.name: d for d in dtypes}.values(), width, index)}
% elif FORM == "vector" or FORM in TOGETHER:
% for ACC in {d.acc for d in dtypes}:
constant ${index(ACC)} lanes_${ACC} = (${index(ACC)})(${", ".join(map(str, range(width(ACC))))});
#define HITV_${ACC}(i, t) ((lanes_${ACC} + (${index(ACC)})(i)) == (${index(ACC)})(t) ? (${ACC}${width(ACC)})1 : (${ACC}${width(ACC)})0)
% endfor
% endif
% if FORM == "vector":
% for T in {d.name: d for d in dtypes}.values():
${vec.vector_io(T, width(T.acc))}
#define LDV_${T.name}(p, i) ldv_${T.name}((p) + (i))
#define LCV_${T.name}(p, i) ldv_${T.name}((p) + (i))
#define STV_${T.name}(p, i, v) stv_${T.name}((p) + (i), v)
% endfor
% elif FORM in TOGETHER:
% for T in {d.name: d for d in dtypes}.values():
${few.functions(FORM, T, width(T.acc))}
% endfor
% endif
</%def>
## expo: rows_exp, exp for arguments <= 0
<%def name="expo(FORM, T)">
${exponential.functions(T.acc, FORM in VECTORS)}
</%def>
<%def name="begin(FORM, rows='rows', ACC='float')">
% if FORM in ("loop", "vector"):
    const long row_begin = get_global_id(0) * chunk, row_end = min(${rows}, row_begin + chunk);
    for (long row = row_begin; row < row_end; row++) {
    const long base = row * n;
#define row_at row
% elif FORM in TOGETHER:
    const long row_begin = get_global_id(0) * chunk, row_end = min(${rows}, row_begin + chunk);
    for (long first = row_begin; first < row_end; first += ${width(ACC)}) {
    const int width = (int)min(${width(ACC)}L, row_end - first);
% if FORM == "few":
    const int inside = (int)min((long)width, max(0L, row_end - first - (${width(ACC)} + n - 1) / n + 1));      /* rows whose vectors are */
% endif
#define row_at (first + l)
% elif FORM == "wide":
${wide.begin(rows, width(ACC))}
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
% elif team(FORM):
${group.begin(*team(FORM), rows)}
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
<%def name="once(FORM, T, *names)">${capture(group.once, *team(FORM), T, names) if team(FORM) else ""}</%def>
<%def name="end(FORM)">
% if FORM in ("loop", "vector", *TOGETHER):
    }
% endif
</%def>
## fold: `name` becomes combine over i of the value that the statements element(i) leave in `e` (in block form an array over l).
<%def name="fold(FORM, LANES, ACC, name, init, combine, element, n='n')">
% if FORM == "vector":
${whole.fold(ACC, width(ACC), name, init, combine, lambda i: many(element(i), ACC), n)}
% elif FORM == "loop" and LANES > 1:
${loops.fold(LANES, ACC, name, init, combine, one(element("(i0 + l)"), ACC), n)}
% elif FORM == "wide":
${wide.fold(ACC, width(ACC), COLUMNS, lambda name: lanes_of(name, ACC), name, init, combine, many(element("i"), ACC), one(element("i"), ACC), n)}
% elif FORM in TOGETHER:
${few.fold(FORM, ACC, width(ACC), name, init, combine, lambda i: many(element(i), ACC), n)}
% elif FORM == "block":
    ${ACC} ${name}[64];
    for (int l = 0; l < 64; l++) ${name}[l] = ${init};
    for (long i = 0; i < ${n}; i++)
        for (int l = 0; l < width; l++) {
            ${one(element("i"), ACC)}
            ${name}[l] = ${combine(f"{name}[l]", "e")};
        }
% elif long_rows(FORM, LANES):
${group.fold_longest(LANES, ACC, name, init, combine, one(element("i"), ACC), n)}
% elif FORM == "group":
${group.fold_long(LANES, ACC, AHEAD, name, init, combine, one(element("i"), ACC), n)}
% elif team(FORM):
${group.fold(*team(FORM), ACC, name, init, combine, held(element("i"), ACC), n)}
% else:
    ${ACC} ${name} = ${init};
    for (long i = 0; i < ${n}; i++) {
        ${one(element("i"), ACC)}
        ${name} = ${combine(name, "e")};
    }
% endif
</%def>
## each_row: a value per row from others; in `text` a name with an underscore at its end is such a value and row_at the row's number. Rows that are
## worked on together get it at once unless it reads something.
<%def name="each_row(FORM, ctype, name, text)">
<% reads = re.search(r"row_at|[?\[]|load_|LC_|\bround_", text) %>\
% if FORM == "wide" and ctype in ("float", "double") and not reads:
    ${ctype} ${name}[${COLUMNS}] __attribute__((aligned(64)));
    for (int l = 0; l < width; l += ${width(ctype)})
        ${lanes_of(name, ctype)} = ${re.sub(r"\b(\w+?)_\b", lambda m: lanes_of(m[1], ctype), text)};
% elif FORM in TOGETHER and ctype in ("float", "double") and not reads:
    ${ctype} ${name}[${width(ctype)}];
    vstore${width(ctype)}(${re.sub(r"\b(\w+?)_\b", rf"vload{width(ctype)}(0, \1)", text)}, 0, ${name});
% elif FORM in ("block", "wide") or FORM in TOGETHER:
    ${ctype} ${name}[${64 if FORM == "block" else COLUMNS if FORM == "wide" else 16}]${" __attribute__((aligned(64)))" if FORM == "wide" else ""};
    for (int l = 0; l < width; l++) {
        ${"" if FORM in ("block", "wide") else "const long base = (first + l) * n;"}
        ${name}[l] = ${one(re.sub(r"\b(\w+?)_\b", r"\1[l]", text), ctype)};
    }
% else:
    const ${ctype} ${name} = ${one(re.sub(r"\b(\w+?)_\b", r"\1", text), ctype)};
% endif
</%def>
## store_row: `statement` once per row, with names as in each_row.
<%def name="store_row(FORM, statement)">
% if FORM in ("block", "wide") or FORM in TOGETHER:
    for (int l = 0; l < width; l++) {
        ${"" if FORM in ("block", "wide") else "const long base = (first + l) * n;"}
        ${one(re.sub(r"\b(\w+?)_\b", r"\1[l]", statement), "")}
    }
% else:
    ${"if (lane == 0) " if FORM == "group" else "if (lane == 0 && there) " if team(FORM) else ""}{ ${one(re.sub(r"\b(\w+?)_\b", r"\1", statement), "")} }
% endif
</%def>
## each: the statements body(i) for every i of the row. `last`: those for the last vector of a row where body may not be repeated; lanes of `fresh` are
## set and those of `one` 1 for elements that were not visited yet.
<%def name="each(FORM, LANES, ACC, body, last=None, n='n')">
% if FORM == "vector":
${whole.each(ACC, width(ACC), lambda i: many(body(i), ACC), lambda i: many((last or body)(i), ACC), n)}
% elif FORM == "wide":
${wide.each(width(ACC), many(body("i"), ACC), one(body("i"), ACC), n)}
% elif FORM in TOGETHER:
${few.each(FORM, width(ACC), lambda i: many(body(i), ACC), n)}
% elif long_rows(FORM, LANES):
${group.each_longest(LANES, one(body("i"), ACC), n)}
% elif FORM == "group":
${AHEAD}    for (long i = lane; i < ${n}; i += ${LANES}) {
        ${one(body("i"), ACC)}
    }
% elif team(FORM):
${group.each(*team(FORM), held(body("i"), ACC, team(FORM)[3]), n, re.findall(r"\bST_(\w+)\((\w+),", body("i")))}
% elif FORM == "block":
    for (long i = 0; i < ${n}; i++)
        for (int l = 0; l < width; l++) {
            ${one(body("i"), ACC)}
        }
% else:
    for (int i = 0; i < (int)${n}; i++) {
        ${one(body("i"), ACC)}
    }
% endif
</%def>
