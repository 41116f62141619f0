"""Tensors in memory that several processes see: each compares what it knows with what is there, and tells the others what it wrote."""
from __future__ import annotations

import contextlib
import os
import weakref

import numpy as np

from ..core import dtype as dt
from ..core.layout import strided
from ..graph import mirror
from ..graph.node import Storage
from ..runtime import sharing
from .device import resolve
from .handle import HISTORY
from .tensor import Tensor, make


class Segment:
    """A piece of shared memory with a name; whoever made it removes it."""

    others = True

    def __init__(self, nbytes, name=None):
        from multiprocessing.shared_memory import SharedMemory
        self.memory = SharedMemory(name, name is None, nbytes)
        self.name, self.nbytes = self.memory.name, nbytes
        self.host = np.ndarray((nbytes,), np.uint8, self.memory.buf)
        self.address = sharing.address(self.host)
        if name is None:
            weakref.finalize(self, _remove, self.memory)

    def watched(self) -> bool:
        """True: other processes may have it."""
        return True


class Mapped(sharing.Span):
    """The first bytes of a file: what is written to one is in the other."""

    others = True

    def __init__(self, filename, nbytes):
        self.filename = filename
        super().__init__(np.memmap(filename, np.uint8, "r+", shape=(nbytes,)))

    def watched(self) -> bool:
        """True: the file stays."""
        return True


def mapped(filename, nbytes, device):
    """The first bytes of a file, which is made or grows where it is shorter, as a tensor on its memory.

    Raises:
        RuntimeError: the file cannot be opened, or ``device`` has no memory in common with files.
    """
    if not sharing.able(device) or device.records():
        raise RuntimeError(f"from_file: {device} writes no files through its memory; leave out shared=True and save the tensor instead")
    try:
        with open(os.open(filename, os.O_RDWR | os.O_CREAT, 0o600), "rb+") as file:
            if os.fstat(file.fileno()).st_size < nbytes:
                file.truncate(nbytes)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in read-write mode: {error.strerror} ({error.errno})") from None
    span = Mapped(filename, nbytes)
    if nbytes <= mirror.LARGEST:
        st = mirror.of_span(device, span)
    else:
        st = Storage(device, nbytes, sharing.over(device, np.asarray(span)))
        sharing.Shared(st, span)
    return make(st, (nbytes,), dt.uint8, nbytes)


def _remove(memory):
    with contextlib.suppress(FileNotFoundError):
        memory.unlink()


def _span(t):
    """The memory of others that a tensor is on; None if it is on its own."""
    st = t._storage if t.layout is strided else None
    seen = None if st is None else st.mirror if st.mirrored else st.pinned
    span = seen.span if seen else None
    return span if span is not None and span.others else None


def is_shared(t) -> bool:
    """Whether other processes can see this memory."""
    return _span(t) is not None


def file_of(t):
    """The name of the file that a tensor's memory is; None for other memory."""
    return getattr(_span(t), "filename", None)


def share_memory_(t):
    """Move the memory to where other processes see it; a tensor on a GPU stays where it is. Views and gradients' owners go along."""
    st = t._storage if t.layout is strided else None
    if st is not None and t._numel and sharing.able(st.device) and not is_shared(t):
        from multiprocessing.reduction import ForkingPickler
        segment = Segment(st.nbytes)
        segment.host[...] = st.device.read(st.buffer(), st.nbytes)
        mirror.follow(st, segment.host, segment)
        for cls in {Tensor, type(t)}:
            ForkingPickler.register(cls, _reduce)       # what processes are started with and send each other; other pickles hold values
    return t


def _reduce(t):
    segment = _span(t)
    if not isinstance(segment, Segment):
        return t.__reduce_ex__(2)
    extra = {k: v for k, v in t.__dict__.items() if k not in HISTORY}
    grad = None if t._grad is None else t._grad.detach()
    return _rebuild, (type(t), segment.name, segment.nbytes, t.dtype, tuple(t.shape), tuple(t._strides), t._offset, t._rg, grad, extra)


_known = weakref.WeakValueDictionary()      # name -> the storage that this process has for it


def _rebuild(cls, name, nbytes, dtype, shape, strides, offset, requires_grad, grad, extra):
    st = _known.get(name)
    if st is None:
        segment = Segment(nbytes, name)
        st = _known[name] = mirror.of_span(resolve(None), segment, segment.host)
    t = make(st, (nbytes // dtype.itemsize,), dtype, nbytes // dtype.itemsize).as_strided(shape, strides, offset).detach()
    t = Tensor._make_subclass(cls, t, False)
    t._rg = requires_grad
    t.__dict__.update(extra)
    if grad is not None:
        t._grad = grad
    return t

