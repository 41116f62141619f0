"""Device event times on the host's clock, and what a device reaches at best: copy bandwidth and multiply-add rate."""
from __future__ import annotations

import time

from . import launch as launcher

_best: dict = {}        # (device, what) -> measured rate


class Clock:
    """Turns times of a device's events into ``time.perf_counter_ns``.

    Both clocks are compared at the start and at the end of a profile, as they may tick differently; between the two the
    difference is interpolated. Host and device read their clocks at nearly the same moment when a marker is enqueued.
    """

    def __init__(self, device):
        self.device = device
        self.first = self.last = self._sample()

    def finish(self):
        """Compare the clocks again."""
        self.last = self._sample()

    def _sample(self):
        """(device time, host minus device time) of the quickest of a few markers."""
        self.device.synchronize()
        best = None
        for _ in range(8):
            before = time.perf_counter_ns()
            event = self.device.marker()
            after = time.perf_counter_ns()
            event.wait()
            stamp = event.profile.queued or event.profile.submit or event.profile.end
            if best is None or after - before < best[0]:
                best = (after - before, stamp, (before + after) // 2 - stamp)
        return best[1:]

    def host(self, stamp: int) -> int:
        """The host time of a device time, in nanoseconds."""
        (t0, d0), (t1, d1) = self.first, self.last
        if t1 <= t0:
            return stamp + d0
        return stamp + d0 + (d1 - d0) * (stamp - t0) // (t1 - t0)


def copy_bandwidth(device) -> float:
    """Bytes per second, read and written, of a large copy inside the device's memory. Measured once per process."""
    got = _best.get((device, "copy"))
    if got is None:
        nbytes = int(min(64 << 20, device.max_alloc // 4))
        src, dst = device.alloc(nbytes), device.alloc(nbytes)
        device.fill(src, bytes(4), nbytes)
        seconds = _shortest(device, lambda: device.copy(src, dst, nbytes), 4)
        got = _best[device, "copy"] = 2 * nbytes / seconds
    return got


def peak_flops(device) -> float:
    """Float32 operations per second of independent multiply-adds (two operations each). Measured once per process."""
    got = _best.get((device, "flops"))
    if got is None:
        width = device.lanes("float") if device.is_cpu else 4
        kernel = device.kernel("profiler/multiply_add", WIDTH=width)
        items = device.compute_units * (64 if device.is_cpu else 2048)
        out = device.alloc(4 * items)
        local = None if device.is_cpu else (min(256, kernel.max_work_group),)
        steps, seconds = 256, 0.0
        while True:
            seconds = _shortest(device, lambda: launcher.launch(device, kernel, (items,), local, items, steps, 0.5, out), 1)
            if seconds > 3e-3 or steps >= 1 << 20:
                break
            steps *= 4
        got = _best[device, "flops"] = 2 * 8 * width * steps * items / seconds
    return got


def _shortest(device, work, times):
    """Seconds per call of ``work``, the best of a few rounds of ``times`` calls."""
    best = float("inf")
    listening, launcher.recorders = launcher.recorders, None      # these launches belong to no profile
    device.queue
    at_once, device.inline = device.inline, None
    try:
        work()
        for _ in range(12):
            device.synchronize()
            start = time.perf_counter()
            for _ in range(times):
                work()
            device.synchronize()
            best = min(best, (time.perf_counter() - start) / times)
    finally:
        launcher.recorders, device.inline = listening, at_once
    return best
