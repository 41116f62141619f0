"""Reductions as lazy nodes: the elementwise expression that feeds one becomes its prologue, so ``((a - b) ** 2).sum()`` is one launch.

The order of additions is fixed by the sizes alone: LANES interleaved partial results per segment of a row, or row after row per column, segments
combined in a second launch. So every driver and every run gives the same bits; GPUs, which need more work-items than CPUs, have shorter segments.
"""
from __future__ import annotations

import contextlib
import functools
import math
import struct
from collections import deque

from ..core import dtype as dt
from ..core import native, symbols
from ..core.shape import collapse, contiguous_strides
from ..runtime import launch as launcher
from ..runtime import templates
from ..runtime.launch import BUFFER, NUMBER, Prepared
from . import codegen, reduce_groups, reduce_vector, vectors
from .fuse import CAST, Group, check_args, finish, fits, owner_of, realize, reshape_node
from .fuse import _SCALAR_C
from .node import Node
from .structure import told

LANES = 64              # partial results per segment
BRIEF = 64              # shorter rows need no work-group
SHORT = 16              # still shorter ones are added up in sequence
MANY = 512, 1024        # so many rows of fewer elements each are finished as many at a time as a vector has lanes (CPUs)
SEGMENT = 16384         # elements per first-stage segment of a row
ROWS = 1024             # rows per first-stage segment of a column
LONG = 8                # instructions of a prologue from which on kept intermediate values are stored first
SLIM = 16               # fewer columns are added up in so many interleaved partial results each
TINY = 128              # elements per output of reductions that are all done by the shortest kernel: a better one takes longer to build than it ever saves
APART = 4096            # elements from which on a kernel of their own pays where the reduction would compute long functions one by one
PAGE = 4096             # bytes
NEAR = 32 << 20         # bytes up to which columns are read in short runs: they lie in some cache, so a page costs no row of DRAM
# A work-item of a GPU waits for one load at a time unless it sees several steps of its loop at once.
AHEAD = ["#if defined(CLNN_NVIDIA) || defined(CLNN_AMD)", "#pragma unroll 8", "#endif"]
CHUNK = 64              # columns per work-item in loop form; kernels for fewer lack what only a whole chunk runs


@native.know
class Call:
    """One recorded reduction, or several of a kind: over which dimensions of what shape, and the finishing constant.

    ``kind``: what tells it from others. ``number``: the constant as kernels take it, once it was given to one.
    """

    __slots__ = ("spec", "shape", "dims", "acc", "constant", "kind", "number")

    def __init__(self, spec, shape, dims, acc, constant=0.0):
        self.spec, self.shape, self.dims, self.acc, self.constant = spec, shape, dims, acc, constant
        self.kind, self.number = (spec.name, acc, shape, dims), None

    def run(self, storage, node):
        """Realise ``node`` (the pending value of ``storage``)."""
        device = node.device
        buf = device.alloc(storage.nbytes)
        if node.numel and not self._fused(device, node, buf):
            source, dtype, offset, strides = node.args[0]
            if isinstance(source, Node):
                if source.buf is None:
                    realize(owner_of(source))
                source = source.buf
            key = (device, dtype, strides, self.kind, node.dtype)
            plan = _plans.get(key)
            if plan is None:
                plan = _plans[key] = self._plan(device, self.elements(node), node.dtype)
            plan.run(device, self, ((source, offset),), (), buf, ())
        finish(node, storage, buf)
        node.reduce = None

    def _fused(self, device, node, buf) -> bool:
        """Reduce what is pending to ``buf`` as it is computed; False where it has to be in memory: somebody else needs it, or one kernel would not do."""
        source = node.args[0][0]
        if not isinstance(source, Node) or source.buf is not None or source.reduce is not None or _kept(source):
            return False
        key, reads, numbers, nodes = told(source)
        if source.count > LONG:
            # Values that somebody keeps are computed once here, else a loop that extends a chain and reduces it each time would
            # read an ever longer one, with a new kernel per length.
            kept = [n for n in nodes if _kept(n)]
            if kept:
                for n in kept:
                    realize(owner_of(n))
                key, reads, numbers, nodes = told(source)
        key = (*key, self.kind, node.dtype)
        known = _fusions.get(key, False)
        if known is False:
            if len(_fusions) > 8192:    # a loop over ever new shapes must not grow without bound
                _fusions.clear()
            known = _fusions[key] = self._fusion(device, node, source, nodes)
        if known is None:
            return False
        plan, picks, checks = known
        plan.run(device, self, [(reads[i][0], reads[i][2]) for i in picks], numbers, buf, checks)
        return True

    def _fusion(self, device, node, source, nodes):
        """(launches, which operands met they take, error words) of the reduction of what is pending; None where one kernel would not do."""
        if 0 in self.shape or any([n.expr.uses_index for n in nodes]):
            return None
        group = self.elements(node)
        if not fits(device, group, len(self.shape) + 7, 1):
            return None
        plan = self._plan(device, group, node.dtype)
        if plan.apart:
            return None
        return plan, [group.met.index(k) for k in range(len(group.leaves))], check_args(device, group) if group.checked else ()

    def elements(self, node) -> Group:
        """The instructions that compute the elements: of what is pending, else a plain load."""
        source, dtype, offset, strides = node.args[0]
        group = Group()
        if isinstance(source, Node):
            if source.buf is None:
                if source.shape != self.shape:
                    reshape_node(source, self.shape)
                group.visit(source)
                return group
            source = source.buf
        group.visit(Node(CAST, ((source, dtype, offset, strides),), dtype, dtype, self.shape, math.prod(self.shape), node.device, 1, 1, False))
        return group

    def _plan(self, device, group, out_dtype):
        """The launches that reduce what ``group`` computes."""
        key = (device, self.kind, out_dtype, tuple(group.code), tuple(group.kinds),
               tuple([(leaf[1], leaf[3], leaf[4]) for leaf in group.leaves]))
        plan = _plans.get(key)
        if plan is None:
            if len(_plans) > 16384:     # a loop over ever new shapes must not grow without bound
                _plans.clear()
            plan = _plans[key] = Plan(device, self, group, self.shape, self.dims, out_dtype)
        return plan


UNREAD = 32             # reductions that are pending at a time
_unread: deque = deque()


def defer(storage, call: Call) -> None:
    """Let ``call`` be what computes the pending value of ``storage``. The oldest of many such values is computed now: each keeps all the memory that it reads,
    so that a list of a program's losses would hold what they are computed from."""
    storage.node.reduce = call
    _unread.append(storage.node.out)
    if len(_unread) > UNREAD:
        _read_some()


def _read_some():
    while len(_unread) > UNREAD and launcher.recorders is None and launcher.recording is None:
        first = _unread.popleft()()
        if first is not None:
            with contextlib.suppress(Exception):        # of values that are refused whoever reads them is told, not whoever comes by
                first.buffer()


native.give(reduce=globals(), unread=_unread, most_unread=UNREAD, read_some=_read_some)


@native.know
class Plan:
    """What all launches of one reduction over one layout have in common; ``rest`` combines the partial results where there are several."""

    __slots__ = ("kernel", "head", "walks", "global_size", "local_size", "scratch", "rest", "prepared", "apart")

    def __init__(self, device, call, group, shape, dims, out_dtype):
        geo = Geometry(device, group, shape, dims)
        if geo.total == 0:
            raise AssertionError("empty reductions are handled by the operator")
        long = geo.total * geo.outputs >= APART and geo.scalar(device.loops) and vectors.calls(group)
        self.apart = device.is_cpu and (long or device.vectors and vectors.sums_up(group))
        if self.apart:                  # the elements are computed by a kernel of their own, which has vectors for them, or is right
            return
        final = geo.parts == 1
        self.kernel, form = _kernel(device, call, group, geo, out_dtype if final else call.acc, final)
        self.global_size, self.local_size, chunk = _grid(device, group, geo, geo.kind, form)
        self.head = (geo.outputs, geo.rows, geo.inner, geo.parts, geo.part_rows, geo.part_inner, chunk, *geo.kept, *geo.reduced)
        self.walks = [(*geo.kept_walks[k], *geo.reduced_walks[k]) for k in range(len(group.leaves))]
        self.scratch, self.rest, self.prepared = 0, None, None
        if not final:
            self.scratch = geo.outputs * geo.parts * call.acc.itemsize
            middle = (geo.parts, geo.outputs) if geo.column else (geo.outputs, geo.parts)
            parts = Group()
            parts.visit(Node(CAST, ((None, call.acc, 0, contiguous_strides(middle)),), call.acc, call.acc, middle, geo.parts * geo.outputs,
                             device, 1, 1, True))
            self.rest = Plan(device, call, parts, middle, (0,) if geo.column else (1,), out_dtype)

    def run(self, device, call, leaves, scalars, out, checks):
        target = out if self.rest is None else device.alloc(self.scratch)
        constant = call.number
        if constant is None:
            constant = struct.pack("d", call.constant) if "double" in call.acc.acc else symbols.real(call.constant)
            if symbols.tracing is None:
                call.number = constant
        if self.prepared is None:
            operands = [a for walk in self.walks for a in (BUFFER, NUMBER, *walk)]
            args = [*self.head, *operands, *[NUMBER] * (len(scalars) + 1), BUFFER, *checks]
            self.prepared = Prepared(self.kernel, self.global_size, self.local_size, args)
        places, buffers, numbers = self.prepared.buffers, [], []
        for at, (buf, offset) in zip(places, leaves):
            buffers += at, buf
            numbers.append(offset)
        numbers += scalars
        numbers.append(constant)
        self.prepared.run(device, (*buffers, places[-1], target), numbers)
        if self.rest is not None:
            self.rest.run(device, call, ((target, 0),), (), out, ())


def _kept(node) -> bool:
    """Whether somebody may ask for the pending value of ``node`` itself."""
    owner = node.out()
    return owner is not None and owner.node is node


class Geometry:
    """Kept and reduced dimensions after merging, the walk of each leaf over them, and how the work is cut into segments."""

    __slots__ = ("kept", "reduced", "kept_walks", "reduced_walks", "column", "outputs", "total", "rows", "inner", "parts", "part_rows",
                 "part_inner", "kind", "many", "dense", "team")

    def __init__(self, device, group, shape, dims):
        flat = contiguous_strides(shape)
        zero = (0,) * len(shape)
        walks = [(leaf[3] if not leaf[4] else flat if leaf[3] else zero) for leaf in group.leaves] or [zero]
        keep = [d for d in range(len(shape)) if d not in dims]
        self.kept, self.kept_walks = collapse(tuple(shape[d] for d in keep), tuple(tuple(w[d] for d in keep) for w in walks))
        self.reduced, self.reduced_walks = collapse(tuple(shape[d] for d in dims), tuple(tuple(w[d] for d in dims) for w in walks))
        self.outputs = self.total = 1
        for s in self.kept:
            self.outputs *= s
        for s in self.reduced:
            self.total *= s
        tiny = self.total <= TINY and self.total * self.outputs <= 8 * TINY
        self.column = not tiny and self._is_column(walks)
        self.inner = 1 if self.column else self.reduced[-1]
        self.rows = self.total // self.inner if self.inner else 0
        self.dense = 0
        short = SHORT if device.is_cpu else reduce_groups.SHORT
        self.kind = self._column_kind(group) if self.column else "short" if tiny or self.total < short else "brief" if self.total < BRIEF else "row"
        self.team = None
        self._cut() if device.is_cpu else reduce_groups.arrange(device, self, max([leaf[1].itemsize for leaf in group.leaves], default=4))
        self.many = self.kind in ("brief", "row") and self.rows == 1 and len(self.reduced) == 1 and self.outputs >= MANY[0] and self.total < MANY[1]

    def scalar(self, loops):
        """Whether CPUs compute the elements one at a time, so that long functions of them take longer than another pass over memory."""
        if self.kind in ("row", "brief"):
            return self.rows > 1 and self.inner < BRIEF
        return self.kind == "short" and loops or self.kind == "slim" and not self.dense

    def _is_column(self, walks):
        """True when the main operand is contiguous along a kept dimension: then neighbours in memory are different outputs."""
        main = max(range(len(walks)), key=lambda k: sum(s != 0 for s in walks[k]))
        unit_kept = self.kept_walks[main][-1] == 1 and self.kept[-1] > 1
        return unit_kept and self.reduced_walks[main][-1] != 1

    def _column_kind(self, group):
        """slim, narrow or column; ``dense`` becomes the number of columns where rows follow each other without gaps in all operands."""
        count, leaves = self.kept[-1], range(len(group.leaves))
        if count < SLIM:
            walks = [(self.kept_walks[k][-1], *self.reduced_walks[k]) for k in leaves]
            self.dense = count if all(w in ((1, count), (0, 0)) for w in walks) else 0
            return "slim"
        return "narrow" if count < CHUNK else "column"

    def _cut(self):
        self.part_rows, self.part_inner, self.parts = self.rows, self.inner, 1
        if self.column:
            if self.rows > 2 * ROWS:
                self.part_rows = ROWS
                self.parts = -(-self.rows // ROWS)
        elif self.total > 2 * SEGMENT:
            if self.inner > SEGMENT and self.rows == 1:
                self.part_inner = SEGMENT
                self.parts = -(-self.inner // SEGMENT)
            elif self.rows > 1:
                self.part_rows = max(1, SEGMENT // self.inner)
                self.parts = -(-self.rows // self.part_rows)


_kernels: dict = {}
_plans: dict = symbols.kept()
_fusions: dict = symbols.kept()


def _kernel(device, call, group, geo, out_dtype, final):
    """(kernel, form) that reduces what ``group`` computes; shapes with the same walks share it."""
    nk, nr = len(geo.kept), len(geo.reduced)
    inner_dim = geo.kept_walks if geo.column else geo.reduced_walks
    classes = [codegen.leaf_class(w[-1:]) for w in inner_dim[:len(group.leaves)]]
    leaves = tuple([(leaf[1].index, c, True) for leaf, c in zip(group.leaves, classes)])
    program = codegen.Program(tuple(group.code), leaves, tuple([_SCALAR_C[k] for k in group.kinds]), (), "", nk)
    value = group.order[-1].dtype
    dense, team = symbols.fixed(geo.dense), symbols.fixed(geo.team)
    key = (device, call.spec.name, call.acc, value, out_dtype, final, program.key(), nr, geo.kind, geo.many, dense, team)
    found = _kernels.get(key)
    if found is None:
        source, form = source_of(device, call, program, value, out_dtype, nk, nr, geo.kind, final, geo.many, dense, team)
        found = _kernels[key] = device.kernel_from_source(source, "reduce"), form
    return found


def _span(device, geo, group):
    """Columns per work-item: runs of a page where that leaves each unit two work-items, short runs of what lies in nearer caches."""
    inner = geo.kept[-1]
    size = max(leaf[1].itemsize for leaf in group.leaves)
    if geo.total * geo.outputs * size <= NEAR or inner * size < PAGE // 2:         # several rows share a page
        return CHUNK
    most = min(reduce_vector.WIDEST, PAGE // size)
    most = max(CHUNK, min(most, geo.outputs * geo.parts // (2 * device.compute_units)))
    pieces = -(-inner // most)
    return -(-inner // pieces) + CHUNK - 1 & -CHUNK


def _grid(device, group, geo, kind, form):
    """(global size, local size, outputs per work-item)."""
    if geo.column:
        inner = geo.kept[-1]
        outer = geo.outputs // inner
        if geo.team:
            wide, deep, *_ = geo.team
            return (-(-inner // wide) * wide, outer * deep, geo.parts), (wide, deep, 1), 1
        if form == "item":
            return (inner, outer, geo.parts), (64 if inner >= 64 else 16, 1, 1), 1
        span = _span(device, geo, group) if form == "vector" else CHUNK
        return (-(-inner // span), outer, geo.parts), (1, 1, 1), span
    if geo.team:
        many, _, size, *_ = geo.team
        return (-(-geo.outputs // (size // many)) * size, geo.parts), (size, 1), 1
    if kind == "short" or kind == "brief" and form not in ("vector", "many"):
        return ((geo.outputs,), (64,), 1) if form == "item" else ((-(-geo.outputs // 64),), (1,), 64)
    if form == "item":
        return (geo.outputs * LANES, geo.parts), (LANES, 1), 1
    work = min(geo.part_rows, geo.rows) * min(geo.part_inner, geo.inner)
    chunk = max(1, min(16384 // work, geo.outputs * geo.parts // (8 * device.compute_units))) if work else 1
    if form == "many":
        chunk = -(-chunk // 16) * 16
    return (-(-geo.outputs // chunk), geo.parts), (1, 1), chunk


def _split(total_name, dims, sizes, indent):
    """Statements that split the number ``total_name`` into one index per dimension."""
    lines = [f"{indent}long rest_{total_name} = {total_name};"]
    for j in range(len(dims) - 1, -1, -1):
        if j == 0:
            lines.append(f"{indent}const long {dims[j]} = rest_{total_name};")
        else:
            lines.append(f"{indent}const long {dims[j]} = rest_{total_name} % {sizes[j]}; rest_{total_name} /= {sizes[j]};")
    return lines


def source_of(device, call, program, value, out_dtype, nk, nr, kind, final, many=False, dense=0, team=None):
    """(source of one reduction kernel, named ``reduce``; its form: ``vector``, ``many``, ``loop`` or ``item``)."""
    own = codegen.OWN
    acc = call.acc
    params = ["const long outputs", "const long rows", "const long inner", "const long parts", "const long part_rows",
              "const long part_inner", "const long chunk"]
    params += [f"const long k{j}" for j in range(nk)] + [f"const long r{j}" for j in range(nr)]
    for k, (d, _, _) in enumerate(program.leaves):
        params += [f"__global const {dt.ALL[d].c}* restrict x{k}_p", f"const long x{k}_o"]
        params += [f"const long x{k}_k{j}" for j in range(nk)] + [f"const long x{k}_r{j}" for j in range(nr)]
    params += [f"const {t} s{k}" for k, t in enumerate(program.scalars)]
    params += [f"const {'double' if 'double' in acc.acc else 'float'} c", f"__global {out_dtype.c}* restrict out"]
    params += codegen.check_parameters(program)
    form = "loop" if device.loops else "item"
    body = None
    if device.is_cpu and kind != "short" and (dense or kind != "slim"):
        vector = (functools.partial(_slim_vector, dense) if kind == "slim" else
                  functools.partial(_row_vector, brief=kind == "brief", many=many) if kind in ("row", "brief") else
                  functools.partial(_column_vector, narrow=kind == "narrow"))
        body = vector(call, program, value, out_dtype, nk, nr, final, own)
    if body is not None:
        form = "many" if many else "vector"
    else:
        write = {"row": _row, "short": _short, "brief": _brief, "column": _column, "slim": _slim, "narrow": functools.partial(_column, narrow=True)}[kind]
        write = functools.partial(_team, team=team, column=kind in ("column", "narrow", "slim")) if team else write
        body = write(call, program, value, out_dtype, nk, nr, form == "loop", final, own)
    text = "\n".join(["#pragma OPENCL FP_CONTRACT OFF", f"__kernel void reduce(\n    {', '.join(params)})", "{", *codegen.with_checks(program, body), "}", ""])
    rows = [value, out_dtype, acc] + [dt.ALL[leaf[0]] for leaf in program.leaves] + [dt.ALL[i] for ins in program.code for i in ins[1:3]]
    return templates.preamble(device, any(r.needs_fp64 for r in rows), text) + text, form


def _identity(call):
    return call.spec.identity(call.acc)


def _store(call, out_dtype, final, index):
    return f"{out_dtype.store}(out, {index}, {reduce_vector.finished(call, final)});"


def _element(call, program, value, own, leaf_index, indent):
    """Statements that leave the element, in the accumulate type, in ``e``."""
    lines = codegen.values(program, "0", leaf_index, own, indent)
    return lines + [f"{indent}const {call.acc.acc} e = {codegen.convert(f'v{len(program.code) - 1}', value, call.acc)};"]


def _bases(program, dims, suffix, source, target, indent):
    lines = []
    for k, (d, _, _) in enumerate(program.leaves):
        terms = " + ".join(f"{v} * x{k}_{suffix}{j}" for j, v in enumerate(dims)) or "0"
        lines.append(f"{indent}__global const {dt.ALL[d].c}* restrict x{k}{target} = x{k}{source} + ({terms});")
    return lines


def _index(program, var, suffix, last):
    def at(k):
        cls = program.leaves[k][1]
        return "0" if cls == "0" else var if cls == "1" else f"{var} * x{k}_{suffix}{last}"
    return at


def _offsets(program):
    return [f"    __global const {dt.ALL[d].c}* x{k}a = x{k}_p + x{k}_o;" for k, (d, *_) in enumerate(program.leaves)]


def _row_parts(program, nk, nr):
    """(statements that place output ``o`` and its segment ``p``, statements that place row ``row``)."""
    kd, rd = [f"ik{j}" for j in range(nk)], [f"ir{j}" for j in range(nr - 1)]
    head = [*_split("o", kd, [f"k{j}" for j in range(nk)], "    "), *_bases(program, kd, "k", "a", "b", "    "),
            "    const long row0 = part_rows < rows ? p * part_rows : 0, row1 = min(rows, row0 + part_rows);",
            "    const long in0 = part_inner < inner ? p * part_inner : 0, in1 = min(inner, in0 + part_inner);"]
    split = _split("row", rd, [f"r{j}" for j in range(nr - 1)], "        ") if nr > 1 else []
    return head, split + _bases(program, rd, "r", "b", "", "        ")


def _row(call, program, value, out_dtype, nk, nr, loop, final, own):
    acc = call.acc.acc
    fold = call.spec.combined
    at = _index(program, "i", "r", nr - 1)
    head, per_row = _row_parts(program, nk, nr)
    if loop:
        return [*_offsets(program), "    const long p = get_global_id(1), lo = get_global_id(0) * chunk, hi = min(outputs, lo + chunk);",
                "    for (long o = lo; o < hi; o++) {", *head,
                f"    {acc} part[{LANES}];", f"    for (int l = 0; l < {LANES}; l++) part[l] = {_identity(call)};",
                "    for (long row = row0; row < row1; row++) {", *per_row, "        long base = in0;",
                f"        for (; base + {LANES} <= in1; base += {LANES})", f"            for (int l = 0; l < {LANES}; l++) {{",
                "                const long i = base + l;", *_element(call, program, value, own, at, "                "),
                f"                part[l] = {fold(acc, 'part[l]', 'e')};", "            }",
                "        for (int l = 0; l < (int)(in1 - base); l++) {", "            const long i = base + l;",
                *_element(call, program, value, own, at, "            "), f"            part[l] = {fold(acc, 'part[l]', 'e')};", "        }", "    }",
                f"    for (int s = {LANES // 2}; s > 0; s >>= 1)",
                f"        for (int l = 0; l < s; l++) part[l] = {fold(acc, 'part[l]', 'part[l + s]')};",
                f"    const {acc} total = part[0];", "    " + _store(call, out_dtype, final, "o * parts + p"), "    }"]
    return [*_offsets(program), "    const long o = get_group_id(0), p = get_global_id(1);", *head,
            f"    __local {acc} part[{LANES}];", "    const int l = get_local_id(0);", f"    {acc} mine = {_identity(call)};",
            "    for (long row = row0; row < row1; row++) {", *per_row, *AHEAD, f"        for (long i = in0 + l; i < in1; i += {LANES}) {{",
            *_element(call, program, value, own, at, "            "), f"            mine = {fold(acc, 'mine', 'e')};", "        }", "    }",
            "    part[l] = mine;", f"    for (int s = {LANES // 2}; s > 0; s >>= 1) {{", "        barrier(CLK_LOCAL_MEM_FENCE);",
            f"        if (l < s) part[l] = {fold(acc, 'part[l]', 'part[l + s]')};", "    }",
            f"    if (l == 0) {{ const {acc} total = part[0]; {_store(call, out_dtype, final, 'o * parts + p')} }}"]


def _team(call, program, value, out_dtype, nk, nr, loop, final, own, team, column):
    """Several work-items for each output."""
    acc = call.acc.acc

    def fold(a, b):
        return call.spec.combined(acc, a, b)
    if column:
        head, per_row, where = _column_parts(program, nk, nr)
        element = _element(call, program, value, own, _index(program, "i", "k", nk - 1), "        ")
        return _offsets(program) + reduce_groups.column(acc, _identity(call), fold, head, per_row, element, _store(call, out_dtype, final, where + "i"), team,
                                                        f"k{nk - 1}")
    head, per_row = _row_parts(program, nk, nr)
    element = _element(call, program, value, own, _index(program, "i", "r", nr - 1), "            ")
    return _offsets(program) + reduce_groups.row(acc, _identity(call), fold, head, per_row, element, _store(call, out_dtype, final, "o * parts + p"), team)


def _vector_writer(call, program, value, own):
    """The Writer of a program whose operands lie side by side or are one element, else None."""
    classes = [leaf[1] for leaf in program.leaves]
    if "s" in classes or "m" in classes or "1" not in classes:
        return None
    writer = reduce_vector.Writer(call, program, value, own, lambda index: lambda k: (f"x{k}" if classes[k] == "0" else f"x{k} + {index}", classes[k] == "0"))
    return None if writer.element("i", "") is None else writer


def _row_vector(call, program, value, out_dtype, nk, nr, final, own, brief=False, many=False):
    writer = _vector_writer(call, program, value, own)
    if writer is None:
        return None
    head, per_row = _row_parts(program, nk, nr)
    head = head[:-2] if many else head
    scalar = _element(call, program, value, own, _index(program, "i", "r", nr - 1), "                ")
    return _offsets(program) + reduce_vector.row(writer, head, per_row, scalar, _store(call, out_dtype, final, "o * parts + p"), brief, many)


def _short(call, program, value, out_dtype, nk, nr, loop, final, own, start=None, fold=None, total=None):
    """One work-item per output; start, fold and total: statements around and in the loop over elements (default: in sequence)."""
    kd, rd = [f"ik{j}" for j in range(nk)], [f"ir{j}" for j in range(nr - 1)]
    acc = call.acc.acc
    pad = "        " if loop else "    "
    core = [*_split("o", kd, [f"k{j}" for j in range(nk)], pad), *_bases(program, kd, "k", "a", "b", pad),
            *[pad + line for line in start or [f"{acc} total = {_identity(call)};"]], f"{pad}for (long row = 0; row < rows; row++) {{"]
    core += (_split("row", rd, [f"r{j}" for j in range(nr - 1)], pad + "    ") if nr > 1 else [])
    core += _bases(program, rd, "r", "b", "", pad + "    ")
    core += [f"{pad}    for (long i = 0; i < inner; i++) {{", *_element(call, program, value, own, _index(program, "i", "r", nr - 1), pad + "        "),
             pad + "        " + (fold or f"total = {call.spec.combined(acc, 'total', 'e')};"), f"{pad}    }}", f"{pad}}}",
             *[pad + line for line in total or ()], pad + _store(call, out_dtype, final, "o")]
    if loop:
        return [*_offsets(program), "    const long o0 = get_global_id(0) * 64, o1 = min(outputs, o0 + 64);",
                "    for (long o = o0; o < o1; o++) {", *core, "    }"]
    return [*_offsets(program), "    const long o = get_global_id(0);", "    if (o >= outputs) return;", *core]


def _brief(call, program, value, out_dtype, nk, nr, loop, final, own):
    """The short form with the lanes of the row form."""
    acc, combined = call.acc.acc, call.spec.combined
    unrolled = [] if loop else [line.replace(" 8", "") for line in AHEAD]       # GPUs have no registers that a loop could count through
    start = [f"{acc} part[{LANES}];", *unrolled, f"for (int l = 0; l < {LANES}; l++) part[l] = {_identity(call)};"]
    total = [*unrolled, f"for (int s = {LANES // 2}; s > 0; s >>= 1)", *unrolled,
             f"    for (int l = 0; l < s; l++) part[l] = {combined(acc, 'part[l]', 'part[l + s]')};", f"const {acc} total = part[0];"]
    lines = _short(call, program, value, out_dtype, nk, nr, loop, final, own, start, f"part[i] = {combined(acc, 'part[i]', 'e')};", total)
    if not loop:
        at = next(n for n, line in enumerate(lines) if "for (long i = 0; i < inner; i++)" in line)
        lines[at:at + 1] = [AHEAD[0], "#pragma unroll", f"        for (int i = 0; i < {LANES}; i++) if (i < inner) {{", "#else", lines[at], "#endif"]
    return lines


def _column_parts(program, nk, nr):
    """(statements that place the outer index and the segment, statements that place row ``row``, index of the results before the column)."""
    kd, rd = [f"ik{j}" for j in range(nk - 1)], [f"ir{j}" for j in range(nr)]
    head = ["    const long outer = get_global_id(1), p = get_global_id(2);",
            *(_split("outer", kd, [f"k{j}" for j in range(nk - 1)], "    ") if nk > 1 else []),
            *_bases(program, kd, "k", "a", "b", "    "),
            "    const long row0 = p * part_rows, row1 = min(rows, row0 + part_rows);"]
    per_row = [*_split("row", rd, [f"r{j}" for j in range(nr)], "        "), *_bases(program, rd, "r", "b", "", "        ")]
    return head, per_row, f"(p * (outputs / k{nk - 1}) + outer) * k{nk - 1} + "


def _column_vector(call, program, value, out_dtype, nk, nr, final, own, narrow=False):
    writer = _vector_writer(call, program, value, own)
    if writer is None:
        return None
    head, per_row, where = _column_parts(program, nk, nr)
    scalar = _element(call, program, value, own, _index(program, "i", "k", nk - 1), "                ")
    ahead = [(k, f"x{k}_r0") for k, (_, cls, _) in enumerate(program.leaves) if cls == "1"] if nr == 1 else ()
    return _offsets(program) + reduce_vector.column(writer, head, f"k{nk - 1}", per_row, scalar, _store(call, out_dtype, final, where + "i"), narrow, ahead,
                                                    reduce_vector.store_whole(call, out_dtype, final, where + "i", writer.width))


def _column(call, program, value, out_dtype, nk, nr, loop, final, own, narrow=False):
    acc, fold = call.acc.acc, call.spec.combined
    at = _index(program, "i", "k", nk - 1)
    head, per_row, where = _column_parts(program, nk, nr)
    if loop:
        body = [f"    const long first = (long)get_global_id(0) * {CHUNK};", f"    const int m = (int)min((long){CHUNK}, k{nk - 1} - first);",
                f"    {acc} part[{CHUNK}];", f"    for (int l = 0; l < {CHUNK}; l++) part[l] = {_identity(call)};"]
        for full in (False,) if narrow else (True, False):
            bound = str(CHUNK) if full else "m"
            body += [f"    {f'if (m == {CHUNK}) ' if full else '' if narrow else 'else '}for (long row = row0; row < row1; row++) {{", *per_row,
                     f"        for (int l = 0; l < {bound}; l++) {{", "            const long i = first + l;",
                     *_element(call, program, value, own, at, "            "), f"            part[l] = {fold(acc, 'part[l]', 'e')};", "        }", "    }"]
        body += ["    for (int l = 0; l < m; l++) {", f"        const {acc} total = part[l];",
                 "        " + _store(call, out_dtype, final, where + "first + l"), "    }"]
        return _offsets(program) + head + body
    return [*_offsets(program), "    const long i = get_global_id(0);", f"    if (i >= k{nk - 1}) return;", *head,
            f"    {acc} total = {_identity(call)};", *AHEAD, "    for (long row = row0; row < row1; row++) {", *per_row,
            *_element(call, program, value, own, at, "        "), f"        total = {fold(acc, 'total', 'e')};", "    }",
            "    " + _store(call, out_dtype, final, where + "i")]


def _slim(call, program, value, out_dtype, nk, nr, loop, final, own):
    """Few columns: row number r of a segment goes to the partial result r % SLIM of its column."""
    acc, fold = call.acc.acc, call.spec.combined
    head, per_row, where = _column_parts(program, nk, nr)
    body = [f"    {acc} part[{SLIM}];", f"    for (int l = 0; l < {SLIM}; l++) part[l] = {_identity(call)};",
            f"    for (long base = row0; base < row1; base += {SLIM}) {{", f"        const int some = (int)min({SLIM}L, row1 - base);",
            f"        for (int l = 0; l < {SLIM}; l++) if (l < some) {{", "        const long row = base + l;", *per_row,
            *_element(call, program, value, own, _index(program, "i", "k", nk - 1), "        "),
            f"        part[l] = {fold(acc, 'part[l]', 'e')};", "        }", "    }", f"    for (int s = {SLIM // 2}; s > 0; s >>= 1)",
            f"        for (int l = 0; l < s; l++) part[l] = {fold(acc, 'part[l]', 'part[l + s]')};",
            f"    const {acc} total = part[0];", "    " + _store(call, out_dtype, final, where + "i")]
    if loop:
        return [*_offsets(program), *head, f"    for (long i = 0; i < k{nk - 1}; i++) {{", *body, "    }"]
    return [*_offsets(program), "    const long i = get_global_id(0);", f"    if (i >= k{nk - 1}) return;", *head, *body]


def _slim_vector(count, call, program, value, out_dtype, nk, nr, final, own):
    """The same where rows of ``count`` elements follow each other in memory: SLIM rows are as many vectors as that makes."""
    writer = _vector_writer(call, program, value, own)
    if writer is None:
        return None
    head, _, where = _column_parts(program, nk, nr)
    start = [f"    __global const {dt.ALL[d].c}* restrict x{k} = x{k}b{'' if cls == '0' else f' + row0 * {count}'};"
             for k, (d, cls, _) in enumerate(program.leaves)]
    scalar = _element(call, program, value, own, _index(program, "i", "k", nk - 1), "        ")
    return _offsets(program) + head + start + reduce_vector.slim(writer, count, SLIM, scalar, _store(call, out_dtype, final, where + "i"))
