"""Between tensors and the host: NumPy, Python numbers, DLPack, copying and pickling."""
from __future__ import annotations

import copy as _copy
import sys

import numpy as np

from ..core import dtype as dt
from ..core import native
from ..core.shape import Size
from ..graph import mirror
from ..graph.node import Storage, held
from ..runtime import sharing
from ..runtime.device import Device, default_device
from . import formats, later
from .device import resolve
from .grad_mode import state
from .handle import HISTORY
from .tensor import Tensor, contiguous_strides, make


_KEPT = 1 << 18         # bytes that the host keeps until an operator wants them; copying more costs more than a transfer that may not be needed


def from_array(array: np.ndarray, device, dtype=None) -> Tensor:
    """A new tensor with the values of a NumPy array; the copy is enqueued, the host does not wait."""
    row = dt.from_numpy(array.dtype)
    if dtype is not None and dtype is not row:
        array, row = _cast(array, dtype), dtype
    if row.needs_fp64 and not device.has_fp64:
        raise TypeError(f"{row.name} is not supported by {device.name}; pass dtype=clnn.{'complex64' if row.is_complex else 'float32'}, or use a device "
                        "with fp64 (python -m clnn doctor lists them)")
    dt.noticed(row)
    if not array.flags.c_contiguous or not array.dtype.isnative:
        array = np.ascontiguousarray(array, dtype=row.np).reshape(array.shape)
    nbytes = array.nbytes
    if 0 < nbytes <= _KEPT and device.__class__ is Device and not device.records():
        return make(mirror.unsent(device, array.tobytes()), Size(array.shape), row, array.size)
    st = Storage(device, nbytes, device.alloc(nbytes))
    if nbytes:
        device.write(st.buf, array)
    return make(st, Size(array.shape), row, array.size)


def from_bytes(values: bytes, shape, row, device) -> Tensor:
    """A new tensor of dtype ``row`` whose elements are these bytes."""
    st = mirror.unsent(device, values)
    if len(values) > mirror.LARGEST:
        st.buffer()                 # nothing is gained by keeping them
    return make(st, shape, row, shape.numel())


def in_order(array, device, dtype=None) -> Tensor:
    """A new tensor with the values of a NumPy array, and its dimensions in the same order in memory."""
    if array.flags.c_contiguous:
        return from_array(array, device, dtype)
    order = formats.by_stride(array.shape, array.strides) if array.size and min(array.strides) > 0 else range(array.ndim)
    return from_array(array.transpose(order), device, dtype).permute(*np.argsort(order).tolist())


def _cast(array, dtype):
    with np.errstate(all="ignore"):
        return (array.real if array.dtype.kind == "c" and not dtype.is_complex else array).astype(dtype.np)


def to_numpy(t: Tensor, force=False) -> np.ndarray:
    if t._rg and state.grad and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    device = t._storage.device
    return _window(t, device) if t._numel and sharing.able(device) and not device.records() else read(t)


def asked(t: Tensor, force=False) -> np.ndarray:
    """What a program gets: NumPy by itself has no bfloat16, and programs catch the error."""
    if t.dtype is dt.bfloat16:
        raise TypeError("Got unsupported ScalarType BFloat16")
    return to_numpy(t, force)


native.give(asked=asked, ndarray=np.ndarray, frombuffer=np.frombuffer, uint8=np.dtype(np.uint8), bfloat16=dt.bfloat16, Shared=sharing.Shared)
asked = native.form("asked", asked)


class _Counted:
    """As ``Tensor.numpy`` looks from C: whether one can see there that nobody else has the tensor of ``f(x).numpy()``."""

    def numpy(self, *, force=False):
        return native.built.references(self, force)


def _tell_references():
    known = _Counted()
    alone, kept = _Counted().numpy(), known.numpy()
    native.built.told_alone(alone if alone < kept else 0)


if native.built is not None:
    _tell_references()


def _window(t, device) -> np.ndarray:
    """An array that looks into the memory of ``t``."""
    st, itemsize = t._storage, t.dtype.itemsize
    offset, strides, row = t._offset * itemsize, tuple([s * itemsize for s in t._strides]), np.dtype(t.dtype.np)
    if st.mirrored or st.nbytes <= mirror.COPIED:
        return np.ndarray(tuple(t.shape), row, mirror.of_storage(st), offset, strides)
    st.buffer()
    device.synchronize()                                            # what waits for a build refers to buffers, too
    if not st.pinned:
        if _refcount(st.buf) > 2 + (id(st.buf) in held):            # buffers are shared by value: nobody else may see what is written to this one
            st.buf = device.duplicate(st.buf, st.nbytes)
            device.synchronize()
    return sharing.window(st.pinned or sharing.Shared(st), device, offset, tuple(t.shape), strides, row)


_refcount = sys.getrefcount


def over(array, device):
    """A tensor on the memory of an array; None where device and array can have none in common."""
    row = dt.from_numpy(array.dtype)
    flags = array.flags
    if not (sharing.able(device) and array.size and array.dtype.isnative and not device.records()) or row.needs_fp64 and not device.has_fp64 or \
            not flags.carray and (not flags.behaved or any([s < 0 or s % row.itemsize for s in array.strides])):
        return None
    dt.noticed(row)
    span = sharing.Span(array)
    if span.nbytes <= mirror.LARGEST:
        st = mirror.of_span(device, span)
    else:
        st = Storage(device, span.nbytes, sharing.over(device, np.asarray(span)))
        sharing.Shared(st, span)
    t = make(st, Size(array.shape), row, array.size)
    if not flags.c_contiguous:
        t._strides, t._dense = tuple([s // row.itemsize for s in array.strides]), False
    return t


def read(t: Tensor) -> np.ndarray:
    """Values on the host. Waits for the device."""
    if not t._dense and not t.is_contiguous():
        t = t.detach().contiguous()
    if t._numel == 0:
        return np.empty(tuple(t.shape), t.dtype.np)
    raw = _bytes(t, t._numel * t.dtype.itemsize)
    return raw.view(t.dtype.np).reshape(tuple(t.shape))


def _bytes(t, nbytes):
    """So many bytes from the first element on, as an array of ``uint8``."""
    st, first = t._storage, t._offset * t.dtype.itemsize
    got = mirror.fetched(st, nbytes, first)
    if got is not None:
        return np.frombuffer(got, np.uint8)
    known = mirror.told(st) if st.__class__ is not Storage and not st.device.records() else None
    return st.device.read(st.buffer(), nbytes, first) if known is None else np.frombuffer(known, np.uint8, nbytes, first).copy()


def item(t: Tensor):
    if t._numel != 1:
        raise RuntimeError(f"a Tensor with {t._numel} elements cannot be converted to Scalar")
    dtype = t.dtype
    raw = _bytes(t, dtype.itemsize)
    kind = bool if dtype is dt.bool_ else int if dtype.category == dt.INT else complex if dtype.is_complex else float
    return kind(raw.view(dtype.np)[0])


native.give(item=item, float32=dt.float32, float64=dt.float64, int64=dt.int64, int32=dt.int32, bool=dt.bool_)
item = native.form("item", item)


def transfer(t: Tensor, device) -> Tensor:
    """The values on another device, through host memory (contexts of different platforms share nothing)."""
    strides = None if t._dense else formats.preserved(t)
    if device.kind == "meta":
        return formats.with_strides(make(Storage(device, t._numel * t.dtype.itemsize, device.alloc(0)), t.shape, t.dtype, t._numel), strides)
    t = t.detach()
    return from_array(read(t), device, t.dtype) if strides is None else formats.reordered(t, strides, lambda v: from_array(read(v), device, v.dtype))


def shallow(t: Tensor) -> Tensor:
    """``copy.copy``: a leaf of the same class and attributes on the same memory."""
    new = Tensor._make_subclass(type(t), t.detach(), False)
    new.__dict__.update({k: v for k, v in t.__dict__.items() if k not in _PRIVATE})
    new._rg = t._rg
    return new


def deepcopy(t: Tensor, memo):
    if id(t) in memo:
        return memo[id(t)]
    if t._grad_fn is not None:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
                           "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
                           "see https://github.com/pytorch/pytorch/pull/103001")
    key = ("storage", id(t._storage))
    storage = memo.get(key)
    if storage is None:
        st = t._storage
        buf, node = st.buf, st.node
        if node is not None:
            buf, node = st.buffer(), None
        if st.pinned:
            buf = st.device.duplicate(buf, st.nbytes)
        storage = memo[key] = Storage(st.device, st.nbytes, buf, None)      # buffers are shared by value: copied on write
    new = object.__new__(type(t))
    new._storage, new._shape, new._strides, new._offset = storage, t.shape, t._strides, t._offset
    new._dtype, new._numel, new._dense = t.dtype, t._numel, t._dense
    memo[id(t)] = new
    for k, v in t.__dict__.items():
        if k not in _PRIVATE:
            setattr(new, k, _copy.deepcopy(v, memo))
    new._rg = t._rg
    if t._grad is not None:
        new._grad = _copy.deepcopy(t._grad, memo)
    return new


_PRIVATE = HISTORY


def reduce(t: Tensor):
    """Pickle support for trusted channels (multiprocessing): values, geometry and device name travel, not the history; of a tensor with strides of its own
    all its memory."""
    extra = {k: v for k, v in t.__dict__.items() if k not in _PRIVATE}
    name = str(t.device)
    if name == "meta" or t.is_contiguous():
        return (rebuild, (type(t), None if name == "meta" else read(t.detach()), t.dtype, tuple(t.shape), name, t._rg, extra))
    all_of_it = t.detach().as_strided((t._storage.nbytes // t.dtype.itemsize,), (1,), 0)
    return (rebuild, (type(t), read(all_of_it), t.dtype, tuple(t.shape), name, t._rg, extra, (tuple(t._strides), t._offset)))


def rebuild(cls, array, dtype, shape, name, requires_grad, extra, geometry=None):
    if array is None:
        from .tensor import empty
        t = empty(shape, dtype, resolve("meta"))
    else:
        t = from_array(array if geometry else array.reshape(shape), resolve(name if name != "cpu" else None), dtype)
    if geometry:
        t = t.as_strided(shape, *geometry)
    t = Tensor._make_subclass(cls, t, False)
    t._rg = requires_grad
    t.__dict__.update(extra)
    return t


def to_dlpack(t: Tensor, **kwargs):
    """A DLPack capsule of what :meth:`Tensor.numpy` gives (the keywords of the protocol are accepted)."""
    if t._rg:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if t.dtype is dt.bfloat16:
        raise BufferError("NumPy cannot export bfloat16 through DLPack; convert to float32 first")
    return to_numpy(t).__dlpack__(**kwargs)


def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    """A tensor on the memory that ``ext_tensor`` exports, where the device is the CPU; otherwise, and where ``copy`` asks for it, with a copy of the values.

    Example:
        >>> import numpy as np
        >>> clnn.from_dlpack(np.arange(3.0))
        tensor([0., 1., 2.], dtype=clnn.float64)
    """
    if isinstance(ext_tensor, Tensor):
        return ext_tensor.clone() if copy else ext_tensor
    given, home = _Given(ext_tensor), resolve(device)
    array = given.writeable(np.from_dlpack(given))
    t = None if copy else over(array, home)
    return from_array(array, home) if t is None else t


class _Given:
    """What :func:`from_dlpack` is given, a tensor of another library or a bare capsule, in the form that NumPy takes.

    Capsules of the first version of DLPack do not tell whether one may write, and NumPy takes them for read-only; PyTorch writes.
    """

    def __init__(self, source):
        self.source = source

    def __dlpack__(self, **kwargs):
        capsule = self.source.__dlpack__(**kwargs) if hasattr(self.source, "__dlpack__") else self.source
        self.silent = '"dltensor"' in repr(capsule)
        return capsule

    def __dlpack_device__(self):
        return self.source.__dlpack_device__() if hasattr(self.source, "__dlpack_device__") else (1, 0)

    def writeable(self, array):
        """``array``, or another on its memory that may be written."""
        if array.flags.writeable or not self.silent:
            return array
        self.array, there = array, array.__array_interface__
        self.__array_interface__ = {**there, "data": (there["data"][0], False)}
        return np.asarray(self)


def from_numpy(array) -> Tensor:
    """A tensor with the values of a NumPy array, same dtype. On a CPU both have one memory: each sees what is written to the other. Another device
    gets a copy, and so does the CPU of an array that is not writable. Values are kept where new tensors have none, under ``with clnn.device("meta")``.

    While an array of more than 640 KB exists, operators on the tensor are complete before the program goes on; smaller ones are compared with what is
    known of them. ``clnn.tensor`` copies and has neither duty.

    Args:
        array: of any shape, with strides that are not negative.

    Raises:
        TypeError: it is no array, or of a dtype that has no tensors.
        ValueError: a stride is negative.

    Example:
        >>> import numpy as np
        >>> a = np.arange(3)
        >>> t = clnn.from_numpy(a)
        >>> a[0] = 7
        >>> t.add_(1), a.tolist()
        (tensor([8, 2, 3]), [8, 2, 3])
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if min(array.strides, default=0) < 0:
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
                         "(You can probably work around this by making a copy of your array  with array.copy().) ")
    device = resolve(None)
    if device.kind == "meta":
        device = default_device()
    t = over(array, device)
    return in_order(array, device) if t is None else t


later.item, later.to_numpy, later.read = item, asked, read
__all__ = ["contiguous_strides"]
