"""One elementwise program over many sets of buffers in one launch: what an optimizer step is.

OpenCL has no arrays of pointers, so a kernel takes the buffers of up to ``ROWS`` sets as separate arguments; each work-group finds its set by
comparing its number with the cumulative block counts.
"""
from __future__ import annotations

from ..core import dtype as dt
from ..runtime import templates
from . import codegen
from .fuse import _launch

POINTERS = 64           # buffer arguments per launch: far below the 1 KiB of parameters that every device takes
BLOCK = 4096            # elements per work-group
_kernels: dict = {}


def rows_per_launch(columns: int, outputs: int) -> int:
    """How many sets one launch serves: a power of two, so that few kernels are compiled."""
    rows = 16
    while rows > 1 and rows * (columns + outputs) > POINTERS:
        rows //= 2
    return rows


def launch_rows(device, code, leaves, kinds, outs, scalars, rows) -> None:
    """Run the program over each row.

    Args:
        code: instructions as in ``codegen.Program``; ``leaves``: dtype index per leaf; ``outs``: (value, dtype index) pairs.
        kinds: accumulate type per scalar; ``scalars``: their values in the form ``launch`` takes.
        rows: (elements, leaf buffers, output buffers) triples.
    """
    limit = rows_per_launch(len(leaves), len(outs))
    for at in range(0, len(rows), limit):
        part = rows[at:at + limit]
        size = 1
        while size < len(part):
            size *= 2
        loop = device.is_cpu
        key = (device, code, leaves, kinds, outs, size)
        kernel = _kernels.get(key)
        if kernel is None:
            kernel = _kernels[key] = _build(device, code, leaves, kinds, outs, size, loop)
        args, blocks = list(scalars), 0
        for n, ins, results in part:
            blocks += -(-n // BLOCK)
            args += [n, blocks, *ins, *results]
        for _ in range(size - len(part)):
            args += [0, blocks, *part[0][1], *part[0][2]]
        local = 1 if loop else min(256, device.max_work_group)
        _launch(device, kernel, (blocks * local,), (local,), *args)


def _build(device, code, leaves, kinds, outs, size, loop):
    program = codegen.Program(code, tuple((d, "l", False) for d in leaves), kinds, tuple((v, d, "l", False) for v, d in outs), "", 0)
    types = [f"__global const {dt.ALL[d].c}* x{k}" for k, d in enumerate(leaves)] + [f"__global {dt.ALL[d].c}* y{k}" for k, (_, d) in enumerate(outs)]
    params = [f"const {t} s{k}" for k, t in enumerate(kinds)]
    for r in range(size):
        params += [f"const long n{r}", f"const long end{r}", *[f"{t}_{r}" for t in types]]
    chosen = ["n"] + [t.rsplit(" ", 1)[1] for t in types]
    lines = ["    const long b = get_group_id(0);", "    long start = 0, n = n0;", *[f"    {t} = {name}_0;" for t, name in zip(types, chosen[1:])]]
    for r in range(1, size):
        lines.append(f"    if (b >= end{r - 1}) {{ start = end{r - 1}; n = n{r}; " + " ".join(f"{name} = {name}_{r};" for name in chosen[1:]) + " }")
    lines += [f"    const long lo = (b - start) * {BLOCK};", *[f"    {name} += lo;" for name in chosen[1:]], f"    const int m = (int)min((long){BLOCK}, n - lo);"]
    # The leaves that are overwritten alias the outputs at equal indices only, which restrict would deny.
    pragma = ["#ifdef __clang__", "#pragma clang loop vectorize(assume_safety)", "#endif"] if loop else []
    first, step = ("0", "i++") if loop else ("get_local_id(0)", "i += get_local_size(0)")
    lines += [*pragma, f"    for (int i = {first}; i < m; {step}) {{", *codegen.values(program, "i", lambda k: "i", codegen.OWN, "        "),
              *[f"        {dt.ALL[d].store}(y{k}, i, v{v});" for k, (v, d) in enumerate(outs)], "    }"]
    text = "\n".join(["#pragma OPENCL FP_CONTRACT OFF", f"__kernel void multi({', '.join(params)})", "{", *lines, "}", ""])
    rows = [dt.ALL[d] for d in leaves] + [dt.ALL[i] for c in code for i in c[1:3]]
    return device.kernel_from_source(templates.preamble(device, any(r.needs_fp64 for r in rows), text) + text, "multi")
