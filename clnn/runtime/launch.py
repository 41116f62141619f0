"""Enqueueing a kernel: the one path that every operator takes, so it is written for host cost.

A launch is data: ``(kernel, global size, local size, arguments)``. A recorder (capture, replay, profiler) that appends itself
to :data:`recorders` sees each of them.
"""
from __future__ import annotations

import math
import struct

from ..core.config import config
from ..core.errors import DeviceError, LaunchError, OutOfMemoryError

# None almost always; a list of callables f(device, kernel, global_size, local_size, args, event) while somebody listens.
recorders = None
recording = None    # a capture.Recording that takes launches instead of the queue

_pack_long = struct.Struct("=q").pack
_pack_float = struct.Struct("=f").pack
_MANY = 2048    # work-items
_OOM_CODES = (-4, -5, -6, -61)
_enqueue = None


def bind():
    global _enqueue
    import pyopencl as cl
    _enqueue = cl.enqueue_nd_range_kernel


def launch(device, kernel, global_size, local_size, *args):
    """Run ``kernel`` over ``global_size`` work-items in groups of ``local_size``, after all that was enqueued before.

    Args:
        device: the :class:`~clnn.runtime.device.Device` whose queue runs it.
        kernel: a kernel of that device (``device.kernel(...)``).
        global_size: tuple of work-item counts; rounded up to whole groups, so kernels check their bounds. A 0 launches nothing.
        local_size: tuple of the same length, or None for a choice that suits the driver.
        *args: ``int`` is passed as ``long``, ``float`` as ``float``, ``bytes`` as it is, a buffer as a buffer, None as a null pointer.

    Raises:
        OutOfMemoryError: the driver found no room (some notice only now).
        LaunchError: the driver refused; the text names the kernel and sizes.
    """
    if kernel is None or 0 in global_size:      # the meta device has no kernels
        return None
    if recording is not None and recording.device is device:
        return recording.launch(kernel, global_size, local_size, args)
    last = kernel.last_args
    if last is None or device.waiting:
        if device.backlog.takes_launch(kernel, global_size, local_size, args):
            return None
        last = kernel.bind().last_args
    checked = device.checked_buffer
    if len(args) != len(last):
        raise LaunchError(f"{kernel.name}: takes {len(last)} arguments, got {len(args)}")
    with kernel.lock:
        try:
            if kernel.owner is not None:
                kernel.forget_args()
            i = 0
            for a in args:
                if a is not last[i]:  # only scalars are remembered: a remembered buffer could not return to the pool
                    t = type(a)
                    if t is int:
                        kernel.set_bytes(i, _pack_long(a))
                        last[i] = a
                    elif t is float:
                        kernel.set_bytes(i, _pack_float(a))
                        last[i] = a
                    elif t is bytes:
                        kernel.set_bytes(i, a)
                        last[i] = a
                    else:
                        kernel.set_arg(i, a)
                        if a is checked:
                            device.err_dirty = True
                i += 1
            sizes = kernel.sizes.get((global_size, local_size))
            if sizes is None:
                return _first_launch(device, kernel, global_size, local_size, args)
            event = _enqueue(device.queue, kernel.cl, sizes[0], sizes[1])
        except Exception as exc:
            kernel.forget_args()
            raise _explain(device, kernel, global_size, local_size, args, exc) from exc
    if device.holds_back:
        device.submit()
    if recorders is not None:
        for record in recorders:
            record(device, kernel, sizes[0], sizes[1], args, event)
    if config.debug:
        event.wait()
        device.check_errors()
    return event


BUFFER, NUMBER = object(), object()      # stand for the arguments of a Prepared launch that vary


class Prepared:
    """A launch that is repeated with other buffers and few other numbers: the rest of its arguments is set once.

    Args:
        kernel, global_size, local_size, args: as :func:`launch` takes them, with ``BUFFER`` and ``NUMBER`` for what each run is given.
            ``buffers`` and ``numbers`` are the positions of these.
    """

    __slots__ = ("kernel", "where", "args", "buffers", "numbers", "sizes", "fixed", "constants", "checked", "last")

    def __init__(self, kernel, global_size, local_size, args):
        self.kernel, self.where, self.args, self.sizes = kernel, (global_size, local_size), args, None
        self.buffers = [i for i, a in enumerate(args) if a is BUFFER]
        self.numbers = [i for i, a in enumerate(args) if a is NUMBER]

    def run(self, device, buffers, numbers=()):
        """Launch with ``buffers``, a tuple (position, buffer, position, buffer, ...), and ``numbers``, one per position."""
        kernel, sizes = self.kernel, self.sizes
        if sizes is None or recorders is not None or recording is not None or device.waiting or config.debug:
            return self._plainly(device, buffers, numbers)
        with kernel.lock:
            try:
                if kernel.owner is not self:
                    kernel.set_numbers(self.fixed)
                    for i, a in self.constants:
                        kernel.set_arg(i, a)
                    kernel.owner, self.last = self, [None] * len(self.numbers)
                if numbers:
                    last = self.last
                    for k, a in enumerate(numbers):
                        if a is not last[k]:
                            kernel.set_bytes(self.numbers[k], _PACKED[type(a)](a))
                            last[k] = a
                kernel.set_buffers(buffers)
                _enqueue(device.queue, kernel.cl, *sizes)
            except Exception as exc:
                kernel.forget_args()
                raise _explain(device, kernel, *self.where, self._filled(buffers, numbers), exc) from exc
        if self.checked:
            device.err_dirty = True
        if device.holds_back:
            device.submit()

    def _filled(self, buffers, numbers):
        args = self.args.copy()
        for i, a in zip((*buffers[::2], *self.numbers), (*buffers[1::2], *numbers)):
            args[i] = a
        return args

    def _plainly(self, device, buffers, numbers):
        """Launch as others do; once the driver took it, the way of :meth:`run` is open."""
        kernel = self.kernel
        launch(device, kernel, *self.where, *self._filled(buffers, numbers))
        sizes = kernel and kernel.sizes.get(self.where)
        if sizes is None:
            return
        fixed, self.constants = [], []
        for i, a in enumerate(self.args):
            if type(a) in _PACKED:
                fixed += i, _PACKED[type(a)](a)
            elif a is not BUFFER and a is not NUMBER:
                self.constants.append((i, a))
        self.fixed = tuple(fixed)
        self.checked = any(a is device.checked_buffer for _, a in self.constants if a is not None)
        self.sizes = sizes                      # last, as other threads look at it


_PACKED = {int: _pack_long, float: _pack_float, bytes: bytes}


def _first_launch(device, kernel, global_size, local_size, args):
    """Settle the sizes of a (kernel, global, local) triple, then launch it."""
    if _enqueue is None:
        bind()
    sizes = _settle(device, kernel, tuple(global_size), local_size)
    if len(kernel.sizes) > 4096:  # a loop over ever new shapes must not grow without bound
        kernel.sizes.clear()
    event = _enqueue(device.queue, kernel.cl, *sizes)
    kernel.sizes[(global_size, local_size)] = sizes
    if recorders is not None:
        for record in recorders:
            record(device, kernel, sizes[0], sizes[1], args, event)
    if config.debug:
        event.wait()
        device.check_errors()
    return event


def _settle(device, kernel, gs, ls):
    """(global, local) as they are enqueued: local chosen where it is None, global rounded up to whole groups."""
    if ls is None:
        # PoCL compiles anew for each local size and others pick 1 for a prime count: a fixed choice suits both.
        best = min(device.default_local, kernel.max_work_group)
        many = gs[0] >= 4 and math.prod(gs) >= _MANY and device.flavour == "pocl"      # a group of one costs more than idle items
        if (many or gs[0] >= 2 * best) and kernel.compile_local in (None, (0, 0, 0)):
            ls = (best,) + (1,) * (len(gs) - 1)
        elif device.flavour == "pocl":
            ls = (1,) * len(gs)
        else:
            return gs, None
    if len(ls) != len(gs):
        raise LaunchError(f"{kernel.name}: global size {gs} and local size {ls} have different lengths")
    total = 1
    for n in ls:
        total *= n
    limit = kernel.max_work_group
    usual = len(ls) == 1 or total <= 1024      # no mistake, but more than this device or this kernel takes
    if total > limit and usual and kernel.local_mem == 0 and kernel.compile_local in (None, (0, 0, 0)):
        sizes = list(ls)                       # without local memory any size gives the same result
        while math.prod(sizes) > limit:
            longest = sizes.index(max(sizes))
            sizes[longest] = (sizes[longest] + 1) // 2
        ls = tuple(sizes)
    elif total > limit:
        raise LaunchError(f"{kernel.name}: a work-group of {ls} is larger than this kernel's limit of {kernel.max_work_group} on {device.name}")
    return tuple(-(-g // n) * n for g, n in zip(gs, ls)), tuple(ls)


def _explain(device, kernel, gs, ls, args, exc):
    """The exception to raise for what a driver (or a wrong argument) did to a launch."""
    device.check_process()
    if isinstance(exc, (LaunchError, DeviceError, OutOfMemoryError, KeyboardInterrupt)):
        return exc
    code = getattr(exc, "code", None)
    where = f"{kernel.name}: launch with global size {gs}, local size {ls} on {device.name} failed"
    if code in _OOM_CODES:
        return OutOfMemoryError(f"{where}: {exc}; {device.memory.describe()}")
    kinds = ", ".join(type(a).__name__ for a in args)
    return LaunchError(f"{where}: {type(exc).__name__}: {exc} (arguments: {kinds})")
