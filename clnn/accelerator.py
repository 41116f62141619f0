"""PyTorch's ``accelerator`` functions: whatever GPU there is, by OpenCL."""
from __future__ import annotations

import clnn

from .cuda import (current_stream, device_count, empty_cache, is_available, max_memory_allocated, memory_allocated, memory_reserved,  # noqa: F401
                   memory_stats, reset_peak_memory_stats, synchronize)
from .cuda import current_device as current_device_index, set_device as set_device_index  # noqa: F401


def current_accelerator(check_available=False):
    """The kind of device that accelerates: ``device("gpu")``, or None where there is none."""
    return clnn.device("gpu") if is_available() else None
