"""Building programs: kernel objects, use of the disk cache, and readable build errors."""
from __future__ import annotations

import re
import threading
import warnings

from ..core.errors import KernelBuildError
from . import diskcache

_UNSET = object()  # not None: None is a legal argument (a null pointer)
_KERNEL = re.compile(r"\b(?:__kernel|kernel)\s+(?:__attribute__\s*\(\(.*?\)\)\s*)*void\s+(?:__attribute__\s*\(\(.*?\)\)\s*)*(\w+)", re.S)


class Kernel:
    """One built kernel of one device, with what :func:`~clnn.runtime.launch.launch` remembers between launches."""

    __slots__ = ("cl", "name", "device", "set_arg", "set_bytes", "last_args", "lock", "sizes", "seen", "_limits", "built")

    def __init__(self, built, name, cl_kernel=None):
        if cl_kernel is None:
            import pyopencl as cl
            cl_kernel = cl.Kernel(built.program, name)
        self.cl, self.name, self.device, self.built = cl_kernel, name, built.device, built
        self.set_arg, self.set_bytes = cl_kernel.set_arg, cl_kernel._set_arg_buf
        self.lock = threading.Lock()  # arguments are state of the kernel object: bind + enqueue must not interleave
        self.last_args = [_UNSET] * cl_kernel.num_args
        self.sizes, self.seen, self._limits = {}, set(), None

    def forget_args(self):
        self.last_args[:] = [_UNSET] * len(self.last_args)

    def clone(self) -> "Kernel":
        """A kernel with arguments of its own (for a recorded launch list)."""
        twin = Kernel(self.built, self.name)
        twin.sizes, twin.seen = self.sizes, self.seen
        return twin

    @property
    def source(self) -> str:
        """The OpenCL C it was built from."""
        return self.built.source

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


def first_kernel_name(source: str) -> str:
    """The name of the first kernel that an OpenCL C source defines."""
    found = _KERNEL.search(source)
    if found is None:
        raise KernelBuildError("the source defines no kernel")
    return found.group(1)


class Built:
    """A built program with its place in the disk cache."""

    def __init__(self, device, program, source, path, variants, snapshot):
        self.device, self.program, self.source, self.path = device, program, source, path
        self.variants = variants    # of PoCL: what the cached binary holds of kernel x local size x grid class
        self._snapshot = snapshot   # PoCL answers every request for a program's binary like the first one

    def first_launch(self, variant: str, enqueue):
        """Launch a variant that this process did not launch before. PoCL compiles it now; then the cache entry is renewed."""
        if not self.device.compiles_at_launch:
            return enqueue()
        with self.device.build_lock():
            event = enqueue()
            event.wait()
            if self.path is not None and variant not in self.variants:
                self.variants.add(variant)
                self._save()
        return event

    def _save(self):
        import pyopencl as cl
        try:
            program = self.program
            if self._snapshot:  # a new program of the same source finds all variants in PoCL's own cache
                program = _compile(cl.Program(self.device.context, self.source), self.device)
            self._snapshot = True
            diskcache.write(self.path, program.get_info(cl.program_info.BINARIES)[0], self.variants)
        except cl.Error:
            pass


def build(device, source: str, label: str, params=None) -> Built:
    """A program from the disk cache, else compiled. ``label`` and ``params`` only serve the error message."""
    import pyopencl as cl

    path = diskcache.entry_path(device, source)
    entry = diskcache.read(path)
    if entry is not None:
        binary, variants = entry
        try:
            with device.build_lock():  # PoCL unpacks a binary into its own cache
                program = _compile(cl.Program(device.context, [device.cl_device], [binary]), device)
            return Built(device, program, source, path, variants, True)
        except Exception:  # of another driver build, or damaged in a way that the checksum cannot see
            diskcache.discard(path)
    try:
        with device.build_lock():
            program = _compile(cl.Program(device.context, source), device)
    except cl.Error as exc:
        raise KernelBuildError(_build_text(device, source, label, params, exc)) from None
    built = Built(device, program, source, path, set(), False)
    if path is not None and not device.compiles_at_launch:
        built._save()
    return built


def _compile(program, device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyopencl's CompilerWarning: drivers print vectoriser remarks as build logs
        return program.build(list(device.build_options), devices=[device.cl_device], cache_dir=False)


# ---- build errors ---------------------------------------------------------------------------------------------------------

_FAULT = re.compile(r"(?:^|[\s:<>\w./()-]):(\d+):(\d+): *(?:fatal )?error", re.M)


def _build_text(device, source, label, params, exc):
    log = str(exc)
    for marker in ("Build on <", "Build log:"):
        log = log[log.index(marker):] if marker in log else log
    lines = source.split("\n")
    faults = [int(m.group(1)) for m in _FAULT.finditer(log)][:3] or [n for n in _any_line_numbers(log, len(lines))][:1]
    shown = "\n".join(numbered(lines, n) for n in dict.fromkeys(faults)) or numbered(lines, 1, 15)
    params = ", ".join(f"{k}={v!r}" for k, v in (params or {}).items()) or "none"
    return (f"{label}: build failed on {device.name} ({device.platform_name})\n  parameters: {params}\n  options: {' '.join(device.build_options)}\n"
            f"{shown}\n{log.strip()[:4000]}")


def _any_line_numbers(log, limit):
    return (int(n) for n in re.findall(r":(\d+):", log) if 0 < int(n) <= limit)


def numbered(lines, at, around=6) -> str:
    """The lines around line ``at`` (1-based) with numbers and a mark."""
    first, last = max(1, at - around), min(len(lines), at + around)
    return "\n".join(f"{'>' if n == at else ' '}{n:5d} | {lines[n - 1]}" for n in range(first, last + 1))
