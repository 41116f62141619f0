"""PyTorch's ``mps`` functions. An Apple GPU is an OpenCL device like any other, so none is available under this name."""
from __future__ import annotations

from .cuda import empty_cache, get_rng_state, manual_seed, seed, set_rng_state, synchronize  # noqa: F401


def is_available() -> bool:
    """False: name the device ``"gpu"``."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_allocated_memory() -> int:
    """0."""
    return 0


driver_allocated_memory = recommended_max_memory = current_allocated_memory


def set_per_process_memory_fraction(fraction) -> None:
    """Accepted."""
