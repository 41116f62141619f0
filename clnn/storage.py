"""Handles on the memory behind tensors, as ``torch.UntypedStorage`` (bytes) and ``torch.TypedStorage`` (elements)."""
from __future__ import annotations

from ._tensor.tensor import Tensor
from .core import dtype as dt


class UntypedStorage:
    """The bytes that a tensor and its views share. Two handles are equal when they mean the same memory.

    Example:
        >>> x = clnn.zeros(4)
        >>> x.untyped_storage().nbytes(), x[1:].untyped_storage() == x.untyped_storage()
        (16, True)
    """

    _row = dt.uint8

    def __init__(self, tensor):
        self._tensor, self._held = tensor, tensor._storage

    def nbytes(self):
        """Size in bytes."""
        return self._held.nbytes

    def element_size(self):
        """Bytes per element."""
        return self._row.itemsize

    def size(self):
        """Number of elements."""
        return self._held.nbytes // self._row.itemsize

    __len__ = size

    @property
    def device(self):
        """Where the memory is."""
        return self._tensor.device

    @property
    def is_cuda(self):
        """Whether it is on a GPU."""
        return self._tensor.is_cuda

    def data_ptr(self):
        """A number that is the same for all views of this memory."""
        return id(self._held)

    _cdata = property(data_ptr)

    def _flat(self):
        t = self._tensor.detach()
        return t.as_strided((self._held.nbytes // t.dtype.itemsize,), (1,), 0)

    def tolist(self):
        """The elements, read from the device."""
        return list(self._flat().numpy().tobytes())

    def __getitem__(self, index):
        return self.tolist()[index]

    def __iter__(self):
        return iter(self.tolist())

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._held is other._held

    def __hash__(self):
        return hash(id(self._held))

    def __repr__(self):
        lines = "".join(f" {v}\n" for v in self.tolist())
        return f"{lines}[{self._title()}(device={self.device}) of size {self.size()}]"

    def _title(self):
        return "clnn.storage.UntypedStorage"


class TypedStorage(UntypedStorage):
    """The memory of a tensor as elements of its dtype."""

    def __init__(self, tensor):
        super().__init__(tensor)
        self._row = tensor.dtype

    dtype = property(lambda self: self._row)

    def untyped(self):
        """The same memory as bytes."""
        return UntypedStorage(self._tensor)

    def tolist(self):
        return self._flat().tolist()

    def __setitem__(self, index, value):
        self._flat()[index] = value

    def _title(self):
        return "clnn.storage.TypedStorage"


def untyped_storage(self):
    """The memory behind this tensor and its views, as bytes."""
    return UntypedStorage(self)


def storage(self):
    """The memory behind this tensor and its views, as elements."""
    return TypedStorage(self)


Tensor.untyped_storage, Tensor.storage = untyped_storage, storage
__all__ = ["TypedStorage", "UntypedStorage"]
