"""Layers for quantisation: ``quantized`` compute with integers, ``qat`` and ``intrinsic.qat`` round while they train, ``intrinsic`` are several in one."""
import importlib

__all__ = ["intrinsic", "qat", "quantizable", "quantized"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
