"""Memory that arrays of the program and buffers of a CPU have in common.

PoCL and Intel's runtime compute in the host's memory, so an array can look into a buffer and a buffer can lie over an array. What an array sees is
what was computed so far, and what it is given holds for all that comes later: while one exists, each launch that reads or writes its buffer is
complete before the program goes on.
"""
from __future__ import annotations

import ctypes
import sys
import weakref

import numpy as np

from ..core.config import config
from . import direct

shared: dict = {}       # buffer -> Shared, for buffers that arrays look into
_FLAVOURS = ("pocl", "intel-cpu")       # others may keep a copy of the array on their side
_MOST = 1 << 28         # bytes of arrays that wait for the device, more or less
_VALUES = frozenset((int, float, bytes, str, type(None), np.ndarray))
_refcount = sys.getrefcount


class Shared:
    """One buffer in memory that arrays see.

    Args:
        storage: what the buffer is the memory of; its ``pinned`` refers to this as long as arrays exist.
        span: the :class:`Span` of the array that the buffer lies over; None where it is the driver's.
    """

    __slots__ = ("buffer", "storage", "span", "windows", "address", "__weakref__")

    def __init__(self, storage, span=None):
        self.buffer, self.span, self.windows, self.address = storage.buf, span, 0, None
        shared[self.buffer] = self
        own = weakref.ref(self)
        self.storage = weakref.ref(storage, lambda _: _forget(own()))
        storage.pinned = self

    def watched(self) -> bool:
        """Whether the program has an array that sees the buffer; if not, it is a buffer like any other from now on."""
        if self.windows or self.span is not None and self.span.watched():
            return True
        storage = self.storage()
        if storage is not None:
            storage.pinned = False
        _forget(self)
        return False


def _forget(seen):
    """Of a storage that is gone, or that no array sees any more."""
    if seen is not None and shared.get(seen.buffer) is seen:
        del shared[seen.buffer]


class Span:
    """The bytes of an array from its first element to its last, which live as long as this."""

    others = False      # other processes write to them, too

    def __init__(self, array):
        self.root = array
        while isinstance(self.root.base, np.ndarray):
            self.root = self.root.base
        self.nbytes = array.nbytes if array.flags.c_contiguous else \
            sum([(n - 1) * step for n, step in zip(array.shape, array.strides)]) + array.itemsize
        self.address = address(array)

    @property
    def __array_interface__(self):
        return {"data": (self.address, False), "shape": (self.nbytes,), "typestr": "|u1", "version": 3}

    def watched(self) -> bool:
        """Whether somebody else refers to the array, a view of it, or what it took its memory from."""
        return self.root.base is not None or _refcount(self.root) > 2       # the attribute, and the call's argument


class Window:
    """What arrays that see a buffer have for a base: it keeps the memory, and tells when the last of them is gone."""

    def __init__(self, seen, offset, shape, strides, row):
        self.seen, self.__array_interface__ = seen, {
            "data": (seen.address + offset, False), "shape": shape, "strides": strides, "typestr": f"<u{row.itemsize}" if row.isbuiltin != 1 else row.str, "version": 3}
        seen.windows += 1

    def __del__(self):
        self.seen.windows -= 1
        if not self.seen.windows:
            self.seen.watched()


_first, _address_of = ctypes.c_char.from_buffer, ctypes.addressof


def address(array) -> int:
    """Where an array's first element lies."""
    try:
        return _address_of(_first(array))               # in a quarter of the time
    except (BufferError, TypeError, ValueError):        # read-only, with gaps, or of a dtype that has no buffers
        return array.__array_interface__["data"][0]


def settle(device, operands) -> None:
    """Complete what was just launched with ``operands`` where arrays see one of them."""
    if device.recording is None:
        found = [shared.get(a) for a in operands if a.__class__ not in _VALUES]
        if any([s is not None and s.watched() for s in found]):
            device.synchronize()


def settle_all(device) -> None:
    """The same after launches whose operands are not known."""
    if any([s.watched() for s in list(shared.values())]):
        device.synchronize()


def able(device) -> bool:
    """Whether this device's buffers and the host's arrays can have memory in common."""
    return device.flavour in _FLAVOURS and config.share_memory


def over(device, array):
    """A buffer on the memory of an array; both are kept until the device is done with what reads it."""
    import pyopencl as cl
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    if sum([buf.size for buf in device.hosted]) > _MOST:
        device.synchronize()
    buf = cl.Buffer(device.context, flags, hostbuf=array)
    device.hosted.append(buf)
    return buf


def release(device) -> None:
    """Let go of arrays under buffers that nobody has any more, now that all that was launched is done."""
    hosted = device.hosted
    hosted[:] = [hosted[i] for i in range(len(hosted)) if _refcount(hosted[i]) > 2]         # the list, the call's argument


def window(seen, device, offset, shape, strides, row) -> np.ndarray:
    """An array of the elements of a shared buffer from byte ``offset`` on; ``strides`` count bytes, ``row`` is its NumPy dtype."""
    if seen.address is None:
        seen.address = _address(device, seen.buffer)
    array = np.asarray(Window(seen, offset, shape, strides, row))
    return array if row.isbuiltin == 1 else array.view(row)


def _address(device, buffer) -> int:
    """Where a buffer of a driver that computes in the host's memory lies: it stays there."""
    import pyopencl as cl
    at = direct.address(device, buffer) if device.near else 0
    if at:
        return at
    queue = device.queue if device.inline is None else device.inline.queue      # which takes a third of the time
    with device.lock:
        memory, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ | cl.map_flags.WRITE, 0, (buffer.size,), np.uint8, is_blocking=True)
        at = address(memory)
        memory.base.release(queue).wait()
    return at
