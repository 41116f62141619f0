"""A second process that builds kernels while this one builds, too.

Drivers for CPUs compile under one lock: a cold start would leave all cores but one idle. When several kernels are missing, half of their programs are
built by a helper. Intel's runtime reads its binaries. PoCL shares its cache with it, and builds the parts of a program that a launch needs at the
first launch: there the helper goes on from the last kernel to the first, while the launches of this process go from the first to the last, and where
they meet, PoCL finds the rest in its cache. Nothing rests on the helper: what it does not make is made here.
"""
from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import select
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter as clock

from ..core.config import cache_dir, config
from . import diskcache, drivers, icd

FEW = 4             # missing kernels from which on it is asked
_PATIENCE = 2.0     # seconds that a program of the helper may take longer than those of this process: it has to start first
_LIBRARIES = {"pocl": "pocl", "intel-cpu": "intelocl"}

# Stands before the linker in PoCL's search path. A kernel uses no library that its process lacks, and "ld" takes longer to read their symbols than the
# compiler takes for a small kernel.
_LINKER = """#!/bin/sh
case "$*" in
*/tempfile_*.so.o*) for a; do shift; case $a in -lm|-lc|-lgcc_s) ;; *) set -- "$@" "$a" ;; esac; done ;;
esac
exec {} "$@"
"""


def quick_linker():
    """A folder for ``COMPILER_PATH`` of processes that build kernels; None where there is no such linker."""
    linker = shutil.which("ld")
    if linker is None or os.name != "posix":
        return None
    text = _LINKER.format(shlex.quote(linker))
    path = cache_dir("linker", hashlib.sha256(text.encode()).hexdigest()[:16]) / "ld"
    if not path.exists():
        temp = path.with_name(f"ld.{os.getpid()}")
        temp.write_text(text)
        temp.chmod(0o755)
        os.replace(temp, path)
    return path.parent


class Helper:
    """The process that works for one device, started when it is first needed and again after it ended for want of work."""

    def __init__(self, device):
        self.device, self.child = device, None
        self.count, self.built, self.programs = 0, set(), {}    # programs: the number of each driver's program

    def start(self) -> bool:
        """Whether it runs now."""
        if self.child is None or self.child.poll() is not None:
            if self.child is not None and self.child.returncode != 0:
                return False        # a driver that took it down would do so again
            env = dict(os.environ)
            if self.device.record.companion is not None:
                env["POCL_DEVICES"] = drivers.pocl_devices
            folder = drivers.only(_LIBRARIES[self.device.flavour])
            if folder is not None:
                env["OCL_ICD_VENDORS"] = str(folder)
            with contextlib.suppress(OSError):      # a full disk
                if "COMPILER_PATH" not in env and (linker := quick_linker()) is not None:
                    env["COMPILER_PATH"] = str(linker)
            self.built.clear()
            self.programs.clear()
            script = Path(__file__).with_name("ahead_worker.py").read_text()
            try:
                self.child = subprocess.Popen([sys.executable, "-c", script, self.device.platform_name], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                              stderr=subprocess.DEVNULL, bufsize=0)
            except OSError:
                return False
            atexit.register(_end, self.child, os.getpid())
        return True

    def _send(self, **message):
        import json
        try:
            self.child.stdin.write(json.dumps(message).encode() + b"\n")
        except OSError:
            self.child.kill()

    def build(self, source, options, device) -> int:
        """Let it build a program; the number by which it knows it."""
        self.count += 1
        self._send(build=self.count, source=source, options=options, device=device.name, binary=self._binary(self.count))
        return self.count

    def _binary(self, build):
        """The file for the binary of a program, where the driver's own cache does not keep it."""
        return None if self.device.driver_caches else str(cache_dir("kernels") / f"ahead-{os.getpid()}-{build}")

    def take(self, build, seconds):
        """The binary of a program, after at most so many seconds; None where there is none, or the driver's cache has it."""
        self._wait(build, seconds + _PATIENCE)
        path = self._binary(build)
        if path is None or build not in self.built:
            return None
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return None
        finally:
            diskcache.discard(path)

    def _wait(self, build, seconds):
        end = clock() + seconds
        while build not in self.built and (left := end - clock()) > 0 and select.select([self.child.stdout], [], [], left)[0]:
            line = self.child.stdout.readline()
            if not line:
                return
            if line.strip().isdigit():
                self.built.add(int(line))

    def own(self, program, build) -> None:
        """Remember which of its programs is the driver's ``program`` here."""
        self.programs[program] = build

    def run(self, launches) -> None:
        """Let it make the kernels of ``launches``: (kernel, global size, local size, arguments), the last first."""
        if not self.device.driver_caches:
            return
        wanted = []
        for kernel, size, local, args in launches:
            build, args = self.programs.get(kernel.program.cl), [_spoken(a) for a in args]
            if build is not None and local is not None and _UNKNOWN not in args:
                wanted.append([build, kernel.program.names.get(kernel.name, kernel.name), size, local, args])
        if wanted:
            self._send(run=wanted)


_UNKNOWN = object()


def _end(child, owner):
    if os.getpid() != owner:        # a fork of the process that it works for
        return
    child.kill()
    child.wait()
    for path in cache_dir("kernels").glob(f"ahead-{os.getpid()}-*"):     # what it wrote too late
        diskcache.discard(path)


def _spoken(a):
    """An argument as the helper takes it."""
    from .launch import PACKED
    if a is None:
        return None
    if type(a) in PACKED:
        return PACKED[type(a)](a).hex()
    return a.size if hasattr(a, "int_ptr") else _UNKNOWN


def helper_for(device):
    """The helper of a device, or None where there is none: another driver, a cache of its own for each process, a single core."""
    if device.flavour not in _LIBRARIES or not (config.build_ahead and sys.executable and sys.platform.startswith("linux")):
        return None
    if len(os.sched_getaffinity(0)) < 2:
        return None
    if device.flavour == "pocl" and (not icd.shares_pocl_cache() or os.environ.get("POCL_KERNEL_CACHE", "1") == "0"):
        return None
    return Helper(device)
