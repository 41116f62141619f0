"""PyTorch's ``xpu`` functions. An Intel GPU is an OpenCL device like any other, so none is available under this name."""
from __future__ import annotations

from .cuda import (Event, Stream, current_stream, empty_cache, get_rng_state, get_rng_state_all, manual_seed, manual_seed_all, seed,  # noqa: F401
                   set_rng_state, set_rng_state_all, stream, synchronize)
from .mps import device_count, is_available  # noqa: F401


def is_initialized() -> bool:
    """False."""
    return False


def current_device() -> int:
    """0."""
    return 0


def set_device(device) -> None:
    """Nothing to choose from."""


def is_bf16_supported() -> bool:
    """False: there is no such device."""
    return False
