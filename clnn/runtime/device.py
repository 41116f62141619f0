"""Devices: names, properties, queue, memory, kernels and the error word.

Names: ``"gpu"``, ``"gpu:1"``, ``"cpu"``, ``"cpu:1"``, ``"cuda"`` (the same as ``"gpu"``), ``"cl:<platform>:<device>"``, or a part of a
device's or platform's name. ``CLNN_DEVICE`` sets the default. Where no driver serves the CPU, a GPU stands in for ``"cpu"``.
"""
from __future__ import annotations

import os
import re
import threading
import zlib
from collections import deque
from dataclasses import replace
from time import perf_counter as clock

import numpy as np

from ..core import native, symbols
from ..core.config import config, device_name
from ..core.errors import DeviceError, OutOfMemoryError
from ..core.warn import warn
from . import affinity, drivers, inline, program, templates
from .backlog import Backlog
from .memory import Memory, human
from .sharing import release
from .transfers import Transfers

_MOMENT = 1e-4                # seconds that are waited awake
_TURNS = 1.0                  # seconds without that after two threads waited in turn
_TEND = 8                     # launches between two times that a device is tended: often enough that it works while the host goes on
_errors: dict[int, tuple] = {}  # code -> (op name, message, exception type); codes are stable across processes


class Device(Transfers):
    """One OpenCL device. Its context and queue are made when they are first needed.

    Attributes:
        kind: ``'gpu'`` or ``'cpu'``; ``index`` is the position in its kind.
        flavour: the driver family that kernels and tunables are chosen by: ``'pocl'``, ``'intel-cpu'``, ``'oclgrind'``,
            ``'rusticl'``, ``'nvidia'``, ``'amd'``, ``'intel-gpu'`` or ``'other'``.
        loops: work-items should walk runs of elements in loops, with local size 1.
        vectors: elementwise kernels should spell vectors out wherever they can.
        is_cpu: a CPU driver whose work-items become loops (rusticl and oclgrind behave like GPUs instead).
        name, platform_name, platform_version, vendor, driver_version: what the driver says of itself.
        has_fp16, has_fp64, has_subgroups, correctly_rounded_divide: optional features.
        compute_units, max_work_group, local_mem, global_mem, max_alloc, max_parameter, cache_line: limits (bytes for the memories).
        registers: bytes of all vector registers together (CPUs; 0 on others): how large a tile a kernel can keep in them.
    """

    stands_in = False       # for a CPU without a driver

    def __init__(self, record, index):
        self.record, self.index = record, index
        self.kind, self.flavour, self.cl_device = record.kind, record.flavour, record.cl_device
        self.is_cpu = self.flavour in ("pocl", "intel-cpu")
        self.cl_index = (record.platform_index, record.device_index)
        for key, value in drivers.properties(record.cl_device).items():
            setattr(self, key, value)
        self.registers = drivers.vector_registers(record.cl_device) if self.is_cpu else 0
        if self.flavour == "rusticl" and self.kind == "cpu":
            self.max_work_group = min(self.max_work_group, 64)
        # Kernels whose work-items walk runs of elements by themselves: PoCL vectorises such loops, and they need no work-groups.
        # Never llvmpipe: it leaves all loops of a work-item, silently, once they made 65535 steps together.
        self.loops = self.flavour == "pocl" or (self.max_work_group < 64 and self.flavour != "rusticl")
        # The driver makes masked stores of guarded work-items, which take twice the time of plain ones where masks are no registers, and where they
        # are it computes in vectors half as wide: functions then cost more than the memory that they pass over.
        self.vectors = self.flavour == "intel-cpu"
        self.default_local = min(64 if self.flavour == "pocl" else 256, self.max_work_group)
        self.tended, self._enqueued = not self.is_cpu, 0           # GPU drivers may leave what is enqueued until they are flushed
        self.caller = None                                         # an affinity.Caller: this thread must leave workers their cores
        self.watches = self.flavour == "pocl" and hasattr(os, "sched_yield")
        self._watcher = threading.get_ident(), 0.0                 # the thread that watched last, and until when none does
        self.driver_caches = self.flavour == "pocl"                # it keeps what it built, so binaries need not be kept once more
        # Own declarations of built-in functions in place of a long header: None until a build showed whether the driver takes them.
        self.declares_builtins = None if self.flavour == "pocl" and not self.has_fp16 else False
        self.near = record.near and config.direct                   # its memory is this process's
        self.calls_kernels = record.direct and config.direct and native.built is not None       # without the driver (direct.py)
        self.marks_kernels = self.calls_kernels and self.flavour == "pocl"      # their names tell their program, by which they are found there
        self.builds_in_parallel = self.flavour in ("intel-gpu", "nvidia", "amd")   # others compile under one lock, or crash
        self.keeps_compilers = self.flavour == "intel-cpu"          # what is compiled holds six times the memory of what is read from a binary
        self.caches_binaries = self.flavour in ("pocl", "intel-cpu", "intel-gpu", "nvidia", "amd")  # rusticl dies on a bad binary
        self.build_options = drivers.build_options(self)
        self.err_dirty, self.checked_buffer, self.word = False, None, None
        self.recording = None    # a capture.Recording that takes transfers instead of the queue
        # Held while anything is enqueued, and by those who ask what still runs until they acted on the answer: threads take turns. Arguments are state of
        # kernel objects, and PoCL 3.1 deadlocks where two threads are inside of its device for short launches.
        self.lock = native.lock()
        self._kernels, self._programs, self.loaded = {}, {}, {}    # loaded: programs by their name on disk
        self.waiting, self.backlog = False, Backlog(self)
        self._context = self._queue = self._memory = self._untimed = None
        self.last = None         # event of what was enqueued last
        self._pending = deque()  # (event, host array) of writes that may still run
        self.hosted = []         # buffers on the memory of arrays
        self.transfers = 0       # how many there were
        self.peek = None         # (id of the buffer that was read last, some of its bytes or None, where they begin), until something is enqueued

    # ---- opening ------------------------------------------------------------------------------------------------------

    def _open(self):
        with self.lock:
            if self._queue is None:
                self.check_process()
                import pyopencl as cl
                from . import ending, launch
                ending.prepare()
                launch.bind(in_parts=not self.is_cpu)
                companion, watch = self.record.companion, affinity.Watch()
                self._context = cl.Context([self.cl_device] if companion is None else [self.cl_device, companion])
                self._queue = cl.CommandQueue(self._context, self.cl_device)
                self.caller = watch.place(self.flavour, self.compute_units)
                self.tended = self.tended or self.caller is not None
                self._memory = Memory(self, self._queue)
                # what cl.enqueue_copy calls in the end, without its choice among all kinds of copies
                self._to_host, self._to_device, self._to_another = cl._cl._enqueue_read_buffer, cl._cl._enqueue_write_buffer, cl._cl._enqueue_copy_buffer
                self.alloc, self.alloc_all = self._memory.alloc, self._memory.alloc_all     # hot: skip one call
                self.queue = self._queue         # likewise: an instance attribute hides __getattr__
                self.inline = inline.open_for(self)
                drivers.opened.append(self)

    def __getattr__(self, key):
        # Only missing attributes come here: what exists after opening is made on first use.
        if key in ("queue", "alloc", "inline"):
            self._open()
            return self.__dict__[key]
        raise AttributeError(f"Device has no attribute {key!r}")

    @property
    def context(self):
        if self._context is None:       # threads that build ask for it while the one that waits for them holds the lock
            self._open()
        return self._context

    @property
    def memory(self) -> Memory:
        self._open()
        return self._memory

    def profile(self, on: bool) -> None:
        """Let the events of later launches carry device times, or not; waits for what was enqueued, as it changes the queue.

        Launches on a timed queue cost more host time on some drivers, hence two queues. What the calling thread runs itself has no times: nothing is.
        """
        self._open()
        if on is (self._untimed is not None):
            return
        import pyopencl as cl
        self.synchronize()
        if on:
            self._untimed, self.inline = (self._queue, self.inline), None
            self._queue = cl.CommandQueue(self._context, self.cl_device, properties=cl.command_queue_properties.PROFILING_ENABLE)
        else:
            (self._queue, self.inline), self._untimed = self._untimed, None
        self.queue = self._queue

    def marker(self):
        """An event that is complete when all that was enqueued before it is."""
        import pyopencl as cl
        self.flush()
        with self.lock:
            self.last = self._call(cl.enqueue_marker, self.queue)
            return self.last

    def check_process(self):
        """Raise where OpenCL cannot work: in a process forked after the first use of a device."""
        if drivers.forked:
            raise DeviceError("OpenCL was used before this process was forked, and drivers do not survive a fork. Start worker processes with "
                              "multiprocessing.get_context('spawn'), use workers that stay on NumPy arrays, or fork before the first use of clnn")

    def poison(self):
        """In a forked child: let the first use raise instead of hanging in the driver."""
        import ctypes
        for keep in (self._queue, self._context, self._memory):  # never destroyed: a driver's destructors hang here, too
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(keep))
        self._queue = self._context = self.__dict__["queue"] = self.inline = None
        self.waiting, self.lock = False, native.lock()      # a thread that is not here any more may hold the old one
        self.__dict__["alloc"] = lambda nbytes: self.check_process()

    def tend(self) -> None:
        """Called after each launch where ``tended``: now and then has a driver begin what it holds back, so that it works while the host goes on, or keeps
        this thread out of the workers' way."""
        self._enqueued += 1
        if self._enqueued % _TEND == 0:
            if self.caller is not None:
                self.caller.step_aside()
            else:
                self.queue.flush()

    def flush(self) -> None:
        """Enqueue what waits for the build of a kernel."""
        if self.waiting:
            self.backlog.flush()

    # ---- data ---------------------------------------------------------------------------------------------------------

    def records(self) -> bool:
        """Whether what this thread does is recorded."""
        recording = self.recording
        return recording is not None and recording.mine()

    def synchronize(self) -> None:
        """Wait for all that was enqueued, then raise what a kernel reported."""
        if drivers.forked:
            self.check_process()
        recording = self.recording
        if recording is not None and recording.mine():
            recording.abandon("synchronize() was called")
        self.flush()
        if self._queue is not None:
            self._watch()
            if not self._idle():
                self._call(self._queue.finish)
            self._forget_writes()
            if self.hosted:
                release(self)
            if self.err_dirty:
                self.check_errors()

    def _idle(self) -> bool:
        """Whether what was enqueued last is complete, so that there is nothing to ask the driver to wait for, which takes it some microseconds."""
        last = self.last
        return last is None or (self.inline.idle() if self.inline is not None else last.command_execution_status == 0)

    def _watch(self) -> None:
        """Wait a moment for what was enqueued without going to sleep, where waking up takes long and this thread has no part in the work."""
        last = self.last
        if last is None or self.inline is not None and last is self.inline.done or last.command_execution_status <= 0:
            return
        if self.caller is not None:
            self.caller.step_aside()
        if self.watches:
            me, now = threading.get_ident(), clock()
            if me != self._watcher[0]:
                self._watcher = me, now + _TURNS
            if now < self._watcher[1]:  # several threads read: each would keep Python's lock from the others meanwhile
                return
            end = now + _MOMENT
            while last.command_execution_status > 0 and clock() < end:
                os.sched_yield()        # a worker thread may need this core

    def _call(self, function, *args, **kwargs):
        """A driver call whose failures become clnn's errors."""
        try:
            return function(*args, **kwargs)
        except Exception as exc:
            self.check_process()
            if getattr(exc, "code", None) in (-4, -5, -6, -61):
                raise OutOfMemoryError(f"{self.name}: {exc}; {self._memory.describe()}") from exc
            raise

    def manner(self) -> tuple:
        """What decides how kernels are launched here, beside what they work on."""
        return self.is_cpu, self.loops, self.vectors, self.compute_units, self.max_work_group

    # ---- kernels ------------------------------------------------------------------------------------------------------

    def kernel(self, path: str, **params) -> program.Kernel:
        """The kernel of ``kernels/<path>.cl.mako`` for these parameters, rendered and built once.

        ``path`` may end in ``:name`` to choose among several kernels of one template (default: the first).
        """
        if symbols.tracing is not None:
            params = {name: symbols.fixed(v) for name, v in params.items()}
        key = (path, tuple(params.items()))
        found = self._kernels.get(key)
        if found is None:
            with self.lock:
                found = self._kernels.get(key) or self._make(path, params)
                self._kernels[key] = found
        return found

    def _make(self, path, params):
        self.check_process()
        template, _, name = path.partition(":")
        ident = (template, tuple(sorted(params.items(), key=lambda kv: kv[0])))
        if ident not in self._programs:
            self._programs[ident] = program.Program(self, templates.render(template, params, self), template, params)
        found = self._programs[ident]
        return program.Kernel(found, name or program.first_kernel_name(found.source))

    def kernel_from_source(self, source: str, name: str) -> program.Kernel:
        """The kernel ``name`` of a generated source, by which it is found again without building."""
        key = (name, source)
        found = self._kernels.get(key)
        if found is None:
            with self.lock:
                self.check_process()
                found = self._kernels.get(key)
                if found is None:
                    found = self._kernels[key] = program.Kernel(program.Program(self, source, name), name)
        return found

    @property
    def wide(self) -> bool:
        """Whether there are 32 vector registers of 64 bytes, as with AVX-512."""
        return self.registers >= 2048

    def lanes(self, ctype: str) -> int:
        """Elements of a compute type in the vectors that kernels for CPUs work with: 64 bytes where registers are so wide, else 32."""
        return (16 if self.wide else 8) // (2 if ctype in ("double", "long") else 1)

    # ---- the error word -----------------------------------------------------------------------------------------------

    @property
    def error_buffer(self):
        """The ``__global int err[4]`` that checked kernels report through; passing it to a launch arms the check."""
        if self.checked_buffer is None:
            self._open()
            buf, word = _host_words(self) if self.is_cpu else (None, None)
            if buf is None:
                buf = self.alloc(16)
                self.write(buf, np.zeros(4, np.int32))
            self.checked_buffer, self.word = buf, word
        return self.checked_buffer

    def error_code(self, op_name: str, message: str, exc=IndexError) -> int:
        """A code for ``CLNN_FAIL``. ``{value}`` in the message becomes the offending value."""
        code = zlib.crc32(f"{op_name}\0{message}\0{exc.__name__}".encode()) & 0x7fffffff or 1
        while _errors.setdefault(code, (op_name, message, exc)) != (op_name, message, exc):
            code = code % 0x7fffffff + 1
        return code

    def check_errors(self) -> None:
        """Raise the failure that a kernel reported since the last check, if any."""
        if self.checked_buffer is None or not self.err_dirty:
            return
        if self.word is not None and not self.word[0] and not self.waiting:
            self.err_dirty = self.last is not None and self.last.command_execution_status != 0      # another thread's
            return
        self.flush()
        self.err_dirty = False
        words = self.read(self.checked_buffer, 16).view(np.int32)
        if words[0] == 0:
            return
        self.write(self.checked_buffer, np.zeros(4, np.int32))
        value = int(words[1:3].copy().view(np.int64)[0])
        op_name, message, exc = _errors.get(int(words[0]), ("kernel", f"unknown error code {int(words[0])}, value {{value}}", RuntimeError))
        raise exc(f"{op_name}: {message.format(value=value)}")

    def look(self) -> None:
        """After a launch in the calling thread, which finds nothing else running: raise at once what it reported."""
        self.err_dirty = False
        if self.word[0]:
            self.err_dirty = True
            self.check_errors()

    def settle(self) -> None:
        """Wait for what was enqueued, and raise what it reported."""
        if self.last is not None:
            self.last.wait()
        if self.err_dirty:
            self.look()

    # ---- names --------------------------------------------------------------------------------------------------------

    def __repr__(self):
        return f"<Device {self.kind}:{self.index} {self.name!r} on {self.platform_name!r}>"

    def __str__(self):
        return f"{self.kind}:{self.index}"

    def __reduce__(self):
        return (get_device, (f"{self.kind}:{self.index}",))

    def __deepcopy__(self, memo):
        return self


def _host_words(device):
    """A buffer of four zeros in memory of the host, and a view of it; (None, None) where the driver works in a copy."""
    import pyopencl as cl
    memory = np.zeros(2048, np.int32)
    start = -memory.ctypes.data % 4096 // 4         # drivers work in aligned memory itself
    words = memory[start:start + 4]
    buf = cl.Buffer(device.context, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=words)
    seen = []
    for value in (1, 0):
        cl.enqueue_fill_buffer(device._queue, buf, np.int32(value), 0, 16).wait()
        seen.append(words.tolist() == [value] * 4)
    return (buf, memoryview(words)) if all(seen) else (None, None)


_devices: list[Device] | None = None
_hidden: list[Device] = []  # simulators: found by name only
_default: Device | None = None
native.give(physical=globals(), Device=Device)
_list_lock = native.lock()


def list_devices() -> list[Device]:
    """All usable devices, best first: discrete GPUs, integrated GPUs, CPUs. Empty when there is none."""
    global _devices, _hidden
    if _devices is None:
        with _list_lock:
            if _devices is None:
                normal, simulators = drivers.usable()
                counts: dict = {}
                made = []
                for record in normal + simulators:
                    made.append(Device(record, counts.setdefault(record.kind, 0)))
                    counts[record.kind] += 1
                _hidden = made[len(normal):]
                _devices = made[:len(normal)]
    return _devices


def default_device() -> Device:
    """The device of :func:`set_default_device`, else of ``CLNN_DEVICE``, else the best ranked one."""
    global _default
    if _default is None:
        wanted = device_name()
        devices = list_devices()
        if not devices:
            raise DeviceError(drivers.no_device_text())
        _default = get_device(wanted) if wanted else devices[0]
        if _default.stands_in:
            _default = None
            raise DeviceError(f"CLNN_DEVICE={wanted}: {_lacking_cpu()}")
    return _default


def set_default_device(spec) -> Device:
    """Make a device the default for new tensors; None goes back to ``CLNN_DEVICE`` or the best ranked one."""
    global _default
    _default = None if spec is None else get_device(spec)
    return default_device()


_by_spec: dict = {}


def get_device(spec=None) -> Device:
    """The device called ``spec``: None (the default), a name, an index in ranking order, or a Device.

    Raises:
        DeviceError: no device of that name; the text lists those that exist.
    """
    if isinstance(spec, Device):
        return spec
    if spec is None:
        return default_device()
    found = _by_spec.get(spec)
    if found is None:
        found = _by_spec[spec] = _resolve(spec)
    return found


def _resolve(spec):
    devices = list_devices()
    if not devices:
        raise DeviceError(drivers.no_device_text())
    if isinstance(spec, int) and not isinstance(spec, bool):
        if 0 <= spec < len(devices):
            return devices[spec]
    elif isinstance(spec, str):
        text = spec.strip().lower()
        kind, _, number = text.partition(":")
        kind = "gpu" if kind == "cuda" else kind
        if kind in ("gpu", "cpu"):
            match = [d for d in devices if d.kind == kind and (not number or str(d.index) == number)]
            if text in ("cpu", "cpu:0") and not match:
                return _stand_in(devices[0])
        elif kind == "cl":
            match = [d for d in devices + _hidden if "cl:%d:%d" % d.cl_index == text]
        else:
            whole = re.compile(rf"(?<![a-z0-9]){re.escape(text)}(?![a-z0-9])")      # parts of words name nothing
            match = [d for d in devices + _hidden if text and whole.search(f"{d.name}\n{d.platform_name}\n{d.vendor}\n{d.flavour}".lower())]
        if match:
            return match[0]
    else:
        raise TypeError(f"a device is given by a name, an index or a Device, got {type(spec).__name__}")
    raise DeviceError(f"no OpenCL device {spec!r} here; there are\n{_known(devices, spec)}`python -m clnn doctor` tells why a device is missing")


def _known(devices, spec):
    known = "\n".join(f"  {d} = cl:{d.cl_index[0]}:{d.cl_index[1]}  {d.name} ({d.platform_name})" for d in devices)
    lacks_cpu = str(spec).strip().lower().startswith("cpu") and not any(d.kind == "cpu" for d in devices)
    return known + "\n" + ('`pip install "clnn[cpu]"` installs a driver for the CPU, ' if lacks_cpu else "")


def _lacking_cpu():
    return 'no OpenCL driver serves the CPU of this machine; `pip install "clnn[cpu]"` installs one, `python -m clnn doctor` tells more'


_stood_in: dict = {}


def _stand_in(device) -> Device:
    """``device`` once more, under the name of the CPU: ``x.cpu().numpy()``, ``map_location="cpu"`` and all else that programs do with tensors on the CPU
    then gives what it should, if in the memory of a GPU."""
    with _list_lock:
        found = _stood_in.get(device)
        if found is None:
            warn(f"device 'cpu': {_lacking_cpu()}. Until then its tensors are kept in the memory of {device.name}, which computes with them")
            found = _stood_in[device] = Device(replace(device.record, kind="cpu"), 0)
            found.stands_in = True
    return found


def describe(device: Device) -> str:
    """One line about a device."""
    return (f"{device}  {device.name} [{device.flavour}] {device.compute_units} units, {human(device.global_mem)} memory, "
            f"work-group <= {device.max_work_group}")
