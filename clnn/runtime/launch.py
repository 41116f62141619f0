"""Enqueueing a kernel: the one path that every operator takes, so it is written for host cost.

A launch is data: ``(kernel, global size, local size, arguments)``. A recorder (capture, replay, profiler) that appends itself
to :data:`recorders` sees each of them.
"""
from __future__ import annotations

import itertools
import math
import re
import struct

from ..core import native
from ..core.config import config
from ..core.errors import DeviceError, LaunchError, OutOfMemoryError
from . import direct
from .direct import address_of, address_of_function
from .inline import BUILD, clock
from .sharing import settle, shared

# None almost always; a list of callables f(device, kernel, global_size, local_size, args, event) while somebody listens.
recorders = None
recording = None    # a capture.Recording that takes launches instead of the queue

_pack_long = struct.Struct("=q").pack
_pack_small = struct.Struct("=f").pack
_MANY = 2048    # work-items
_COUNTS_GROUPS = re.compile(r"get_(group_id|num_groups|global_size)\([12]\)")
_OOM_CODES = (-4, -5, -6, -61)  # object allocation, resources, host memory, buffer size
MOST_GROUPS = 65535     # of the second and third dimension: NVIDIA's hardware counts them in 16 bits
_enqueue = _driver = None
native.give(launch=globals(), address_of=address_of, enqueue=None, enqueue_at=0)


def _pack_float(a):
    """A float in four bytes; a number beyond their range is infinite there."""
    try:
        return _pack_small(a)
    except OverflowError:
        return _pack_small(math.copysign(math.inf, a))


def bind(in_parts=False):
    """Find the driver's function that enqueues; with ``in_parts`` the one for devices that take no more than MOST_GROUPS at once."""
    global _enqueue, _driver
    if _enqueue is None:
        import pyopencl as cl
        _enqueue = _driver = cl.enqueue_nd_range_kernel
        native.give(enqueue=_driver, enqueue_at=address_of_function("clEnqueueNDRangeKernel"))
    if in_parts:
        _enqueue = _enqueue_parts


class Parts(tuple):
    """A global size that takes several launches, which begin at other work-items: ``parts`` has (global size, offset) of each."""


def _enqueue_parts(queue, kernel, global_size, local_size):
    if global_size.__class__ is not Parts:
        return _driver(queue, kernel, global_size, local_size)
    for size, offset in global_size.parts:
        event = _driver(queue, kernel, size, local_size, offset)
    return event


def _in_parts(kernel, gs, ls):
    """``gs``, as Parts where it has too many groups. Work-items know their places by get_global_id alone then: groups are counted anew in each part."""
    counts = [g // n for g, n in zip(gs, ls or (1,) * len(gs))]
    if all(n <= MOST_GROUPS for n in counts[1:]):
        return gs
    if _COUNTS_GROUPS.search(kernel.source):
        raise LaunchError(f"{kernel.name}: counts its groups, so that {gs} work-items in groups of {ls} cannot be launched in parts")
    steps = [gs[0], *[min(g, MOST_GROUPS * n) for g, n in zip(gs[1:], (ls or (1,) * len(gs))[1:])]]
    whole = Parts(gs)
    whole.parts = [(tuple([min(step, g - at) for g, step, at in zip(gs, steps, offset)]), offset)
                   for offset in itertools.product(*[range(0, g, step) for g, step in zip(gs, steps)])]
    return whole


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
    with device.lock:
        event = _launch(device, kernel, global_size, local_size, args)
    if shared:
        settle(device, args)
    return event


def _launch(device, kernel, global_size, local_size, args):
    if kernel is None or 0 in global_size:      # the meta device has no kernels
        return None
    if recording is not None and recording.device is device and recording.mine():
        return recording.launch(kernel, global_size, local_size, args)
    if device.waiting and device.backlog.takes_launch(kernel, None, global_size, local_size, args):
        return None
    ran, queue, cost, side, driven = kernel, device.queue, None, device.inline, False
    if side is not None and recorders is None:
        cost = side.takes(kernel, (global_size, local_size), args)
        if side.calls:
            if cost is not None and _called(device, side, cost, kernel, global_size, local_size, args):
                return None
            driven, cost = cost is not None, None
        elif cost is not None:
            ran, queue = side.kernel(kernel), side.queue
    last = ran.last_args
    if last is None:
        if device.backlog.takes_launch(kernel, ran, global_size, local_size, args):
            return None
        last = ran.bind().last_args
    if len(args) != len(last):
        raise LaunchError(f"{kernel.name}: takes {len(last)} arguments, got {len(args)}")
    event = _run(device, queue, ran, global_size, local_size, args, cost)
    if cost is not None:
        if device.err_dirty and device.word is not None:
            device.look()
    else:
        device.last = event
        if driven:
            direct.driven(kernel, kernel.sizes[(global_size, local_size)])
        if device.tended:
            device.tend()
        if kernel.checks and side is not None and kernel.lost <= BUILD and side.small(kernel, (global_size, local_size), args):
            side.settle(kernel)
    if recorders is not None:
        sizes = ran.sizes[(global_size, local_size)]
        for record in recorders:
            record(device, kernel, sizes[0], sizes[1], args, event)
    if config.debug:
        event.wait()
        device.check_errors()
    return event


def _called(device, side, cost, kernel, global_size, local_size, args) -> bool:
    """Call ``kernel`` without the driver; False where that cannot be, or not yet."""
    if kernel.last_args is None or config.debug:
        return False
    if len(args) != len(kernel.last_args):
        raise LaunchError(f"{kernel.name}: takes {len(kernel.last_args)} arguments, got {len(args)}")
    sizes = kernel.sizes.get((global_size, local_size)) or sizes_of(device, kernel, global_size, local_size)
    way = _way(device, kernel, sizes, len(args))
    if not way:
        return False
    device.peek = None
    if device.checked_buffer is not None and any([a is device.checked_buffer for a in args]):
        device.err_dirty = kernel.checks = True
    start = clock()
    try:
        if not way.launch(tuple([g // n for g, n in zip(*sizes)]), args):
            return False
    except Exception as exc:
        raise _explain(device, kernel, global_size, local_size, args, exc) from exc
    side.took(cost, clock() - start)
    if device.err_dirty and device.word is not None:
        device.look()
    return True


def _way(device, kernel, sizes, count):
    """How to call the kernel with groups of a size and any arguments, of which it takes ``count``; None, False as :func:`direct.called` has it."""
    kind = direct.kind(sizes), len(sizes[0])
    way = kernel.ways.get(kind)
    if way is None:
        way = direct.called(device, kernel, sizes, [None] * count)
        if way is not None:
            kernel.ways[kind] = way
    return way


def _run(device, queue, kernel, global_size, local_size, args, cost):
    """Set the arguments that changed, and enqueue."""
    last, checked, device.peek = kernel.last_args, device.checked_buffer, None
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
                        device.err_dirty = kernel.checks = True
            i += 1
        sizes = kernel.sizes.get((global_size, local_size))
        if sizes is None:
            sizes = sizes_of(device, kernel, global_size, local_size)
        if cost is None:
            return _enqueue(queue, kernel.cl, sizes[0], sizes[1])
        start = clock()
        event = _enqueue(queue, kernel.cl, sizes[0], sizes[1])
        device.inline.took(cost, clock() - start)
        return event
    except Exception as exc:
        kernel.forget_args()
        raise _explain(device, kernel, global_size, local_size, args, exc) from exc
    except BaseException:
        _interrupted(kernel, queue)
        raise


def _interrupted(kernel, queue):
    """Ctrl-C while a kernel was being launched: it may run without an event that tells others when it is done."""
    kernel.forget_args()
    queue.finish()


def run_all(device, launches, buffers, numbers=()):
    """Run launches one after another, each given as (a :class:`Prepared`, what picks its arguments from ``buffers``, the places in ``numbers`` of those that
    it takes or None)."""
    side = device.inline
    if side is None or recorders is not None or recording is not None or device.waiting or config.debug or shared and not shared.keys().isdisjoint(buffers):
        for prepared, pick, drawn in launches:
            prepared.run(device, pick(buffers), () if drawn is None else [numbers[i] for i in drawn])
        return
    queue = side.queue
    with device.lock:
        for prepared, pick, drawn in launches:
            cost = prepared.cost
            if cost is not None and cost.calm and device.last is side.done and not cost.skip and drawn is None and not device.waiting:
                way = prepared.twin                             # as ``Prepared.run`` would come to it
                if way is not None and way.sizes is not None and not way.checked:
                    cost.calm -= 1
                    way.enqueue(device, queue, pick(buffers), ())
                    continue
            prepared.run(device, pick(buffers), () if drawn is None else [numbers[i] for i in drawn])


BUFFER, NUMBER = object(), object()      # stand for the arguments of a Prepared launch that vary


@native.know
class Prepared:
    """A launch that is repeated with other buffers and few other numbers: the rest of its arguments is set once.

    Args:
        kernel, global_size, local_size, args: as :func:`launch` takes them, with ``BUFFER`` and ``NUMBER`` for what each run is given.
            ``buffers`` and ``numbers`` are the positions of these. ``direct``: how it is called without the driver; None where that is not known yet,
            False where it cannot be.
            ``twin``: the launch that runs in the calling thread; None where kernels are called.
            ``like``: until its first launch the one that this is a variant of; ``shared``: how variants are called, None where that is not known, else False, and
            the ``seconds`` that each of their groups takes.
    """

    __slots__ = ("kernel", "where", "args", "buffers", "numbers", "sizes", "fixed", "constants", "checked", "last", "cost", "twin", "direct", "like", "shared",
                 "seconds")

    def __init__(self, kernel, global_size, local_size, args):
        self.kernel, self.where, self.args, self.sizes = kernel, (global_size, local_size), args, None
        self.buffers = [i for i, a in enumerate(args) if a is BUFFER]
        self.numbers = [i for i, a in enumerate(args) if a is NUMBER]
        self.cost, self.twin, self.direct, self.last, self.like, self.shared, self.seconds = None, self, None, None, None, None, 0.0

    def varied(self, where, args):
        """The same launch with other sizes and other plain arguments."""
        new = Prepared.__new__(Prepared)
        new.kernel, new.where, new.args, new.buffers, new.numbers = self.kernel, where, args, self.buffers, self.numbers
        new.sizes = new.cost = new.direct = new.last = new.shared = None
        new.twin, new.like, new.seconds = new, self, 0.0
        return new

    def run(self, device, buffers, numbers=()):
        """Launch with ``buffers``, a tuple (position, buffer, position, buffer, ...), and ``numbers``, one per position."""
        if recorders is not None or recording is not None or device.waiting or config.debug or shared and not shared.keys().isdisjoint(buffers):
            return self._plainly(device, buffers, numbers)
        cost, side = self.cost, device.inline
        with device.lock:
            if side is not None:
                if cost is None:
                    side.short = False
                elif cost.skip:
                    cost.skip -= 1
                    side.short = False
                elif side.calls:
                    if self._called(device, side, cost, buffers, numbers):
                        return
                elif device.last is side.done and self.twin.sizes is not None or side.free(self.kernel):
                    return self._here(device, side, cost, buffers, numbers)
            if self.sizes is None:
                return self._first(device, buffers, numbers)
            device.last = self.enqueue(device, device.queue, buffers, numbers)
            if cost is not None and side is not None and side.calls:
                direct.driven(self.kernel, self.sizes)
        if device.tended:
            device.tend()
        if self.checked and cost is not None and side is not None and self.kernel.lost <= BUILD:
            side.settle(self.kernel)

    def _called(self, device, side, cost, buffers, numbers) -> bool:
        """Call the kernel without the driver; False where that cannot be, or not yet."""
        if self.direct is None and self.sizes is not None:
            self.direct = direct.opened(self, device)
        if not self.direct or not side.ready():
            return False
        device.peek = None
        if self.checked:
            device.err_dirty = True
        start = clock()
        if not self.direct.run_with(buffers, self.numbers, numbers):
            self.direct = False
            return False
        side.took(cost, clock() - start)
        if self.checked and device.word is not None:
            device.look()
        return True

    def _here(self, device, side, cost, buffers, numbers):
        """Run in the calling thread."""
        way = self.twin
        if way.sizes is None:
            return self._first(device, buffers, numbers)
        if cost.calm:
            cost.calm -= 1
            way.enqueue(device, side.queue, buffers, numbers)
        else:
            start = clock()
            way.enqueue(device, side.queue, buffers, numbers)
            side.took(cost, clock() - start)
        if way.checked and device.err_dirty and device.word is not None:
            device.look()

    def enqueue(self, device, queue, buffers, numbers):
        """Set what differs from the last run, and enqueue; the caller holds the device's lock."""
        kernel, device.peek = self.kernel, None
        if self.checked:
            device.err_dirty = True
        try:
            if kernel.owner is not self:
                kernel.set_numbers(self.fixed)
                for i, a in self.constants:
                    kernel.set_arg(i, a)
                kernel.owner, self.last = self, [None] * len(self.numbers)
            if numbers:
                last = self.last
                for k, a in enumerate(numbers):
                    if a is not last[k] and (a != last[k] or not a):            # 0.0 equals -0.0
                        kernel.set_bytes(self.numbers[k], PACKED[type(a)](a))
                        last[k] = a
            kernel.set_buffers(buffers)
            return _enqueue(queue, kernel.cl, *self.sizes)
        except BaseException as exc:
            self.failed(device, queue, buffers, numbers, exc)

    def failed(self, device, queue, buffers, numbers, exc):
        """Raise what it means that a launch came to ``exc``."""
        kernel = self.kernel
        if not isinstance(exc, Exception):
            _interrupted(kernel, queue)
            raise exc
        kernel.forget_args()
        raise _explain(device, kernel, *self.where, self._filled(buffers, numbers), exc) from exc

    def _filled(self, buffers, numbers):
        args = self.args.copy()
        for i, a in zip((*buffers[::2], *self.numbers), (*buffers[1::2], *numbers)):
            args[i] = a
        return args

    def _first(self, device, buffers, numbers):
        """The first launch of these sizes. That of a kernel which was launched with others is like all that follow: a loop over ever new shapes has no other."""
        if self.kernel is None or self.sizes is not None or self.twin is not None and self.twin.sizes is not None:
            return self._plainly(device, buffers, numbers)
        self._meet(device, buffers)
        for way in self._ways():
            if way.sizes is None and way.kernel.last_args is not None:
                if self.where not in way.kernel.sizes:
                    sizes_of(device, way.kernel, *self.where)
                way._open(device.checked_buffer)
        if all([way.sizes is None for way in self._ways()]):
            return self._plainly(device, buffers, numbers)
        self.run(device, buffers, numbers)
        self._share(device)

    def _share(self, device):
        """Once this is called without the driver, its variants' first launches are."""
        like, self.like = self.like, None
        if like is None or like.shared is not None or not self.direct:
            return
        plain = self.sizes[1] == self.where[1] and all([c is None or c is device.checked_buffer for _, c in self.constants])
        like.checked, like.shared = self.checked, plain and _way(device, self.kernel, self.sizes, len(self.args)) or False

    def _plainly(self, device, buffers, numbers):
        """Launch as others do; once the driver took it, the way of :meth:`run` is open."""
        kernel, args = self.kernel, self._filled(buffers, numbers)
        launch(device, kernel, *self.where, *args)
        if kernel is None or recording is not None:
            return
        with device.lock:                       # other threads look at it
            self._meet(device, args)
            for way in self._ways():
                way._open(device.checked_buffer)

    def _meet(self, device, args):
        """Whether such launches may run in the calling thread."""
        side = device.inline
        if side is not None and self.cost is None and self.sizes is None:
            self.cost = side.cost_of(self.kernel, self.where, args)
            if self.cost is not None and (side.calls or side.twin is not None):
                self.twin = None if side.calls else Prepared(side.kernel(self.kernel), *self.where, self.args)

    def _ways(self):
        return (self,) if self.twin is None else (self, self.twin)

    def _open(self, checked):
        sizes = self.kernel.sizes.get(self.where)
        if sizes is None or self.sizes is not None:
            return
        fixed, self.constants = [], []
        for i, a in enumerate(self.args):
            if type(a) in PACKED:
                fixed += i, PACKED[type(a)](a)
            elif a is not BUFFER and a is not NUMBER:
                self.constants.append((i, a))
        self.fixed = tuple(fixed)
        self.checked = any(a is checked for _, a in self.constants if a is not None)
        self.sizes = sizes                      # last: it is open from here on


native.method(Prepared, "run")


class Transfer:
    """A fill or a copy on the device, as :class:`Prepared` is a launch."""

    __slots__ = ("name", "args")
    cost = None

    def __init__(self, name, args):
        self.name, self.args = name, args

    def varied(self, args):
        return Transfer(self.name, args)

    def run(self, device, buffers, numbers=()):
        args = self.args.copy()
        for i, buf in zip(buffers[::2], buffers[1::2]):
            args[i] = buf
        getattr(device, self.name)(*args)


PACKED = {int: _pack_long, float: _pack_float, bytes: bytes}


def sizes_of(device, kernel, global_size, local_size):
    """(global, local) as they are enqueued, of a kernel and the sizes that it was launched with; settled once."""
    if _enqueue is None:
        bind()
    if len(kernel.sizes) > 4096:  # a loop over ever new shapes must not grow without bound
        kernel.sizes.clear()
    gs, ls = _settle(device, kernel, tuple(global_size), local_size)
    found = kernel.sizes[(global_size, local_size)] = (gs if device.is_cpu or len(gs) == 1 else _in_parts(kernel, gs, ls), ls)
    return found


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
        elif kernel.compile_local not in (None, (0, 0, 0)):
            return gs, None
        elif device.is_cpu:
            if not device.calls_kernels:
                return gs, None
            ls = (gs[0] if gs[0] <= 16 else 16 if gs[0] <= 128 else 32,) + (1,) * (len(gs) - 1)     # whole vectors, and few idle items
        else:                                  # GPUs' drivers find no good divisor of most sizes
            ls = (min(64 if gs[0] > 32 else 32, best),) + (1,) * (len(gs) - 1)
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
