"""Names that programs take from PyTorch's compiled part."""
from ._tensor.override import all_switched_off as DisableTorchFunction
from ._tensor.override import disabled as _disabled_torch_function_impl
from ._tensor.override import local as _local
from ._tensor.override import switched_off as DisableTorchFunctionSubclass
from ._tensor.tensor import Tensor as TensorBase

_TensorBase = TensorBase


def _is_torch_function_enabled() -> bool:
    """Whether subclasses are asked for functions in this thread."""
    return not _local.off


def _is_torch_function_mode_enabled() -> bool:
    """Whether a ``TorchFunctionMode`` is active in this thread."""
    return bool(_local.modes) and _local.off < 2


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "TensorBase", "_disabled_torch_function_impl", "_is_torch_function_enabled",
           "_is_torch_function_mode_enabled"]
