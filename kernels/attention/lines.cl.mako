## Products of four warps together (wgmma) for the kernels of attention: operands in local memory as lines, or held as fragments.
##
## A *tile* is, per 64 elements of its rows, a line of 128 bytes for each row: piece p (16 bytes) of line l stands at place p ^ (l % 8) (PTX ISA, "Shared Memory
## Matrix Layout", swizzle of 128 bytes). It begins at a multiple of 1024 bytes. So one tile may be contracted over its elements or over its rows.
## Sums c[N / 2] and fragments a[K / 4] of a warpgroup's 64 rows: warp w of it has rows 16 w.., with the places of mma.m16n8k16 (see attention/fragments).
##
## def                        emits
## helpers(T, PTX)            FENCE (what was copied is seen by the products), DESCRIPTOR; or AT
## fetch(...)                 rows from global memory to a tile
## multiply(T, PTX, wait, *jobs)  products one behind the other, and unless wait is False until they are done. A job: (c, N, K, A, B, fresh)
##     A ("own", tile, lines): a tile of `lines` rows, 64 for each warpgroup; or ("held", a)
##     B ("across", tile, lines): its rows are the columns of c; ("down", tile, lines): its rows are what is contracted
##     fresh: c is set, not added to
##
## PTX=False spells the products out, for tests. Expects lid, lane, warp, g, t and, where not PTX, mine: 8 max(K) words of local memory for each warp.
<%!
    HIGH = 64 | 1 << 30         # of a matrix descriptor: bytes / 16 from 8 lines to the next 8, and the swizzle of 128 bytes

    def steps(way, lines):
        """Steps of 16 bytes from a descriptor to that of the i-th 16 elements (or rows)."""
        return (lambda i: i * 128) if way == "down" else (lambda i: i // 4 * lines * 8 + i % 4 * 2)

    def statement(kind, jobs, wait):
        """All jobs as one statement of inline assembly."""
        outs = [(c, r, "=f" if fresh else "+f") for c, N, _, _, _, fresh in jobs for r in range(N // 2)]
        ins, text, first = [], "wgmma.fence.sync.aligned; ", 0
        for c, N, K, A, B, fresh in jobs:
            sums, first = ", ".join(f"%{first + r}" for r in range(N // 2)), first + N // 2
            a = len(outs) + len(ins)
            ins += [f'"r"({A[1]}[{i}])' for i in range(K // 4)] if A[0] == "held" else [f'"l"(DESCRIPTOR({A[1]} + warp / 4 * 512, 1))']
            b = len(outs) + len(ins)
            ins.append(f'"l"(DESCRIPTOR({B[1]}, {B[2] * 8 if B[0] == "down" else 1}))')
            for i in range(K // 16):
                left, turns = "{" + ", ".join(f"%{a + 4 * i + r}" for r in range(4)) + "}", f"{int(B[0] == 'down')}"
                if A[0] == "own":
                    text += f"add.s64 a, %{a}, {steps('across', A[2])(i)}; "
                    left, turns = "a", f"0, {turns}"
                text += (f"add.s64 b, %{b}, {steps(B[0], B[2])(i)}; wgmma.mma_async.sync.aligned.m64n{N}k16.f32.{kind}.{kind} {{{sums}}}, {left}, b, "
                         f"{'q' if fresh and not i else 'p'}, 1, 1, {turns}; ")
        text += "wgmma.commit_group.sync.aligned; " + "wgmma.wait_group.sync.aligned 0; " * wait
        return (f'asm volatile("//sm_90a:{{ .reg .b64 a, b; .reg .pred p, q; setp.eq.u32 p, 0, 0; setp.ne.u32 q, 0, 0; {text}}}" : '
                + ", ".join(f'"{how}"({c}[{r}])' for c, r, how in outs) + " : " + ", ".join(ins) + ' : "memory");')
%>\
<%def name="helpers(T, PTX)">
% if PTX:
#define FENCE() asm volatile("fence.proxy.async.shared::cta;" : : : "memory")
#define DESCRIPTOR(tile, lead) ((ulong)${HIGH}u << 32 | (lead) << 16 | (uint)(size_t)(tile) >> 4)
% else:
#define FENCE()
#define FLOAT(h) ${"clnn_h2f" if T.name == "float16" else "clnn_bf2f"}((ushort)(h))
/* Element e of line l of a tile. */
#define AT(tile, lines, l, e) FLOAT(((__local const ushort*)((tile) + (e) / 64 * (lines) * 8 + (l) * 8 + ((e) % 64 / 8 ^ (l) % 8)))[(e) % 8])
% endif
</%def>
##
## ROWS rows of X (`size` elements, `stride` apart, an int) to `tile`; those from `left` on become zeros.
<%def name="fetch(tile, X, stride, size, ROWS, G, left)">
<% C = size // 8 %>\
            {
            const int r = lid / ${C}, from = r * ${stride} + lid % ${C} * 8;
            __local uint4* into = ${tile} + lid % ${C} / 8 * ${ROWS * 8} + r * 8 + (lid % 8 ^ r % 8);
            #pragma unroll
            for (int p = 0; p < ${ROWS * C // G}; p++)
                COPY16(into + p * ${G // C * 8}, ${X} + (r + p * ${G // C} < ${left} ? from + p * ${G // C} * ${stride} : 0), r + p * ${G // C} < ${left});
            }
</%def>
<%def name="multiply(T, PTX, wait, *jobs)">
% if PTX:
        ${statement(T.name.replace("float", "f"), jobs, wait)}
% else:
% for c, N, K, A, B, fresh in jobs:
% if A[0] == "held":
        /* Word w: elements 16 (w / 4) + 8 (w / 2 % 2) + 2 t and the next one, row g + 8 (w % 2). */
        for (int w = 0; w < ${K // 4}; w++) mine[(g + (w & 1) * 8) * ${K // 2} + w / 4 * 8 + (w & 2) * 2 + t] = ${A[1]}[w];
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
        for (int i = 0; i < ${N // 2}; i++) {
            const int row = g + (i & 2) * 4, column = i / 4 * 8 + 2 * t + (i & 1);
            ${f"{c}[i] = 0;" if fresh else ""}
            for (int k = 0; k < ${K}; k++)
                ${c}[i] += ${f"FLOAT(mine[row * {K // 2} + k / 2] >> (k & 1) * 16)" if A[0] == "held" else f"AT({A[1]}, {A[2]}, warp * 16 + row, k)"}
                    * ${f"AT({B[1]}, {B[2]}, k, column)" if B[0] == "down" else f"AT({B[1]}, {B[2]}, column, k)"};
        }
% if A[0] == "held":
        barrier(CLK_LOCAL_MEM_FENCE);
% endif
% endfor
% endif
</%def>
