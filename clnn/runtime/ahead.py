"""A second process that fills PoCL's cache of kernels, while this one builds, too.

PoCL compiles under one lock: a cold start would leave all cores but one idle. When several kernels are missing, half of their programs are built by
a helper; then it makes kernels from the last to the first, while the launches of this process make them from the first to the last. Where they
meet, PoCL finds the rest in its cache, which both share. Nothing rests on the helper: what it does not make is made here.
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
from . import drivers, icd

FEW = 4             # missing kernels from which on it is asked
_PATIENCE = 1.0     # seconds that a program of the helper may take longer than twice those of this process

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
            folder = drivers.pocl_only()
            if folder is not None:
                env["OCL_ICD_VENDORS"] = str(folder)
            with contextlib.suppress(OSError):      # a full disk
                if "COMPILER_PATH" not in env and (linker := quick_linker()) is not None:
                    env["COMPILER_PATH"] = str(linker)
            self.built.clear()
            self.programs.clear()
            script = Path(__file__).with_name("ahead_worker.py").read_text()
            try:
                self.child = subprocess.Popen([sys.executable, "-c", script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                              stderr=subprocess.DEVNULL, bufsize=0)
            except OSError:
                return False
            atexit.register(_end, self.child)
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
        self._send(build=self.count, source=source, options=options, device=device.name)
        return self.count

    def wait(self, build, seconds) -> None:
        """Until it has built that program, or some time has passed."""
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
        wanted = []
        for kernel, size, local, args in launches:
            build, args = self.programs.get(kernel.program.cl), [_spoken(a) for a in args]
            if build is not None and local is not None and _UNKNOWN not in args:
                wanted.append([build, kernel.program.names.get(kernel.name, kernel.name), size, local, args])
        if wanted:
            self._send(run=wanted)


_UNKNOWN = object()


def _end(child):
    child.kill()
    child.wait()


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
    if device.flavour != "pocl" or not (config.build_ahead and icd.shares_pocl_cache() and sys.executable):
        return None
    if os.environ.get("POCL_KERNEL_CACHE", "1") == "0" or len(os.sched_getaffinity(0)) < 2:
        return None
    return Helper(device)
