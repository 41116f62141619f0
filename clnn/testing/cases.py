"""From an entry of the operator table to sample calls: NumPy arguments per dtype, and the same call on clnn, NumPy and PyTorch."""
from __future__ import annotations

import inspect
import re
import zlib
from dataclasses import dataclass, field

import numpy as np

from .._tensor.device import resolve
from .._tensor.interop import from_array, to_numpy
from .._tensor.tensor import Tensor
from .._tensor.refusals import TENSORS
from .._tensor.underived import is_underived
from ..core import dtype as dt
from ..core.errors import DeviceError, KernelBuildError, LaunchError, OutOfMemoryError
from ..graph.op import REGISTRY, Op
from .domains import domains_of
from .samples import EXTRA

SHAPE = (3, 5)


@dataclass
class Call:
    """Arguments of one call, arrays as NumPy arrays."""

    args: tuple
    kwargs: dict = field(default_factory=dict)

    def map(self, fn) -> "Call":
        """The call with ``fn`` applied to every array, also inside lists and tuples."""
        return Call(tuple(_map(a, fn) for a in self.args), {k: _map(v, fn) for k, v in self.kwargs.items()})

    def arrays(self) -> list:
        found = []
        self.map(lambda a: found.append(a) or a)
        return found

    def __repr__(self):
        def short(a):
            return f"{a.dtype}{list(a.shape)}"
        shown = self.map(lambda a: _Name(short(a)))
        return f"({', '.join([repr(a) for a in shown.args] + [f'{k}={v!r}' for k, v in shown.kwargs.items()])})"


class _Name(str):
    __repr__ = str.__str__


def _map(value, fn):
    if isinstance(value, np.ndarray):
        return fn(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, (np.ndarray, list, tuple)) for v in value):
        mapped = [_map(v, fn) for v in value]
        return type(value)(*mapped) if hasattr(value, "_fields") else type(value)(mapped)
    return value


def operators() -> list[Op]:
    """Every entry once, by name."""
    return sorted({id(op): op for op in REGISTRY.values()}.values(), key=lambda op: op.name)


def builds_are_dear() -> bool:
    """Whether kernels are built one after another: what driver-independent code does alike for many dtypes and samples is then left to the other suites."""
    return not resolve(None).builds_in_parallel


def usable_rows() -> list:
    """The dtypes that the default device can compute."""
    device = resolve(None)
    return [d for d in dt.REAL if device.has_fp64 or not d.needs_fp64]


def narrowed(a):
    """An array as a device without fp64 can hold it."""
    return a if resolve(None).has_fp64 else a.astype({"float64": np.float32, "complex128": np.complex64}.get(a.dtype.name, a.dtype))


def is_float(a) -> bool:
    return dt.from_numpy(a.dtype).category == dt.FLOAT


def declared(op) -> list[Call] | None:
    """The samples of the entry (or of the table beside this module), None when there are none."""
    make = op.samples or EXTRA.get(op.name)
    if make is None:
        return None
    out = []
    for item in make():
        args, kwargs = item if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], dict) else (item, {})
        out.append(Call(tuple(args), dict(kwargs)))
    return out


def automatic(op, row, count=None) -> list[Call]:
    """Calls of an elementwise operator: equal shapes, broadcasting, a Python number on one side, or one element."""
    rng = np.random.default_rng(zlib.crc32(op.name.encode()))
    doms = domains_of(op)
    n = len(doms)

    def draw(d, shape):
        if row.category == dt.FLOAT:
            return d.floats(rng, shape).astype(row.np)
        if row.category == dt.BOOL:
            return rng.integers(0, 2, shape).astype(bool) if d.zero else np.ones(shape, bool)
        return d.integers(rng, shape, not row.is_signed).astype(row.np)
    condition = op.params[0] == "condition"
    first = (rng.integers(0, 2, SHAPE).astype(bool),) if condition else ()
    rest = doms[len(first):]
    calls = [Call(first + tuple(draw(d, SHAPE) for d in rest))]
    if n - len(first) >= 2:
        shapes = [(SHAPE[0], 1), (SHAPE[1],)] + [SHAPE] * n
        calls.append(Call(first + tuple(draw(d, shapes[i]) for i, d in enumerate(rest))))
        number = _number(rest[1], row) if TENSORS.get(op.name) != 2 else draw(rest[1], (1,))
        calls.append(Call(first + (draw(rest[0], SHAPE), number) + tuple(draw(d, SHAPE) for d in rest[2:])))
    return calls[:count]


def _number(d, row):
    if row.category == dt.FLOAT:
        return 0.8 if d.low < 0.8 < d.high else (d.low + d.high) / 2
    return True if row.category == dt.BOOL else max(1, d.first)


def calls(op, row) -> list[Call]:
    """Sample calls of ``op`` with the float arrays in dtype ``row``."""
    given = declared(op)
    if given is None:
        return automatic(op, row) if op.kind == "elementwise" else []
    return [cast(c, row) for c in given]


def native_row(op):
    """The dtype to run an operator's samples in when just one is wanted: float32 wherever the samples hold floats."""
    if not op.dtypes or dt.float32 in op.dtypes:
        return dt.float32
    if declared(op) is not None and dt.int64 in op.dtypes:
        return dt.int64
    fit = [d for d in op.dtypes if resolve(None).has_fp64 or not d.needs_fp64]
    return (fit or op.dtypes)[-1]


def cast(call: Call, row) -> Call:
    """Float arrays in ``row``; index arrays and masks stay as they are."""
    def one(a):
        if not is_float(a):
            return a
        if row.category == dt.FLOAT:
            return a.astype(row.np)
        if row.category == dt.BOOL:
            return a > 0
        whole = np.where(a >= 0, np.ceil(a), np.floor(a))
        return np.clip(np.abs(whole) if not row.is_signed else whole, -60, 60).astype(row.np)
    return call.map(one)


def has_floats(op) -> bool:
    given = declared(op)
    return given is None or any(is_float(a) for c in given for a in c.arrays())


# -- running a call -------------------------------------------------------------------------------------------------------------

def to_tensor(a, requires_grad=False):
    t = from_array(np.asarray(a), resolve(None))
    return t.requires_grad_() if requires_grad and t.dtype.differentiable else t


def run(op, call: Call, requires_grad=False, make=to_tensor):
    """Call the operator on tensors; returns (outputs, tensors that stand for the arrays, in order)."""
    tensors = []

    def convert(a):
        tensors.append(make(a, requires_grad) if make is to_tensor else make(a))
        return tensors[-1]
    ready = call.map(convert)
    return flatten(called(op.fn, ready.args, ready.kwargs, op.params)), tensors


def called(fn, args, kwargs, params):
    """The call, in which an argument that has no gradient and says so, as the weights of losses do, asks for none."""
    try:
        return fn(*args, **kwargs)
    except RuntimeError as exc:
        name = re.search(r"is not differentiable with respect to argument '(\w+)'", str(exc))
        if name is None:
            raise
        at = params.index(name[1])
        if at < len(args):
            return called(fn, (*args[:at], args[at].detach(), *args[at + 1:]), kwargs, params)
        return called(fn, args, {**kwargs, name[1]: kwargs[name[1]].detach()}, params)


def flatten(result) -> list:
    """Outputs as a flat list of tensors, arrays and numbers; what PyTorch has no gradient of requires none here."""
    if isinstance(result, (list, tuple)):
        return [leaf for r in result for leaf in flatten(r)]
    return [result.detach() if result.__class__ is Tensor and result._rg and is_underived(result._grad_fn) else result]


def numpy_result(op, call: Call, widen=None):
    """The NumPy reference on ``call``, floats (and arrays of dtype ``widen``) computed in double; None when it does not take the arguments."""
    if op.numpy is None:
        return None
    wide = call.map(lambda a: a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) if is_float(a) or a.dtype == widen else a)
    kwargs = {k: (v.np if isinstance(v, dt.dtype) else v) for k, v in wide.kwargs.items()}
    takes = _parameters(op.numpy)
    for mine, theirs in (("dim", "axis"), ("keepdim", "keepdims"), ("correction", "ddof")):
        if mine in kwargs and takes is not None and mine not in takes:
            kwargs[theirs] = kwargs.pop(mine)
    args = tuple(v.np if isinstance(v, dt.dtype) else v for v in wide.args)
    with np.errstate(all="ignore"):
        try:
            return flatten(op.numpy(*args, **kwargs))
        except (TypeError, ValueError):
            return None


def _parameters(fn):
    try:
        return set(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return set()


_PLACES = ("", "nn.functional", "special", "linalg", "fft")


def torch_function(op):
    """The PyTorch function of this name, or None (also when torch is not installed or the entry names none with ``torch=None``)."""
    try:
        import torch
    except ImportError:
        return None
    if op.torch is None or op.name.startswith("_") and not op.torch:
        return None
    for path in ([op.torch.removeprefix("torch.")] if op.torch else [f"{p}.{op.name}".lstrip(".") for p in (("", "Tensor") if op.method else ()) + _PLACES]):
        path = re.sub("^(linalg|special)_", r"\1.", path)
        found = torch
        for part in path.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found
    return None


def torch_tensor(a, requires_grad=False):
    import torch
    row = dt.from_numpy(a.dtype)
    kept = getattr(torch, row.name)
    t = torch.from_numpy(np.array(a, np.float32) if row.name == "bfloat16" else np.array(a)).to(kept)
    return t.requires_grad_() if requires_grad and (t.is_floating_point() or t.is_complex()) else t


def torch_run(fn, call: Call, requires_grad=False, params=()):
    """Call a PyTorch function; returns (outputs, tensors) or None when PyTorch refuses the arguments."""
    import torch
    tensors = []

    def convert(a):
        tensors.append(torch_tensor(a, requires_grad))
        return tensors[-1]
    ready = call.map(convert)

    def value(v):
        return getattr(torch, v.name) if isinstance(v, dt.dtype) else v
    args, kwargs = [value(a) for a in ready.args], {k: value(v) for k, v in ready.kwargs.items()}
    try:
        return flatten(called(fn, args, kwargs, params)), tensors
    except (RuntimeError, TypeError, NotImplementedError, IndexError, ValueError):
        return None


_DTYPE_WORDS = re.compile(r"dtype|not implemented for|floating|integer|integral|bool|float|\btype\b|Int|Long|complex (input|tensors|types)|Complex inputs", re.I)


def is_dtype_error(exc) -> bool:
    """Whether an exception refuses a dtype in words, rather than being a fault further down."""
    return (isinstance(exc, (TypeError, RuntimeError, ValueError)) and not isinstance(exc, (KernelBuildError, LaunchError, DeviceError, OutOfMemoryError))
            and bool(_DTYPE_WORDS.search(str(exc))))


def values(x) -> np.ndarray:
    """Any output as a NumPy array."""
    if isinstance(x, Tensor):
        return to_numpy(x.detach())
    if type(x).__module__.partition(".")[0] == "torch" and hasattr(x, "detach"):
        x = x.detach().resolve_conj()
        return x.float().numpy() if str(x.dtype) == "torch.bfloat16" else x.numpy(force=True)
    return np.asarray(x)


def pending(tensors) -> None:
    """Start the computation of all results before the first is read: their kernels are then built together, and lazy results of the
    same shape even become one kernel."""
    groups = {}
    for t in tensors:
        if not isinstance(t, Tensor) or t._storage.node is None or not t._numel:
            continue
        if t._storage.node.reduce is None and t._dense:
            groups.setdefault(t.shape, []).append(t)
        else:
            t._storage.buffer()
    for group in groups.values():
        for i in range(0, len(group), 6):
            root = None
            for t in group[i:i + 6]:
                as_float = t.detach().to(dt.float32)
                root = as_float if root is None else root + as_float
            root._storage.buffer()
