"""What optimizers written for PyTorch import from its ``optimizer`` module: small helpers, types and parts of docstrings."""
from typing import Any, Callable, Dict, List, Optional, Tuple

from clnn._tensor.tensor import Tensor
from clnn.nn.parameter import Parameter
from clnn.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)

__all__ = ["Args", "DeviceDict", "DeviceDtypeDict", "GlobalOptimizerPostHook", "GlobalOptimizerPreHook", "Indices", "Kwargs", "StateDict", "TensorListList",
           "_capturable_doc", "_device_dtype_check_for_fused", "_differentiable_doc", "_disable_dynamo_if_unsupported", "_foreach_doc",
           "_foreach_supported_types", "_fused_doc", "_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices", "_get_scalar_dtype",
           "_get_value", "_group_tensors_by_device_and_dtype", "_maximize_doc", "_params_doc", "_stack_if_compiling", "_to_scalar", "_view_as_real"]

Args = Tuple[Any, ...]
Kwargs = StateDict = Dict[str, Any]
DeviceDict, DeviceDtypeDict = Dict[Any, Tensor], Dict[Any, Tensor]
GlobalOptimizerPreHook = GlobalOptimizerPostHook = Callable[..., Any]
Indices, TensorListList = List[int], List[List[Optional[Tensor]]]

_foreach_supported_types = [Tensor, Parameter]
_params_doc = "params (iterable): the parameters to optimize, by name or not, or dicts that define groups of them"
_foreach_doc = "foreach (bool, optional): whether lists of tensors are updated at once. (default: None)"
_fused_doc = "fused (bool, optional): whether an update is one kernel. (default: None)"
_capturable_doc = "capturable (bool, optional): whether steps may be recorded as a graph. (default: False)"
_differentiable_doc = "differentiable (bool, optional): whether gradients pass through the step. (default: False)"
_maximize_doc = "maximize (bool, optional): maximize the objective instead of minimizing it. (default: False)"


def _get_value(x):
    """The number in a tensor; anything else as it is."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x):
    """A tensor of one element without dimensions; anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x):
    """The list itself: steps are not compiled as a whole."""
    return x


def _view_as_real(params, *state_and_grads):
    """Replace what is complex in the lists, ``params`` and what belongs to them, by its real view."""
    from clnn import view_as_real
    for i, p in enumerate(params):
        if p.is_complex():
            for row in (params, *state_and_grads):
                row[i] = view_as_real(row[i])


def _get_scalar_dtype(is_fused=None):
    """The dtype of counters: float32, or float64 where that is the default."""
    from clnn import float32, float64, get_default_dtype
    return float64 if not is_fused and get_default_dtype() is float64 else float32


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """A decorator that leaves functions as they are: there is no tracing to turn off."""
    return lambda fn: fn


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    """Raise where a parameter has no fused update."""
    kinds = _get_fused_kernels_supported_devices()
    if p.device.type not in kinds or not p.is_floating_point():
        raise RuntimeError(f"`fused=True` requires all the params to be floating point Tensors of supported devices: {kinds} but {p.dtype} and {p.device.type}")
