"""Moving data: between the host and a device's buffers, and between these."""
from __future__ import annotations

import numpy as np

from ..core import native
from .inline import BYTES
from .sharing import release, settle, shared

_PEEK = 1 << 12               # bytes: where a buffer is looked at again and again, twice as many are read at once
_SMALL_WRITE = 1 << 20        # bytes that are copied on the host so that a write need not wait for the queue


def sent(device, values: bytes):
    """A new buffer with ``values`` where nothing has to be waited for and nobody looks on; else None."""
    return None


sent = native.form("sent", sent)


def moved(device, source, target, nbytes, source_off, target_off) -> bool:
    """Whether so many bytes were copied from a buffer to another one, or a pattern of bytes repeated there, as nothing has to be waited for and they are few."""
    return False


moved = native.form("moved", moved)


class Transfers:
    """The part of a :class:`~.device.Device` that reads, writes, copies and fills buffers."""

    def write(self, buf, array, offset_bytes: int = 0) -> None:
        """Copy a host array into ``buf`` from byte ``offset_bytes`` on. The array may be changed as soon as this returns."""
        nbytes = array.nbytes
        if nbytes == 0:
            return
        self.transfers += 1
        # as bytes: pyopencl refuses dtypes without a buffer format, such as bfloat16
        host = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if self.recording is not None and self._recorded("write", buf, host, offset_bytes):
            return
        small = nbytes <= _SMALL_WRITE
        if self.waiting:
            if small and self.backlog.takes(self.write, buf, host.copy(), offset_bytes):
                return
            self.flush()
        with self.lock:
            self.peek = None
            if self.inline is not None and self.inline.ready():
                self._call(self._to_device, self.inline.queue, buf, host, offset_bytes, None, True)
                return
            if small:
                host = host.copy()
            event = self.last = self._call(self._to_device, self.queue, buf, host, offset_bytes, None, False)
            if small:
                self._pending.append((event, host))
                while len(self._pending) > 64:
                    self._pending.popleft()[0].wait()
                return
        self._call(event.wait)

    def send(self, values: bytes):
        """A new buffer with ``values``."""
        buf = sent(self, values)
        if buf is not None:
            self.transfers += 1
            return buf
        buf, side = self.alloc(len(values)), self.inline
        if side is not None and self.recording is None and not self.waiting:        # :meth:`write` in fewer steps
            with self.lock:
                if side.ready():
                    self.transfers, self.peek = self.transfers + 1, None
                    self._call(self._to_device, side.queue, buf, values, 0, None, True)
                    return buf
        self.write(buf, np.frombuffer(values, np.uint8))
        return buf

    def read(self, buf, nbytes: int, offset_bytes: int = 0) -> np.ndarray:
        """The bytes as a NumPy ``uint8`` array. Waits for all earlier launches, then raises what a kernel reported."""
        recording = self.recording
        if recording is not None and recording.mine():
            recording.abandon("the host read a value of the device (item(), numpy(), print or a condition on a tensor)")
        self.transfers += 1
        self.flush()
        peek = self.peek
        if peek is None or peek[0] != id(buf):
            self.peek = id(buf), None, 0
            return self._read(buf, nbytes, offset_bytes)
        _, window, start = peek         # the second look at it, and nothing was enqueued in between: programs go through a tensor's elements like this
        at = offset_bytes - start
        if window is None or at < 0 or at + nbytes > len(window):
            if nbytes > _PEEK or self.hosted or self.err_dirty or buf in shared:
                return self._read(buf, nbytes, offset_bytes)
            at = offset_bytes % _PEEK
            start = offset_bytes - at
            window = self._read(buf, min(2 * _PEEK, buf.size - start), start)
            with self.lock:
                if self.peek is peek:   # no other thread enqueued anything meanwhile
                    self.peek = id(buf), window, start
        return window[at:at + nbytes].copy()

    def _read(self, buf, nbytes, offset_bytes):
        out = np.empty(nbytes, np.uint8)
        if nbytes:
            self._watch()
            with self.lock:
                at_once = self.inline is not None and self.inline.ready()
                if at_once:
                    self._call(self._to_host, self.inline.queue, buf, out, offset_bytes, None, True)
            if not at_once:
                self._call(self._to_host, self.queue, buf, out, offset_bytes, None, True)
            self._forget_writes()
            if self.hosted:
                release(self)
        if self.err_dirty:
            self.check_errors()
        return out

    def copy(self, src, dst, nbytes: int, src_off: int = 0, dst_off: int = 0) -> None:
        """Enqueue a copy between two buffers of this device."""
        self.transfers += 1
        if self.recording is not None and self._recorded("copy", src, dst, nbytes, src_off, dst_off):
            return
        if moved(self, src, dst, nbytes, src_off, dst_off):
            return
        if nbytes and not (self.waiting and self.backlog.takes(self.copy, src, dst, nbytes, src_off, dst_off)):
            self._enqueue(nbytes, self._to_another, src, dst, nbytes, src_off, dst_off)

    def duplicate(self, buf, nbytes: int):
        """A new buffer with the same contents; the copy is enqueued."""
        fresh = self.alloc(nbytes)
        self.copy(buf, fresh, nbytes)
        return fresh

    def fill(self, buf, pattern: bytes, nbytes: int, offset_bytes: int = 0) -> None:
        """Enqueue a fill with a pattern of 1, 2, 4, 8 or 16 bytes."""
        self.transfers += 1
        if self.recording is not None and self._recorded("fill", buf, np.frombuffer(pattern, np.uint8), nbytes, offset_bytes):
            return
        if moved(self, pattern, buf, nbytes, 0, offset_bytes):
            return
        if nbytes and not (self.waiting and self.backlog.takes(self.fill, buf, pattern, nbytes, offset_bytes)):
            import pyopencl as cl
            self._enqueue(nbytes, cl.enqueue_fill_buffer, buf, np.frombuffer(pattern, np.uint8), offset_bytes, nbytes)

    def _recorded(self, *transfer) -> bool:
        """Whether a recording took it."""
        with self.lock:                 # another thread may end the recording
            recording = self.recording
            taken = recording is not None and recording.mine()
            if taken:
                recording.transfer(*transfer)
        return taken

    def _enqueue(self, nbytes, function, *args, **kwargs):
        """A transfer inside of the device: in the calling thread where it is short and nothing runs before it."""
        side = self.inline
        with self.lock:
            self.peek = None
            if side is not None and nbytes <= BYTES and side.ready():
                self._call(function, side.queue, *args, **kwargs)
                return
            if side is not None and nbytes > BYTES:
                side.short = False
            self.last = self._call(function, self.queue, *args, **kwargs)
        if shared:
            settle(self, args)

    def _forget_writes(self):
        if self._pending:
            with self.lock:
                self._pending.clear()
