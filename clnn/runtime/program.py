"""Programs and kernels: a source, its build when it is needed, and readable build errors."""
from __future__ import annotations

import contextlib
import os
import re
import warnings
from time import perf_counter as clock

from ..core import native, symbols
from ..core.errors import KernelBuildError
from . import assemble, builtins, diskcache, retarget

_UNSET = object()  # not None: None is a legal argument (a null pointer)
_TOGETHER = 24     # kernels in one build; more would only make the others wait
_BUILDERS = 8      # threads that build at once, where the driver can


class Program:
    """A source with one or several kernels. It has a driver's program once it was loaded from the disk cache or built."""

    __slots__ = ("device", "source", "label", "params", "cl", "names", "twins", "mark")

    def __init__(self, device, source, label, params=None):
        self.device, self.source, self.label, self.params = device, source, label, params
        self.cl, self.names = None, {}      # names: what a kernel is called in a program that it shares with others
        self.mark = ""                      # what all these names end with, and those of no other program
        self.twins = {}                     # device -> the same source for it
        load(self)

    def attach(self, program, names=None):
        self.cl, self.names = program, names or {}
        self.mark = assemble.mark_of(self.names)

    def twin(self, device):
        """The same source for another device of the context."""
        if device not in self.twins:
            self.twins.setdefault(device, Program(device, self.source, self.label, self.params))
        return self.twins[device]

    def kernel_object(self, name):
        """A new pyopencl kernel; builds first where that was put off."""
        import pyopencl as cl
        if self.cl is None:
            build(self.device, [self])
        return cl.Kernel(self.cl, self.names.get(name, name))


@native.know
class Kernel:
    """One kernel of one device, with what :func:`~clnn.runtime.launch.launch` remembers between launches.

    ``last_args`` is None until it is bound to a built program; ``owner`` is the prepared launch whose arguments it has, if one was last.
    ``checks``: it may report an error. ``touched``: bytes that launches of certain sizes work on, where that is less than their buffers have.
    ``costs``, ``twin`` and ``lost`` belong to :mod:`~clnn.runtime.inline`, ``entries`` and ``ways`` to :mod:`~clnn.runtime.direct`.
    """

    __slots__ = ("cl", "name", "device", "set_arg", "set_bytes", "set_buffers", "set_numbers", "last_args", "owner", "sizes", "_limits", "program",
                 "costs", "twin", "lost", "checks", "touched", "handle", "entries", "ways")

    def __init__(self, program, name):
        self.program, self.name, self.device = program, name, program.device
        self.sizes, self._limits, self.last_args, self.cl, self.owner = {}, None, None, None, None
        self.handle = 0                     # the driver's
        self.costs, self.twin, self.lost, self.checks, self.touched = {}, None, 0.0, False, {}
        self.entries, self.ways = {}, {}
        if program.cl is not None:
            self.bind()

    def bind(self) -> "Kernel":
        """Make the driver's kernel object, once."""
        if self.last_args is None:
            with self.device.lock:
                if self.last_args is None:
                    cl = self.cl = self.program.kernel_object(self.name)
                    self.set_arg, self.set_bytes = cl.set_arg, cl._set_arg_buf
                    self.set_buffers, self.set_numbers = cl._set_arg_multi, cl._set_arg_buf_multi   # of (position, value, position, value, ...)
                    self.handle = cl.int_ptr
                    self.last_args = [_UNSET] * cl.num_args
        return self

    @property
    def ready(self) -> bool:
        """Built, for one of the queues that may run it."""
        return self.program.cl is not None or self.twin is not None and self.twin.program.cl is not None

    def forget_args(self):
        self.last_args[:] = [_UNSET] * len(self.last_args)
        self.owner = None

    def touches(self, global_size, local_size, nbytes):
        """Note that launches of these sizes work on so many bytes, whatever their buffers have."""
        if symbols.tracing is not None:
            return
        key = (global_size, local_size)
        if len(self.touched) > 4096:
            self.touched.clear()
        self.touched[key] = max(self.touched.get(key, 0), nbytes)

    def clone(self) -> "Kernel":
        """A kernel with arguments of its own (for a recorded launch list)."""
        twin = Kernel(self.program, self.name).bind()
        twin.sizes = self.sizes
        return twin

    def twin_for(self, device) -> "Kernel":
        """The same kernel for another device of the context, not built yet."""
        with self.device.lock:
            if self.twin is None:
                self.twin = Kernel(self.program.twin(device), self.name)
        return self.twin

    @property
    def source(self) -> str:
        """The OpenCL C it was built from."""
        return self.program.source

    def _info(self):
        if self._limits is None:
            import pyopencl as cl
            info, dev = cl.kernel_work_group_info, self.device.cl_device
            found = []
            for key in (info.WORK_GROUP_SIZE, info.LOCAL_MEM_SIZE, info.COMPILE_WORK_GROUP_SIZE):
                try:
                    value = self.bind().cl.get_work_group_info(key, dev)
                except cl.Error:  # rusticl 22.3 answers INVALID_VALUE to some
                    value = {info.WORK_GROUP_SIZE: self.device.max_work_group, info.COMPILE_WORK_GROUP_SIZE: (0, 0, 0)}.get(key, 1)
                found.append(tuple(value) if isinstance(value, (list, tuple)) else int(value))
            if self.device.flavour == "rusticl" and self.device.kind == "cpu":      # llvmpipe answers 32, its sub-group, for kernels that run with hundreds
                found[0] = self.device.max_work_group
            self._limits = tuple(found)
        return self._limits

    @property
    def max_work_group(self) -> int:
        """The largest work-group that *this compiled kernel* may have (registers can make it smaller than the device's)."""
        return self._info()[0]

    @property
    def local_mem(self) -> int:
        """Bytes of local memory that it uses."""
        return self._info()[1]

    @property
    def compile_local(self) -> tuple:
        """``reqd_work_group_size``, or (0, 0, 0)."""
        return self._info()[2]

    def __repr__(self):
        return f"<Kernel {self.name} on {self.device.name}>"


def first_kernel_name(source: str) -> str:
    """The name of the first kernel that an OpenCL C source defines."""
    kernels, _ = assemble.declared(source)
    if not kernels:
        raise KernelBuildError("the source defines no kernel")
    return kernels[0]


# ---- loading and building --------------------------------------------------------------------------------------------------

def load(program) -> bool:
    """Take the program from the disk cache, if it is there."""
    entry = diskcache.find(program.device, program.source)
    if entry is None:
        return False
    shared, names, path = entry
    device = program.device
    built = device.loaded.get(shared.digest)
    if built is None:
        try:
            with _quiet():
                built = device.loaded[shared.digest] = _compile(device, shared.payload.decode() if device.driver_caches else shared.payload)
        except Exception:  # of another driver build, or damaged in a way that the checksum cannot see
            diskcache.discard(shared.path)
            diskcache.discard(path)
            return False
    program.attach(built, names)
    return True


def build(device, programs, helper=None) -> None:
    """Build programs that were not built yet, together where there are several, and keep them on disk. ``helper`` (:mod:`.ahead`) takes a part.

    Raises:
        KernelBuildError: one of them is faulty; the others were built.
    """
    programs = [p for p in programs if p.cl is None]
    others = dict.fromkeys(p.device for p in programs if p.device is not device)
    for other in others:
        build(other, [p for p in programs if p.device is other], helper)
    programs = [p for p in programs if p.device is device]
    parallel, several = device.builds_in_parallel and len(programs) > 3, helper is not None and len(programs) > 3
    threads = min(_BUILDERS, os.cpu_count() or 1) if parallel else 2 if several else 1
    groups = list(assemble.groups(programs, min(_TOGETHER, -(-len(programs) // threads))))
    with _quiet():
        if parallel:
            from concurrent.futures import ThreadPoolExecutor
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda group: _build_group(device, group), groups))
        elif helper is not None:
            _build_with(helper, device, groups)
        else:
            for group in groups:
                _build_group(device, group)


def _build_with(helper, device, groups):
    """Build every other group here, while a helper builds the rest."""
    texts = [assemble.combine([p.source for p in group], device) if _together(device, group) else (group[0].source, ({},)) for group in groups]
    start = clock()

    def tell(k):
        return helper.build(*_given(device, texts[k][0]), device)
    theirs = [(k, tell(k)) for k in range(1, len(groups), 2)]
    for k in range(0, len(groups), 2):
        _build_group(device, groups[k], texts[k])
        if device.driver_caches:
            helper.own(groups[k][0].cl, tell(k))
    spent = clock() - start
    for k, build in theirs:
        _build_group(device, groups[k], texts[k], helper.take(build, spent))
        helper.own(groups[k][0].cl, build)


def _together(device, group):
    """Whether a text is made of the programs: where there are several, and where kernels need names of their own."""
    return len(group) > 1 or device.marks_kernels


def _build_group(device, group, text=None, binary=None):
    import pyopencl as cl
    if _together(device, group):
        source, tables = text or assemble.combine([p.source for p in group], device)
        try:
            built = _compile(device, binary or source)
        except cl.Error:
            pass    # one at a time: the message shall show the faulty source alone
        else:
            for p, names in zip(group, tables):
                p.attach(built, names)
            diskcache.keep(device, built, source, group)
            return
    failure = None
    for p in group:
        try:
            p.attach(_compile(device, p.source))
            diskcache.keep(device, p.cl, p.source, [p])
        except cl.Error as exc:
            failure = failure or KernelBuildError(_build_text(device, p, exc))
    if failure is not None:
        raise failure


def _compile(device, code):
    """A driver's program from a source or a binary."""
    import pyopencl as cl
    if isinstance(code, bytes):
        return _read(device, code)
    chosen = [device.cl_device]
    if device.declares_builtins is not False:
        source, options = _given(device, code)
        try:
            built = cl.Program(device.context, source).build(options, devices=chosen, cache_dir=False)
            device.declares_builtins = True
            return _without_compiler(device, built)
        except cl.Error:
            pass        # faulty, or it uses what the table of built-in functions lacks: the driver's own header decides
    built = cl.Program(device.context, code).build(list(device.build_options), devices=chosen, cache_dir=False)
    if device.declares_builtins is None:
        device.declares_builtins = False        # this driver takes no declarations of ours
    processor = retarget.processor(code) if device.flavour == "nvidia" else ""
    if processor:
        return _read(device, retarget.retargeted(built.get_info(cl.program_info.BINARIES)[0], processor))
    return _without_compiler(device, built)


def _given(device, code):
    """(source, options) as the driver is given them, at first."""
    if device.declares_builtins is False:
        return code, list(device.build_options)
    return builtins.declarations(code) + code, [*device.build_options, builtins.OPTION]


def _without_compiler(device, built):
    """The same program read back from its binary, where a program that was compiled keeps its compiler's memory: 3.1 MB against 0.5 on Intel's runtime."""
    import pyopencl as cl
    if not device.keeps_compilers:
        return built
    try:
        return _read(device, built.get_info(cl.program_info.BINARIES)[0])
    except cl.Error:
        return built


def _read(device, binary):
    """A driver's program from its binary."""
    import pyopencl as cl
    chosen = [device.cl_device]
    return cl.Program(device.context, chosen, [binary]).build(list(device.build_options), devices=chosen, cache_dir=False)


@contextlib.contextmanager
def _quiet():
    """Without pyopencl's CompilerWarning: drivers print vectoriser remarks as build logs. Not for use inside of threads.

    ``catch_warnings`` would make Python forget what it has shown, so that a program's own warnings came once more after each kernel.
    """
    filters, silent = warnings.filters, ("ignore", None, Warning, None, 0)
    filters.insert(0, silent)
    try:
        yield
    finally:
        if silent in filters:              # a program may have reset them meanwhile
            filters.remove(silent)


# ---- build errors ---------------------------------------------------------------------------------------------------------

_FAULT = re.compile(r"(?:^|[\s:<>\w./()-]):(\d+):(\d+): *(?:fatal )?error", re.M)


def _build_text(device, program, exc):
    log = str(exc)
    for marker in ("Build on <", "Build log:"):
        log = log[log.index(marker):] if marker in log else log
    lines = program.source.split("\n")
    faults = [int(m.group(1)) for m in _FAULT.finditer(log)][:3] or [n for n in _any_line_numbers(log, len(lines))][:1]
    shown = "\n".join(numbered(lines, n) for n in dict.fromkeys(faults)) or numbered(lines, 1, 15)
    params = ", ".join(f"{k}={v!r}" for k, v in (program.params or {}).items()) or "none"
    return (f"{program.label}: build failed on {device.name} ({device.platform_name})\n  parameters: {params}\n"
            f"  options: {' '.join(device.build_options)}\n{shown}\n{log.strip()[:4000]}")


def _any_line_numbers(log, limit):
    return (int(n) for n in re.findall(r":(\d+):", log) if 0 < int(n) <= limit)


def numbered(lines, at, around=6) -> str:
    """The lines around line ``at`` (1-based) with numbers and a mark."""
    first, last = max(1, at - around), min(len(lines), at + around)
    return "\n".join(f"{'>' if n == at else ' '}{n:5d} | {lines[n - 1]}" for n in range(first, last + 1))
