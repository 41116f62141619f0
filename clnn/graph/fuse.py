"""Turns pending nodes into launches: gathers what fuses, chooses the kernel form, binds arguments, reuses dying buffers."""
from __future__ import annotations

import math
import struct
import weakref

from ..core import dtype as dt
from ..core import native, symbols
from ..core.errors import IntegerDivisionError
from ..core.shape import collapse, contiguous_strides, is_contiguous
from ..core.symbols import memo
from ..runtime import launch as launcher
from ..runtime import templates
from ..runtime.launch import BUFFER, NUMBER
from . import akin, codegen, draws, node as node_module, planes, runs, several, slim, tiles, vectors
from .node import Expr, Node, Storage
from .reuse import SMALL, allocate
from .structure import packed, sizeless, told
from .tasks import NARROW, TILE, plan, rows_of, share

_launch = launcher.launch


class Group:
    """The nodes fused into one kernel, as instructions over de-duplicated leaves and scalars."""

    __slots__ = ("order", "index", "code", "leaves", "layout", "met", "leaf_index", "scalars", "kinds", "linear", "checked")

    def __init__(self):
        self.order, self.index = [], {}
        self.code, self.leaves, self.layout, self.met, self.leaf_index = [], [], [], [], {}
        self.scalars, self.kinds = [], []
        self.linear, self.checked = True, []

    def leaf(self, buf, dtype, offset, strides, linear):
        """The operand number of a buffer read; equal reads share one."""
        key = (id(buf), dtype.index, offset, strides) if symbols.tracing is None else self._met_before(buf, dtype, offset, strides)
        k = self.leaf_index.get(key)
        if k is None:
            k = self.leaf_index[key] = len(self.leaves)
            self.leaves.append((buf, dtype, offset, strides, linear))
            self.layout.append((dtype.index, offset != 0, strides, linear))
        self.met.append(k)
        return -2 * k - 1

    def _met_before(self, buf, dtype, offset, strides):
        """What stands for a read in a trace, which asks whether it is one that was met."""
        for k, leaf in enumerate(self.leaves):
            if leaf[0] is buf and leaf[1] is dtype and leaf[2] == offset and leaf[3] == strides:
                return k
        return len(self.leaves)

    def visit(self, node):
        """Append ``node`` after all that it reads; recursion is bounded by MAX_NODES."""
        compute, expr, flat = node.compute, node.expr, node.linear
        operands, place = [expr.index, compute.index, node.dtype.index], 0
        for ref in node.args:
            if ref.__class__ is not tuple:
                operands.append(-2 * len(self.scalars) - 2)
                self.scalars.append(ref)
                self.kinds.append("long" if place in expr.longs else compute.acc)
            else:
                source, dtype, offset, strides = ref
                if isinstance(source, Node):
                    if source.buf is None:
                        at = self.index.get(source)
                        operands.append(self.visit(source) if at is None else at)
                        place += 1
                        continue
                    source = source.buf
                if flat:                                        # every operand is read in flat order, or is one element
                    strides, linear = strides if any(strides) else (), True
                else:
                    strides, linear = _walk(node.shape, strides)
                    if not linear:
                        self.linear = False
                operands.append(self.leaf(source, dtype, offset, strides, linear))
            place += 1
        at = self.index[node] = len(self.order)
        self.order.append(node)
        self.code.append(tuple(operands))
        if compute.category in expr.failing:
            self.checked.append(expr)
        return at


@memo(65536)
def _walk(shape, strides):
    """(strides, or () for one element that serves all; whether the operand is read in flat order)."""
    if not any(strides):
        return (), True
    return strides, is_contiguous(shape, strides)


def realize(storage: Storage) -> None:
    """Compute the pending node of ``storage``, with every live value of its group, in one launch. Threads take turns: pending values may be theirs in common."""
    with storage.device.lock:
        _realize(storage)


def _realize(storage):
    root = storage.node
    if root is None:
        return
    if root.buf is not None:                    # a snapshot of it was computed meanwhile
        storage.buf, storage.node = root.buf, None
        return
    if root.reduce is not None:
        root.reduce.run(storage, root)
        return
    if not _compute(storage, root):                 # too large for a kernel
        group = Group()
        group.visit(root)
        realize(owner_of(group.order[(len(group.order) - 1) // 2]))
        realize(storage)


native.give(realize=realize)
realize = node_module.realize = native.form("realize", realize)


def fits(device, group: Group, rank, outs) -> bool:
    """Whether the parameters of one kernel, at most, are as few as the device takes: GPUs take little more than OpenCL's 1024 bytes."""
    words = len(group.leaves) * (2 + rank) + outs * 2 + len(group.scalars) * 2 + rank + 2
    return words <= SURELY or device.is_cpu or len(group.order) == 1 or 8 * words <= device.max_parameter


SURELY = 120        # words of parameters that every device takes


def owner_of(node) -> Storage:
    """The storage whose pending value ``node`` is, made where there is none any more."""
    owner = node.out()
    if owner is None or owner.node is not node:
        owner = Storage(node.device, node.numel * node.dtype.itemsize, None, node)
        node.out = weakref.ref(owner)
    return owner


def reshape_node(node: Node, shape) -> None:
    """Let a node that reads and writes in flat order take another shape of the same size, the strides of its operands included."""
    flat = contiguous_strides(shape)
    node.args = tuple([(r[0], r[1], r[2], flat if any(r[3]) else (0,) * len(shape)) if r.__class__ is tuple else r for r in node.args])
    node.shape = shape


def finish(node: Node, owner: Storage, buf) -> None:
    """Mark ``node`` as computed; dropping its arguments frees whatever only it kept alive."""
    node.buf = owner.buf = buf
    node.args = ()
    owner.node = None


@native.know
class _Known:
    """A structure of pending nodes that was launched: with what, and which operands its kernel takes, where equal ones were met (else None)."""

    __slots__ = ("launch", "picks")

    def __init__(self, device, group, shape, numel, targets):
        self.launch = _Launch(device, group, shape, numel, targets)
        self.picks = None if len(group.met) == len(group.leaves) else [group.met.index(k) for k in range(len(group.leaves))]
        if group.checked:
            self.launch.checks = check_args(device, group)

    def resized(self, device, numel):
        """The same structure over another number of elements, all of which are walked in flat order."""
        new = _Known.__new__(_Known)
        new.launch, new.picks = self.launch.resized(device, numel), self.picks
        return new

    def varied(self, *sizes):
        """The same structure over other sizes, as :meth:`_Launch.varied` takes them."""
        new = _Known.__new__(_Known)
        new.launch, new.picks = self.launch.varied(*sizes), self.picks
        return new

    def same(self, other):
        """Whether both launch the same."""
        a, b = self.launch, other.launch
        return self.picks == other.picks and a.kernel is b.kernel and a.checks == b.checks and all(
            [getattr(a, name) == getattr(b, name) for name in ("geometry", "global_size", "local_size", "steps", "out_steps")])

    def run(self, device, reads, numbers, outs, offsets=()):
        """Launch with operands, numbers and what is written as ``_Launch.launch`` takes them."""
        self.launch.launch(device, reads if self.picks is None else [reads[i] for i in self.picks], numbers, outs, offsets)


_known: dict = symbols.kept()


def _compute(storage: Storage, root: Node) -> bool:
    """Launch what is pending below ``root``, with every value of it that is still wanted; False where one kernel would not do."""
    key, reads, numbers, nodes = told(root)
    device, outs = root.device, [(root, storage)]
    if root.count > 1:
        for n, at in nodes.items():
            owner = n.out()
            if owner is not None and owner.node is n and n is not root:
                outs.append((n, owner))
                key.append(float(at))
        n = owner = None                        # which would hold it
    if not storage.nbytes:
        for n, owner in outs:
            finish(n, owner, device.alloc(0))
        return True
    known = _of_structure(tuple(key), root, [(n, n.dtype, None, 0, None) for n, _ in outs])
    if known is None:
        return False
    buffers = allocate(device, reads, nodes, outs)
    known.run(device, reads, numbers, buffers)
    for (n, owner), buf in zip(outs, buffers):
        finish(n, owner, buf)
    return True


def _of_structure(key, root, targets):
    """The _Known of what is pending below ``root``, written to ``targets``: (node, dtype, None, offset, strides or None for flat); the ``key`` ends in the strides of
    one that has any. None: too large for a kernel."""
    known = _known.get(key, False)
    if known is False:
        if len(_known) > 8192:          # a loop over ever new shapes must not grow without bound
            _known.clear()
        family = sizeless(key, root.shape) if root.numel else None
        member = _families.get(family)
        if member is not None:
            known = member.resized(root.device, root.numel)
        elif family is None and root.numel and symbols.tracing is None:
            known = akin.known(key, root, targets, _made)
        else:
            known = _made(root, targets)
            if family is not None and known is not None and known.launch.program is not None:
                if len(_families) > 8192:
                    _families.clear()
                _families[family] = known
        _known[key] = known
    return known


native.give(fuse=globals(), of_structure=_of_structure, allocate=allocate, small=SMALL, compute=_compute)
_compute = native.form("compute", _compute)


def _made(root, targets):
    group = Group()
    group.visit(root)
    if not fits(root.device, group, len(root.shape), len(targets)):
        return None
    return _Known(root.device, group, root.shape, root.numel, [(group.index[t[0]], *t[1:]) for t in targets])


_families: dict = symbols.kept()    # structures without their sizes -> one of them that was launched


def geometry(group: Group, shape, targets, widen=True):
    """(sizes, leaf classes, leaf strides, target classes, target strides); sizes is None when everything is flat.

    ``widen``: dimensions may change places.
    """
    if group.linear and all(t[4] is None for t in targets):
        return None, ["l" if leaf[3] else "0" for leaf in group.leaves], None, ["l"] * len(targets), None
    flat = contiguous_strides(shape)
    zero = (0,) * len(shape)
    walks = [(leaf[3] if not leaf[4] else flat if leaf[3] else zero) for leaf in group.leaves]
    walks += [t[4] if t[4] is not None else flat for t in targets]
    sizes, walks = collapse(shape, tuple(walks))
    widen = widen and not any(n.expr.uses_index for n in group.order)
    if widen and len(sizes) > 1 and sizes[-1] < NARROW:
        sizes, walks = _widen(sizes, walks)
    if widen:
        sizes, walks = _facing(*_in_row_order(sizes, walks, len(group.leaves)), len(group.leaves))
    large = math.prod(shape) >= slim.LARGE
    classes = [codegen.leaf_class(w, large) for w in walks]
    k = len(group.leaves)
    return sizes, classes[:k], walks[:k], classes[k:], walks[k:]


def _widen(sizes, walks):
    """Move a long dimension inwards, one of small strides if there are several: an innermost loop over 3 channels costs more than strided access."""
    def cost(j):
        return sum(min(abs(w[j]), TILE) for w in walks) * TILE / min(sizes[j], TILE)
    best = min((j for j in range(len(sizes)) if sizes[j] >= NARROW), key=lambda j: (cost(j), -j), default=None)
    if best is None:
        return sizes, walks
    order = [j for j in range(len(sizes)) if j != best] + [best]
    return tuple([sizes[j] for j in order]), [tuple([w[j] for j in order]) for w in walks]


def _in_row_order(sizes, walks, leaves):
    """The dimensions but the innermost one in the order in which they are read, or written where that jumps among fewer places, where all go along rows."""
    last = len(sizes) - 1
    if any(w[last] not in (0, 1) for w in walks):
        return sizes, walks
    steps = [[sum(abs(w[j]) for w in side) for j in range(last)] for side in (walks[:leaves], walks[leaves:])]

    def jumps(own, other):
        """Dimensions ordered by the strides of a side, and the places that the other one visits before it goes on by a row."""
        order = sorted(range(last), key=lambda j: -steps[own][j])
        near = min(order, key=lambda j: steps[other][j] or math.inf, default=None)
        return math.prod(sizes[j] for j in order[order.index(near) + 1:]) if order else 1, order
    (read, by_read), (written, by_written) = jumps(0, 1), jumps(1, 0)
    order = (by_written if written < read else by_read) + [last]
    return tuple([sizes[j] for j in order]), [tuple([w[j] for j in order]) for w in walks]


def _facing(sizes, walks, leaves):
    """Put the dimension that transposed operands are contiguous in next to the innermost one: the two make the tiles that turn them."""
    turned = {w.index(1) for w in walks[:leaves] if w[-1] > 1 and 1 in w}
    if len(turned) != 1 or len(sizes) < 3:
        return sizes, walks
    order = [j for j in range(len(sizes) - 1) if j not in turned] + [*turned, len(sizes) - 1]
    return tuple([sizes[j] for j in order]), [tuple([w[j] for j in order]) for w in walks]


def pack_scalars(group: Group) -> list:
    """The scalars of a group as ``launch`` takes them."""
    return [packed(value, kind) for value, kind in zip(group.scalars, group.kinds)]


_SCALAR_C = {"float": "float", "double": "double", "int": "long", "long": "long", "ulong": "ulong", "float2": "float2", "double2": "double2"}
_kernels: dict = {}


def _vector_plan(device, program, sizes, numel):
    """(form, leading arguments, global size, local size) of the vector form where a CPU gains by it, else None.

    That is for operands whose neighbours lie along another dimension, which are turned in registers, for 16-bit floats, whose conversions are
    instructions for vectors only, for random numbers, of which a step is drawn at once, for long functions where the driver leaves vectors to the
    compiler of loops, on drivers without loop forms for all rows (a task there then is more than a few hundred elements), and for nearly everything
    where the device asks for vectors.
    """
    if sizes is not None and len(sizes) > 1 and sizes[-1] >= 32 and sizes[-2] >= 16 and serves(tiles.source, program):
        across, seg = -(-sizes[-2] // tiles.TILE), tiles.SEGMENT
        return "tiles-vector", [*sizes, across, seg], (across * (numel // (sizes[-1] * sizes[-2])), -(-sizes[-1] // seg)), (1, 1)
    drawing, narrow = _wants_vectors(device, program)
    if sizes is None:
        if not narrow or numel < 4096 or not serves(vectors.linear, program):
            return None
        chunk = share(numel, device.compute_units, 0, 65536, 64)
        return "linear-vector", [numel, chunk], (-(-numel // chunk),), (1,)
    inner = sizes[-1]
    if inner < NARROW or drawing and inner % draws.STEP or not narrow and device.loops or not serves(vectors.rows, program):
        return None
    rows = numel // inner
    seg = inner if rows >= 4 * device.compute_units else share(inner, device.compute_units, 4096, 1 << 62, 64)
    chunk = rows_of(rows, inner, seg, 4 * device.compute_units)
    return "rows-vector", [*sizes, rows, chunk, seg], (-(-rows // chunk), -(-inner // seg)), (1, 1)


_said: dict = {}        # what was found out about programs, which a loop over ever new shapes asks about again and again


def serves(source, program) -> bool:
    """Whether ``source(program, own)`` has a text. Writing one takes longer than all else that a new shape costs."""
    key = source, program.key()
    found = _said.get(key)
    if found is None:
        found = _said[key] = source(program, codegen.OWN) is not None
    return found


def _wants_vectors(device, program):
    """(whether the program draws numbers, whether it gains by vectors)."""
    key = device, device.vectors, device.loops, program.key()
    found = _said.get(key)
    if found is None:
        drawing = draws.found(program)
        narrow = drawing or device.vectors and not vectors.numberwise(program) or device.loops and vectors.calls(program)
        narrow = narrow or any(dt.ALL[d].round_trip for d, *_ in program.leaves) or any(dt.ALL[d].round_trip for _, d, *_ in program.outs)
        found = _said[key] = drawing, narrow
    return found


def kernel_for(device, program: codegen.Program):
    key = (device, program.key())
    kernel = _kernels.get(key)
    if kernel is None:
        rows = [dt.ALL[leaf[0]] for leaf in program.leaves] + [dt.ALL[i] for c in program.code for i in c[1:3]]
        source = codegen.elementwise_source(program, codegen.OWN)
        source = templates.preamble(device, any(r.needs_fp64 for r in rows), source) + source
        kernel = _kernels[key] = device.kernel_from_source(source, "fused")
    return kernel


def _program(group, targets, walk, form) -> codegen.Program:
    sizes, classes, _, out_classes, _ = walk
    code, leaf_types, out_types = group.code, [leaf[1] for leaf in group.leaves], [t[1] for t in targets]
    if len(code) == len(leaf_types) == 1 and code[0][0] == CAST.index and len({leaf_types[0], *out_types, dt.ALL[code[0][2]]}) == 1:
        row = _AS_MOVED.get(leaf_types[0])
        if row is not None:             # nothing is computed, so nothing needs to be converted back and forth
            code, leaf_types, out_types = [(CAST.index, row.index, row.index, *code[0][3:])], [row], [row] * len(out_types)
    return codegen.Program(
        tuple(code), tuple([(row.index, c, leaf[2] != 0) for row, leaf, c in zip(leaf_types, group.leaves, classes)]),
        tuple([_SCALAR_C[k] for k in group.kinds]),
        tuple([(t[0], row.index, c, t[3] != 0) for t, row, c in zip(targets, out_types, out_classes)]), form, 0 if sizes is None else len(sizes))


_AS_MOVED = {dt.float16: dt.int16, dt.bfloat16: dt.int16, dt.bool_: dt.uint8}


@native.know
class _Launch:
    """What all launches of one structure over one shape have in common."""

    __slots__ = ("kernel", "geometry", "global_size", "local_size", "steps", "out_steps", "prepared", "places", "moved", "checks", "program", "nbytes")

    def __init__(self, device, group, shape, numel, targets):
        self.prepared, self.checks, self.program = None, (), None
        self.nbytes = sum([leaf[1].itemsize for leaf in group.leaves] + [t[1].itemsize for t in targets])
        if not (device.is_cpu and numel >= slim.LARGE and self._few_columns(device, group, shape, targets)):
            self._general(device, group, shape, numel, targets)
        if self.kernel is not None:
            self.kernel.touches(self.global_size, self.local_size, numel * self.nbytes)

    def resized(self, device, numel):
        """The same for another number of elements, of a ``program`` that walks all in flat order."""
        new = self.__class__.__new__(self.__class__)
        new.prepared, new.checks, new.steps, new.out_steps, new.nbytes = None, self.checks, self.steps, self.out_steps, self.nbytes
        form, new.geometry, new.global_size, new.local_size = plan(device, None, numel)
        new.program = program = codegen.Program(*self.program.key()[:4], form, 0)
        new._improve(device, program, None, numel)
        new.kernel = kernel_for(device, program)
        if new.kernel is not None:
            new.kernel.touches(new.global_size, new.local_size, numel * new.nbytes)
        return new

    def varied(self, geometry, global_size, local_size, steps, out_steps):
        """The same kernel over other sizes."""
        new = self.__class__.__new__(self.__class__)
        new.prepared, new.checks, new.nbytes, new.kernel, new.program = None, self.checks, self.nbytes, self.kernel, None
        new.geometry, new.global_size, new.local_size, new.steps, new.out_steps = geometry, global_size, local_size, steps, out_steps
        return new

    def _few_columns(self, device, group, shape, targets) -> bool:
        """Choose the kernel for rows of a few elements, or for a few columns of many; False where neither serves."""
        walk, units = geometry(group, shape, targets, False), 4 * device.compute_units
        for module in (slim, planes, runs):
            plan = module.plan(walk, units)
            program = plan and _program(group, targets, plan[1], plan[0])
            if program and serves(module.source, program):
                self.geometry, self.global_size, self.local_size = plan[2], plan[3], (1,) * len(plan[3])
                self._finish(device, program, plan[1])
                return True
        return False

    def _general(self, device, group, shape, numel, targets):
        walk = sizes, _, walks, _, out_walks = geometry(group, shape, targets)
        steps = [abs(w[-1]) for w in (*walks, *out_walks)] if sizes is not None else [0]
        few = max(steps) > 1 and 1 < numel // sizes[-1] < TILE              # whose lines other rows use too
        crossing = few or max(steps) > NEAR
        form, self.geometry, self.global_size, self.local_size = plan(device, sizes, numel, crossing)
        program = _program(group, targets, walk, form)
        self._improve(device, program, sizes, numel, [*(walks or ()), *(out_walks or ())])
        self._finish(device, program, walk)
        if sizes is None:
            self.program = program

    def _improve(self, device, program, sizes, numel, walks=()):
        """Another form where the device gains by it."""
        better = _vector_plan(device, program, sizes, numel) if device.is_cpu else several.plan(device, program, program.form, sizes, numel, walks)
        if better is not None:
            program.form, self.geometry, self.global_size, self.local_size = better

    def _finish(self, device, program, walk):
        sizes, classes, walks, out_classes, out_walks = walk
        self.kernel = kernel_for(device, program)
        self.steps = [()] * len(classes) if sizes is None else _steps(classes, walks)
        self.out_steps = [()] * len(out_classes) if sizes is None else _steps(out_classes, out_walks)

    def launch(self, device, leaves, scalars, outs, offsets=(), checks=()):
        """Bind and enqueue; leaves are (buffer, dtype, offset, ...), outs the buffers that are written from ``offsets`` on, or all from their beginning."""
        prepared = self.prepared
        if prepared is None:
            prepared = self._prepare(leaves, scalars, offsets or [0] * len(outs), checks or self.checks)
        buffers = self.places.copy()
        buffers[1::2] = [leaf[0] for leaf in leaves] + outs
        if self.moved:
            scalars = [leaf[2] for leaf in leaves if leaf[2]] + [*scalars] + [offset for offset in offsets if offset]
        prepared.run(device, tuple(buffers), scalars)

    def _prepare(self, leaves, scalars, offsets, checks):
        args = [*self.geometry]
        for leaf, steps in zip(leaves, self.steps):
            args += _operand(leaf[2], steps)
        args += [NUMBER] * len(scalars)
        for offset, steps in zip(offsets, self.out_steps):
            args += _operand(offset, steps)
        prepared = launcher.Prepared(self.kernel, self.global_size, self.local_size, [*args, *checks])
        self.places, self.moved = [i for place in prepared.buffers for i in (place, None)], len(prepared.numbers) > len(scalars)
        self.prepared = prepared                # last: other threads look at it
        return prepared


def _operand(offset, steps):
    return (BUFFER, NUMBER, *steps) if offset else (BUFFER, *steps)


def _steps(classes, walks):
    """Per operand, the strides that are run-time arguments."""
    return [tuple([s for s, c in zip(walk, cls) if c == "s"]) for cls, walk in zip(classes, walks)]


_launches: dict = symbols.kept()


def run(device, group: Group, shape, numel, targets) -> None:
    """Launch the group over ``shape``; targets are (value, dtype, buffer, offset, strides or None for flat)."""
    key = (device, shape, tuple(group.code), tuple(group.layout), tuple(group.kinds), tuple([(t[0], t[1].index, t[3] != 0, t[4]) for t in targets]))
    common = _launches.get(key)
    if common is None:
        if len(_launches) > 8192:           # a loop over ever new shapes must not grow without bound
            _launches.clear()
        common = _launches[key] = _Launch(device, group, shape, numel, targets)
    common.launch(device, group.leaves, pack_scalars(group), [t[2] for t in targets], [t[3] for t in targets],
                  check_args(device, group) if group.checked else ())


def check_args(device, group: Group) -> list:
    """The error word and one registered code per checking operator."""
    device.err_dirty = True
    codes = [device.error_code(e.name.lstrip("_"), *reversed(e.failure or _DIVISION)) for e in group.checked]
    return [device.error_buffer] + [struct.pack("i", code) for code in codes]


_DIVISION = IntegerDivisionError, "ZeroDivisionError: integer division or modulo by zero"


GROWN, FEW = 6, 1 << 15 # nodes, elements
NEAR = 8                # a line serves several elements of operands with strides up to this, row by row


CAST = Expr("cast", ("input",), "input", complex="input")
FULL = Expr("full", ("value",), "value", complex="value")
