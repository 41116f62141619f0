"""Layers that compute with quantised tensors, or, in ``dynamic``, with quantised weights."""
import importlib

from .modules import *  # noqa: F401,F403
from .modules import MaxPool2d, __all__  # noqa: F401


def __getattr__(name):
    if name in ("dynamic", "functional"):
        return importlib.import_module("." + name, __name__)
    if name in ("LSTM", "MultiheadAttention"):                  # they are made of layers that are made of these
        return importlib.import_module("..quantizable", __name__).QUANTIZED[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
