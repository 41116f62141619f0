"""Applying a pure elementwise rule to many tensors at once (optimizer steps): traced once, launched over all of them together."""
from __future__ import annotations

import struct
import sys

from ..core import native
from ..core.shape import Size
from ..graph import fuse
from ..graph.multi import BLOCK, launch_norms, launch_rows
from ..graph.node import held
from ..runtime import capture
from .grad_mode import state
from .tensor import Tensor, empty
from .writing import write

_refcount = sys.getrefcount
_plans: dict = {}


class Symbol(float):
    """A scalar hyperparameter during tracing. Used as an operand it stays a run-time argument; arithmetic on it is noticed."""

    name = None
    derived = False

    def __new__(cls, value, name):
        self = float.__new__(cls, value)
        self.name = name
        return self


def as_element(number, dtype):
    """``number`` as a tensor of a float dtype would hold it."""
    if number.__class__ is not Symbol:
        return float(dtype.np.type(number))
    return Symbol(dtype.np.type(float(number)), (number.name, dtype))


def _value(name, scalars):
    """What stands for a scalar: its value, or what a dtype makes of that."""
    return scalars[name] if name.__class__ is not tuple else as_element(_value(name[0], scalars), name[1])


def _noticed(op):
    plain = getattr(float, op)

    def method(self, *args):
        got = plain(self, *args)
        if got is not NotImplemented and isinstance(got, float):
            Symbol.derived = True
        return got
    return method


for _op in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "neg", "abs"):
    setattr(Symbol, f"__{_op}__", _noticed(f"__{_op}__"))


class Plan:
    """A traced rule: instructions, which column each leaf is, and each scalar's name or constant.

    ``targets``: of each output, the column that it replaces and how many leaves that column is.
    """

    __slots__ = ("code", "leaves", "columns", "kinds", "scalars", "outs", "targets", "cacheable")


def foreach_update(rule, rows, scalars, flags, launches=None) -> None:
    """Apply ``rule(p, g, *slots, **scalars, **flags) -> (new_p, *new_slots)`` to rows of tensors (p, g, *slots), writing results in place.

    ``launches``: a list that is given (plan, first call, last call + 1) of what a recording holds of it, for scalars that change from replay to replay.

    The rule must be elementwise and pure; a ``g`` of no dimensions serves all elements. Tensors that a joint launch cannot take (views, mixed dtypes,
    values on the tape) go one by one, and so does everything where a scalar is a tensor that gradients are wanted of.
    """
    apart = any([isinstance(v, Tensor) for v in scalars.values()])
    alike = None if apart else _kind_of_all(rows)
    groups = {} if alike is None else {alike: rows}
    for row in rows if alike is None else ():
        key = None if apart else _kind(row)
        if key is None:
            _one(rule, row, scalars, flags)
        else:
            groups.setdefault(key, []).append(row)
    for (device, dtypes, alike), group in groups.items():
        plan = _plan(rule, group[0], (dtypes, alike), scalars, flags)
        if plan is None:
            for row in group:
                _one(rule, row, scalars, flags)
        else:
            _run(device, plan, group, scalars, launches)


def _one(rule, row, scalars, flags):
    given = [t.clone() for t in row] if state.grad else row          # the tape keeps what the next lines overwrite
    results = rule(*given, **scalars, **flags)
    for target, new in zip((row[0], *row[2:]), results):
        target.copy_(new)


def _kind(row):
    """What a row has in common with others that one launch takes, too: (device, dtypes, whether the gradient has the parameter's shape). None where none takes it."""
    first, second = row[0], row[1]
    shape, device = first.shape, first._storage.device
    if not first._numel or device.kind == "meta":
        return None
    for t in row:
        st = t._storage
        if not t._dense or st.device is not device or t._grad_fn is not None or t._numel * t.dtype.itemsize != st.nbytes \
                or t.shape != shape and (t.shape or t is not second):
            return None
    return device, tuple([t.dtype for t in row]), second.shape == shape


native.give(row_kind=_kind)
_kind = native.form("row_kind", _kind)


def _kind_of_all(rows):
    """The kind that all rows are of, None where there are several or one goes by itself."""
    kinds = {_kind(row) for row in rows}
    return kinds.pop() if len(kinds) == 1 else None


_kind_of_all = native.form("rows_kind", _kind_of_all)


class Code(tuple):
    """Instructions, which are part of keys: hashed once."""

    def __new__(cls, items):
        self = tuple.__new__(cls, items)
        self._hash = tuple.__hash__(self)
        return self

    def __hash__(self):
        return self._hash


def _plan(rule, row, kinds, scalars, flags):
    key = (rule, kinds, tuple(sorted(flags.items())), tuple(scalars))
    plan = _plans.get(key)
    if plan is None or not plan.cacheable:
        plan = _plans[key] = _trace(rule, row, scalars, flags)
    return plan if plan.code is not None else None


def _trace(rule, row, scalars, flags):
    """Record the rule on stand-ins of one element and read the instructions off its pending nodes."""
    device = row[0]._storage.device
    alike = row[1].shape == row[0].shape
    ins = [empty(Size(() if i == 1 and not alike else (1,)), t.dtype, device) for i, t in enumerate(row)]
    Symbol.derived = False
    results = rule(*ins, **{k: Symbol(v, k) for k, v in scalars.items()}, **flags)
    plan = Plan()
    plan.cacheable, plan.code = not Symbol.derived, None
    group, values = fuse.Group(), []
    for target, r in zip((row[0], *row[2:]), results):
        if r.dtype is not target.dtype:
            r = r.to(target.dtype)
        node = r._storage.node
        if node is None or node.reduce is not None or node.buf is not None:
            if any(r is t for t in ins):
                values.append(None)                      # a slot that the rule leaves as it is
                continue
            return plan
        values.append((group.index[node] if node in group.index else group.visit(node), r.dtype.index))
    if group.checked or any(c[0] and fuse.Expr.all[c[0]].uses_index for c in group.code):
        return plan
    column = {id(t._storage.buf): i for i, t in enumerate(ins)}
    plan.code = Code(group.code)
    plan.leaves = tuple((leaf[1].index, "l" if leaf[3] else "0") for leaf in group.leaves)
    plan.columns = [column[id(leaf[0])] for leaf in group.leaves]
    plan.kinds = tuple(fuse._SCALAR_C[k] for k in group.kinds)
    plan.scalars = [(v.name if isinstance(v, Symbol) and plan.cacheable else None, float(v)) for v in group.scalars]
    plan.outs = tuple([v for v in values if v is not None])
    plan.targets = [(c, plan.columns.count(c)) for c, v in zip((0, *range(2, len(row))), values) if v is not None]
    return plan


def scalar_arguments(plan, scalars):
    """The leading arguments of the plan's launches for these hyperparameters."""
    return [_PACK[k](_value(name, scalars) if name is not None else value) for k, (name, value) in zip(plan.kinds, plan.scalars)]


_PACK = {"float": float, "double": lambda v: struct.pack("d", v), "long": int}


def _gather(device, group, columns, targets):
    """(per row its elements, the buffers that are read and those that are written; storages that hold other buffers once that is done)."""
    rows, told = [], []
    for row in group:
        storages = [t._storage for t in row]
        for st in storages:
            if st.node is not None:
                st.buffer()
        ins = [storages[c].buf for c in columns]
        results = []
        for c, reads in targets:
            st = storages[c]
            if st.mirrored:
                results.append(device.alloc(st.nbytes))
                told.append((st, results[-1]))
                (row[c]._ver or st).version += 1
                continue
            # attribute and call argument, plus the places in ``ins``: whoever else refers to the buffer keeps its old contents
            if _refcount(st.buf) > 2 + reads + (id(st.buf) in held) and not st.pinned:
                st.buf = device.alloc(st.nbytes)
            results.append(st.buf)
            (row[c]._ver or st).version += 1
        rows.append((row[0]._numel, ins, results))
        ins = None
    return rows, told


native.give(gather=_gather)
_gather = native.form("gather", _gather)


def _run(device, plan, group, scalars, launches):
    packed = scalar_arguments(plan, scalars)
    rows, told = _gather(device, group, plan.columns, plan.targets)
    recording = capture.own()
    first = len(recording.calls) if recording is not None else 0
    launch_rows(device, plan.code, plan.leaves, plan.kinds, plan.outs, packed, rows)
    for st, buf in told:
        st.buf = buf
    if recording is not None and launches is not None:
        launches.append((plan, first, len(recording.calls)))


FEW = 1 << 14            # elements; the norm of a larger tensor is worth a launch of its own


def joint_norms(tensors, largest=False):
    """(norms of parts of the small tensors, in one launch for 16 of them; the other tensors). The norm of all those norms is that of the tensors.

    The first is None where there are not two small tensors of one dtype, float32 or float64, on one device.
    """
    device, dtype = tensors[0]._storage.device, tensors[0].dtype
    small = [t for t in tensors if 0 < t._numel <= FEW and t.dtype is dtype and t._storage.device is device and t._dense]
    if len(small) < 2 or device.kind == "meta" or dtype is not dtype.acc_dtype or not dtype.is_floating_point:
        return None, tensors
    rows = [(t._numel, t._storage.buffer()) for t in small]
    out = empty((sum([-(-n // BLOCK) for n, _ in rows]),), dtype, device)
    launch_norms(device, dtype, largest, rows, out._storage.buf)
    chosen = {id(t) for t in small}
    return out, [t for t in tensors if id(t) not in chosen]


__all__ = ["Tensor", "as_element", "foreach_update", "joint_norms", "write"]
