"""PyTorch's ``onnx`` names: nothing can be exported, but a program that could export need not."""
from __future__ import annotations

import sys

__path__ = []           # programs import torch.onnx.symbolic_helper and the like: this module


def is_in_onnx_export() -> bool:
    """False."""
    return False


def export(*args, **kwargs):
    """Raises: clnn records launches of kernels, from which no ONNX graph can be made."""
    raise NotImplementedError("onnx.export: clnn cannot write ONNX graphs; save the state_dict with clnn.save, load it into the same model under PyTorch "
                              "and export it there")


dynamo_export = export


class ONNXProgram:
    """An exported program: there are none."""


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Accepted: how an operator would be exported."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Accepted: there is nothing to take back."""


def parse_args(*arg_descriptors):
    """Decorator of functions that say how an operator would be exported: the function itself."""
    return lambda fn: fn


def shape_as_tensor(x):
    """The shape as an int64 tensor."""
    from .ops.creation import tensor
    from .core.dtype import int64
    return tensor(list(x.shape), dtype=int64)


def reshape_from_tensor_shape(x, shape):
    """``x`` in the shape that a tensor holds."""
    return x.reshape(shape.tolist())


def __getattr__(name):
    if name in ("operators", "symbolic_helper") or name.startswith("symbolic_opset"):
        return sys.modules[__name__]
    raise AttributeError(f"module 'clnn.onnx' has no attribute {name!r}")
