"""Tensors of another dtype or on another device, and what is copied over others."""
from __future__ import annotations

from .._tensor import formats
from .._tensor.declare import composite, kernel
from .._tensor.device import device as device_type
from .._tensor.device import resolve
from .._tensor.dispatch import broadcast
from .._tensor.elementwise import swift_unary
from .._tensor.grad_mode import state
from .._tensor.inplace import apply_inplace, part_of_memory, put, refuse_overlap
from .._tensor.interop import transfer
from .._tensor.segments import is_shared, share_memory_
from .._tensor.tensor import Tensor
from .._tensor.worded import refuse
from ..core import dtype as dt
from ..core import native
from ..core.config import config
from ..core.layout import contiguous_format, preserve_format
from . import creation
from .arithmetic import _itself
from .selection import cast, clone_in
from .views import expand


@kernel("_move", complex=True, method=False, vjp=dict(input=lambda g, home: _move(g, home, None)))
def _move(input, device, home):
    return transfer(input, device if not isinstance(device, device_type) else device.physical)


_move.op.grad_name = "ToCopyBackward0"


_TAKEN: set = set()         # kinds of arguments of ``to`` that fit


def to(self, *args, **kwargs):
    """Another dtype and/or device: ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, ``to(other)``; the tensor itself if nothing changes."""
    if len(args) == 1 and not kwargs and (args[0].__class__ is str or args[0].__class__ is device_type):
        target = resolve(args[0])
        return self if target is self._storage.device else _move(self, target, self._storage.device)
    dtype, dev, force = kwargs.get("dtype"), kwargs.get("device"), kwargs.get("copy", False)
    if kwargs or len(args) > 1:
        kinds = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        if kinds not in _TAKEN:
            refuse("to", (self, *args), kwargs, True)
            _TAKEN.add(kinds)
        args = (kwargs["tensor"],) if "tensor" in kwargs else args
    try:
        for i, a in enumerate(args):
            if isinstance(a, Tensor):
                dtype, dev = a.dtype, a._home
            elif isinstance(a, dt.dtype) or a in (float, int, bool, complex):
                dtype = a
            elif isinstance(a, bool):
                force = a if i == len(args) - 1 and i >= 2 else force
            elif a is not None:
                dev = a
        r, row = self, dt.as_dtype(dtype)
        target = self._storage.device if dev is None else resolve(dev)
    except (TypeError, ValueError):
        refuse("to", (self, *args), kwargs, True)
        raise
    if target is not self._storage.device:
        if row is not None and row is not r.dtype and (not row.needs_fp64 or self._storage.device.has_fp64) and row.itemsize <= r.dtype.itemsize:
            r = cast(r, row)
        r = _move(r, target, self._storage.device)
    if row is not None and row is not r.dtype:
        r = cast(r, row)
    form = kwargs.get("memory_format")
    if form is not None and r is self and not force and form is (formats.suggested(r) or contiguous_format):
        return r                                                # a transposed one is of the format that it suggests, too
    if form is not None and form is not preserve_format and r._strides != (strides := formats.strides_of(form, r.shape)):
        return clone_in(r, strides)
    return r.clone() if force and r is self else r


Tensor.to = to


def _shortcut(name, row):
    def method(self, memory_format=None):
        return cast(self, row) if memory_format is None else to(self, row, memory_format=memory_format)
    method.__name__, method.__doc__ = name, f"``to(clnn.{row.name})``."
    setattr(Tensor, name, method)


for _name, _row in dict(float=dt.float32, double=dt.float64, half=dt.float16, bfloat16=dt.bfloat16, long=dt.int64, int=dt.int32,
                        short=dt.int16, char=dt.int8, byte=dt.uint8, bool=dt.bool_, cfloat=dt.complex64, cdouble=dt.complex128).items():
    _shortcut(_name, _row)

Tensor.chalf = lambda self, memory_format=None: self.to(dt.from_name("complex32"))      # refused in words
Tensor.cpu = lambda self, memory_format=None: self.to("cpu") if memory_format is None else self.to("cpu", memory_format=memory_format)
Tensor.cuda = lambda self, device=None, non_blocking=False, memory_format=None: self.to(
    "gpu" if device is None else f"gpu:{device}" if isinstance(device, int) else device, memory_format=memory_format)
Tensor.pin_memory = lambda self, device=None: self
Tensor.is_pinned = lambda self: False
Tensor.share_memory_, Tensor.is_shared = share_memory_, is_shared


def type_as(self, other):
    """In the dtype of ``other``, and on its device."""
    if not isinstance(other, Tensor):
        refuse("type_as", (self, other), None, True)
    return self.to(other)


Tensor.type_as = type_as


def type_(self, dtype=None, non_blocking=False):
    """Without arguments the type's name; else a conversion."""
    if dtype is None:
        return f"{config.spoken}.{'' if self.device.type == 'cpu' else self.device.type + '.'}{dt.SPOKEN[self.dtype.name]}Tensor"
    if dtype is Tensor:
        dtype = dt.float_default()
    place = getattr(dtype, "place", None)                                # FloatTensor and its like know their dtype and place
    if isinstance(dtype, str):
        place = "cuda" if ".cuda." in dtype else None
        row = next((dt.from_name(k) for k, v in dt.SPOKEN.items() if dtype.endswith("." + v + "Tensor")), None)
        if row is None:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = row
    elif not hasattr(dtype, "dtype") and not isinstance(dtype, dt.dtype):
        raise TypeError("dtype must be a type, str, or dtype object")
    return self.to(device=place, dtype=getattr(dtype, "dtype", dtype))


type_.__name__ = "type"
Tensor.type = type_


@composite("copy", complex=True, method=False)
def copy_(self, src, non_blocking=False):
    """Overwrite with ``src`` (broadcast, converted, from any device)."""
    if part_of_memory(self) and src.__class__ is Tensor and put(self, self.shape, self._strides, self._offset, self._numel, src):
        return self
    if not isinstance(src, Tensor):
        refuse("copy_", (self, src), None, True)                # a list or an array; numbers go on
        src = creation.tensor(src, device=self._storage.device)
    refuse_overlap(self, (src,))
    if src._storage.device is not self._storage.device:
        src = src.to(self.device)
    src = cast(src, self.dtype)
    if src.shape != self.shape:
        shape = broadcast("copy_", self, src)
        if shape != self.shape:
            raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(shape)}")
        src = expand(src, shape)
    if src._storage is self._storage or src._rg and state.grad:
        src = src.clone()
        if src._grad_fn is not None:
            src._grad_fn.label = "torch::autograd::CopyBackwards"
    return apply_inplace(self, src, "copy")


# what most copies are: all of a tensor of the same dtype and shape
_same = swift_unary(_itself.op, {(d, scalar): (d, d) for d in dt.REAL for scalar in (False, True)})
Tensor.copy_ = native.front(copy_, into=True, same=_same)
