"""Work that waits for a build. The first time that a kernel is needed, its launch and all that follows it on the device is put off until
somebody reads a result or enough has gathered; then all missing kernels are built together. A training step's first run so
needs a few builds instead of a hundred. Once every kernel is there, nothing comes here.
"""
from __future__ import annotations

import threading

from ..core.config import config
from ..core.errors import KernelBuildError
from . import launch as launcher, program

_KERNELS = 48           # that wait for a build
_ENTRIES = 1024
_BYTES = 1 << 30        # that waiting launches mention: their buffers cannot be reused before they ran


class Backlog:
    """The launches and transfers of one device that wait, in order. ``device.waiting`` tells that there are any."""

    def __init__(self, device):
        self.device = device
        self.entries, self.missing, self.bytes = [], {}, 0
        self.lock, self.owner = threading.RLock(), None

    def takes_launch(self, kernel, global_size, local_size, args) -> bool:
        """True: it will be launched later. False: the kernel is ready and nothing is before it."""
        if self.owner == threading.get_ident():     # work that waited is being enqueued
            return False
        with self.lock:
            if kernel.last_args is None:
                if kernel.program.cl is not None:
                    kernel.bind()
                elif launcher.recorders is not None or config.debug:    # who listens wants to know the operator that launches
                    self.flush()
                    kernel.bind()
                    return False
                else:
                    self.missing[kernel.program] = None
            if kernel.last_args is not None and not self.entries:
                return False
            self._add(launcher.launch, (self.device, kernel, global_size, local_size, *args))
            return True

    def takes(self, call, *args) -> bool:
        """True when a transfer has to wait for launches before it."""
        if self.owner == threading.get_ident():
            return False
        with self.lock:
            if not self.entries:
                return False
            self._add(call, args)
            return True

    def _add(self, call, args):
        self.entries.append((call, args))
        self.device.waiting = True
        checked = self.device.checked_buffer
        for a in args:
            if a is checked:
                self.device.err_dirty = True
            if hasattr(a, "int_ptr"):
                self.bytes += a.size
        if len(self.missing) >= _KERNELS or len(self.entries) >= _ENTRIES or self.bytes >= _BYTES:
            self.flush()

    def flush(self) -> None:
        """Build what is missing and enqueue all that waits.

        Raises:
            KernelBuildError, LaunchError, OutOfMemoryError: of the first kernel that failed; the others were launched.
        """
        if self.owner == threading.get_ident():
            return
        with self.lock:
            entries, missing = self.entries, list(self.missing)
            self.entries, self.missing, self.bytes = [], {}, 0
            self.owner = threading.get_ident()
            failure = None
            try:
                try:
                    program.build(self.device, missing)
                except KernelBuildError as exc:
                    failure = exc
                for call, args in entries:
                    if failure is not None and call is launcher.launch and args[1].program.cl is None:
                        continue
                    try:
                        call(*args)
                    except Exception as exc:
                        failure = failure or exc
            finally:
                self.owner = None
                self.device.waiting = False
            if failure is not None:
                raise failure
