"""Handles on the memory behind tensors, as ``torch.UntypedStorage`` (bytes) and ``torch.TypedStorage`` (elements)."""
from __future__ import annotations

import io

import numpy as np

from ._tensor.device import resolve
from ._tensor.interop import from_array, read
from ._tensor.pointers import address
from ._tensor.segments import file_of, mapped
from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core.config import config
from .core.warn import first_time, warn
from .ops import creation
from .ops.assign import resize_storage


class StorageBase:
    """What handles on memory are instances of."""


class UntypedStorage(StorageBase):
    """The bytes that a tensor and its views share. Two handles are equal when they mean the same memory.

    Example:
        >>> x = clnn.zeros(4)
        >>> x.untyped_storage().nbytes(), x[1:].untyped_storage() == x.untyped_storage()
        (16, True)
    """

    _row = dt.uint8

    def __init__(self, source=0, device=None):
        """``source``: a number of bytes, the bytes as a sequence of numbers, or a tensor, whose memory is meant."""
        if isinstance(source, int):
            source = creation.empty(source, dtype=self._row, device=device)
        elif not isinstance(source, Tensor):
            source = creation.tensor(source, dtype=self._row, device=device)
        self._tensor, self._held = source, source._storage

    @classmethod
    def _made_by(cls, later, row):
        """A handle on the memory of the tensor that ``later()`` makes when somebody asks for it."""
        made = cls.__new__(cls)
        made._later, made._row = later, row
        return made

    def __getattr__(self, name):
        if name in ("_tensor", "_held") and "_later" in self.__dict__:
            UntypedStorage.__init__(self, self._later())
            return self.__dict__[name]
        raise AttributeError(f"'{type(self).__name__.removeprefix('_File')}' object has no attribute {name!r}")

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        """The first ``nbytes`` of a file, which are read where they are needed: a slice moves only its own part to a device. With ``shared`` the
        memory is the file, which is made or grows where it is shorter; a GPU writes no files."""
        if shared and nbytes:
            return UntypedStorage(mapped(filename, nbytes, resolve("cpu")))
        return _FileStorage(np.memmap(filename, np.uint8, "r", shape=(nbytes,)) if nbytes else np.empty(0, np.uint8))

    def nbytes(self):
        """Size in bytes."""
        return self._held.nbytes

    def __sizeof__(self):
        return super().__sizeof__() + self.nbytes()

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
        """The address of a copy on the host, the same for all views of this memory. It holds the values of now."""
        return address(self._held, 0, self._held.nbytes)

    _cdata = property(lambda self: id(self._held))

    def _flat(self):
        t = self._tensor.detach()
        flat = t.as_strided((self._held.nbytes // t.dtype.itemsize,), (1,), 0)
        return flat if t.dtype is self._row else flat.view(self._row)

    def tolist(self):
        """The elements, read from the device."""
        return self._flat().tolist()

    def __array__(self, dtype=None, copy=None):
        return np.frombuffer(read(self._flat()).tobytes(), self._row.np).astype(dtype or self._row.np)

    def __getitem__(self, index):
        """An element, or a slice as a storage with a copy of it."""
        if not isinstance(index, (slice, int)):
            raise (RuntimeError if hasattr(self, "dtype") else TypeError)(f"can't index a {type(self)} with {type(index)}")
        if not isinstance(index, slice):
            if not -self.size() <= index < self.size():
                raise IndexError(f"index {index} out of range for storage of size {self.size()}")
            return self.tolist()[index]
        return type(self)(from_array(np.asarray(self)[index], resolve(self.device), self._row))

    def clone(self):
        """A copy."""
        return self[:]

    __copy__ = clone

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self.clone())

    def __reduce__(self):
        from .serialization import save
        file = io.BytesIO()
        save(self, file)
        return _load_from_bytes, (file.getvalue(),)

    def untyped(self):
        """This storage as bytes."""
        return self

    def copy_(self, source, non_blocking=None):
        """Take over the elements of another storage of this size."""
        self._flat().copy_(type(self)(source)._flat() if isinstance(source, Tensor) else source._flat())
        return self

    def resize_(self, size):
        """Let the memory hold ``size`` elements, for all tensors that share it: what it held comes first, zeros follow."""
        resize_storage(self._held, size * self._row.itemsize)
        return self

    def fill_(self, value):
        """Make all elements ``value``."""
        self._flat().fill_(value)
        return self

    def to(self, *, device, non_blocking=False):
        """A copy on another device, or this storage if it is there."""
        there = self._flat().to(device)
        return self if there.device == self.device else type(self)(there)

    def cpu(self):
        """A copy on the CPU, or this storage if it is there."""
        return self.to(device="cpu")

    def get_device(self):
        """Number of the GPU, -1 on a CPU."""
        return self._tensor.get_device()

    def is_shared(self):
        """Whether other processes can see this memory."""
        return self._tensor.is_shared()

    @property
    def filename(self):
        """The file that this memory is, by ``from_file(shared=True)``; None for other memory."""
        return file_of(self._tensor)

    def is_pinned(self):
        """False: no memory is page-locked."""
        return False

    def resizable(self):
        """Whether :meth:`resize_` may be called."""
        return not (self._held.pinned or self._held.mirrored)

    def share_memory_(self):
        """Move the memory to where other processes see it; returns the storage."""
        self._tensor.share_memory_()
        return self

    def __setitem__(self, index, value):
        self._flat()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._held is other._held

    def __hash__(self):
        return hash(id(self._held))

    def __repr__(self):
        lines = "".join(f" {v}\n" for v in self.tolist())
        return f"{lines}[{self._title()}device={self.device}) of size {self.size()}]"

    def _title(self):
        return f"{config.spoken}.storage.UntypedStorage("


class _FileStorage(UntypedStorage):
    """A file's bytes, in no device's memory until they are asked for."""

    def __init__(self, array):
        self._bytes, self._later = array, lambda: from_array(np.asarray(array), resolve("cpu"), dt.uint8)

    def nbytes(self):
        """Size in bytes."""
        return self._bytes.size

    size = __len__ = nbytes

    def __array__(self, dtype=None, copy=None):
        return np.array(self._bytes, dtype)

    def __getitem__(self, index):
        """An element, or a slice as a storage."""
        return type(self)(self._bytes[index]) if isinstance(index, slice) else int(self._bytes[index])


class TypedStorage(UntypedStorage):
    """The memory of a tensor as elements of its dtype."""

    def __init__(self, source=0, device=None, dtype=None):
        self._row = source.dtype if isinstance(source, Tensor) else dtype or dt._default_float
        super().__init__(source, device)

    dtype = property(lambda self: self._row)

    def untyped(self):
        """The same memory as bytes."""
        return UntypedStorage(self._tensor)

    def type(self):
        """The name of its kind, as ``"clnn.FloatStorage"``."""
        return self._tensor.type().replace("Tensor", "Storage")

    def _title(self):
        return f"{config.spoken}.storage.TypedStorage(dtype={self.dtype}, "


class _Kind(type):
    """``FloatStorage`` and its like: a call makes a storage of a dtype, ``isinstance`` asks for it."""

    def __call__(cls, source=0):
        return TypedStorage(source, dtype=cls.dtype)

    def from_buffer(cls, buffer, byte_order="native"):
        """The elements in a Python buffer, as a copy; ``byte_order``: ``"native"``, ``"little"`` or ``"big"``."""
        kind = cls.dtype.np.newbyteorder(dict(native="=", little="<", big=">")[byte_order]) if cls.dtype.itemsize > 1 else cls.dtype.np
        return TypedStorage(from_array(np.frombuffer(buffer, kind), resolve("cpu"), cls.dtype))

    def __instancecheck__(cls, storage):
        return isinstance(storage, TypedStorage) and storage.dtype is cls.dtype


_KINDS = dict(Float=dt.float32, Double=dt.float64, Half=dt.float16, BFloat16=dt.bfloat16, Long=dt.int64, Int=dt.int32, Short=dt.int16, Char=dt.int8,
              Byte=dt.uint8, Bool=dt.bool_, ComplexFloat=dt.complex64, ComplexDouble=dt.complex128)
for _name, _row in _KINDS.items():
    globals()[_name + "Storage"] = _Kind(_name + "Storage", (), {
        "dtype": _row, "__module__": __package__, "__doc__": f"A storage of dtype ``{_row.name}`` of a size, or of a sequence of numbers."})
    _method = {"Complex": "complex_"}.get(_name[:7], "") + _name.removeprefix("Complex").lower()

    def _as_kind(self, row=_row):
        return TypedStorage(self._flat().to(row))
    _as_kind.__doc__ = f"The elements as ``{_row.name}``."
    _as_kind.__name__ = _method
    setattr(UntypedStorage, _method, _as_kind)


def untyped_storage(self):
    """The memory behind this tensor and its views, as bytes."""
    return UntypedStorage(self)


def storage(self):
    """The memory behind this tensor and its views, as elements."""
    if first_time("storage"):
        warn("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This should only matter to you "
             "if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()")
    return TypedStorage(self)


def _load_from_bytes(b):
    """The storage of a tensor that ``pickle`` wrote under PyTorch."""
    from .serialization import load
    return load(io.BytesIO(b), weights_only=False)


Storage, _StorageBase = globals()["FloatStorage"], StorageBase
Tensor.untyped_storage, Tensor.storage = untyped_storage, storage
__all__ = ["TypedStorage", "UntypedStorage"]


def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """The first ``size`` numbers of a file as a tensor. With ``shared`` its memory is the file, which is made or grows where it is shorter: what is
    written to the tensor is in the file.

    Raises:
        RuntimeError: the file cannot be opened or is too short; ``shared`` on a GPU, as its memory is not written through to a file.

    Example:
        >>> import os, tempfile
        >>> name = os.path.join(tempfile.mkdtemp(), "numbers")
        >>> _ = open(name, "wb").write(bytes([1, 2, 3]))
        >>> clnn.from_file(name, size=2, dtype=clnn.uint8)
        tensor([1, 2], dtype=clnn.uint8)
    """
    row, device = dtype or dt._default_float, resolve(device)
    nbytes = size * row.itemsize
    if not nbytes:
        return creation.empty(0, dtype=row, device=device)
    if shared:
        return mapped(filename, nbytes, device).view(row).requires_grad_(requires_grad)
    try:
        raw = np.fromfile(filename, np.uint8, nbytes)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in read-only mode: {error.strerror} ({error.errno})") from None
    if len(raw) < nbytes:
        raise RuntimeError(f"file <{filename}> size <{len(raw)}> is smaller than the required mapping size <{nbytes}>")
    return creation.tensor(raw, device=device).view(row).requires_grad_(requires_grad)
