"""``profile``: a window in which a program is watched, with PyTorch's interface."""
from __future__ import annotations

import enum
import os
import socket
import time

from . import trace
from .averages import Rows, by_kernel, by_module, by_operator
from .collector import Collector


class ProfilerActivity(enum.Enum):
    """What to watch: the host (``CPU``) and the OpenCL devices (``GPU``, which ``CUDA`` and ``XPU`` also mean)."""

    CPU = 0
    GPU = 1
    CUDA = 1
    XPU = 1
    OPENCL = 1


def supported_activities():
    """Both activities.

    Example:
        >>> len(clnn.profiler.supported_activities())
        2
    """
    return {ProfilerActivity.CPU, ProfilerActivity.GPU}


class ProfilerAction(enum.Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """Which steps to record: after ``skip_first`` steps, cycles of ``wait``, ``warmup`` and ``active`` steps.

    Args:
        wait: steps at the start of a cycle that are not watched.
        warmup: steps that are watched and forgotten.
        active: steps that are recorded.
        repeat: number of cycles; 0 means until the end.
        skip_first: steps before the first cycle.
        skip_first_wait: 1 leaves out the wait of the first cycle.

    Example::

        >>> plan = clnn.profiler.schedule(wait=1, warmup=1, active=2)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, active, repeat, skip_first) < 0 or active == 0:
        raise AssertionError(f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
                             f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0).")

    def action(step):
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, at = divmod(step, wait + warmup + active)
        if repeat and cycle >= repeat or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == wait + warmup + active - 1 else ProfilerAction.RECORD
    return action


def _default_schedule_fn(_):
    """Record at every step."""
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An ``on_trace_ready`` that writes each recorded window as ``<worker>.<time>.pt.trace.json`` into a folder."""
    def handler(prof):
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))
    return handler


def _never(step):
    return ProfilerAction.NONE


class profile:
    """Watch a program: which operator, kernel and module takes how long, on the host and on the device.

    Args:
        activities: what to watch; default both. Without ``GPU`` device times are missing, unless the default device is the CPU.
        schedule: from :func:`schedule`; needs :meth:`step` after each step. Default: everything between start and stop.
        on_trace_ready: called with the profile when a recorded window ends.
        record_shapes: keep the shapes of inputs, for ``key_averages(group_by_input_shape=True)``.
        profile_memory: keep what each call allocates.
        with_stack: keep the Python source lines of each call.
        with_flops, with_modules: accepted; both are always known.
        enabled, use_cuda, use_cpu, use_device: as PyTorch's older ``autograd.profiler.profile`` has them; False for the first watches nothing.

    Raises:
        RuntimeError: a second profile is started while one runs.

    Example::

        >>> with clnn.profiler.profile() as prof:
        ...     y = clnn.ones(100, 100) @ clnn.ones(100, 100)
        >>> any(row.key == "mm" for row in prof.key_averages())
        True
    """

    def __init__(self, enabled=True, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False, with_stack=False,
                 with_flops=False, with_modules=False, experimental_config=None, execution_trace_observer=None, acc_events=False,
                 use_cuda=None, use_cpu=True, use_device=None, use_kineto=False, custom_trace_id_callback=None):
        if not enabled:
            schedule = _never
        self.activities = set(activities) if activities is not None else supported_activities()
        if use_cuda:
            self.activities.add(ProfilerActivity.GPU)
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.step_num = 0
        self.metadata = {}
        self._action = schedule(0) if schedule is not None else ProfilerAction.RECORD
        self._collector = self._finished = self._step_event = None

    # -- running --------------------------------------------------------------------------------------------------------
    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def start(self):
        """Begin to watch (as the schedule says for step 0)."""
        if self._action is not ProfilerAction.NONE:
            self._begin()
        self._open_step()

    def stop(self):
        """End the profile; a window that is being recorded is handed to ``on_trace_ready``."""
        self._close_step()
        recording = self._collector is not None and self._action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._finish()
        if recording and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self):
        """Say that the next step of the program begins."""
        self._close_step()
        before, self.step_num = self._action, self.step_num + 1
        self._action = after = self.schedule(self.step_num) if self.schedule is not None else ProfilerAction.RECORD
        if before is ProfilerAction.RECORD_AND_SAVE or (self._collector is not None and after is ProfilerAction.NONE):
            self._finish()
            if before is not ProfilerAction.WARMUP and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if after is not ProfilerAction.NONE and self._collector is None:
            self._begin()
        elif before is ProfilerAction.WARMUP and after is not ProfilerAction.WARMUP:
            self._collector.resolve()                   # the launches of the warm-up do not reach into the window
            self._collector.clear()
        self._open_step()

    def _begin(self):
        from ..runtime.device import default_device
        timed = ProfilerActivity.GPU in self.activities or default_device().kind == "cpu"
        self._collector = Collector(self.record_shapes, self.profile_memory, self.with_stack, timed)
        self._collector.start()

    def _finish(self):
        if self._collector is not None:
            self._collector.stop()
            self._finished, self._collector = self._collector, None

    def _open_step(self):
        if self.schedule is not None and self._collector is not None:
            self._step_event = self._collector.begin(f"ProfilerStep#{self.step_num}", "range")

    def _close_step(self):
        if self._step_event is not None and self._collector is not None:
            self._collector.end(self._step_event)
        self._step_event = None

    # -- results --------------------------------------------------------------------------------------------------------
    def _data(self) -> Collector:
        data = self._collector or self._finished
        if data is None:
            raise RuntimeError("profile: nothing was recorded; start() it, and with a schedule call step() until an active step")
        if data.unresolved:
            data.resolve()
        return data

    def _rows(self, rows, view, options=()):
        return Rows(rows, view, dict.fromkeys(launch.device for launch in self._data().launches), options)

    def events(self):
        """All host events, in the order in which they ended."""
        rows = self._rows(self._data().events, "operators")
        rows.profile = self
        return rows

    @property
    def self_cpu_time_total(self):
        """Host time of everything, in microseconds."""
        return self.events().self_cpu_time_total

    def table(self, *args, **kwargs):
        """All events as a text; see ``key_averages().table()`` for sums per operator."""
        return self.events().table(*args, **kwargs)

    function_events = property(events)

    def launches(self):
        """All kernel launches and copies with their operator, module, times and estimated bytes."""
        return list(self._data().launches)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False, group_by_module=False):
        """Sums per operator (and shapes, source lines or module): a list with ``table(sort_by=, row_limit=)``."""
        options = [name for name, on in (("memory", self.profile_memory), ("shapes", group_by_input_shape), ("stack", group_by_stack_n),
                                         ("module", group_by_module)) if on]
        return self._rows(by_operator(self._data().events, group_by_input_shape, group_by_stack_n, group_by_module), "operators", options)

    def kernels(self):
        """Sums per kernel, operator and module: device time, share, and how near it is to the device's bandwidth and peak."""
        return self._rows(by_kernel(self._data().launches), "kernels")

    def modules(self):
        """Sums per module (its own work, without that of its children): forward and backward device time."""
        data = self._data()
        types = {path: type(module).__name__ for module, path in data.roots.items()}
        return self._rows(by_module(data.events, data.launches, types), "modules")

    def total_average(self):
        """One row that adds up everything."""
        return self.key_averages().total_average()

    def export_chrome_trace(self, path):
        """Write the window for chrome://tracing or ui.perfetto.dev; host and device events share one clock."""
        trace.write(path, self._data(), self.metadata)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write collapsed stacks weighted by ``self_cpu_time_total`` or ``self_device_time_total`` (needs ``with_stack``)."""
        if metric not in ("self_cpu_time_total", "self_device_time_total", "self_cuda_time_total"):
            raise ValueError(f"export_stacks: unknown metric {metric!r}; use 'self_cpu_time_total' or 'self_device_time_total'")
        trace.stacks(path, self._data().events, metric)

    def add_metadata(self, key, value):
        """Put a text under ``key`` into the trace file."""
        self.metadata[key] = value

    def add_metadata_json(self, key, value):
        """Put a JSON text under ``key`` into the trace file."""
        import json
        self.metadata[key] = json.loads(value)

    def __str__(self):
        return self.key_averages().table()
