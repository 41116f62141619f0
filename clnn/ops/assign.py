"""Overwriting a tensor: fill_, zero_, set_, resize_."""
from __future__ import annotations

from .._tensor.declare import composite
from .._tensor.inplace import apply_inplace
from .._tensor.tensor import Tensor
from .._tensor.writing import bump
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


def zero_(self):
    """Overwrite with zeros."""
    return apply_inplace(self, creation.filled(self.shape, 0, self.dtype, self._storage.device), "zero")


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Make this tensor another view: of ``source``, a tensor or storage."""
    if source is None:
        self.data = creation.empty(0, dtype=self.dtype, device=self._storage.device)
    elif isinstance(source, Tensor):
        self.data = source if size is None else source.as_strided(size, stride or contiguous_strides(tuple(size)), storage_offset)
    else:
        flat = creation.empty(0, dtype=self.dtype, device=source.device)
        flat._storage = getattr(source, "_held", source)
        size = (flat._storage.nbytes // self.dtype.itemsize - storage_offset,) if size is None else size
        self.data = flat.as_strided(tuple(size), stride or contiguous_strides(tuple(size)), storage_offset)
    return self


def resize_(self, *size, memory_format=None):
    """Change the shape: the memory stays, read in rows from where the tensor begins. What it does not hold is undefined (zero here)."""
    shape = creation.as_size(size)
    if shape == self.shape:
        return self
    if self._rg:
        raise RuntimeError("cannot resize variables that require grad")
    held, new = self._storage.nbytes // self.dtype.itemsize - self._offset, shape.numel()
    plain = self.detach()
    if new <= held:
        self.data = plain.as_strided(shape, contiguous_strides(tuple(shape)), self._offset)
    else:
        grown = creation.zeros(new, dtype=self.dtype, device=self._storage.device)
        if held:
            grown[:held] = plain.as_strided((held,), (1,), self._offset)
        self.data = grown.reshape(Size(shape))
    bump(self)
    return self


Tensor.zero_ = zero_
Tensor.set_ = set_
Tensor.resize_ = resize_
Tensor.resize_as_ = lambda self, other: resize_(self, *other.shape)
