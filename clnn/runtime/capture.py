"""Launch lists: what a run of the program would enqueue, recorded as data and replayed at little more than the cost of the enqueue calls.

While a recording is active on a device nothing runs: ``launch``, ``Device.write``, ``copy`` and ``fill`` append entries, and buffers come from a
memory pool of the recording's own. That pool is never used for anything else afterwards, so the reuse of buffers that was planned while
recording stays valid at every replay. A read by the host cannot be recorded: what was recorded so far is run then, the recording
ends, and execution goes on as usual (``failed`` tells why).
"""
from __future__ import annotations

import os
import struct

import numpy as np

from ..core import rng
from . import launch as launcher, program
from .memory import Memory

active = None           # the Recording of this process, if one is under way
_pack_long = struct.Struct("=q").pack
_pack_float = struct.Struct("=f").pack


def packed(value):
    """A scalar argument as bytes."""
    return _pack_long(value) if type(value) is int else _pack_float(value) if type(value) is float else value


class Recording:
    """The entries of one run on one device, and how to vary them at replay: inputs, random numbers, scalars."""

    def __init__(self, device, follows=None):
        self.device, self.follows = device, follows        # follows: the forward recording whose random numbers a backward one draws again
        self.start = 0                                     # offset of the random stream at the last replay
        self.entries = []                   # [function, positional arguments] once finished
        self.calls = []                     # (kernel, global, local, arguments) or (name, arguments)
        self.raw = {}                       # address of a buffer -> handle that does not keep it out of the pool
        self.failed = None
        self.refreshers = []                # host work that every replay repeats (learning rates, step counts)
        self.updates = []                   # optimizer launches: (plan, first call, last call + 1), collected for the next refresher
        self.checked = False
        self._random = []                   # (call, argument, blocks after the start)

    # -- recording --------------------------------------------------------------------------------------------------------
    def __enter__(self):
        global active
        device = self.device
        device.flush()
        device.error_buffer                 # made outside the recording: it outlives it
        self.memory = Memory(device, device.queue)
        self._alloc, device.alloc = device.alloc, self.memory.alloc
        self._offset = rng.default.offset
        # recognisable in the arguments
        self._base = rng.default.offset = self.follows._base if self.follows else int.from_bytes(os.urandom(7), "little") | 1 << 60
        active = self
        launcher.recording = self
        device.recording = self
        return self

    def __exit__(self, *exc):
        global active
        device = self.device
        active = launcher.recording = device.recording = None
        device.alloc = self._alloc
        self.blocks = rng.default.offset - self._base
        rng.default.offset = self._offset

    def handle(self, buf):
        """A wrapper of the same memory: holding the pooled buffer itself would keep it from being reused."""
        import pyopencl as cl
        address = buf.int_ptr
        got = self.raw.get(address)
        if got is None:
            got = self.raw[address] = cl.MemoryObject.from_int_ptr(address, retain=True)
        return got

    def launch(self, kernel, global_size, local_size, args):
        kept = []
        for i, a in enumerate(args):
            if type(a) is int and a >= self._base:
                self._random.append((len(self.calls), i, a - self._base))
            if a is self.device.checked_buffer:
                self.checked = True
            kept.append(a if a is None or type(a) in (int, float, bytes) else self.handle(a))
        self.calls.append((kernel, tuple(global_size), local_size, kept))

    def transfer(self, name, *args):
        """A queued write, copy or fill; arrays are kept, buffers become handles."""
        self.calls.append((name, [self.handle(a) if hasattr(a, "int_ptr") else np.array(a) if isinstance(a, np.ndarray) else a for a in args]))

    def abandon(self, reason):
        """Run what was recorded and let the program go on unrecorded."""
        self.failed = reason
        self.__exit__()
        self.finish()
        self.replay(refresh=False)

    # -- replaying --------------------------------------------------------------------------------------------------------
    def finish(self):
        """Bind every launch to a kernel object of its own."""
        launcher.bind()
        program.build(self.device, dict.fromkeys(call[0].program for call in self.calls if not isinstance(call[0], str)))
        queue = self.queue = self.device.queue
        self.kernels, self.users = {}, {}
        for n, call in enumerate(self.calls):
            if isinstance(call[0], str):
                self.entries.append((_TRANSFERS[call[0]], (queue, *call[1])))
                continue
            kernel, gs, ls, args = call
            gs, ls = launcher._settle(self.device, kernel, gs, ls)
            self.calls[n] = (kernel, gs, ls, args)
            twin = kernel.clone().cl
            for i, a in enumerate(args):
                if type(a) in (int, float, bytes):
                    twin._set_arg_buf(i, packed(a))
                else:
                    twin.set_arg(i, a)
                    if a is not None:
                        self.users.setdefault(a.int_ptr, []).append((twin, i))
            self.kernels[n] = twin
            self.entries.append((launcher._enqueue, (queue, twin, gs, ls)))
        self.bound = {}

    def bind(self, address, buf):
        """Let every launch that used the memory at ``address`` use ``buf`` from now on."""
        if self.bound.get(address) is buf:
            return
        for twin, i in self.users.get(address, ()):
            twin.set_arg(i, buf)
        self.bound[address] = buf

    def set_scalar(self, call, argument, value):
        self.kernels[call]._set_arg_buf(argument, packed(value))

    def replay(self, refresh=True):
        """Enqueue the whole list again, with random numbers and refreshed scalars advanced."""
        if refresh:
            for fn in self.refreshers:
                fn()
        if self._random:
            start = self.start = self.follows.start if self.follows else rng.default.offset
            for call, argument, relative in self._random:
                self.kernels[call]._set_arg_buf(argument, _pack_long(rng.signed((start + relative) & rng.MASK)))
        if self.follows is None:
            rng.default.offset = (rng.default.offset + self.blocks) & rng.MASK
        if self.checked:
            self.device.err_dirty = True
        if self.queue is not self.device.queue:
            self.queue = self.device.queue
            self.entries = [(fn, (self.queue, *args[1:])) for fn, args in self.entries]
        if launcher.recorders is not None:
            return self._replay_seen()
        held = self.device.holds_back
        for fn, args in self.entries:
            fn(*args)
            if held:
                self.device.submit()

    def _replay_seen(self):
        """Enqueue the list and tell the recorders of each kernel."""
        for (fn, args), call in zip(self.entries, self.calls):
            event = fn(*args)
            if not isinstance(call[0], str):
                for record in launcher.recorders:
                    record(self.device, *call, event)


def _write(queue, buf, host, offset):
    import pyopencl as cl
    cl.enqueue_copy(queue, buf, host, dst_offset=offset, is_blocking=False)


def _copy(queue, src, dst, nbytes, src_off, dst_off):
    import pyopencl as cl
    cl.enqueue_copy(queue, dst, src, byte_count=nbytes, src_offset=src_off, dst_offset=dst_off)


def _fill(queue, buf, pattern, nbytes, offset):
    import pyopencl as cl
    cl.enqueue_fill_buffer(queue, buf, pattern, offset, nbytes)


_TRANSFERS = {"write": _write, "copy": _copy, "fill": _fill}
