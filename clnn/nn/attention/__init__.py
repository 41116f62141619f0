"""Choosing an attention backend, as in ``torch.nn.attention``: accepted, as clnn has one (see ``clnn/ops/attention.py``)."""
from __future__ import annotations

import contextlib
import enum
import importlib


class SDPBackend(enum.IntEnum):
    """PyTorch's backends by name."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Accepted: clnn has one kernel for all cases.

    Raises:
        TypeError: ``backends`` is neither a backend nor a list of them.
    """
    for b in backends if isinstance(backends, (list, tuple)) else [backends]:
        if not isinstance(b, SDPBackend):
            raise AssertionError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(b).__name__}")
    yield


def __getattr__(name):
    if name in ("bias", "flex_attention", "varlen"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
