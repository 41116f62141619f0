"""Storages whose values the host holds: an array of the program as well as the device, or nobody else yet.

Of an array, reading compares it with what is known of it, which takes a few microseconds where it is small, and goes on with a new buffer if the program
wrote to it: readers that were recorded or launched before keep the old one, so nothing has to be waited for. Writing copies the result to the array.
Large arrays have one memory with the buffer instead (``runtime/sharing.py``).

Values from the host go to the device when the first operator asks for them: samples that are only put into a batch, or read again, never do one by one.
"""
from __future__ import annotations

import ctypes
import os
import sys

import numpy as np

from ..core import native
from ..runtime.sharing import address
from . import node
from .node import Storage, Values

LARGEST = 640 << 10     # bytes: comparing more takes as long as waiting for the device does
COPIED = 1 << 14        # bytes: a copy of a result takes no longer than finding its buffer's place, and operators seldom come back to it
_differ = (ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)).memcmp
_differ.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
_bytes_at = ctypes.string_at
_slot, _pending, _refcount, _new = Storage.__dict__["buf"], Storage.__dict__["node"], sys.getrefcount, object.__new__


@native.know
class Mirror:
    """The array, and what its bytes (``known``) were when they last went to the device or came from there; None of an array that nobody read yet.

    Args:
        host: the bytes, an array of ``uint8``; None: those of ``span``, of which an array is made when one is needed.
        span: what ``host`` lies over; None if it has memory of its own.
    """

    __slots__ = ("_host", "span", "known", "place", "nbytes")

    def __init__(self, host, span=None):
        self._host, self.span, self.known = host, span, None
        self.place, self.nbytes = (address(host), host.nbytes) if span is None else (span.address, span.nbytes)
        if span is None or span.others:
            self.now()

    @property
    def host(self):
        if self._host is None:
            self._host = np.asarray(self.span)
        return self._host

    def now(self) -> bytes:
        """What the bytes are, which is known from now on."""
        self.known = known = _bytes_at(self.place, self.nbytes)
        return known

    def changed(self) -> bool:
        """Whether the program wrote to the array."""
        return self.known is None or _differ(self.place, self.known, self.nbytes) != 0

    def watched(self) -> bool:
        """Whether the program still has an array on these bytes."""
        if self.span is not None and self.span.watched():
            return True
        return self._host is not None and _refcount(self._host) > 2         # the attribute, and the call's argument; arrays made of it count, too

    def tell(self, new):
        """Let the array hold ``new``; of memory that other processes write to, too, what that changes."""
        if self.span is not None and self.span.others:
            word = np.uint32 if new.size % 4 == 0 else np.uint8
            np.copyto(self.host.view(word), new.view(word), where=new.view(word) != np.frombuffer(self.known, word))
        else:
            self.host[...] = new
        self.known = new.tobytes()


@native.know
class Unsent(Storage):
    """A storage whose values only the host has, as the bytes ``mirror``, until somebody asks for its buffer: from then on it is one like others.

    Once an operator was recorded on it, ``mirror`` is the :class:`~clnn.graph.node.Values` that this reads.
    """

    __slots__ = ()

    @property
    def buf(self):
        values, device = self.mirror, self.device
        if values is not None:
            buf = values.buf if values.__class__ is Values else device.send(values)
            with device.lock:
                if self.__class__ is not Storage:       # no other thread was faster
                    self.buf = buf
        return self.buf

    def leaf(self):
        values, device = self.mirror, self.device
        if values is None or device.records():
            return self.buf
        if values.__class__ is not Values:
            values = self.mirror = Values(device, values)
        elif values.values is None:                 # they were sent
            return self.buf
        return values

    @buf.setter
    def buf(self, value):
        _slot.__set__(self, value)
        self.__class__, self.mirror = Storage, None


@native.know
class Counted(Unsent):
    """A number that the host counts with, as optimizers do; ``mirror`` is replaced with each step. Recordings leave it with the host."""

    __slots__ = ()

    @property
    def buf(self):
        device = self.device
        if device.records():
            device.recording.abandon("it works with a number that the host counts")
        return Unsent.buf.fget(self)

    buf = buf.setter(Unsent.buf.fset)


def count(storage, values: bytes) -> bool:
    """Let a storage be one that the host counts with; False, with nothing done, where others look into its memory."""
    if storage.__class__ is Storage:
        buf = _slot.__get__(storage)
        if storage.pinned or storage.version < 0 or buf is not None and id(buf) in node.held:
            return False
        storage.node = None
        _slot.__set__(storage, None)
    elif storage.__class__ is not Unsent and storage.__class__ is not Counted:
        return False
    storage.mirror, storage.__class__ = values, Counted
    return True


def unsent(device, values: bytes) -> Storage:
    """A storage for ``values``, which stay on the host for now."""
    storage = Storage(device, len(values))
    storage.mirror, storage.__class__ = values, Unsent
    return storage


def told(storage):
    """The bytes of a storage, where the host knows them without asking the device; else None."""
    if storage.__class__ is Unsent or storage.__class__ is Counted:
        values = storage.mirror
        return values.values if values.__class__ is Values else values
    if storage.__class__ is Mirrored:
        with storage.device.lock:
            return storage.note() if storage.__class__ is Mirrored else told(storage)
    return None


class Mirrored(Storage):
    """A storage that is one with an array: its buffer is what the array holds at the moment, and it is never pending.

    Threads look at it in turn: the first that finds the array gone makes it a storage like others.
    """

    __slots__ = ()
    mirrored = True

    def note(self) -> bytes:
        """The values as they are now; a buffer with other ones is let go of."""
        mirror = self.mirror
        if mirror.changed():
            _slot.__set__(self, None)
            return mirror.now()
        return mirror.known

    @property
    def buf(self):
        """The values as they are now."""
        with self.device.lock:
            return self._sent() if self.__class__ is Mirrored else self.buf

    def _sent(self):
        device = self.device
        if device.records():
            device.recording.follow(self, self._held())
            return self._held()
        values, buf = self.note(), self._held()
        if buf is None:
            buf = device.send(values)
            _slot.__set__(self, buf)
        return buf if self.mirror.watched() else _plain(self, buf)

    def _held(self):
        """The buffer that was made last, None without one."""
        buf = _slot.__get__(self)
        if buf.__class__ is Values:
            buf = buf.buf
            _slot.__set__(self, buf)
        return buf

    def leaf(self):
        with self.device.lock:
            return self._leaf() if self.__class__ is Mirrored else self.leaf()

    def _leaf(self):
        device = self.device
        if device.records():
            return self.buf
        values, leaf = self.note(), _slot.__get__(self)
        if leaf is None:
            leaf = Values(device, values)
            _slot.__set__(self, leaf)
        if not self.mirror.watched():
            if leaf.__class__ is not Values:
                return _plain(self, leaf)
            _slot.__set__(self, None)
            _pending.__set__(self, None)
            self.mirror = leaf
            self.__class__ = Unsent
        return leaf

    @buf.setter
    def buf(self, value):
        if value is None:
            return
        with self.device.lock:
            if self.__class__ is not Mirrored:
                self.buf = value
            elif not self.mirror.watched():
                _plain(self, value)
            else:
                self.mirror.tell(self.device.read(value, self.mirror.nbytes))
                _slot.__set__(self, value)

    @property
    def node(self):
        """None: there is nothing to wait for."""
        return None


def _plain(storage, buf):
    """No array looks at the storage any more: it is one like others, with ``buf``, as soon as other threads take it for that."""
    _slot.__set__(storage, buf)
    _pending.__set__(storage, None)
    storage.__class__ = Storage
    storage.mirror = None
    return buf


def of_span(device, span, host=None) -> Storage:
    """A storage that is one with ``host``, the bytes of an array, which ``span`` keeps; by default all of them."""
    storage = _new(Mirrored)
    storage.device, storage.nbytes, storage.mirror, storage.pinned = device, span.nbytes, Mirror(host, span), False
    storage.version = 0 if node.births is None else node.births()
    _slot.__set__(storage, None)
    return storage


def follow(storage, host, span) -> None:
    """Let ``storage`` be one with ``host`` from now on."""
    _plain(storage, None)
    storage.mirror, storage.__class__ = Mirror(host, span), Mirrored


def fetched(storage, nbytes, first):
    """So many bytes of a storage from byte ``first`` on as a bytearray where nothing has to be waited for and nobody looks on; else None."""
    return None


fetched = native.form("fetched", fetched)
native.give(Mirrored=Mirrored, copied=COPIED)


def of_storage(storage) -> np.ndarray:
    """The bytes that are one with ``storage`` from now on."""
    with storage.device.lock:
        if not storage.mirrored:
            values = told(storage)
            known = fetched(storage, storage.nbytes, 0) if values is None else values
            seen = Mirror(storage.device.read(storage.buffer(), storage.nbytes) if known is None else np.frombuffer(known, np.uint8).copy())
            storage.__class__ = Mirrored                # from here on other threads wait
            storage.mirror = seen
            if values is not None:
                _slot.__set__(storage, None)
        return storage.mirror.host
