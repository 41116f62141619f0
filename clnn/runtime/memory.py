"""Device memory: one pool of buffers per device, its statistics, and copies between devices.

Queues are in order, so a buffer may go back to the pool as soon as the last launch that uses it is *enqueued*.
"""
from __future__ import annotations

import ctypes
import mmap

import numpy as np

from ..core import native
from ..core.config import config
from ..core.errors import OutOfMemoryError

MIN_BYTES = 16                 # OpenCL rejects buffers of size 0
HUGE_PAGE = 2 << 20
HUGE_FROM = 2 * HUGE_PAGE      # buffers that hold at least one whole huge page wherever they start


def human(nbytes: float) -> str:
    """``human(3 << 20) == '3.0 MiB'``"""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024 or unit == "GiB":
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024


@native.know
class Memory:
    """The pool of one device."""

    __slots__ = ("device", "_error", "_pool", "_allocate", "_huge", "limit", "peak", "requests", "retries")

    def __init__(self, device, queue):
        import pyopencl as cl
        import pyopencl.tools as tools

        self.device = device
        self._error = cl.Error
        # Drivers may allocate at first use; the immediate allocator makes a shortage show here, where it can be cured.
        # A buffer serves requests of its class of sizes only, and a loop over ever new shapes comes to hold some of each: classes are four to an octave
        # (eight where the end of a buffer that nobody touches takes memory, too), not sixteen.
        self._pool = tools.MemoryPool(tools.ImmediateAllocator(queue), leading_bits_in_bin_id=2 if device.is_cpu else 3)
        self._allocate = self._pool.allocate
        self._huge = HugePages(queue) if device.is_cpu and config.huge_pages and hasattr(mmap, "MADV_HUGEPAGE") else None
        self.limit = device.max_alloc  # some drivers accept more, and fail at the launch
        self.peak = 0
        self.requests = 0
        self.retries = 0

    def alloc(self, nbytes: int):
        """A buffer of at least ``nbytes`` bytes; its contents are whatever was there."""
        if nbytes >= HUGE_FROM:
            return self._alloc_large(nbytes)
        self.requests += 1
        try:
            buf = self._allocate(nbytes if nbytes > MIN_BYTES else MIN_BYTES)
        except Exception as exc:
            buf = self._retry(nbytes, exc)
        active = self._pool.active_bytes
        if active > self.peak:
            self.peak = active
        return buf

    def _alloc_large(self, nbytes):
        if nbytes > self.limit:
            raise OutOfMemoryError(f"{self.device.name}: one buffer of {human(nbytes)} was asked for, but the driver's limit for a single "
                                   f"buffer is {human(self.limit)}; split the tensor")
        self.requests += 1
        held = self._pool.managed_bytes
        try:
            buf = self._allocate(nbytes)
        except Exception as exc:
            buf = self._retry(nbytes, exc)
        if self._huge is not None and self._pool.managed_bytes > held:
            self._huge.ask(buf)
        self.peak = max(self.peak, self._pool.active_bytes)
        return buf

    def alloc_all(self, sizes) -> list:
        """A buffer for each of ``sizes``, which are from MIN_BYTES to less than HUGE_FROM bytes: the same in fewer steps."""
        try:
            bufs = [*map(self._allocate, sizes)]
        except Exception:
            return [*map(self.alloc, sizes)]            # what was had went back to the pool, and a shortage is dealt with there
        self.requests += len(bufs)
        active = self._pool.active_bytes
        if active > self.peak:
            self.peak = active
        return bufs

    def _retry(self, nbytes, exc):
        self.device.check_process()
        if not isinstance(exc, (self._error, MemoryError)):
            raise exc
        self.retries += 1
        try:
            self.device.flush()     # what waits keeps buffers from being reused
            self.device.queue.finish()
            self.empty_cache()
            return self._allocate(max(nbytes, MIN_BYTES))
        except (self._error, MemoryError) as again:
            raise OutOfMemoryError(f"{self.device.name}: no room for {human(nbytes)}; {self.describe()}") from again

    def describe(self) -> str:
        s = self.stats()
        return (f"{human(s['allocated'])} in use, {human(s['reserved'])} held by clnn, "
                f"{human(self.device.global_mem)} on the device; free tensors, use smaller batches or clnn.no_grad()")

    def stats(self) -> dict:
        """``allocated`` (bytes in live buffers), ``reserved`` (with those kept for reuse), ``peak_allocated`` and counts."""
        self.device.flush()     # what waits for a build holds its buffers
        native.unshelve()
        pool = self._pool
        return {"allocated": pool.active_bytes, "reserved": pool.managed_bytes, "peak_allocated": self.peak,
                "active_buffers": pool.active_blocks, "held_buffers": pool.held_blocks,
                "requests": self.requests, "retries": self.retries, "limit": self.device.global_mem}

    def reset_peak(self) -> None:
        native.unshelve()
        self.peak = self._pool.active_bytes

    def empty_cache(self) -> None:
        """Give the buffers that no tensor uses back to the driver."""
        native.unshelve()
        self._pool.free_held()


native.give(fewest=MIN_BYTES)
native.method(Memory, "alloc")


class HugePages:
    """Asks the kernel to back a CPU driver's own large buffers by huge pages: fewer faults at first use, fewer misses of the TLB at scattered reads.

    The driver keeps the memory, and only what lies in whole huge pages is asked for, so nothing changes but speed: where it fails, nothing is done.
    """

    def __init__(self, queue):
        import pyopencl as cl
        self._cl, self._map = cl, cl.map_flags.WRITE_INVALIDATE_REGION
        self._queue = cl.CommandQueue(queue.context, queue.device)         # its own: mapping does not wait for what others do
        self._madvise = ctypes.CDLL(None).madvise
        self._madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def ask(self, buf) -> None:
        """Once per new buffer, before anything was written to it."""
        cl = self._cl
        try:
            memory, _ = cl.enqueue_map_buffer(self._queue, buf, self._map, 0, (buf.size,), np.uint8, is_blocking=True)
        except cl.Error:
            return
        address = memory.ctypes.data
        first, end = -(-address // HUGE_PAGE) * HUGE_PAGE, (address + memory.size) // HUGE_PAGE * HUGE_PAGE
        if end > first:
            self._madvise(first, end - first, mmap.MADV_HUGEPAGE)
        memory.base.release(self._queue).wait()


def memory_stats(device) -> dict:
    """Byte and buffer counts of a device: ``allocated``, ``reserved``, ``peak_allocated``, ``active_buffers``, ``held_buffers``..."""
    return device.memory.stats()


def reset_peak(device) -> None:
    """Let ``peak_allocated`` start again from what is in use now."""
    device.memory.reset_peak()


def empty_cache(device) -> None:
    """Return unused pooled buffers of ``device`` to its driver."""
    device.memory.empty_cache()


def transfer(src_dev, src_buf, dst_dev, dst_buf, nbytes, src_off=0, dst_off=0) -> None:
    """Copy bytes between any two devices: on one device by a queued copy, else through host memory in bounded pieces."""
    if src_dev is dst_dev:
        src_dev.copy(src_buf, dst_buf, nbytes, src_off, dst_off)
        return
    step = 64 << 20  # host memory stays bounded for large tensors
    for at in range(0, nbytes, step):
        size = min(step, nbytes - at)
        dst_dev.write(dst_buf, src_dev.read(src_buf, size, src_off + at), dst_off + at)
