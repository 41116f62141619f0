"""Building programs: kernel objects, the disk cache of binaries, the lock around PoCL's own cache, and readable build errors."""
from __future__ import annotations

import contextlib
import hashlib
import os
import re
import struct
import tempfile
import threading
import warnings
import zlib

from ..core.config import cache_dir, config
from ..core.errors import KernelBuildError

_MAGIC = b"clnn-bin1"
_UNSET = object()  # not None: None is a legal argument (a null pointer)
_KERNEL = re.compile(r"\b(?:__kernel|kernel)\s+(?:__attribute__\s*\(\(.*?\)\)\s*)*void\s+(?:__attribute__\s*\(\(.*?\)\)\s*)*(\w+)", re.S)


class Kernel:
    """One built kernel of one device, with what :func:`~clnn.runtime.launch.launch` remembers between launches."""

    __slots__ = ("cl", "name", "device", "set_arg", "set_bytes", "last_args", "lock", "sizes", "seen_locals", "_limits", "source")

    def __init__(self, device, cl_kernel, name, source):
        self.cl, self.name, self.device, self.source = cl_kernel, name, device, source
        self.set_arg, self.set_bytes = cl_kernel.set_arg, cl_kernel._set_arg_buf
        self.lock = threading.Lock()  # arguments are state of the kernel object: bind + enqueue must not interleave
        self.last_args = [_UNSET] * cl_kernel.num_args
        self.sizes, self.seen_locals, self._limits = {}, set(), None

    def forget_args(self):
        self.last_args[:] = [_UNSET] * len(self.last_args)

    def clone(self) -> "Kernel":
        """A kernel with arguments of its own (for a recorded launch list)."""
        twin = Kernel(self.device, _twin(self.cl), self.name, self.source)
        twin.sizes, twin.seen_locals = self.sizes, self.seen_locals
        return twin

    def _info(self):
        if self._limits is None:
            import pyopencl as cl
            info, dev = cl.kernel_work_group_info, self.device.cl_device
            found = []
            for key in (info.WORK_GROUP_SIZE, info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, info.LOCAL_MEM_SIZE, info.PRIVATE_MEM_SIZE,
                        info.COMPILE_WORK_GROUP_SIZE):
                try:
                    value = self.cl.get_work_group_info(key, dev)
                except cl.Error:  # rusticl 22.3 answers INVALID_VALUE to some
                    value = {info.WORK_GROUP_SIZE: self.device.max_work_group, info.COMPILE_WORK_GROUP_SIZE: (0, 0, 0)}.get(key, 1)
                found.append(tuple(value) if isinstance(value, (list, tuple)) else int(value))
            self._limits = tuple(found)
        return self._limits

    @property
    def max_work_group(self) -> int:
        """The largest work-group that *this compiled kernel* may have (registers can make it smaller than the device's)."""
        return self._info()[0]

    @property
    def preferred_multiple(self) -> int:
        """The work-group size should be a multiple of this (warp or wavefront width)."""
        return self._info()[1]

    @property
    def local_mem(self) -> int:
        """Bytes of local memory that it uses."""
        return self._info()[2]

    @property
    def private_mem(self) -> int:
        """Bytes of private memory per work-item (spills show here on some drivers)."""
        return self._info()[3]

    @property
    def compile_local(self) -> tuple:
        """``reqd_work_group_size``, or (0, 0, 0)."""
        return self._info()[4]

    def __repr__(self):
        return f"<Kernel {self.name} on {self.device.name}>"


def _twin(cl_kernel):
    import pyopencl as cl
    return cl.Kernel(cl_kernel.program, cl_kernel.function_name)


def first_kernel_name(source: str) -> str:
    """The name of the first kernel that an OpenCL C source defines."""
    found = _KERNEL.search(source)
    if found is None:
        raise KernelBuildError("the source defines no kernel")
    return found.group(1)


def build(device, source: str, label: str, params=None):
    """A built ``pyopencl.Program`` from the disk cache, else compiled. ``label`` and ``params`` only serve the error message."""
    import pyopencl as cl

    options = list(device.build_options)
    path = _cache_path(device, source, options)
    binary = _read_cached(path)
    if binary is not None:
        try:
            return _build(cl.Program(device.context, [device.cl_device], [binary]), options, device)
        except Exception:  # of another driver build, or damaged in a way that the checksum cannot see
            _discard(path)
    program = cl.Program(device.context, source)
    try:
        with device.build_lock():
            program = _build(program, options, device)
    except cl.Error as exc:
        raise KernelBuildError(_build_text(device, source, label, params, options, exc)) from None
    if path is not None:
        _write_cached(path, program)
    return program


def _build(program, options, device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyopencl's CompilerWarning: drivers print vectoriser remarks as build logs
        return program.build(options, devices=[device.cl_device], cache_dir=False)


# ---- the disk cache -------------------------------------------------------------------------------------------------------

def _cache_path(device, source, options):
    if config.no_cache or not device.caches_binaries:
        return None
    key = "\0".join([source, " ".join(options), device.platform_name, device.platform_version, device.name, device.driver_version])
    digest = hashlib.sha256(key.encode()).hexdigest()
    return cache_dir("kernels", digest[:2]) / (digest + ".bin")


def _read_cached(path):
    """The binary, or None where there is none or it is damaged (a damaged file is removed, so it is built again)."""
    if path is None:
        return None
    try:
        blob = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 4
    if blob.startswith(_MAGIC) and len(blob) > head and struct.unpack("<I", blob[head - 4:head])[0] == zlib.crc32(blob[head:]):
        return blob[head:]
    _discard(path)
    return None


def _discard(path):
    with contextlib.suppress(OSError):
        path.unlink()


def _write_cached(path, program):
    """Whole or not at all: a temporary name, fsync, rename. A full disk only means that it is built again next time."""
    import pyopencl as cl
    try:
        binary = program.get_info(cl.program_info.BINARIES)[0]
        if not binary:
            return
        handle, temp = tempfile.mkstemp(dir=path.parent, prefix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + struct.pack("<I", zlib.crc32(binary)) + binary)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temp, path)
        except BaseException:
            _discard(type(path)(temp))
            raise
    except (OSError, cl.Error):
        pass


class FileLock:
    """An advisory lock between processes (and threads); it does nothing where the system has no ``fcntl``."""

    def __init__(self, name: str):
        self._name, self._file, self._depth = name, None, 0
        self._threads = threading.RLock()

    def __enter__(self):
        self._threads.acquire()
        self._depth += 1
        if self._depth == 1:
            try:
                import fcntl
                self._file = open(cache_dir() / self._name, "a")
                fcntl.flock(self._file, fcntl.LOCK_EX)
            except (ImportError, OSError):
                pass
        return self

    def __exit__(self, *exc):
        self._depth -= 1
        if self._depth == 0 and self._file is not None:
            self._file.close()  # closing releases the lock, also when the process dies
            self._file = None
        self._threads.release()


# ---- build errors ---------------------------------------------------------------------------------------------------------

_FAULT = re.compile(r"(?:^|[\s:<>\w./()-]):(\d+):(\d+): *(?:fatal )?error", re.M)


def _build_text(device, source, label, params, options, exc):
    log = str(exc)
    for marker in ("Build on <", "Build log:"):
        log = log[log.index(marker):] if marker in log else log
    lines = source.split("\n")
    faults = [int(m.group(1)) for m in _FAULT.finditer(log)][:3] or [n for n in _any_line_numbers(log, len(lines))][:1]
    shown = "\n".join(numbered(lines, n) for n in dict.fromkeys(faults)) or numbered(lines, 1, 15)
    params = ", ".join(f"{k}={v!r}" for k, v in (params or {}).items()) or "none"
    return (f"{label}: build failed on {device.name} ({device.platform_name})\n  parameters: {params}\n  options: {' '.join(options)}\n"
            f"{shown}\n{log.strip()[:4000]}")


def _any_line_numbers(log, limit):
    return (int(n) for n in re.findall(r":(\d+):", log) if 0 < int(n) <= limit)


def numbered(lines, at, around=6) -> str:
    """The lines around line ``at`` (1-based) with numbers and a mark."""
    first, last = max(1, at - around), min(len(lines), at + around)
    return "\n".join(f"{'>' if n == at else ' '}{n:5d} | {lines[n - 1]}" for n in range(first, last + 1))
