"""The derived checks: each proves one property of one operator and raises AssertionError with the call that broke it.

A check that does not apply to an operator raises ``NotApplicable`` with the reason.
"""
from __future__ import annotations

import contextlib
import zlib

import numpy as np

from .._tensor.device import resolve
from .._tensor.dispatch import config
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.errors import KernelBuildError, LaunchError
from . import cases
from .batching import BY_VALUE, batched
from .basics import NotApplicable, close, limits, same_bits, two_parts
from .cases import Call, flatten, to_tensor, values
from .complexes import complex_numbers
from .derivatives import double_gradient, gradient, repeats
from .domains import EMPTY_DIFFERS, MEMORY, RANDOM
from .graphs import traced


# -- forward ----------------------------------------------------------------------------------------------------------------------

@two_parts
def forward(op):
    """Shape, dtype and values on every dtype and sample against NumPy and, where installed, PyTorch."""
    torch_fn = cases.torch_function(op)
    if op.numpy is None and torch_fn is None:
        raise NotApplicable("no reference")
    done, first_error = [], None
    for row in _rows(op):
        for call in _few(op, row):
            try:
                outs, _ = cases.run(op, call)
            except Exception as exc:
                if row is cases.native_row(op) or not cases.is_dtype_error(exc):
                    raise
                first_error = first_error or exc
                continue
            done.append((row, call, outs))
    if not done:
        raise first_error or NotApplicable("no samples")
    yield [t for _, _, outs in done for t in outs]
    compared = 0
    for row, call, outs in done:
        compared += _against_numpy(op, row, call, outs)
        if torch_fn is not None:
            compared += _against_torch(op, torch_fn, row, call, outs)
    if not compared:
        raise NotApplicable("no reference takes these samples")


def _rows(op):
    """Every declared dtype that the device has; those of the samples when the samples hold no floats.

    Where builds are dear an operator gets one of the 16-bit floats and one of the small integers.
    """
    rows = [d for d in cases.usable_rows() if not op.dtypes or d in op.dtypes]
    if not cases.has_floats(op):
        return [cases.native_row(op)]
    if cases.builds_are_dear():
        rows = _one_of(op, rows, (dt.float16, dt.bfloat16))
        rows = _one_of(op, rows, (dt.int8, dt.int16, dt.int32))
    return rows


def _one_of(op, rows, family):
    """``rows`` with only one of the dtypes in ``family``, another one from operator to operator."""
    alike = [d for d in rows if d in family]
    turn = zlib.crc32(op.name.encode()) % max(1, len(alike))
    return [d for d in rows if d not in alike or d is alike[turn]]


def _few(op, row):
    """All samples in float32; in other dtypes the first, and of elementwise operators the one with a Python number: that is what differs."""
    found = cases.calls(op, row)
    if row is cases.native_row(op) or len(found) < 2:
        return found
    return found[:1] + found[2:3] if op.kind == "elementwise" else found[:1]


def _against_numpy(op, row, call, outs):
    if row is dt.bool_ and op.kind == "composite":
        return 0                                                         # NumPy's bool arithmetic is logic
    floats = any(isinstance(o, Tensor) and o.dtype.is_floating_point for o in outs)       # NumPy would compute int8 -> float16
    want = cases.numpy_result(op, call, row.np if floats else None)
    if want is None:
        return 0
    assert len(want) <= len(outs), f"{op.name}{call}: {len(outs)} outputs, NumPy gives {len(want)}"
    for got, ref in zip(outs, want):
        got, ref = values(got), np.asarray(ref)
        what = f"{op.name}{call} against NumPy"
        if got.dtype.kind == "b" and ref.dtype.kind != "b" and row is dt.bool_:
            continue                                                     # NumPy widens bool to int8 or float16, PyTorch keeps it
        assert (got.dtype.kind == "b") == (ref.dtype.kind == "b") or row is dt.uint8, f"{what}: dtype {got.dtype}, expected {ref.dtype}"
        if op.name.strip("_") in RANDOM:
            assert got.shape == ref.shape, what
            continue
        with np.errstate(all="ignore"):
            ref = ref.astype(got.dtype) if got.dtype.kind != "b" else ref
        close(got, ref, *limits(op, dt.from_numpy(got.dtype), 4 if row.itemsize == 2 and row.category == dt.FLOAT and op.kind != "elementwise" else 1), what)
    return 1


def _against_torch(op, fn, row, call, outs):
    ran = cases.torch_run(fn, call)
    if ran is None:
        return 0
    want = ran[0]
    what = f"{op.name}{call} against PyTorch"
    assert len(want) == len(outs), f"{what}: {len(outs)} outputs, expected {len(want)}"
    wide = _in_float32(op, fn, row, call, want) or want
    for got, ref, value in zip(outs, want, wide):
        if hasattr(ref, "dtype") and isinstance(got, Tensor):
            same = str(ref.dtype).removeprefix("torch.") == got.dtype.name or str(ref.dtype) in ("torch.float64", "torch.complex128") and not resolve(None).has_fp64
            assert same, f"{what}: dtype {got.dtype}, expected {ref.dtype}"
            assert tuple(ref.shape) == tuple(got.shape), f"{what}: shape {tuple(got.shape)}, expected {tuple(ref.shape)}"
        if op.name.strip("_") not in RANDOM:
            scale = 4 if row.itemsize == 2 and row.category == dt.FLOAT and op.kind != "elementwise" else 2
            got = values(got)
            close(got, values(value), *limits(op, dt.from_numpy(got.dtype), scale), what)
    return 1


def _in_float32(op, fn, row, call, narrow):
    """What PyTorch computes in float32 from the 16-bit operands of a product or convolution, rounded once: its own kernel may sum in 16 bits
    (conv_transpose3d in float16: five times the error of this). ``narrow`` is what that gave; None for other operators and dtypes."""
    if row not in (dt.float16, dt.bfloat16) or op.fn.__module__.rpartition(".")[2] not in ("conv", "matmul", "products"):
        return None
    ran = cases.torch_run(fn, call.map(lambda a: a.astype(np.float32) if a.dtype == row.np else a))
    return ran and [ref.to(kept.dtype) if hasattr(ref, "to") else ref for ref, kept in zip(ran[0], narrow)]


# -- layouts ------------------------------------------------------------------------------------------------------------------------

def offset_tensor(a, requires_grad=False):
    """The values of ``a`` in the middle of a longer buffer."""
    flat = np.concatenate([np.full(3, 7, a.dtype), np.ascontiguousarray(a).ravel(), np.full(2, 7, a.dtype)])
    return to_tensor(flat)[3:3 + a.size].view(tuple(a.shape))


def transposed_tensor(a, requires_grad=False):
    """The values of ``a`` with dimensions stored in reverse order."""
    return to_tensor(np.ascontiguousarray(a.T)).permute(*range(a.ndim - 1, -1, -1)) if a.ndim > 1 else to_tensor(a)


def strided_tensor(a, requires_grad=False):
    """The values of ``a`` as every second element of the last dimension."""
    if a.ndim == 0:
        return to_tensor(a)
    wide = np.repeat(a, 2, axis=-1)
    wide[..., 1::2] = 1
    return to_tensor(wide)[..., ::2]


def expanded_tensor(a, requires_grad=False):
    """The values of ``a``, constant along the first dimension, with stride 0 there."""
    return to_tensor(a[:1]).expand(a.shape)


def _same(op, dtype):
    """(rtol, atol) between two kernels that compute the same: no difference for elementwise operators, views and integers.

    A long function of the template base is the exception: drivers inline it in one kernel and call it in another, where they choose other built-ins.
    """
    if dtype.kind != "f":
        return 0, 0
    if op.kind not in ("elementwise", "view"):
        return limits(op, dt.from_numpy(dtype))
    called = op.expr is not None and "clnn_" in str(op.expr.text)
    return (4 * float(np.finfo(dtype).eps), 0) if called else (0, 0)


@two_parts
def layouts(op):
    """Offset, transposed, strided and broadcast inputs give what dense inputs give."""
    row = cases.native_row(op)
    found = cases.calls(op, row)[:1]
    if not any(a.ndim for c in found for a in c.arrays()):
        raise NotApplicable("no arrays in the samples")
    if op.name.strip("_") in RANDOM | MEMORY:
        raise NotApplicable("random, or defined by the memory layout")
    pairs = []
    for call in found:
        want, _ = cases.run(op, call)
        variants = [(make.__name__, call, make, want) for make in (offset_tensor, transposed_tensor, strided_tensor)]
        if op.kind == "elementwise" and all(a.shape[:1] == cases.SHAPE[:1] for a in call.arrays()):
            constant = call.map(lambda a: np.repeat(a[:1], a.shape[0], axis=0))
            variants.append(("expanded_tensor", constant, expanded_tensor, cases.run(op, constant)[0]))
        for name, given, make, expected in variants:
            try:
                got, _ = cases.run(op, given, make=make)
            except RuntimeError as exc:
                if op.name.startswith("view") and "compatible" in str(exc) or "strides" in str(exc) and op.name == "grouped_mm":
                    continue
                raise
            pairs.append((f"{op.name}{given} with {name}", got, expected))
    yield [t for _, got, want in pairs for t in got + want]
    for what, got, want in pairs:
        for g, w in zip(got, want):
            g, w = values(g), values(w)
            close(g, w, *_same(op, g.dtype), what)


@two_parts
def scalars_and_empty(op):
    """0-d tensors and tensors without elements."""
    found = cases.calls(op, cases.native_row(op))[:1]
    if not found:
        yield []
        return
    compare = _zero_dimensions if op.kind == "elementwise" else _no_elements
    yield from compare(op, found[0])


def _zero_dimensions(op, call):
    point = call.map(lambda a: a.reshape(-1)[:1].reshape(()))
    outs, _ = cases.run(op, point)
    same = cases.run(op, call.map(lambda a: a.reshape(-1)[:1]))[0]
    empty, _ = cases.run(op, call.map(lambda a: a[:0]))
    yield outs + same + empty
    for got, want in zip(outs, same):
        assert tuple(got.shape) == (), f"{op.name}: 0-d tensors give shape {tuple(got.shape)}"
        got, want = values(got).reshape(1), values(want)
        close(got, want, *_same(op, got.dtype), f"{op.name}{point} (0-d)")
    assert tuple(empty[0].shape) == (0, *call.arrays()[0].shape[1:]), f"{op.name}: {tuple(empty[0].shape)} from no rows"
    values(empty[0])


_FAULTS = KernelBuildError, LaunchError, ZeroDivisionError, AttributeError, KeyError, AssertionError


def _no_elements(op, call):
    torch_fn = cases.torch_function(op)
    if not call.arrays() or op.kind == "composite" and op.name.strip("_") in RANDOM:
        yield []
        return
    empty = call.map(lambda a: a[:0] if a.ndim else a)
    try:
        outs = cases.run(op, empty)[0]
    except _FAULTS:
        raise
    except Exception as exc:
        outs = exc
    yield outs if isinstance(outs, list) else []
    try:
        outs = [values(t) for t in outs] if isinstance(outs, list) else outs
    except _FAULTS:
        raise
    except Exception as exc:
        outs = exc
    want = cases.torch_run(torch_fn, empty) if torch_fn else None
    if want is not None and op.name not in EMPTY_DIFFERS:
        assert not isinstance(outs, Exception), f"{op.name}{empty}: {outs!r}, PyTorch returns a value"
        for got, ref in zip(outs, want[0]):
            if op.name.strip("_") in RANDOM:
                continue
            close(got, values(ref), *limits(op, dt.from_numpy(got.dtype)), f"{op.name}{empty}")


@two_parts
def special_values(op):
    """NaN, infinities and signed zeros go through an elementwise operator as they do in the reference."""
    if op.kind != "elementwise":
        raise NotApplicable("not elementwise")
    if dt.float32 not in op.dtypes:
        raise NotApplicable("takes no floats")
    torch_fn = cases.torch_function(op)
    if op.numpy is None and torch_fn is None:
        raise NotApplicable("no reference")
    points = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0], np.float32)
    n = len(op.params)
    grids = np.meshgrid(*[points] * min(n, 2), indexing="ij")
    args = tuple(g.ravel() for g in grids) + (np.ones(len(points) ** 2, np.float32),) * (n - 2)
    if op.params[0] == "condition":
        args = (args[1] > 0, args[0], args[1])
    call = Call(args)
    got = cases.run(op, call)[0][0]
    yield [got]
    got, want = values(got), None
    if torch_fn is not None:
        ran = cases.torch_run(torch_fn, call)
        want = None if ran is None else values(ran[0][0])
    if want is None:
        want = cases.numpy_result(op, call)
        if want is None:
            raise NotApplicable("no reference takes these arguments")
        with np.errstate(all="ignore"):
            want = np.asarray(want[0]).astype(got.dtype)
    close(got, want, *limits(op, dt.from_numpy(got.dtype), 4), f"{op.name} at special values {points.tolist()}")


# -- forms ----------------------------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def eager(on=True):
    """Run each operator at once inside the block."""
    before, config.eager = config.eager, on
    try:
        yield
    finally:
        config.eager = before


@two_parts
def fusion(op):
    """Inside a chain, fused and run one by one give the same bits (elementwise) or close values (others)."""
    if op.name.strip("_") in RANDOM:
        raise NotApplicable("random")
    rows = [cases.native_row(op)]
    if op.kind == "elementwise" and dt.float16 in op.dtypes and rows[0] is dt.float32:
        rows.append(dt.float16)
    results = []
    for row in rows:
        found = cases.calls(op, row)[:1 if op.kind == "elementwise" else 2]
        if not found:
            raise NotApplicable("no samples")
        for call in found:
            fused = _chain(op, call)
            for o in fused:
                if isinstance(o, Tensor):
                    o._storage.buffer()
            with eager():
                results.append((call, fused, _chain(op, call)))
    yield []                                                            # what is to be compared must not become one kernel
    for call, fused, single in results:
        for got, want in zip(fused, single):
            got, want = values(got), values(want)
            close(got, want, *_same(op, got.dtype), f"{op.name}{call}: fused against eager")


def _chain(op, call):
    """The operator between two cheap ones."""
    def make(a, requires_grad=False):
        t = to_tensor(a)
        return t * 1 if cases.is_float(a) else t
    outs, _ = cases.run(op, call, make=make)
    return [o * 0.75 + 0.5 if isinstance(o, Tensor) and o.dtype.is_floating_point else o for o in outs]


@two_parts
def forms(op):
    """Function, method, aliases, in-place form and ``out=`` agree."""
    if op.name.startswith("_") or op.name.strip("_") in RANDOM:
        raise NotApplicable("private or random")
    row = cases.native_row(op)
    found = [c for c in cases.calls(op, row)[:2] if c.args and isinstance(c.args[0], np.ndarray)]
    if not found:
        raise NotApplicable("no sample starts with a tensor")
    pairs, targets = [], []
    for call in found:
        want = cases.run(op, call)[0]
        what = f"{op.name}{call}"
        ready = call.map(to_tensor)
        for name in (op.name, *op.aliases) if op.method else ():
            method = getattr(ready.args[0], name)
            got = flatten(method(*ready.args[1:], **ready.kwargs) if callable(method) else method)
            pairs += [(g, w, f"{what}: method {name}") for g, w in zip(got, want)]
        if op.inplace and hasattr(Tensor, op.name + "_"):
            targets += _in_place(op, call, want[0], what)
    yield [t for t, *_ in targets] + [t for got, want, _ in pairs for t in (got, want)]
    for got, want, what in pairs:
        same_bits(values(got), values(want), what)
    for target, before, want, what in targets:
        expected = values(want).astype(target.dtype.np)
        same_bits(values(target), expected, f"{what}: in place")
        same_bits(values(before), expected[:1] if expected.ndim else expected, f"{what}: a view taken before sees the in-place result")


def _in_place(op, call, want, what):
    ready = call.map(to_tensor)
    target = ready.args[0]
    if tuple(target.shape) != tuple(want.shape) or want.dtype.category > target.dtype.category:
        return []
    method = getattr(target, op.name + "_")
    version, before = target._version, target[:1] if target.shape else target
    got = method(*ready.args[1:], **ready.kwargs)
    assert got is target, f"{what}: {op.name}_ returns another tensor"
    assert target._version > version, f"{what}: {op.name}_ does not count a version"
    return [(target, before, want, what)]


# -- errors -----------------------------------------------------------------------------------------------------------------------------

def errors(op):
    """Every declared error is raised, of its type and with its text."""
    if not op.errors:
        raise NotApplicable("declares no errors")
    for args, kwargs, kind, text in op.errors:
        call = Call(tuple(args), dict(kwargs)).map(lambda a: to_tensor(cases.narrowed(a)))
        try:
            for out in flatten(op.fn(*call.args, **call.kwargs)):
                values(out)
            resolve(None).synchronize()
        except kind as exc:
            assert text in str(exc), f"{op.name}: the message {str(exc)!r} lacks {text!r}"
        else:
            raise AssertionError(f"{op.name}{Call(tuple(args), dict(kwargs))}: {kind.__name__} with {text!r} was not raised")


def undeclared_dtypes(op):
    """A dtype that the entry does not declare is refused in words; no driver ever sees a kernel that cannot be built."""
    if not cases.has_floats(op):
        raise NotApplicable("samples without floats are not cast")
    rows = [d for d in cases.usable_rows() if op.dtypes and d not in op.dtypes]
    if not rows:
        raise NotApplicable("takes every dtype")
    for row in rows:
        for call in cases.calls(op, row)[:1]:
            try:
                for out in cases.run(op, call)[0]:
                    values(out)
            except Exception as exc:
                assert cases.is_dtype_error(exc), f"{op.name}{call}: {type(exc).__name__}: {exc}"
            else:
                if op.kind == "elementwise" and len(op.params) == 1:
                    raise AssertionError(f"{op.name}{call}: {row} is not declared, but it was computed")


def without_values(op):
    """On the meta device the same shapes and dtypes, the first time as when the call is known."""
    calls = [c for c in cases.calls(op, cases.native_row(op))[:3] if c.arrays()]
    if not calls or op.name in BY_VALUE:
        raise NotApplicable("no call with tensors whose result is known by their shapes")
    for call in calls:
        want = [(tuple(t.shape), t.dtype) for t in cases.run(op, call)[0]]
        filled = call.map(lambda a: to_tensor(a).to("meta"))
        for _ in range(3):
            try:
                got = [t for t in flatten(op.fn(*filled.args, **filled.kwargs)) if isinstance(t, Tensor)]
            except NotImplementedError as exc:
                raise NotApplicable(f"looks at values: {exc}") from exc
            assert all(str(t.device) == "meta" for t in got) and [(tuple(t.shape), t.dtype) for t in got] == want, f"{op.name}{call}: {got}, expected {want}"


CHECKS = {fn.__name__: fn for fn in (forward, layouts, scalars_and_empty, special_values, gradient, double_gradient, repeats, fusion, forms, errors,
                                     undeclared_dtypes, complex_numbers, batched, without_values, traced)}
