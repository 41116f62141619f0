"""Neural network layers, containers, losses, initialisation and tools around them."""
from . import functional, init  # noqa: F401  (layers need both)
from .modules import *  # noqa: F403
from .modules import __all__ as _layer_names
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

from . import modules, parameter, utils  # noqa: E402, F401  (utils builds on the layers)
from .modules.lazy import LazyModuleMixin  # noqa: E402, F401
from . import attention, common_types, grad  # noqa: E402, F401
from .parallel import DataParallel  # noqa: E402

__all__ = [*_layer_names, "Module", "DataParallel", "Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"]

functional.grad = grad          # PyTorch's other name for it


def __getattr__(name):
    if name in ("intrinsic", "qat", "quantizable", "quantized"):               # they are large, and few programs quantise
        import importlib
        return importlib.import_module("..ao.nn." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
