"""``torch.cuda.amp`` and ``torch.cpu.amp``: the older names of what :mod:`clnn.amp` does for a device that it is told."""
from __future__ import annotations

import sys
import types

from ..core.warn import warn
from .autocast_mode import autocast, custom_bwd, custom_fwd
from .grad_scaler import GradScaler


def _deprecated(kind, name, new):
    warn(f"`torch.{kind}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning)


def module_for(package, kind):
    """The module ``amp`` of ``package`` (``clnn.cuda``), for the devices that ``kind`` names (``"cuda"``); each use says what replaces it."""

    class _Autocast(autocast):
        def __init__(self, enabled=True, dtype=None, cache_enabled=True):
            _deprecated(kind, "autocast", f"autocast('{kind}', args...)")
            super().__init__(kind, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    class _GradScaler(GradScaler):
        def __init__(self, init_scale=2.0 ** 16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
            _deprecated(kind, "GradScaler", f"GradScaler('{kind}', args...)")
            super().__init__(kind, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    def forward(fwd=None, *, cast_inputs=None):
        _deprecated(kind, "custom_fwd", f"custom_fwd(args..., device_type='{kind}')")
        return custom_fwd(fwd, device_type=kind, cast_inputs=cast_inputs)

    def backward(bwd):
        _deprecated(kind, "custom_bwd", f"custom_bwd(args..., device_type='{kind}')")
        return custom_bwd(bwd, device_type=kind)

    module = types.ModuleType(f"{package}.amp", f"``{kind}.amp``: :mod:`clnn.amp` for one kind of device.")
    for name, what in (("autocast", _Autocast), ("GradScaler", _GradScaler), ("custom_fwd", forward), ("custom_bwd", backward)):
        what.__module__, what.__name__, what.__qualname__ = module.__name__, name, name
        if kind == "cuda" or isinstance(what, type):
            setattr(module, name, what)
    sys.modules[module.__name__] = module
    return module
