"""PyTorch's package around quantisation: ``quantization`` prepares and converts models, ``nn`` has their layers."""
import importlib

__all__ = ["nn", "quantization"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
