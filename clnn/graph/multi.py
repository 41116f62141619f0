"""One elementwise program over many sets of buffers in one launch: what an optimizer step is.

OpenCL has no arrays of pointers, so a kernel takes the buffers of up to ``ROWS`` sets as separate arguments; each work-group finds its set by
comparing its number with the cumulative block counts.
"""
from __future__ import annotations

import re
from itertools import chain

from ..core import dtype as dt
from ..core import native, symbols
from ..runtime import templates
from ..runtime.launch import BUFFER, NUMBER, Prepared
from . import codegen
from .fuse import _launch

POINTERS = 64           # buffer arguments per launch on a CPU
MOST_BYTES = 4096       # of parameters of a launch on a GPU: one costs more than the search for a set; every device takes 1 KiB
SEVERAL = 4             # elements of a work-item that a GPU loads at a time
BLOCK = 4096            # elements per work-group
_kernels: dict = {}
_prepared: dict = symbols.kept()


def rows_per_launch(device, columns: int, outputs: int) -> int:
    """How many sets one launch serves: a power of two, so that few kernels are compiled."""
    each = columns + outputs
    if device.is_cpu:
        rows = max(1, min(16, POINTERS // each))
    else:
        rows = max(1, min(32, (min(device.max_parameter, MOST_BYTES) - 128) // (16 + 8 * each)))
    return 1 << (rows.bit_length() - 1)


def launch_rows(device, code, leaves, kinds, outs, scalars, rows) -> None:
    """Run the program over each row.

    Args:
        code: instructions as in ``codegen.Program``; ``leaves``: (dtype index, class) per leaf, class "0" for one value that serves all elements;
            ``outs``: (value, dtype index) pairs.
        kinds: accumulate type per scalar; ``scalars``: their values in the form ``launch`` takes.
        rows: (elements, leaf buffers, output buffers) triples.
    """
    limit = rows_per_launch(device, len(leaves), len(outs))
    for at in range(0, len(rows), limit):
        part = rows[at:at + limit]
        key = (device, code, leaves, kinds, outs, tuple([n for n, *_ in part]))
        prepared = _prepared.get(key)
        if prepared is None:
            if len(_prepared) > 1024:
                _prepared.clear()
            prepared = _prepared[key] = _prepare(*key)
        prepared.run(device, _given(prepared.buffers, rows, at, limit), scalars)


def _given(positions, rows, first, limit):
    """(position, buffer, ...) of ``limit`` rows from the ``first`` on; what the kernel could take more are the first one's."""
    part = rows[first:first + limit]
    buffers = [buf for row in part for bufs in row[1:] for buf in bufs]
    buffers += [*part[0][1], *part[0][2]] * len(positions)
    return tuple(chain.from_iterable(zip(positions, buffers)))


_given = native.form("given_in_turn", _given)


def _prepare(device, code, leaves, kinds, outs, counts):
    """The launch over sets of ``counts`` elements; what the kernel could take more is empty."""
    size = 1 << (len(counts) - 1).bit_length()
    local = 1 if device.is_cpu else min(256, device.max_work_group)
    key = (device, code, leaves, kinds, outs, size)
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _kernels[key] = _build(device, code, leaves, kinds, outs, size, local)
    args, blocks = [NUMBER] * len(kinds), 0
    for n in (*counts, *[0] * (size - len(counts))):
        blocks += -(-n // BLOCK)
        args += [n, blocks, *[BUFFER] * (len(leaves) + len(outs))]
    return Prepared(kernel, (blocks * local,), (local,), args)


def _choice(params, types, size, still=()):
    """(kernel parameters, statements) by which a work-group finds its set ``start``, ``n`` and the pointers, and its ``m`` elements from there on;
    pointers named in ``still`` are the same for all elements."""
    names = [t.rsplit(" ", 1)[1] for t in types]
    for r in range(size):
        params += [f"const long n{r}", f"const long end{r}", *[f"{t}_{r}" for t in types]]
    lines = ["    const long b = get_group_id(0);", "    long start = 0, n = n0;", *[f"    {t} = {name}_0;" for t, name in zip(types, names)]]
    for r in range(1, size):
        lines.append(f"    if (b >= end{r - 1}) {{ start = end{r - 1}; n = n{r}; " + " ".join(f"{name} = {name}_{r};" for name in names) + " }")
    return params, [*lines, f"    const long lo = (b - start) * {BLOCK};", *[f"    {name} += lo;" for name in names if name not in still],
                    f"    const int m = (int)min((long){BLOCK}, n - lo);"]


_NAMED = re.compile(r"\b(i|l\d+|v\d+)\b")        # what differs between the elements of a work-item


def _build(device, code, leaves, kinds, outs, size, local):
    program = codegen.Program(code, tuple((d, c, False) for d, c in leaves), kinds, tuple((v, d, "l", False) for v, d in outs), "", 0)
    types = [f"__global const {dt.ALL[d].c}* x{k}" for k, (d, _) in enumerate(leaves)] + [f"__global {dt.ALL[d].c}* y{k}" for k, (_, d) in enumerate(outs)]
    params, lines = _choice([f"const {t} s{k}" for k, t in enumerate(kinds)], types, size, [f"x{k}" for k, (_, c) in enumerate(leaves) if c == "0"])
    # The leaves that are overwritten alias the outputs at equal indices only, which restrict would deny.
    at = ["i" if c == "l" else "0" for _, c in leaves]
    loads = codegen.values(program, "i", at.__getitem__, codegen.OWN, "        ")
    work = loads[len(leaves):] + [f"        {dt.ALL[d].store}(y{k}, i, v{v});" for k, (v, d) in enumerate(outs)]
    loads = loads[:len(leaves)]
    if local == 1:
        lines += ["#ifdef __clang__", "#pragma clang loop vectorize(assume_safety)", "#endif", "    for (int i = 0; i < m; i++) {", *loads, *work, "    }"]
    else:       # all loads before the first store, which the compiler could not pass
        copies = [_NAMED.sub(rf"\1_{e}", "\n".join(part)) for part in (loads, work) for e in range(SEVERAL)]
        places = [f"        const int i_{e} = i + {e * local};" for e in range(SEVERAL)]
        lines += ["    int i = get_local_id(0);", f"    for (; i + {(SEVERAL - 1) * local} < m; i += {SEVERAL * local}) {{", *places, *copies, "    }",
                  f"    for (; i < m; i += {local}) {{", *loads, *work, "    }"]
    text = "\n".join(["#pragma OPENCL FP_CONTRACT OFF", f"__kernel void multi({', '.join(params)})", "{", *lines, "}", ""])
    rows = [dt.ALL[d] for d, _ in leaves] + [dt.ALL[i] for c in code for i in c[1:3]]
    return device.kernel_from_source(templates.preamble(device, any(r.needs_fp64 for r in rows), text) + text, "multi")


LANES = 64              # partial results per block, in a fixed order of additions
_FOLDS = {False: ("{p} + v * v", "a + b", "sqrt(part[0])"), True: ("(fabs(v) > {p} || isnan(v)) ? fabs(v) : {p}", "(b > a || isnan(b)) ? b : a", "part[0]")}


def launch_norms(device, dtype, largest, rows, out) -> None:
    """The norm of each block of ``BLOCK`` elements of many buffers: of order 2, or the ``largest`` absolute value.

    Args:
        dtype: of the buffers and of ``out``, float32 or float64.
        rows: (elements, buffer) pairs. out: buffer with one element per block, row after row.
    """
    first = 0
    for at in range(0, len(rows), 16):
        part = rows[at:at + 16]
        size = 1 << (len(part) - 1).bit_length()
        loop = device.is_cpu or device.loops
        key = (device, "norms", dtype, largest, size)
        kernel = _kernels.get(key) or _kernels.setdefault(key, _build_norms(device, dtype, largest, size, loop))
        args, blocks = [out, first], 0
        for n, buf in part:
            blocks += -(-n // BLOCK)
            args += [n, blocks, buf]
        args += [0, blocks, part[0][1]] * (size - len(part))
        local = 1 if loop else LANES
        _launch(device, kernel, (blocks * local,), (local,), *args)
        first += blocks


def _build_norms(device, dtype, largest, size, loop):
    take, fold, finish = _FOLDS[largest]
    params, lines = _choice([f"__global {dtype.c}* out", "const long first"], [f"__global const {dtype.c}* x"], size)
    tree = [f"        {{ const {dtype.acc} a = part[l], b = part[l + s]; part[l] = {fold}; }}"]
    if loop:
        lines += [f"    {dtype.acc} part[{LANES}];", f"    for (int l = 0; l < {LANES}; l++) part[l] = 0;", f"    for (int i = 0; i < m; i += {LANES})",
                  f"        for (int l = 0; l < min({LANES}, m - i); l++) {{ const {dtype.acc} v = x[i + l]; part[l] = {take.format(p='part[l]')}; }}",
                  f"    for (int s = {LANES // 2}; s > 0; s >>= 1) for (int l = 0; l < s; l++)", *tree, f"    out[first + b] = {finish};"]
    else:
        lines += [f"    __local {dtype.acc} part[{LANES}];", f"    const int l = get_local_id(0); {dtype.acc} mine = 0;",
                  f"    for (int i = l; i < m; i += {LANES}) {{ const {dtype.acc} v = x[i]; mine = {take.format(p='mine')}; }}", "    part[l] = mine;",
                  f"    for (int s = {LANES // 2}; s > 0; s >>= 1) {{", "        barrier(CLK_LOCAL_MEM_FENCE);", "        if (l < s)", *tree, "    }",
                  f"    if (l == 0) out[first + b] = {finish};"]
    text = "\n".join(["#pragma OPENCL FP_CONTRACT OFF", f"__kernel void norms({', '.join(params)})", "{", *lines, "}", ""])
    return device.kernel_from_source(templates.preamble(device, dtype.needs_fp64, text) + text, "norms")
