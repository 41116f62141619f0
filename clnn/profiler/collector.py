"""Collects what happens while a profile runs: host events, launches, and which operator and module each belongs to.

Elementwise operators are recorded in one place and computed in another, together. So each pending node is remembered with the operator
and the module that recorded it; nodes of the backward pass belong to the module whose forward call made them, which their sequence
numbers tell.
"""
from __future__ import annotations

import sys
import threading
import time
import weakref
from bisect import bisect_right

from .._tensor.device import synchronize
from ..core import native
from ..runtime import drivers
from ..runtime import launch as launcher
from ..runtime.device import default_device
from ..runtime.timing import Clock
from . import ranges, traffic
from .instrument import Instruments
from .ranges import Event, Launch

_KEEP = 20000           # driver events that may be unresolved at a time


class _Thread(threading.local):
    def __init__(self):
        self.stack = []         # open events
        self.where = [""]       # module paths, innermost last
        self.grad = [None]      # names of the backward nodes being applied


class Collector:
    """One collection window. ``start`` and ``stop`` install and remove the instruments."""

    def __init__(self, shapes=False, memory=False, stacks=False, device_times=True, flops=True):
        self.shapes, self.memory, self.stacks, self.device_times, self.flops = shapes, memory, stacks, device_times, flops
        self.local = _Thread()
        self.clocks, self.unresolved = {}, []
        self.paths, self.notes = {}, weakref.WeakKeyDictionary()
        self.marks, self.mark_paths = [], []            # backward sequence numbers at which the current module changed
        self.roots = weakref.WeakKeyDictionary()
        self.clear()

    def clear(self):
        """Forget what was collected so far; open events stay open."""
        self.events, self.launches, self.memory_points = [], [], []
        self.unresolved.clear()
        self.started = time.perf_counter_ns()
        self.stopped = None

    # -- start and stop -------------------------------------------------------------------------------------------------
    def start(self):
        if ranges.active is not None:
            raise RuntimeError("profile: another profile is running; profiles cannot be nested")
        synchronize()                                       # what was recorded before is not part of the profile
        if self.device_times:
            default_device().queue                      # opened now, so that it is timed from its first launch on
            for device in list(drivers.opened):
                self._time(device)
        ranges.active = self
        self.instruments = Instruments(self)
        self.instruments.install()
        launcher.recorders = [*(launcher.recorders or ()), self.launched]
        self.clear()

    def stop(self):
        self.stopped = time.perf_counter_ns()
        launcher.recorders = [r for r in launcher.recorders if r != self.launched] or None
        self.instruments.remove()
        ranges.active = None
        for stack in (self.local.stack,):
            while stack:
                self.end(stack[-1])
        self.resolve()
        for device in self.clocks:
            device.profile(False)

    def _time(self, device):
        device.profile(True)
        self.clocks[device] = Clock(device)

    # -- host events ----------------------------------------------------------------------------------------------------
    def begin(self, name, kind, shapes=None) -> Event:
        local = self.local
        stack = local.stack
        parent = stack[-1] if stack else None
        event = Event(name, kind, parent, local.where[-1])
        if self.memory:
            event.memory_start = self.allocated()
        if self.stacks and kind != "module":
            event.stack = _python_stack()
        event.shapes = shapes
        stack.append(event)
        return event

    def end(self, event):
        event.end = time.perf_counter_ns()
        if self.memory:
            now = self.allocated()
            event.memory = now - event.memory_start
            self.memory_points.append((event.end, now))
        stack = self.local.stack
        while stack and stack.pop() is not event:
            pass
        if event.parent is not None:
            event.parent.children.append(event)
        self.events.append(event)

    def allocated(self):
        """Bytes in use on all opened devices."""
        native.unshelve()
        return sum(d.memory._pool.active_bytes for d in drivers.opened)

    # -- modules and backward nodes -----------------------------------------------------------------------------------------
    def enter_module(self, module):
        local = self.local
        path = self.path_of(module)
        local.where.append(path)
        self._mark(path)
        self.begin(path, "module").module = path

    def leave_module(self, module):
        local = self.local
        for event in reversed(local.stack):
            if event.kind == "module":
                self.end(event)
                break
        if len(local.where) > 1:
            local.where.pop()
        self._mark(local.where[-1])

    def path_of(self, module):
        """The dotted path of a module below the outermost module that was called, e.g. ``Net.features.0``."""
        if len(self.local.where) == 1 or module not in self.roots:
            name = type(module).__name__
            for path, child in module.named_modules():
                if child not in self.roots or child is module:
                    self.roots[child] = f"{name}.{path}" if path else name
        return self.roots[module]

    def _mark(self, path):
        from .._tensor import tape
        self.marks.append(next(tape._counter))
        self.mark_paths.append(path)

    def module_of_node(self, node):
        """The module whose forward call made a backward node."""
        at = bisect_right(self.marks, node.seq) - 1
        return self.mark_paths[at] if at >= 0 else ""

    # -- pending nodes --------------------------------------------------------------------------------------------------
    def note(self, node, name):
        """Remember who recorded a pending node."""
        local = self.local
        self.notes[node] = (local.grad[-1] or name, local.where[-1])

    def noted(self, node, name):
        return self.notes.get(node) or (name, "")

    # -- launches -------------------------------------------------------------------------------------------------------
    def launched(self, device, kernel, global_size, local_size, args, event):
        """Called by the runtime after each launch."""
        if self.device_times and device not in self.clocks:
            self._time(device)                          # opened during the profile: this launch is not timed, the next one is
        top = self.local.stack[-1] if self.local.stack else None
        nbytes = top.bytes if top is not None and top.kind == "fused" and top.bytes is not None else traffic.of_buffers(args)
        self._add(Launch(kernel.name, device, self._operator(top), top.module if top is not None else self.local.where[-1], event, top, nbytes,
                         (global_size, local_size)))

    def copied(self, device, name, nbytes, event):
        """Called for each copy or fill that the host asks for."""
        top = self.local.stack[-1] if self.local.stack else None
        self._add(Launch(name, device, self._operator(top), top.module if top is not None else self.local.where[-1], event, top, nbytes))

    def _add(self, launch):
        self.launches.append(launch)
        self.unresolved.append(launch)
        if launch.parent is not None:
            launch.parent.launches.append(launch)
        if len(self.unresolved) > _KEEP:
            self.resolve()

    def _operator(self, top):
        """The operator that a launch is for: fused names, ``GradFn/operator`` in the backward pass, or the function in ``clnn.ops``."""
        grad = self.local.grad[-1]
        if top is None or top.kind not in ("op", "fused", "backward", "foreach", "copy"):
            name = _calling_operator()
            return f"{grad}/{name}" if grad and name else grad or name
        if top.kind == "fused":
            return "+".join(squeeze(top.parts))
        return f"{grad}/{top.name}" if grad and top.kind == "op" else top.name

    # -- times ----------------------------------------------------------------------------------------------------------
    def resolve(self):
        """Wait for the devices and read the times of all launches."""
        for device, clock in self.clocks.items():
            if device.queue is not None:
                clock.finish()
        for launch in self.unresolved:
            clock = self.clocks.get(launch.device)
            event, launch.event = launch.event, None
            if clock is None or event is None:
                continue
            try:
                launch.start, launch.end = clock.host(event.profile.start), clock.host(event.profile.end)
            except Exception:  # enqueued before the device was timed
                continue
            if launch.parent is not None:
                launch.parent.device_ns += launch.end - launch.start
        self._share_work()
        self.unresolved.clear()

    def _share_work(self):
        """The work of an operator counts for its longest launch; if it is the only one, so do the bytes."""
        parents = {id(launch.parent): launch.parent for launch in self.unresolved if launch.parent is not None}
        for event in parents.values():
            timed = [x for x in event.launches if x.start is not None]
            if timed and event.flops:
                max(timed, key=lambda x: x.duration_ns).flops = event.flops
            if len(event.launches) == 1 and event.kind == "op" and event.bytes:
                event.launches[0].bytes = event.bytes


def squeeze(names, limit=24):
    """Names without direct repetitions: ``mul, mul, add`` becomes ``mul×2, add``."""
    out = []
    for name in names:
        if out and out[-1][0] == name:
            out[-1][1] += 1
        else:
            out.append([name, 1])
    texts = [name if count == 1 else f"{name}×{count}" for name, count in out]
    return texts if len(texts) <= limit else [*texts[:limit], f"({len(texts) - limit} more)"]


def _calling_operator():
    """The public function of ``clnn.ops`` that is being called, for launches outside the operator table (creation, random numbers)."""
    frame, name = sys._getframe(2), ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("clnn.ops."):
            name = frame.f_code.co_name
        elif module == "clnn.runtime.capture":
            return "(replayed)"
        elif name and not module.startswith("clnn._tensor"):
            break
        frame = frame.f_back
    return name


def _python_stack(limit=32):
    """``file(line): function`` of the calls outside clnn, innermost first."""
    frame, out = sys._getframe(2), []
    while frame is not None and len(out) < limit:
        if not frame.f_globals.get("__name__", "").startswith("clnn."):
            code = frame.f_code
            out.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return out
