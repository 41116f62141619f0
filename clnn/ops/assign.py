"""Overwriting a tensor: fill_, zero_, set_, resize_."""
from __future__ import annotations

from .._tensor.declare import composite
from .._tensor.formats import strides_of, suggested
from .._tensor.elementwise import refilled
from .._tensor.inplace import apply_inplace, part_of_memory, put
from .._tensor.grad_mode import state
from .._tensor.tensor import Tensor
from .._tensor.writing import bump, of_inference
from ..core import dtype as dt
from ..core.layout import preserve_format
from ..core.limits import check_fits
from ..core.shape import Size, contiguous_strides
from . import creation
from .selection import cast


@composite("fill", complex=True, inplace=True)
def fill(input, value):
    """A tensor like ``input`` with ``value`` (a number or 0-d tensor) everywhere."""
    if isinstance(value, Tensor):
        if value.shape:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
        return cast(value, input.dtype).expand(input.shape).clone()
    check_fits(value, input.dtype)
    if input.dtype.category < 2 and isinstance(value, float):
        value = bool(value) if input.dtype.name == "bool" else int(value)
    return creation.filled(input.shape, value, input.dtype, input._storage.device)


_ZERO = (0,)


def zero_(self):
    """Overwrite with zeros."""
    if refilled(self, _ZERO):
        return self
    if part_of_memory(self) and put(self, self.shape, self._strides, self._offset, self._numel, 0):
        return self
    return apply_inplace(self, creation.filled(self.shape, 0, self.dtype, self._storage.device), "zero")


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Make this tensor another view: of ``source``, a tensor or storage."""
    if self._rg and self._grad_fn is None and state.grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if source is None:
        self.data = creation.empty(0, dtype=self.dtype, device=self._storage.device)
    elif isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            theirs, mine = (dt.IN_C.get(row.name, row.name) for row in (source.dtype, self.dtype))
            raise RuntimeError(f"Could not set tensor of type {theirs} to a tensor of type {mine}")
        self.data = source if size is None else source.as_strided(size, stride or contiguous_strides(tuple(size)), storage_offset)
    else:
        if not hasattr(source, "device"):
            raise TypeError(f"set_(): argument 'source' (position 1) must be Tensor or Storage, not {type(source).__name__}")
        if getattr(source, "dtype", self.dtype) is not self.dtype:
            own = dt.IN_C.get(self.dtype.name, self.dtype.name)
            raise RuntimeError(f"Expected a Storage of type {own} or an UntypedStorage, but got type {dt.SPOKEN[source.dtype.name]} for argument 1 'storage'")
        flat = creation.empty(0, dtype=self.dtype, device=source.device)
        flat._storage = getattr(source, "_held", source)
        size = (flat._storage.nbytes // self.dtype.itemsize - storage_offset,) if size is None else tuple(size)
        stride = tuple(stride) if stride else contiguous_strides(size)
        end = storage_offset + 1 + sum([(n - 1) * s for n, s in zip(size, stride)]) if 0 not in size else 0
        if end * self.dtype.itemsize > flat._storage.nbytes:
            resize_storage(flat._storage, end * self.dtype.itemsize)
        self.data = flat.as_strided(size, stride, storage_offset)
    bump(self)
    return self


def resize_storage(storage, nbytes):
    """Let memory hold ``nbytes``, for all tensors that share it: what it held comes first, zeros follow."""
    if storage.pinned or storage.mirrored:
        raise RuntimeError("Trying to resize storage that is not resizable")
    device, kept = storage.device, min(nbytes, storage.nbytes)
    if device.kind != "meta":
        old, fresh = storage.buffer(), device.alloc(nbytes)
        device.copy(old, fresh, kept)
        if nbytes > kept:
            device.copy(creation.filled(Size((nbytes - kept,)), 0, dt.uint8, device)._storage.buffer(), fresh, nbytes - kept, 0, kept)
        storage.buf = fresh
    storage.nbytes = nbytes


def resize_(self, *size, memory_format=None):
    """Change the shape: the memory stays, read in rows from where the tensor begins. What it does not hold is undefined (zero here)."""
    shape = creation.as_size(size)
    strides = contiguous_strides(tuple(shape)) if memory_format is None else strides_of(memory_format, shape)
    if shape == self.shape and (memory_format is None or strides == self._strides):
        return self
    if self._rg:
        raise RuntimeError("cannot resize variables that require grad")
    if self._storage.version < 0 and not state.inference:
        raise of_inference()
    had, needed = self._storage.nbytes, (self._offset + shape.numel()) * self.dtype.itemsize
    if needed > had:
        resize_storage(self._storage, needed)
    self.data = self.detach().as_strided(shape, strides, self._offset)
    bump(self)
    if needed > had and creation.deterministic[0]:               # what is new is shown as that of ``empty`` is
        first = had // self.dtype.itemsize
        rest = self.detach().as_strided((needed // self.dtype.itemsize - first,), (1,), first)
        rest.copy_(creation.unwritten(rest.contiguous()))
    return self


Tensor.zero_ = zero_
Tensor.set_ = set_
Tensor.resize_ = resize_


def resize_as_(self, the_template, *, memory_format=None):
    """Change the shape to that of another tensor; ``preserve_format``: also its order of dimensions in memory."""
    if not isinstance(the_template, Tensor):
        raise TypeError(f"resize_as_(): argument 'the_template' (position 1) must be Tensor, not {type(the_template).__name__}")
    if memory_format is preserve_format:
        memory_format = suggested(the_template)
    return resize_(self, tuple(the_template.shape), memory_format=memory_format)


Tensor.resize_as_ = resize_as_
