"""Making tensors: from data, filled, ranges."""
from __future__ import annotations

import functools
import math
import operator
import sys
from operator import index

import numpy as np

from .._tensor import foreign, formats, later
from .._tensor.device import holding, public, resolve
from .._tensor.dispatch import _shapes  # noqa: F401  (loads the driver before the first record)
from .._tensor.foreign import NoStrides
from .._tensor.interop import from_array, from_bytes, in_order, over
from .._tensor.tensor import Tensor, empty as _empty, from_node, make
from .._tensor.worded import absent, looked, refuse, said
from ..core import dtype as dt
from ..core.limits import check_fits, iinfo, no_room
from ..core.shape import Size, flag, missing, whole
from ..core.warn import warn
from ..graph import fuse
from ..graph.node import Expr, Storage, constants
from ..graph.op import REGISTRY
from ..runtime.device import Device
from ._factory import _done, constant, factory
from ._data import check_range, has_numpy, nested, packed_numbers, to_array

_ARANGE_INT = Expr("arange", ("start", "step"), dict(bool="0", int="start + step * (ACC)IDX", float="start + step * (ACC)IDX"))
_EYE = Expr("eye", ("m",), "((IDX % (m + 1) == 0 && IDX < m * (m + 1)) ? 1 : 0)", longs=("m",))
_LINSPACE = Expr("linspace", ("start", "end", "step", "half", "last"), "((ACC)IDX < half ? start + step * (ACC)IDX : end - step * (last - (ACC)IDX))")
_KEPT = 1 << 20         # bytes of one tensor that is kept for later calls
_HOST = 1 << 14         # float ranges of up to so many elements are made on the host, without a kernel


def as_size(size) -> Size:
    """A shape from ``f(2, 3)``, ``f((2, 3))`` or ``f(Size)``."""
    given = size
    if len(size) == 1:
        if isinstance(size[0], (tuple, list)):
            size = size[0]
    elif not size:
        raise missing(sys._getframe(1).f_code.co_name, "size")
    for s in size:
        if s.__class__ is not int or s < 0:
            break
    else:
        return Size(size)
    try:
        if size and size[0].__class__ is bool:          # PyTorch looks at the first one
            raise TypeError
        got = Size(index(s) for s in size)
    except TypeError:
        raise TypeError(no_size(sys._getframe(1).f_code.co_name, size, given)) from None
    for s in got:
        if s < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: {list(got)}")
    return got


def no_size(called, size, given) -> str:
    """What is wrong with the arguments ``given`` of a function that takes a size."""
    at, bad = next(((i, s) for i, s in enumerate(size) if s.__class__ is bool or getattr(s, "ndim", 0) or not hasattr(s, "__index__")), (0, size))
    if at:
        return f"{called}(): argument 'size' failed to unpack the object at pos {at + 1} with error \"type must be tuple of ints,but got {said(bad)}\""
    if size is given and len(given) > 1:                # no numbers, so one argument too many
        return f"{called}() takes 1 positional argument but {len(given)} were given"
    found = f", not {said(bad)}" if size is given else f", but found element of type {said(bad)} at pos 0"
    return f"{called}(): argument 'size' (position 1) must be tuple of ints{found}"


def sizes(name, size) -> Size:
    """A shape given as one argument of a function."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"{name}(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    return as_size((size,))


def shared(device, key, compute) -> Tensor:
    """What ``compute()`` gives on ``device``, a dense tensor that follows from ``key`` alone: all who ask for it share its memory by value."""
    found = constants.get((device, key))
    if found is None:
        t = compute()
        if device.kind == "meta" or device.recording is not None or t.__class__ is not Tensor or t._storage.nbytes > _KEPT:    # a part of the recording
            return t
        if len(constants) > 256:
            constants.clear()
        found = constants[device, key] = t._storage.buffer(), t.shape, t.dtype
    buf, shape, dtype = found
    n = shape.numel()
    return make(Storage(device, n * dtype.itemsize, buf), shape, dtype, n)


def filled(shape, value, dtype, device) -> Tensor:
    """A lazily recorded constant: costs nothing when it fuses into what reads it."""
    if dtype.needs_fp64 and not device.has_fp64:
        return _empty(shape, dtype, device)                      # raises with the reason
    dt.noticed(dtype)
    if value.__class__ is not int and value.__class__ is not float and not hasattr(value, "__float__") and not isinstance(value, complex):
        raise TypeError(f"a value to fill with must be a Number, not {type(value).__name__}")
    if value.__class__ is complex and not dtype.is_complex:
        if value.imag:
            raise no_room(dtype)
        value = value.real
    numel = shape.numel()
    if dtype is dt.bool_:
        value = value != 0
    return from_node(fuse.FULL, (value,), dtype, dtype, shape, numel, device, 1, 0, True)


deterministic = [False, False]              # what programs asked for (:func:`clnn.use_deterministic_algorithms`): True, and whether to warn only


def alert(name):
    """Refuse what has no deterministic form in PyTorch where programs ask for such, or warn: here it has, but a program shall hear of it on any device."""
    if not deterministic[0]:
        return
    said = f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    if deterministic[1]:
        warn(f"{said}, warn_only=True)'. You can file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic "
             "support for this operation.")
        return
    raise RuntimeError(f"{said})'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's acceptable "
                       "for your application. You can also file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
                       "deterministic support for this operation.")


def unwritten(t):
    """Memory that nothing was written to, with values that show it where programs want the same of each run."""
    from ..utils.deterministic import fill_uninitialized_memory
    if not fill_uninitialized_memory:
        return t
    row = t.dtype
    return filled(t.shape, float("nan") if row.differentiable else True if row is dt.bool_ else iinfo(row).max, row, t._storage.device)


def _float_default(dtype):
    return dt._default_float if dtype is None else dt.noticed(dt.as_dtype(dtype))


def _real_row(name, dtype):
    """The dtype of numbers that are spaced evenly: not bool."""
    row = _float_default(dtype)
    if row is dt.bool_:
        raise NotImplementedError(f'"{name}" not implemented for \'Bool\'')
    return row


def _number(name, what, at, value):
    if not hasattr(value, "__float__") and not isinstance(value, complex):
        raise TypeError(f"{name}(): argument '{what}' (position {at}) must be Number, not {type(value).__name__}")


@factory
def empty(*size, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """Uninitialised memory of shape ``size``.

    Example:
        >>> clnn.empty(2, 3).shape
        clnn.Size([2, 3])
    """
    r = _empty(as_size(size), _float_default(dtype), resolve(device))
    if deterministic[0]:
        r = unwritten(r)
    return _done(r if memory_format is None else formats.with_strides(r, formats.strides_of(memory_format, r.shape)), requires_grad)


@constant
def zeros(*size, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Zeros of shape ``size``.

    Example:
        >>> clnn.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """
    return _done(filled(as_size(size), 0, _float_default(dtype), resolve(device)), requires_grad)


@constant
def ones(*size, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Ones of shape ``size``.

    Example:
        >>> clnn.ones(2, 3)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    return _done(filled(as_size(size), 1, _float_default(dtype), resolve(device)), requires_grad)


@constant
def full(size, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """``fill_value`` in every element; the dtype is that of the value unless given.

    Example:
        >>> clnn.full((2, 2), 7)
        tensor([[7, 7],
                [7, 7]])
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) and not fill_value.dim() else fill_value
    if isinstance(value, (Tensor, str, bytes, list, tuple, dict)) or value is None:
        raise TypeError(f"full(): argument 'fill_value' (position 2) must be Number, not {type(value).__name__}")
    row = dt.as_dtype(dtype) or dt.scalar_dtype(value)
    check_fits(value, row)
    if isinstance(size, int):
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not int")
    return _done(filled(as_size((tuple(size),)), value, row, resolve(device)), requires_grad)


def _like(input, dtype, device):
    input._strides                                              # what has none makes another like itself
    return dt.as_dtype(dtype) or input.dtype, (input._storage.device if device is None else resolve(device))


def _alike(r, input, memory_format):
    """The fresh ``r`` with its dimensions in the order of a format, that of ``input`` where none is given and it has memory of its own."""
    return r if memory_format is None and (input._dense or foreign.here.maps) else formats.with_strides(r, formats.like(input, memory_format))


def _like_another(body):
    """``body``, which makes a tensor like its first argument, or that tensor's own form of it (decorator)."""
    look = looked(body.__name__, outer=True)

    @functools.wraps(body)
    def call(input, *args, **kwargs):
        try:
            if kwargs and look is not None:
                look((input, *args), {k: v for k, v in kwargs.items() if k != "requires_grad"})     # in none of their signatures, but taken
            return body(input, *args, **kwargs)
        except NoStrides as refused:
            return refused.instead(body.__name__, (input, *args), kwargs)
        except (TypeError, AttributeError):
            _refuse_like(body.__name__, (input, *args), kwargs)
            raise
    return call


def _refuse_like(name, args, kwargs, method=False):
    """As ``refuse``: these functions take ``requires_grad`` too, which is in none of their signatures."""
    refuse(name, args, {k: v for k, v in kwargs.items() if k != "requires_grad"}, method)
    if kwargs.get("requires_grad") is not None:
        flag(name, "requires_grad", kwargs["requires_grad"])


def told(fn):
    """``fn``, which programs seldom call, whose wrong calls are told in PyTorch's words (decorator)."""
    @functools.wraps(fn)
    def call(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except (TypeError, AttributeError):
            _refuse_like(fn.__name__, args, kwargs)
            raise
    return call


@_like_another
def empty_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """Uninitialised memory of the shape, dtype and device of ``input``.

    Example:
        >>> clnn.empty_like(clnn.ones(2, 3)).shape
        clnn.Size([2, 3])
    """
    r = _empty(input.shape, *_like(input, dtype, device))
    return _done(_alike(unwritten(r) if deterministic[0] else r, input, memory_format), requires_grad)


@_like_another
def zeros_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """Zeros of the shape, dtype and device of ``input``.

    Example:
        >>> clnn.zeros_like(clnn.tensor([3, 4]))
        tensor([0, 0])
    """
    if dtype is None is device is memory_format and input.__class__ is Tensor and input._dense:
        return zeros(input.shape, dtype=input.dtype, device=input._storage.device, requires_grad=requires_grad)
    return _done(_alike(filled(input.shape, 0, *_like(input, dtype, device)), input, memory_format), requires_grad)


later.zeros_like = zeros_like


@_like_another
def ones_like(input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """Ones of the shape, dtype and device of ``input``.

    Example:
        >>> clnn.ones_like(clnn.tensor([3, 4]))
        tensor([1, 1])
    """
    if dtype is None is device is memory_format and input.__class__ is Tensor and input._dense:
        return ones(input.shape, dtype=input.dtype, device=input._storage.device, requires_grad=requires_grad)
    return _done(_alike(filled(input.shape, 1, *_like(input, dtype, device)), input, memory_format), requires_grad)


@_like_another
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None):
    """``fill_value`` in the shape, dtype and device of ``input``.

    Example:
        >>> clnn.full_like(clnn.ones(2), 7)
        tensor([7., 7.])
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) and not fill_value.dim() else fill_value
    if isinstance(value, Tensor):
        raise TypeError("full_like() takes a number")
    check_fits(value, dt.as_dtype(dtype) or input.dtype)
    return _done(_alike(filled(input.shape, value, *_like(input, dtype, device)), input, memory_format), requires_grad)


@constant
def arange(start=absent, end=absent, step=1, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """``start, start + step, ...`` up to but excluding ``end``.

    Example:
        >>> clnn.arange(0, 5, 2)
        tensor([0, 2, 4])
    """
    if end is absent:
        start, end = 0, start
    if start is absent:
        start = 0
    start, end, step = numbers = [v.item() if isinstance(v, Tensor) and not v.dim() else v for v in (start, end, step)]
    if any([isinstance(v, Tensor) for v in numbers]):
        raise TypeError("arange() takes numbers")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    row = dt.noticed(dt.as_dtype(dtype) or (dt._default_float if any(isinstance(v, (float, np.floating)) for v in (start, end, step)) else dt.int64))
    if row.category not in (dt.INT, dt.FLOAT):
        raise NotImplementedError(f'"arange" not implemented for \'{dt.SPOKEN[row.name]}\'')
    count = max(0, math.ceil((end - start) / step)) if row is not dt.int64 else None
    if row.category == dt.INT:                                       # the count of narrow integers is that of the numbers as they were given
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
    count = max(0, math.ceil((end - start) / step)) if count is None else count
    if count.__class__ is int and count >> 63:
        raise RuntimeError("invalid size, possible overflow?")
    return _done(_range(start, step, count, row, resolve(device)), requires_grad)


def _range(start, step, count, row, device):
    if row.category == dt.FLOAT and count and (count <= _HOST or not device.has_fp64):            # float ranges are computed in double: exact ends
        return from_array((start + step * np.arange(count, dtype=np.float64)), device, row)
    return from_node(_ARANGE_INT, (start, step), dt.float64 if row.category == dt.FLOAT else row, row, Size((count,)), count, device, 1, 0, True)


@constant
def linspace(start, end, steps, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """``steps`` evenly spaced values from ``start`` to ``end`` inclusive.

    Example:
        >>> clnn.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    steps = whole(steps)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    row = _check_ends("linspace", start, end, dtype)
    if row is not None:
        return _done(from_array(np.linspace(complex(start), complex(end), steps), resolve(device), row), requires_grad)
    row = _real_row("linspace", dtype)
    for end_point in (start, end):
        check_fits(end_point, row)
    kind = int if row.category == dt.INT else float
    return _done(_evenly(float(kind(start)), float(kind(end)), steps, row, resolve(device)), requires_grad)


def _check_ends(name, start, end, dtype):
    """The dtype of what lies between complex ends, None between others."""
    for at, (what, value) in enumerate((("start", start), ("end", end))):
        _number(name, what, at + 1, value)
    tensors = {what: len(v.shape) for what, v in (("start", start), ("end", end)) if isinstance(v, Tensor)}
    if any(tensors.values()):
        told = " and ".join([f"{what} with {rank} dimension(s)" for what, rank in tensors.items()])
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {told}.")
    if not isinstance(start, complex) and not isinstance(end, complex):
        return None
    return dt.complex_row(name, dtype)


def _evenly(start, end, steps, row, device):
    """PyTorch's spacing, to the bit in float32: the step is rounded, and both halves are measured from their own end."""
    kind = np.float32 if row is dt.float32 else np.float64
    start, end = kind(start), kind(end)
    step = float((end - start) / kind(max(1, steps - 1)))
    few = _HOST >> 3 if row is dt.float32 else _HOST            # products of floats and counts are exact in double, so that both ways give the same bits
    if steps > few and device.has_fp64 and row.category == dt.FLOAT:
        return from_node(_LINSPACE, (float(start), float(end), step, steps // 2, steps - 1), dt.float64, row, Size((steps,)), steps, device, 1, 0, True)
    i = np.arange(steps)
    return from_array(np.where(i < steps // 2, start + step * i, end - step * (steps - 1 - i)) if steps > 1 else np.full(steps, start), device, row)


@constant
def logspace(start, end, steps, base=10.0, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """``base`` to the power of ``steps`` evenly spaced exponents.

    Example:
        >>> clnn.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
    """
    if whole(steps) < 0:
        raise RuntimeError("number of steps must be non-negative")
    row = _check_ends("logspace", start, end, dtype)
    if row is not None:
        return _done(from_array(np.logspace(complex(start), complex(end), int(steps), base=base), resolve(device), row), requires_grad)
    row, kind = _real_row("logspace", dtype), float if dt.as_dtype(dtype) is None or _float_default(dtype).category != dt.INT else int
    return _done(from_array(np.logspace(kind(start), kind(end), int(steps), base=base), resolve(device), row), requires_grad)


_LARGE = 1 << 13        # elements


@functools.partial(constant, shares=True)
def eye(n, m=None, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The identity matrix, ``n`` by ``m``.

    Example:
        >>> clnn.eye(2, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    for name, size in (("n", n), ("m", m)):
        if isinstance(size, (str, float)):
            raise TypeError(f"eye(): argument '{name}' (position {'nm'.index(name) + 1}) must be int, not {type(size).__name__}")
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    shape, row, home = Size(as_size((n, n if m is None else m))), _float_default(dtype), resolve(device)
    if row.is_complex or not shape.numel():
        return _done(from_array(np.eye(*shape), home, row), requires_grad)
    if row.needs_fp64 and not home.has_fp64:
        _empty(shape, row, home)                                     # raises with the reason
    dt.noticed(row)
    if shape.numel() > _LARGE:                                           # no division for each element
        ones, side = filled(Size((min(shape),)), 1, row, home), shape[1] + 1
        return _done(REGISTRY["embed_strided"].fn(ones, shape, ones.shape, (side,), 0), requires_grad)
    return _done(shared(home, ("eye", shape, row), lambda: from_node(_EYE, (shape[1],), row, row, shape, shape.numel(), home, 1, 0, True)), requires_grad)


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new leaf tensor with a copy of ``data`` (numbers, nested lists, NumPy arrays).

    Example:
        >>> clnn.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    if dtype is None and (plain := packed_numbers(data)) is not None:
        home, (values, shape, row) = resolve(device), plain
        if home.__class__ is Device and not home.records():
            return _done(from_bytes(values, shape, row, home), requires_grad)
    row = dt.as_dtype(dtype)
    if isinstance(data, Tensor):
        warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).")
        t = data.detach().to(device=data.device if device is None else public(resolve(device)), dtype=row or data.dtype).clone()
        return _done(t, requires_grad)
    array = to_array(data, row)
    if array.dtype.kind == "c" and row is not None and row.category in (dt.INT, dt.FLOAT) and not has_numpy(data):
        raise TypeError("must be real number, not complex" if row.category == dt.FLOAT else "'complex' object cannot be interpreted as an integer")
    if row is not None and row.category == dt.INT and not has_numpy(data) and array.size:
        check_range(array, row)
    return _done((from_array if array is not data else in_order)(array, resolve(device), row), requires_grad)


def as_tensor(data, dtype=None, device=None):
    """``data`` as a tensor; a tensor of the right dtype and device is returned as it is, and an array of the dtype shares its memory as with ``from_numpy``.

    Example:
        >>> x = clnn.tensor([1.0, 2.0])
        >>> clnn.as_tensor(x) is x, clnn.as_tensor([3, 4])
        (True, tensor([3, 4]))
    """
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype) if device is not None or dtype is not None else data
    t = _on_array(data, dt.as_dtype(dtype), device) if isinstance(data, np.ndarray) else None
    return tensor(data, dtype=dtype, device=device) if t is None else t


def _on_array(array, row, device):
    """A tensor on the memory of an array; None where it takes a copy."""
    known = array.dtype.kind in "fiubc" and (row is None or row is dt.from_numpy(array.dtype))
    return over(array, resolve(device)) if known else None


@told
def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    """A 0-d tensor.

    Example:
        >>> clnn.scalar_tensor(3.0)
        tensor(3.)
    """
    if s is None or isinstance(s, (list, tuple, str)) or isinstance(s, Tensor) and s.dim():
        raise TypeError(f"scalar_tensor(): argument 's' (position 1) must be Number, not {said(s)}")
    row = _float_default(dtype)
    check_fits(s, row)
    return tensor(s.real if isinstance(s, complex) and row.category in (dt.INT, dt.FLOAT) else s, dtype=row, device=device, requires_grad=requires_grad)


def legacy_constructor(cls, args, device=None):
    """``Tensor(2, 3)`` (uninitialised) or ``Tensor(data)``."""
    return Tensor._make_subclass(cls, legacy_new(args, dt._default_float, device))


def legacy_new(args, row, device):
    """Before there was ``tensor``: a tensor itself, data in a sequence, or the sizes of one that is not filled (but zeros here)."""
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0]
    if len(args) == 1 and (not hasattr(args[0], "__len__") or isinstance(args[0], np.ndarray) and not args[0].ndim and args[0].dtype.kind in "iu"):
        if isinstance(args[0], (bool, np.bool_)) or not hasattr(args[0], "__index__"):
            kind = type(args[0])
            raise TypeError(f"new(): data must be a sequence (got {f'{kind.__module__}.'.removeprefix('builtins.')}{kind.__name__})")
        args = (operator.index(args[0]),)                                   # NumPy's integers are sizes as well
    if len(args) == 1 and isinstance(args[0], (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(args[0]).__name__}'")
    if len(args) == 1 and hasattr(args[0], "_held"):                        # a storage
        return empty(0, dtype=row, device=args[0].device).set_(args[0])
    device = holding(device)
    if len(args) == 1 and isinstance(args[0], (list, tuple, range, np.ndarray)) and not isinstance(args[0], Size):
        return tensor(np.asarray(nested(args[0])), dtype=row, device=device)
    return zeros(*args, dtype=row, device=device) if args else empty(0, dtype=row, device=device)


def _new(name, fn):
    def method(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **named):
        try:
            return fn(*size, dtype=dtype or self.dtype, device=self._storage.device if device is None else device, requires_grad=requires_grad, **named)
        except TypeError:
            given = dict(dtype=dtype, device=device, requires_grad=requires_grad, layout=layout, pin_memory=pin_memory)
            _refuse_like(name, (self, *size), {**named, **{k: v for k, v in given.items() if v is not None and v is not False}}, True)
            raise
    method.__name__ = name
    method.__doc__ = f"Like ``clnn.{name[4:]}`` with the dtype and device of this tensor."
    setattr(Tensor, name, method)


_new("new_empty", empty)
_new("new_zeros", zeros)
_new("new_ones", ones)
_new("new_full", full)
_new("new_tensor", tensor)
