"""Layers for training that round their weights as quantised ones would."""
import importlib

from .modules import Conv1d, Conv2d, Conv3d, Embedding, EmbeddingBag, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear", "dynamic"]


def __getattr__(name):
    if name == "dynamic":
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
