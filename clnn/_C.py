"""Names that programs take from PyTorch's compiled part."""
from types import SimpleNamespace as _SimpleNamespace

from ._tensor import grad_mode as _grad_mode
from ._tensor.override import all_switched_off as DisableTorchFunction
from ._tensor.override import disabled as _disabled_torch_function_impl
from ._tensor.override import local as _local
from ._tensor.override import switched_off as DisableTorchFunctionSubclass
from ._questions import DispatchKey, DispatchKeySet, Graph, Node, TensorType, Value  # noqa: F401
from ._questions import ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard
from ._tensor.tensor import Tensor as TensorBase
from .core.errors import _LinAlgError  # noqa: F401
from .storage import StorageBase  # noqa: F401

_TensorBase = TensorBase
_LATER = {"Generator": "random", "Future": "futures", "default_generator": "random", "ScriptModule": "jit", "ScriptFunction": "jit", "OutOfMemoryError": "core.errors"}


def __getattr__(name):
    if name in _LATER:
        from importlib import import_module
        return getattr(import_module(f"{__package__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")




class _Native(_SimpleNamespace):
    """Functions of layers, under the names that PyTorch's compiled part has for them."""

    def __getattr__(self, name):
        from .nn import functional
        return getattr(functional, {"log_sigmoid": "logsigmoid"}.get(name, name))


_nn = _Native()
__path__ = []                       # programs import torch._C._functorch
_TensorMeta = type(TensorBase)
_distributed_rpc = _SimpleNamespace(PyRRef=type("PyRRef", (), {"__doc__": "References to objects of other processes, of which there are none."}))


def _parse_to(*args, **kwargs):
    """What a call of ``to`` asks for: (device, dtype, non_blocking, memory_format)."""
    from .nn.modules import _convert
    return _convert._parse_to(*args, **kwargs)


_nn._parse_to = _parse_to


def _is_torch_function_enabled() -> bool:
    """Whether subclasses are asked for functions in this thread."""
    return not _local.off


def _is_torch_function_mode_enabled() -> bool:
    """Whether a ``TorchFunctionMode`` is active in this thread."""
    return bool(_local.modes) and _local.off < 2


def _log_api_usage_once(event) -> None:
    """Nothing is logged."""


def _get_tracing_state():
    """None: no program is being traced operator by operator."""


def _set_grad_enabled(mode) -> None:
    """Switch the recording of operators on or off in this thread."""
    _grad_mode.set_grad_enabled(mode)


def _is_tracing() -> bool:
    """False: no program is being traced operator by operator."""
    return False


def _get_default_device() -> str:
    """The name of the default device."""
    from ._tensor.device import get_default_device
    return str(get_default_device())


def _kept(value):
    """A setting of TorchScript's optimiser, of which clnn has none: it is kept, so that a program gets it back, and changes nothing."""
    def setting(new):
        nonlocal value
        old, value = value, bool(new)
        return old
    return setting


_jit_set_profiling_executor, _jit_set_profiling_mode = _kept(True), _kept(True)


def _jit_set_texpr_fuser_enabled(enabled) -> None:
    """Nothing: clnn fuses by itself."""


_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_texpr_fuser_enabled


class _functorch:
    """Questions about the layers of ``vmap`` and derivatives. Derivatives come from the tape and have no layers."""

    @staticmethod
    def is_batchedtensor(tensor) -> bool:
        """Whether the tensor stands for one sample of a :func:`clnn.vmap`."""
        from ._vmap.batched import BatchedTensor
        return isinstance(tensor, BatchedTensor)

    is_functorch_wrapped_tensor = is_batchedtensor

    @staticmethod
    def is_gradtrackingtensor(tensor) -> bool:
        """False: derivatives show functions plain tensors."""
        return False

    is_legacy_batchedtensor = is_gradtrackingtensor

    @staticmethod
    def get_unwrapped(tensor):
        """The tensor behind one that stands for a sample."""
        return tensor.part

    @staticmethod
    def maybe_get_level(tensor) -> int:
        """The level of nested maps that a tensor belongs to; -1 for a plain one."""
        return getattr(tensor, "level", -1)

    @staticmethod
    def maybe_get_bdim(tensor) -> int:
        """The dimension of the samples behind a tensor; -1 for a plain one."""
        return 0 if _functorch.is_batchedtensor(tensor) else -1


def _are_functorch_transforms_active() -> bool:
    """Whether a :func:`clnn.vmap` is under way."""
    from ._vmap.levels import here
    return bool(here.maps)


__all__ = ["DisableTorchFunction", "DispatchKey", "DispatchKeySet", "DisableTorchFunctionSubclass", "TensorBase", "_ExcludeDispatchKeyGuard",
           "_disabled_torch_function_impl", "_is_torch_function_enabled", "_is_torch_function_mode_enabled"]
