## Neighbouring columns of an array, in vectors of them (form `wide` of rows.cl.mako, which explains the names); what is left is done one by one.
## at(name): the vector of a row's values from l on. Statements are given for a vector and for a single column.
<%namespace name="vec" file="/matmul/vec.cl.mako"/>
<%def name="functions(dtypes, width, index)">
% for ACC in {d.acc for d in dtypes}:
#define HITV_${ACC}(i, t) ((${index(ACC)})((int)(i)) == ${"convert_long8(*(int8*)(t + l))" if ACC == "double" else "*(int16*)(t + l)"} ? (${ACC}${width(ACC)})1 : (${ACC}${width(ACC)})0)
% endfor
% for T in dtypes:
${vec.vector_io(T, width(T.acc))}
#define LDV_${T.name}(p, i) ldv_${T.name}((p) + (i))
#define LCV_${T.name}(p, i) ((${T.acc}${width(T.acc)})(load_${T.name}(p, i)))
#define STV_${T.name}(p, i, v) stv_${T.name}((p) + (i), v)
% endfor
</%def>
<%def name="begin(rows, W)">
    const long blocks = (inner + chunk - 1) / chunk, outer = get_global_id(0) / blocks, first = get_global_id(0) % blocks * chunk;
    if (outer * inner >= ${rows}) return;
    const long base = outer * n * inner + first;
    const int width = (int)min(chunk, inner - first), whole = width / ${W} * ${W};
#define row_at (outer * inner + first + l)
</%def>
<%def name="fold(ACC, W, columns, at, name, init, combine, vector, single, n)">
    ${ACC} ${name}[${columns}] __attribute__((aligned(64)));
    for (int l = 0; l < width; l += ${W}) ${at(name)} = (${ACC}${W})(${init});
    for (long i = 0; i < ${n}; i++) {
        int l = 0;
        for (; l < whole; l += ${W}) {
            ${vector}
            const ${ACC}${W} was = ${at(name)};
            ${at(name)} = ${combine("was", "e")};
        }
        for (; l < width; l++) {
            ${single}
            ${name}[l] = ${combine(f"{name}[l]", "e")};
        }
    }
</%def>
<%def name="each(W, vector, single, n)">
    for (long i = 0; i < ${n}; i++) {
        int l = 0;
        for (; l < whole; l += ${W}) {
            ${vector}
        }
        for (; l < width; l++) {
            ${single}
        }
    }
</%def>
