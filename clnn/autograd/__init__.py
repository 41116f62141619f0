"""Automatic differentiation: the engine's entry points, custom functions, checks and hooks."""
from __future__ import annotations

from .._tensor import tape as _tape
from .._tensor.backward import backward, grad
from .._tensor.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .._tensor.tensor import Tensor as _Tensor
from ..core.warn import warn as _warn
from . import anomaly_mode, forward_ad, function, functional, grad_mode, graph
from .anomaly_mode import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from .function import Function
from .grad_mode import enforce_grad_layout_policy, set_multithreading_enabled
from .gradcheck import GradcheckError, gradcheck, gradgradcheck


class _VariableType(type):
    def __instancecheck__(cls, t):
        return isinstance(t, _Tensor)


class _Engine:
    """What libraries ask of the part that walks over the tape."""

    @staticmethod
    def queue_callback(callback):
        """Call ``callback()`` when the backward pass that is under way is over."""
        _tape.at_end(callback)


class Variable(metaclass=_VariableType):
    """Tensors are differentiable themselves; ``Variable(t)`` returns ``t`` with ``requires_grad`` set as asked.

    Example:
        >>> clnn.autograd.Variable(clnn.ones(2), requires_grad=True).requires_grad
        True
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if volatile:
            _warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        if data is not None and not isinstance(data, _Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if data is None:
            from ..ops.creation import empty
            data = empty(0)
        t = data.detach() if isinstance(data, _Tensor) and data._grad_fn is None and requires_grad != data.requires_grad else data
        return t.requires_grad_(requires_grad) if requires_grad else t


__all__ = ["Function", "GradcheckError", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad",
           "function", "functional", "grad", "grad_mode",
           "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_enabled", "is_grad_enabled", "no_grad", "set_detect_anomaly",
           "set_grad_enabled", "set_multithreading_enabled", "enforce_grad_layout_policy"]


def _profiler_enabled() -> bool:
    """False: a profile is asked for in its own block."""
    return False


def _disable_profiler():
    """Nothing to switch off."""


def __getattr__(name):
    if name in ("profiler", "variable"):    # the one a floor above, the other for old programs: only when asked for
        import importlib
        return importlib.import_module("clnn.profiler" if name == "profiler" else "clnn.autograd.variable")
    raise AttributeError(f"module 'clnn.autograd' has no attribute {name!r}")
