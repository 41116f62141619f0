"""Launch lists: what a run of the program would enqueue, recorded as data and replayed at little more than the cost of the enqueue calls.

While a recording is active on a device nothing runs: ``launch``, ``Device.write``, ``copy`` and ``fill`` append entries, and buffers come from a
memory pool of the recording's own. That pool is never used for anything else afterwards, so the reuse of buffers that was planned while
recording stays valid at every replay. A read by the host cannot be recorded: what was recorded so far is run then, the recording
ends, and execution goes on as usual (``failed`` tells why). So it does where another thread uses the device, whose work is none of the run's.
"""
from __future__ import annotations

import functools
import os
import struct
import threading
import weakref
from collections import Counter

import numpy as np

from ..core import native, rng
from . import direct, launch as launcher, program
from .inline import clock
from .memory import Memory
from .sharing import settle_all, shared

active = None           # the Recording of this process, if one is under way
_CALLED = "called"      # the way that calls kernels
_pack_long = struct.Struct("=q").pack


def own():
    """The Recording that this thread makes, or None."""
    recording = active
    return recording if recording is not None and recording.thread == threading.get_ident() else None


def packed(value):
    """A scalar argument as bytes."""
    return _pack_long(value) if type(value) is int else launcher._pack_float(value) if type(value) is float else value


def on_host(method):
    """A method that changes nothing but the host's values: where it is called in a recording, every replay calls it again."""
    @functools.wraps(method)
    def call(*args, **kwargs):
        recording = own()
        if recording is None or recording.on_host:
            return method(*args, **kwargs)
        recording.on_host = True
        try:
            result = method(*args, **kwargs)
        finally:
            recording.on_host = False
        recording.refreshers.append(functools.partial(method, *args, **kwargs))
        return result
    return call


class Recording:
    """The entries of one run on one device, and how to vary them at replay: inputs, random numbers, scalars."""

    counts = True               # draws take counted blocks, as each replay has others

    def __init__(self, device, follows=None):
        self.device, self.follows = device, follows        # follows: the forward recording whose random numbers a backward one draws again
        self.start = 0                                     # offset of the random stream at the last replay
        self.entries = []                   # [function, positional arguments] once finished
        self.calls = []                     # (kernel, global, local, arguments) or (name, arguments)
        self.raw = {}                       # address of a buffer -> handle that does not keep it out of the pool
        self.failed, self.thread = None, threading.get_ident()
        self.followed = {}                  # address -> reference to a storage whose buffer changes without a launch
        self.refreshers = []                # host work that every replay repeats (learning rates, step counts)
        self.checks = []                    # functions that tell whether what the host work found is still so
        self.on_host = False                # host work is under way that is repeated as a whole
        self.checked = False
        self._random = []                   # (call, argument, blocks after the start)

    # -- recording --------------------------------------------------------------------------------------------------------
    def __enter__(self):
        global active
        device = self.device
        with device.lock:
            if device.recording is not None:
                device.recording.mine()
            device.flush()
            device.error_buffer             # made outside the recording: it outlives it
            self.memory = Memory(device, device.queue)
            self._plain_alloc, device.alloc = device.alloc, self._alloc
            self._offset = rng.default.offset
            # recognisable in the arguments
            self._base = rng.default.offset = self.follows._base if self.follows else int.from_bytes(os.urandom(7), "little") | 1 << 60
            active = launcher.recording = device.recording = self
        return self

    def __exit__(self, *exc):
        global active
        device = self.device
        with device.lock:
            if device.recording is not self:        # it was abandoned
                return
            active = launcher.recording = device.recording = None
            device.alloc = self._plain_alloc
            self.blocks = rng.default.offset - self._base
            rng.default.offset = self._offset

    def mine(self) -> bool:
        """Whether this thread is the one that records; another one ends the recording, which would take its work for the run's."""
        if self.thread == threading.get_ident():
            return True
        self.abandon("another thread used the device meanwhile")
        return False

    def _alloc(self, nbytes):
        return self.memory.alloc(nbytes) if self.mine() else self._plain_alloc(nbytes)

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

    def follow(self, storage, buf):
        """Let replays read what ``storage``, which is recorded with ``buf``, has for a buffer then."""
        address = buf.int_ptr
        if address not in self.followed:
            self.followed[address] = weakref.ref(storage)

    def transfer(self, name, *args):
        """A queued write, copy or fill; arrays are kept, buffers become handles."""
        self.calls.append((name, [self.handle(a) if hasattr(a, "int_ptr") else np.array(a) if isinstance(a, np.ndarray) else a for a in args]))

    def abandon(self, reason):
        """Run what was recorded and let the program go on unrecorded."""
        with self.device.lock:
            if self.device.recording is self:           # no other thread has ended it meanwhile
                self.failed = reason
                self.__exit__()
                self.finish()
                self.replay(refresh=False)

    # -- replaying --------------------------------------------------------------------------------------------------------
    def finish(self):
        """Settle sizes and bind every launch to a kernel object of its own."""
        launcher.bind()
        self.bound, self.scalars = {}, {}
        for n, call in enumerate(self.calls):
            if not isinstance(call[0], str):
                kernel, gs, ls, args = call
                self.calls[n] = (kernel, *launcher._settle(self.device, kernel, gs, ls), args)
        side = self.device.inline
        self.cost = side.cost_of_all([call[-1] for call in self.calls]) if side is not None else None
        self.ways, self.way = {}, None
        self._go(self.cost is not None and not side.calls)

    def _runs_here(self, side):
        """Whether the calling thread replays now."""
        if side.calls and self.cost is not None and _CALLED not in self.ways:
            driven = self.ways.get(None)
            if driven is None or not driven.driven:
                return False
            for call in self.calls:
                if not isinstance(call[0], str):
                    direct.driven(call[0], call[1:3])
            way = self.ways[_CALLED] = Way(self.calls, lambda kernel: kernel, self.device, direct.called)
            if not way.called:
                self.cost = None                                # the device's threads are the only way
        return side.takes_list(self.cost, self.way is self.ways.get(None))

    def _go(self, at_once):
        """Replay in the calling thread from now on, or by the device's threads."""
        side = self.device.inline
        kind = None if not at_once else _CALLED if side.calls else side.twin        # what the kernels are built for
        pick = side.kernel if at_once else lambda kernel: kernel
        way = self.ways.get(kind)
        if way is None:
            program.build(self.device, dict.fromkeys(pick(call[0]).program for call in self.calls if not isinstance(call[0], str)))
            way = self.ways[kind] = Way(self.calls, pick, self.device)
        if way is not self.way:
            self.way = way
            for address, buf in self.bound.items():
                way.bind(address, buf)
            for (call, argument), value in self.scalars.items():
                way.set_scalar(call, argument, value)
        return way

    def bind(self, address, buf):
        """Let every launch that used the memory at ``address`` use ``buf`` from now on; ``buf`` itself is not kept, see :meth:`handle`."""
        import pyopencl as cl
        now = self.bound.get(address)
        if buf.int_ptr != (address if now is None else now.int_ptr):
            self.bound[address] = now = cl.MemoryObject.from_int_ptr(buf.int_ptr, retain=True)
            self.way.bind(address, now)

    def set_scalar(self, call, argument, value):
        self.scalars[call, argument] = value
        self.way.set_scalar(call, argument, value)

    def launches_by_address(self):
        """How many launches use each buffer; none that a transfer uses, too."""
        found, elsewhere = Counter(), set()
        for call in self.calls:
            if isinstance(call[0], str):
                elsewhere.update(a.int_ptr for a in call[1] if hasattr(a, "int_ptr"))
            else:
                found.update([a.int_ptr for a in call[-1] if hasattr(a, "int_ptr")])
        return {address: n for address, n in found.items() if address not in elsewhere}

    def replay(self, refresh=True, results=()):
        """Enqueue the whole list again, with random numbers and refreshed scalars advanced.

        ``results``: (address, buffer) of memory that is to be replaced this time.
        """
        device = self.device
        with device.lock:
            device.flush()                          # what waits for the build of its kernel was asked for first
            here = launcher.recorders is None and device.inline is not None and self._runs_here(device.inline)
            way = self._go(here)
            for address, buf in results:
                way.bind(address, buf)
            for address, ref in self.followed.items():
                storage = ref()
                if storage is not None:
                    self.bind(address, storage.buf)
            if refresh:
                for fn in self.refreshers:
                    fn()
            if self._random:
                start = self.start = self.follows.start if self.follows else rng.default.offset
                for call, argument, relative in self._random:
                    way.kernels[call]._set_arg_buf(argument, _pack_long(rng.signed((start + relative) & rng.MASK)))
            if self.follows is None:
                rng.default.offset = (rng.default.offset + self.blocks) & rng.MASK
            device.peek = None
            if self.checked:
                device.err_dirty = True
            if launcher.recorders is not None:
                return self._replay_seen()
            if here:
                start = clock()
                at_once(device.inline, way.entries)
                device.inline.took(self.cost, (clock() - start) / len(way.entries))
                if device.err_dirty and device.word is not None:
                    device.look()
                return
            held, queue, event = device.tended, device.queue, device.last
            for fn, args in way.entries:
                event = fn(queue, *args)
                if held:
                    device.tend()
            device.last = event
            way.driven = True
            if device.inline is not None:
                device.inline.short = False
        if shared:
            settle_all(device)

    def _replay_seen(self):
        """Enqueue the list and tell the recorders of each kernel."""
        for (fn, args), call in zip(self.way.entries, self.calls):
            event = self.device.last = fn(self.device.queue, *args)
            if not isinstance(call[0], str):
                for record in launcher.recorders:
                    record(self.device, *call, event)
        if shared:
            settle_all(self.device)


class Way:
    """The calls of a recording with kernel objects of its own.

    Args:
        calls: of the recording.
        pick: the kernel that is launched in place of a recorded one.
        called: how one is called without the driver, or nothing where none is.

    ``called``: whether all are called. ``driven``: whether the driver had them once.
    """

    def __init__(self, calls, pick, device, called=lambda *args: False):
        self.entries, self.kernels, self.users = [], {}, {}
        self.driven, self.called = False, True
        for n, call in enumerate(calls):
            if isinstance(call[0], str):
                args = list(call[1])
                for i, a in enumerate(args):
                    if hasattr(a, "int_ptr"):
                        self.users.setdefault(a.int_ptr, []).append((args.__setitem__, i))
                self.entries.append((_TRANSFERS[call[0]], args))
                continue
            kernel, gs, ls, args = call
            picked = pick(kernel)
            alone = called(device, picked, (gs, ls), [packed(a) if type(a) in (int, float, bytes) else None for a in args])
            own, self.called = alone or picked.clone().cl, self.called and bool(alone)
            for i, a in enumerate(args):
                if type(a) in (int, float, bytes):
                    own._set_arg_buf(i, packed(a))
                else:
                    own.set_arg(i, a)
                    if a is not None:
                        self.users.setdefault(a.int_ptr, []).append((own.set_arg, i))
            self.kernels[n] = own
            self.entries.append((alone.run, ()) if alone else (launcher._enqueue, (own, gs, ls)))

    def bind(self, address, buf):
        for put, i in self.users.get(address, ()):
            put(i, buf)

    def set_scalar(self, call, argument, value):
        self.kernels[call]._set_arg_buf(argument, packed(value))


def at_once(side, entries):
    """Let the calling thread do all that is in a list."""
    queue = side.queue
    for fn, args in entries:
        fn(queue, *args)


at_once = native.form("at_once", at_once)


def _write(queue, buf, host, offset):
    import pyopencl as cl
    return cl.enqueue_copy(queue, buf, host, dst_offset=offset, is_blocking=False)


def _copy(queue, src, dst, nbytes, src_off, dst_off):
    import pyopencl as cl
    return cl.enqueue_copy(queue, dst, src, byte_count=nbytes, src_offset=src_off, dst_offset=dst_off)


def _fill(queue, buf, pattern, nbytes, offset):
    import pyopencl as cl
    return cl.enqueue_fill_buffer(queue, buf, pattern, offset, nbytes)


_TRANSFERS = {"write": _write, "copy": _copy, "fill": _fill}
