"""Storages whose values an array of the program holds as well.

Reading compares the array with what is known of it, which takes a few microseconds where it is small, and goes on with a new buffer if the program
wrote to it: readers that were recorded or launched before keep the old one, so nothing has to be waited for. Writing copies the result to the array.
Large arrays have one memory with the buffer instead (``runtime/sharing.py``).
"""
from __future__ import annotations

import ctypes
import os
import sys

import numpy as np

from ..runtime.sharing import address
from .node import Storage

LARGEST = 640 << 10     # bytes: comparing more takes as long as waiting for the device does
COPIED = 1 << 14        # bytes: a copy of a result takes no longer than finding its buffer's place, and operators seldom come back to it
_differ = (ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)).memcmp
_differ.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
_slot, _refcount = Storage.__dict__["buf"], sys.getrefcount


class Mirror:
    """The array, and what its bytes were when they last went to the device or came from there.

    Args:
        host: the bytes, an array of ``uint8``.
        span: what ``host`` lies over; None if it has memory of its own.
    """

    __slots__ = ("host", "span", "known", "place")

    def __init__(self, host, span=None):
        self.host, self.span, self.place, self.known = host, span, span.address if span is not None else address(host), host.tobytes()

    def changed(self) -> bool:
        """Whether the program wrote to the array."""
        return _differ(self.place, self.known, len(self.known)) != 0

    def watched(self) -> bool:
        """Whether the program still has an array on these bytes."""
        return self.span.watched() if self.span is not None else _refcount(self.host) > 2       # the attribute, and the call's argument

    def tell(self, new):
        """Let the array hold ``new``; of memory that other processes write to, too, what that changes."""
        if self.span is not None and self.span.others:
            word = np.uint32 if new.size % 4 == 0 else np.uint8
            np.copyto(self.host.view(word), new.view(word), where=new.view(word) != np.frombuffer(self.known, word))
        else:
            self.host[...] = new
        self.known = new.tobytes()

    def upload(self, device):
        """A buffer with what the array holds now."""
        self.known = self.host.tobytes()
        buf = device.alloc(len(self.known))
        device.write(buf, np.frombuffer(self.known, np.uint8))
        return buf


class Mirrored(Storage):
    """A storage that is one with an array: its buffer is what the array holds at the moment, and it is never pending."""

    __slots__ = ()
    mirrored = True

    @property
    def buf(self):
        """The values as they are now."""
        mirror, device = self.mirror, self.device
        if device.records():
            device.recording.follow(self, _slot.__get__(self))
        else:
            if mirror.changed():
                _slot.__set__(self, mirror.upload(device))
            if not mirror.watched():
                return _plain(self, _slot.__get__(self))
        return _slot.__get__(self)

    @buf.setter
    def buf(self, value):
        if value is None:
            return
        mirror = self.mirror
        if not mirror.watched():
            _plain(self, value)
            return
        mirror.tell(self.device.read(value, mirror.host.size))
        _slot.__set__(self, value)

    @property
    def node(self):
        """None: there is nothing to wait for."""
        return None


def _plain(storage, buf):
    """No array looks at the storage any more: it is one like others, with ``buf``."""
    storage.__class__ = Storage
    storage.buf, storage.node, storage.mirror = buf, None, None
    return buf


def of_span(device, span, host) -> Storage:
    """A storage that is one with ``host``, the bytes of an array, which ``span`` keeps."""
    storage = Storage(device, span.nbytes)
    follow(storage, host, span)
    return storage


def follow(storage, host, span=None) -> None:
    """Let ``storage`` be one with ``host`` from now on."""
    mirror = Mirror(host, span)
    _plain(storage, mirror.upload(storage.device))
    storage.mirror, storage.__class__ = mirror, Mirrored


def of_storage(storage) -> np.ndarray:
    """The bytes that are one with ``storage`` from now on."""
    if not storage.mirrored:
        storage.mirror = Mirror(storage.device.read(storage.buffer(), storage.nbytes))
        storage.__class__ = Mirrored
    return storage.mirror.host
