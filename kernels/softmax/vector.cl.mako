## One row after another in whole vectors, the last of which ends with the row (form `vector` of rows.cl.mako, which explains the names).
## fold: `name` becomes what combine makes of the values that the statements element(i) leave in e.
<%def name="fold(ACC, W, name, init, combine, element, n)">
<% I = "long8" if W == 8 else "int16" %>\
    ${ACC} ${name};
    {
        ${ACC}${W} v0 = (${ACC}${W})(${init}), v1 = v0, v2 = v0, v3 = v0;
        long i = 0;
        for (; i + ${4 * W} <= ${n}; i += ${4 * W}) {
% for k in range(4):
            { ${element(f"(i + {k * W})")} v${k} = ${combine(f"v{k}", "e")}; }
% endfor
        }
        for (; i + ${W} <= ${n}; i += ${W}) { ${element("i")} v0 = ${combine("v0", "e")}; }
        if (i < ${n}) {
            const ${I} seen = (${I})(i + ${W} - ${n});
            i = ${n} - ${W};
            ${element("i")}
            const ${ACC}${W} fresh = lanes_${ACC} >= seen ? e : (${ACC}${W})(${init});
            v1 = ${combine("v1", "fresh")};
        }
        v0 = ${combine("v0", "v1")};
        v2 = ${combine("v2", "v3")};
        v0 = ${combine("v0", "v2")};
<% h, last = W // 2, "v0" %>\
% while h > 1:
        const ${ACC}${h} h${h} = ${combine(f"{last}.lo", f"{last}.hi")};
<% h, last = h // 2, f"h{h}" %>\
% endwhile
        ${name} = ${combine("h2.x", "h2.y")};
    }
</%def>
## each: the statements body(i) for every vector but the last, incomplete one, which has `last`.
<%def name="each(ACC, W, body, last, n)">
<% I = "long8" if W == 8 else "int16" %>\
    {
        long i = 0;
        for (; i + ${W} <= ${n}; i += ${W}) { ${body("i")} }
        if (i < ${n}) {
            const ${I} fresh = lanes_${ACC} >= (${I})(i + ${W} - ${n});
            const ${ACC}${W} one = fresh ? (${ACC}${W})1 : (${ACC}${W})0;
            i = ${n} - ${W};
            ${last("i")}
        }
    }
</%def>
