## The fold of a row by loops that compilers vectorise: LANES partial results (form `loop` of rows.cl.mako); `element` are the statements for element i0 + l.
<%def name="fold(LANES, ACC, name, init, combine, element, n)">
    ${ACC} part_${name}[${LANES}];
    for (int l = 0; l < ${LANES}; l++) part_${name}[l] = ${init};
    {   /* values first, then their sums: compilers vectorise the two loops better than one */
        ${ACC} staged[256];
        for (long i0 = 0; i0 < ${n}; i0 += 256) {
            const int m_ = (int)min(256L, ${n} - i0), whole = m_ / ${LANES} * ${LANES};
            for (int l = 0; l < m_; l++) {
                ${element}
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
</%def>
