"""PyTorch's ``accelerator`` functions: whatever GPU there is, by OpenCL."""
from __future__ import annotations

import clnn

from .cuda import (current_stream, device_count, empty_cache, is_available, max_memory_allocated, memory_allocated, memory_reserved,  # noqa: F401
                   max_memory_reserved, memory_stats, reset_peak_memory_stats, set_stream, synchronize)
from .cuda import current_device as current_device_index, mem_get_info as get_memory_info  # noqa: F401
from .cuda import set_device as set_device_index

current_device_idx, set_device_idx = current_device_index, set_device_index


def get_device_capability(device=None) -> dict:
    """What the device can do: ``supported_dtypes`` are those that tensors may have there.

    Example:
        >>> clnn.float32 in clnn.accelerator.get_device_capability()["supported_dtypes"]
        True
    """
    from ._tensor.device import resolve
    from .core import dtype as dt
    rows = {row for row in vars(dt).values() if isinstance(row, dt.dtype)}
    return {"supported_dtypes": rows if resolve(device).has_fp64 else rows - {dt.float64, dt.complex128}}


class device_index:
    """The GPU of this number is the current one inside the ``with`` block; None: as before."""

    def __init__(self, device, /):
        self.idx, self._before = device, None

    def __enter__(self):
        if self.idx is not None:
            self._before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc):
        if self.idx is not None:
            set_device_index(self._before)


def current_accelerator(check_available=False):
    """The kind of device that accelerates: ``device("gpu")``, or None where there is none."""
    return clnn.device("gpu") if is_available() else None
