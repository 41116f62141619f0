"""Host ranges: the events of a profile and the named ranges that programs add."""
from __future__ import annotations

import functools
import threading
import time
from enum import Enum
from typing import NamedTuple

active = None           # the Collector of the running profile


class DeviceType(Enum):
    """Where an event took its time."""

    CPU = 0
    CUDA = GPU = 1


class Interval(NamedTuple):
    """A stretch of time in microseconds."""

    start: float
    end: float

    def elapsed_us(self):
        """Its length."""
        return self.end - self.start


class Event:
    """One call on the host: an operator, a fused launch, a backward node, a module, a copy or a named range.

    Times are nanoseconds of ``time.perf_counter_ns``; the ``*_time_total`` properties are microseconds, as in PyTorch.
    """

    __slots__ = ("name", "kind", "start", "end", "parent", "children", "thread", "shapes", "stack", "module", "memory", "flops",
                 "bytes", "launches", "parts", "memory_start", "device_ns")

    def __init__(self, name, kind, parent, module=""):
        self.name, self.kind, self.parent, self.module = name, kind, parent, module
        self.end = self.shapes = self.stack = self.flops = self.bytes = None
        self.thread = threading.get_ident()
        self.children, self.launches, self.parts = [], [], ()
        self.memory = self.memory_start = self.device_ns = 0
        self.start = time.perf_counter_ns()

    @property
    def key(self):
        return self.name

    @property
    def host_ns(self):
        return (self.end or self.start) - self.start

    @property
    def self_host_ns(self):
        return self.host_ns - sum(c.host_ns for c in self.children)

    @property
    def self_device_ns(self):
        """Time of the kernels that this very call launched."""
        return self.device_ns

    @property
    def total_device_ns(self):
        """Also those of the calls inside; deferred computations that merely ran here count for those who recorded them."""
        return self.device_ns + sum(c.total_device_ns for c in self.children if self.kind in ("range", "backward") or c.kind != "fused")

    @property
    def self_memory(self):
        """Bytes that stayed allocated (negative: were freed) by this call without the calls inside."""
        return self.memory - sum(c.memory for c in self.children)

    cpu_time_total = property(lambda self: self.host_ns / 1e3)
    self_cpu_time_total = property(lambda self: self.self_host_ns / 1e3)
    device_time_total = cuda_time_total = property(lambda self: self.total_device_ns / 1e3)
    self_device_time_total = self_cuda_time_total = property(lambda self: self.self_device_ns / 1e3)
    cpu_time, device_time, cuda_time = cpu_time_total, device_time_total, device_time_total
    device_memory_usage = cuda_memory_usage = property(lambda self: self.memory)
    self_device_memory_usage = self_cuda_memory_usage = property(lambda self: self.self_memory)
    cpu_parent, cpu_children = property(lambda self: self.parent), property(lambda self: self.children)
    input_shapes = property(lambda self: self.shapes or [])
    kernels = property(lambda self: self.launches)
    cpu_memory_usage = self_cpu_memory_usage = property(lambda self: 0)
    is_user_annotation = property(lambda self: self.kind == "range")
    id = property(id)
    device_type = DeviceType.CPU                # an event is a call on the host; `kernels` holds what ran on the device
    count = 1

    @property
    def time_range(self):
        """Start and end in microseconds of the clock that the trace file uses too."""
        return Interval(self.start / 1e3, (self.end or self.start) / 1e3)

    def __repr__(self):
        return f"<Event {self.kind} {self.name!r} host {self.host_ns / 1e3:.1f}us device {self.device_ns / 1e3:.1f}us>"


class Launch:
    """One kernel or copy on the device: what ran, for which operator of which module, when, and how much it moved and computed."""

    __slots__ = ("kernel", "device", "operator", "module", "event", "parent", "bytes", "flops", "start", "end", "queued", "sizes")

    def __init__(self, kernel, device, operator, module, event, parent, nbytes, sizes=()):
        self.kernel, self.device, self.operator, self.module = kernel, device, operator, module
        self.event, self.parent, self.bytes, self.sizes = event, parent, nbytes, sizes
        self.flops = self.start = self.end = None
        self.queued = time.perf_counter_ns()

    @property
    def name(self):
        return self.kernel

    @property
    def duration_ns(self):
        return 0 if self.start is None else self.end - self.start

    @property
    def duration(self):
        """Microseconds on the device."""
        return self.duration_ns / 1e3

    def __repr__(self):
        return f"<Launch {self.kernel} of {self.operator or '?'} in {self.module or '?'}: {self.duration:.1f}us>"


class record_function:
    """Give a part of the program a name in the profile; a context manager and a decorator.

    Args:
        name: the name of the range.
        args: a text that is shown with it in the trace.

    Example::

        >>> with clnn.profiler.record_function("data"):
        ...     batch = clnn.ones(4)
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args
        self._open = []

    def __enter__(self):
        self._open.append((active, active.begin(self.name, "range", self.args) if active is not None else None))
        return self

    def __exit__(self, *exc):
        collector, event = self._open.pop()
        if event is not None:
            collector.end(event)

    def __call__(self, fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with record_function(self.name, self.args):
                return fn(*args, **kwargs)
        return wrapper
