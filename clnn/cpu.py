"""PyTorch's ``cpu`` functions, which let programs treat the CPU as one more kind of device."""
from __future__ import annotations

import clnn
from clnn.amp._by_device import module_for as _amp

from .cuda import Event, Stream, current_stream, stream  # noqa: F401


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """``"cpu"``."""
    return "cpu"


def set_device(device) -> None:
    """Nothing to choose from."""


def synchronize(device=None) -> None:
    """Wait until the default device has finished."""
    clnn.synchronize()


__path__: list = []      # so that "import clnn.cpu.amp" looks for the module made here
amp = _amp(__name__, "cpu")
