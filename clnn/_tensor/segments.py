"""Tensors in memory that several processes see: each compares what it knows with what is there, and tells the others what it wrote."""
from __future__ import annotations

import contextlib
import weakref

import numpy as np

from ..core.layout import strided
from ..graph import mirror
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


def _remove(memory):
    with contextlib.suppress(FileNotFoundError):
        memory.unlink()


def is_shared(t) -> bool:
    """Whether other processes can see this memory."""
    return t.layout is strided and t._storage.mirrored and isinstance(t._storage.mirror.span, Segment)


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
    if not is_shared(t):
        return t.__reduce_ex__(2)
    extra = {k: v for k, v in t.__dict__.items() if k not in HISTORY}
    segment = t._storage.mirror.span
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

