"""PyTorch's ``cuda`` functions for OpenCL GPUs, so that programs written for it run: ``"cuda"`` is another name of ``"gpu"``.

Where there is no GPU, :func:`is_available` is False and functions without a device argument mean the default device. There is one queue
per device, so streams change nothing; events take the host's time when the device reaches them.
"""
from __future__ import annotations

import contextlib
import sys
import time
import types

import clnn
from clnn import random as _random
from clnn._typed import types_of as _types_of
from clnn._tensor import device as _names
from clnn.amp._by_device import module_for as _amp
from clnn.core.errors import AcceleratorError, DeviceError, OutOfMemoryError  # noqa: F401
from clnn.graph.node import realize_all
from clnn.runtime import device as _physical

__path__ = []           # so that "import clnn.cuda.amp" looks for the modules made here
_current = [None]       # number chosen by set_device


def _gpus():
    try:
        return [d for d in _physical.list_devices() if d.kind == "gpu"]
    except DeviceError:
        return []


def _device(device=None):
    """The physical device of a ``device=`` argument: None, a number, a name or a device."""
    if device is None and _current[0] is None:
        return _names.resolve(None)
    number = _current[0] if device is None else device
    if isinstance(number, int):
        gpus = _gpus()
        if not 0 <= number < len(gpus):
            if not gpus and number == 0:
                return _names.resolve(None)
            raise DeviceError(f"there is no GPU number {number}; found {len(gpus)}")
        return gpus[number]
    return _names.resolve(number)


# -- devices --------------------------------------------------------------------------------------------------------------------

def is_available() -> bool:
    """True when there is an OpenCL GPU."""
    return bool(_gpus())


def is_initialized() -> bool:
    """Whether there is a GPU: it opens itself when it is used."""
    return is_available()


def __getattr__(name):
    if name == "_initialized":              # what reversible networks ask before they note a GPU's generators
        return is_initialized()
    raise AttributeError(f"module 'clnn.cuda' has no attribute {name!r}")


def init():
    """Nothing to do."""


def device_count() -> int:
    """Number of OpenCL GPUs."""
    return len(_gpus())


def current_device() -> int:
    """Number of the GPU that is the default."""
    if _current[0] is not None:
        return _current[0]
    default = _names.resolve(None)
    return default.index if default.kind == "gpu" else 0


def set_device(device) -> None:
    """Make a GPU the default device; negative numbers change nothing."""
    number = device if isinstance(device, int) else clnn.device(device).index or 0
    if number >= 0:
        _names.set_default_device(_device(number))
        _current[0] = number


class device:
    """Make a GPU the default device inside a ``with`` block; a negative number or None changes nothing."""

    def __init__(self, device):
        number = -1 if device is None else device if isinstance(device, int) else clnn.device(device).index or 0
        self._inner = _names.device("gpu", number) if number >= 0 else contextlib.nullcontext()

    def __enter__(self):
        return self._inner.__enter__()

    def __exit__(self, *exc):
        return self._inner.__exit__(*exc)


def device_of(obj):
    """The block of :class:`device` for the device of the tensor ``obj``."""
    return device(obj.get_device() if obj.is_cuda else -1)


def get_device_name(device=None) -> str:
    """What the driver calls the device."""
    return _device(device).name


def get_device_capability(device=None):
    """(major, minor) of the driver's OpenCL version: there is no compute capability."""
    words = _device(device).platform_version.split()
    major, _, minor = (words[1] if len(words) > 1 else "1.2").partition(".")
    return int(major), int(minor or 0)


def get_device_properties(device=None):
    """Name, memory and compute units of a device."""
    d = _device(device)
    major, minor = get_device_capability(device)
    return types.SimpleNamespace(name=d.name, major=major, minor=minor, total_memory=d.global_mem, multi_processor_count=d.compute_units,
                                 max_threads_per_block=d.max_work_group, shared_memory_per_block=d.local_mem, warp_size=32, is_integrated=False)


def get_arch_list():
    """Empty: kernels are compiled by the driver."""
    return []


def can_device_access_peer(device, peer_device) -> bool:
    """False: copies between devices go through the host."""
    return False


def is_bf16_supported(including_emulation=True) -> bool:
    """True: bfloat16 is stored everywhere and computed in float32."""
    return True


def synchronize(device=None) -> None:
    """Wait until a device has finished (default: all opened ones)."""
    clnn.synchronize(None if device is None else _device(device))


# -- memory ---------------------------------------------------------------------------------------------------------------------

def memory_stats(device=None) -> dict:
    """Counts of the device's memory under PyTorch's names."""
    s = _device(device).memory.stats()
    return {"allocated_bytes.all.current": s["allocated"], "allocated_bytes.all.peak": s["peak_allocated"],
            "reserved_bytes.all.current": s["reserved"], "reserved_bytes.all.peak": s["reserved"], "num_alloc_retries": s["retries"],
            "active.all.current": s["active_buffers"]}


def memory_allocated(device=None) -> int:
    """Bytes in use by tensors."""
    return _device(device).memory.stats()["allocated"]


def max_memory_allocated(device=None) -> int:
    """The most bytes that were in use at a time since :func:`reset_peak_memory_stats`."""
    return _device(device).memory.stats()["peak_allocated"]


def memory_reserved(device=None) -> int:
    """Bytes that clnn holds, with those kept for reuse."""
    return _device(device).memory.stats()["reserved"]


def max_memory_reserved(device=None) -> int:
    """Same as :func:`memory_reserved`, or the peak of the used bytes if that was more."""
    s = _device(device).memory.stats()
    return max(s["reserved"], s["peak_allocated"])


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device=None) -> None:
    """Start the peak anew."""
    _device(device).memory.reset_peak()


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None) -> None:
    """Nothing to reset."""


def mem_get_info(device=None):
    """(free, total) bytes; free is what clnn does not hold, as OpenCL tells nothing of other programs."""
    d = _device(device)
    return max(0, d.global_mem - d.memory.stats()["reserved"]), d.global_mem


def memory_summary(device=None, abbreviated=False) -> str:
    """The memory counts as text."""
    return "\n".join(f"{key:<32}{value:>16,}" for key, value in memory_stats(device).items())


def empty_cache() -> None:
    """Give unused pooled memory of all devices back to their drivers."""
    from clnn.runtime import drivers
    for d in list(drivers.opened):
        d.memory.empty_cache()


def ipc_collect() -> None:
    """Nothing to collect."""


def set_per_process_memory_fraction(fraction, device=None) -> None:
    """Accepted; OpenCL has no such limit."""


# -- random numbers -------------------------------------------------------------------------------------------------------------

manual_seed = manual_seed_all = _random.manual_seed
seed = seed_all = _random.seed
initial_seed = _random.initial_seed
get_rng_state, set_rng_state = _random.get_rng_state, _random.set_rng_state
get_rng_state_all, set_rng_state_all = _random.get_rng_state_all, _random.set_rng_state_all


# -- streams and events -----------------------------------------------------------------------------------------------------------

class Event:
    """A point in a device's work. ``elapsed_time`` gives the milliseconds between two that were made with ``enable_timing``.

    Example:
        >>> start, end = clnn.Event(enable_timing=True), clnn.Event(enable_timing=True)
        >>> start.record()
        >>> y = clnn.ones(2) * 2
        >>> end.record()
        >>> clnn.synchronize()
        >>> start.elapsed_time(end) >= 0
        True
    """

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, *, device=None):
        self.enable_timing, self._marker, self._time, self._recorded = enable_timing, None, None, 0.0

    def record(self, stream=None):
        """Mark the work up to here."""
        self._time, self._recorded, device = None, time.perf_counter(), _device()
        realize_all(device)
        self._marker = marker = device.marker()

        def reached(status):
            if self._marker is marker:
                self._time = time.perf_counter()
        if self.enable_timing:
            marker.set_callback(0, reached)     # 0: CL_COMPLETE

    def query(self) -> bool:
        """True when the device has reached the mark."""
        return self._marker is None or self._marker.command_execution_status <= 0

    def wait(self, stream=None):
        """Nothing to do: one queue runs everything in order."""

    def synchronize(self):
        """Wait until the device has reached the mark."""
        if self._marker is not None:
            self._marker.wait()
            for _ in range(2000):               # the driver calls back from a thread of its own
                if self._time is not None or not self.enable_timing:
                    return
                time.sleep(1e-4)
            self._time = time.perf_counter()

    def elapsed_time(self, end) -> float:
        """Milliseconds from this mark to ``end``."""
        if not (self.enable_timing and end.enable_timing):
            raise ValueError("elapsed_time: both events need enable_timing=True")
        if self._marker is None or end._marker is None:
            raise ValueError("elapsed_time: both events need to be recorded before")
        self.synchronize()
        end.synchronize()
        elapsed = 1e3 * (end._time - self._time)
        return max(elapsed, 0.0) if end._recorded >= self._recorded else elapsed    # a driver calls back for two close marks in any order


class Stream:
    """The device's one queue under another name.

    Example:
        >>> s = clnn.Stream()
        >>> y = clnn.ones(2) * 2
        >>> s.synchronize()
        >>> s.query()
        True
    """

    def __init__(self, device=None, priority=0, **kwargs):
        self.device, self.priority, self.cuda_stream = device, priority, 0

    def synchronize(self):
        """Wait until the device has finished."""
        clnn.synchronize(_device(self.device))

    def query(self) -> bool:
        """Whether the device has finished; waits for it."""
        self.synchronize()
        return True

    def wait_event(self, event):
        """Nothing to do: one queue runs everything in order."""

    def wait_stream(self, stream):
        """Nothing to do: one queue runs everything in order."""

    def record_event(self, event=None):
        """Record an event."""
        event = event or Event()
        event.record()
        return event

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass


ExternalStream = Stream


def current_stream(device=None) -> Stream:
    """The queue."""
    return Stream(device)


default_stream = current_stream


def stream(stream):
    """A ``with`` block that changes nothing."""
    return stream if stream is not None else contextlib.nullcontext()


def set_stream(stream) -> None:
    """Nothing to set."""


# -- submodules -------------------------------------------------------------------------------------------------------------------

def _submodule(name, **members):
    module = types.ModuleType(f"{__name__}.{name}")
    vars(module).update(members)
    sys.modules[module.__name__] = module
    return module


amp = _amp(__name__, "cuda")
amp.amp_definitely_not_available = lambda: not is_available()
nvtx = _submodule("nvtx", range_push=lambda msg: 0, range_pop=lambda: 0, mark=lambda msg: None,
                  range=lambda msg, *a, **k: clnn.profiler.record_function(msg))
profiler = _submodule("profiler", start=lambda: None, stop=lambda: None, profile=contextlib.nullcontext)


# -- the rest: constructors, and answers of a device that records no graphs --------------------------------------------------------
globals().update(_types_of(__name__, "cuda"))
StreamContext = Stream


def _lazy_init():
    """Nothing: a device is opened when it is first used."""


def _lazy_call(callable, **kwargs):     # noqa: A002
    """``callable()``, at once."""
    callable()


default_generators = ()
has_half = True


def is_current_stream_capturing() -> bool:
    """False."""
    return False


def is_tf32_supported() -> bool:
    """False: float32 products are computed in float32."""
    return False


def get_allocator_backend() -> str:
    """``"native"``."""
    return "native"


def set_sync_debug_mode(debug_mode) -> None:
    """Accepted."""


def get_sync_debug_mode() -> int:
    """0."""
    return 0


def memory_stats_as_nested_dict(device=None):
    """:func:`memory_stats`."""
    return memory_stats(device)


class CUDAGraph:
    """Refused: :func:`clnn.compile` records a step and replays its launches."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("cuda.CUDAGraph: graphs of launches are recorded by clnn.compile")


def graph(*args, **kwargs):
    """Refused, as :class:`CUDAGraph`."""
    CUDAGraph()


make_graphed_callables = graph
