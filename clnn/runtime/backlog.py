"""Work that waits for a build. The first time that a kernel is needed, its launch and all that follows it on the device is put off until
somebody reads a result or enough has gathered; then all missing kernels are built together. A training step's first run so
needs a few builds instead of a hundred. Once every kernel is there, nothing comes here.
"""
from __future__ import annotations

import contextlib
import threading

from ..core.config import config
from ..core.errors import KernelBuildError, LaunchError
from . import ahead, launch as launcher, program

_KERNELS = 48           # that wait for a build
_ENTRIES = 1024
_FEW = 24               # that wait: a short launch that may fail does not wait with them, so that its error shows at once
_BYTES = 1 << 30        # that waiting launches mention: their buffers cannot be reused before they ran
_UNSET = object()


class Backlog:
    """The launches and transfers of one device that wait, in order. ``device.waiting`` tells that there are any."""

    def __init__(self, device):
        self.device = device
        self.entries, self.missing, self.bytes = [], {}, 0      # missing: kernels that no queue has yet
        self.short = True                                       # all launches are short enough for the calling thread
        self.owner, self._helper = None, _UNSET

    def takes_launch(self, kernel, ran, global_size, local_size, args) -> bool:
        """True: it will be launched later. False: the kernel is ready and nothing is before it.

        ``ran`` is the kernel that runs in its place, None where that is not decided yet.
        """
        if self.owner == threading.get_ident():     # work that waited is being enqueued
            return False
        with self.device.lock:
            side = self.device.inline
            short = side is not None and side.small(kernel, (global_size, local_size), args)
            if ran is None:
                ran = side.kernel(kernel) if short and kernel.last_args is None else kernel
            if ran.last_args is None:
                if ran.program.cl is not None:
                    ran.bind()
                elif launcher.recorders is not None or config.debug:    # who listens wants to know the operator that launches
                    self.flush()
                    ran.bind()
                    return False
                else:
                    self.missing[kernel] = ran
                    if len(self.missing) == ahead.FEW and self.helper() is not None:
                        self.helper().start()       # it takes a second
            if ran.last_args is not None and not self.entries:
                return False
            self.short = self.short and short
            self._add(launcher.launch, (self.device, kernel, global_size, local_size, *args))
            if short and self.device.word is not None and len(self.entries) < _FEW and self._checked(args):
                self.flush()
                self.device.settle()
            return True

    def takes(self, call, *args) -> bool:
        """True when a transfer has to wait for launches before it."""
        if self.owner == threading.get_ident():
            return False
        with self.device.lock:
            if not self.entries:
                return False
            self._add(call, args)
            return True

    def _add(self, call, args):
        self.device.check_process()
        self.entries.append((call, args))
        self.device.waiting = True
        if self._checked(args):
            self.device.err_dirty = True
        for a in args:
            if hasattr(a, "int_ptr"):
                self.bytes += a.size
        if len(self.missing) >= _KERNELS or len(self.entries) >= _ENTRIES or self.bytes >= _BYTES:
            self.flush()

    def _checked(self, args):
        checked = self.device.checked_buffer
        return checked is not None and any([a is checked for a in args])

    def helper(self):
        if self._helper is _UNSET:
            self._helper = ahead.helper_for(self.device)
        return self._helper

    def flush(self) -> None:
        """Build what is missing and enqueue all that waits.

        Raises:
            KernelBuildError, LaunchError, OutOfMemoryError: of the first kernel that failed; the others were launched.
        """
        if self.owner == threading.get_ident():
            return
        with self.device.lock:
            before = self.entries, self.missing, self.bytes, self.short
            entries, done = self.entries, 0
            self.entries, self.missing, self.bytes, self.short = [], {}, 0, True
            self.owner = threading.get_ident()
            try:
                failure = self._build(*before)
                for call, args in entries:
                    if failure is None or call is not launcher.launch or args[1].ready:
                        try:
                            call(*args)
                        except Exception as exc:
                            failure = failure or exc
                    done += 1
            finally:
                if done < len(entries):             # interrupted: the rest still waits, as tensors that the program keeps need it
                    self.entries, self.missing, self.bytes, self.short = entries[done:], *before[1:]
                self.owner, self.device.waiting = None, bool(self.entries)
            if failure is not None:
                raise failure

    def _build(self, entries, missing, _, short):
        """Build and bind the kernels ``missing``; what the first faulty one raised, or None."""
        # short launches among long ones mostly find these running: they go to the same queue
        chosen = {kernel: ran if short else kernel for kernel, ran in missing.items()}
        try:
            helper = self.helper() if len(chosen) >= ahead.FEW else None
            helper = helper if helper is not None and helper.start() else None
            program.build(self.device, dict.fromkeys(kernel.program for kernel in chosen.values()), helper)
            for kernel in chosen.values():
                kernel.bind()
            if helper is not None:
                helper.run(_first_launches(self.device, entries, chosen))
        except KernelBuildError as exc:
            return exc
        return None


def _first_launches(device, entries, chosen):
    """(kernel that is built, global size, local size, arguments) of the first launch of each in the table of those that waited."""
    found, left = [], dict(chosen)
    for call, args in entries:
        kernel = left.pop(args[1], None) if call is launcher.launch else None
        if kernel is not None:
            with contextlib.suppress(LaunchError):      # it will be raised where it belongs
                found.append((kernel, *launcher.sizes_of(device, kernel, args[2], args[3]), args[4:]))
    return found
