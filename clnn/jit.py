"""PyTorch's ``jit`` names. clnn does not compile Python: the decorators give back what they get, and ``clnn.compile`` captures launches."""
from __future__ import annotations

import contextlib
import warnings
from typing import Final  # noqa: F401

__all__ = ["script", "trace", "ignore", "unused", "export", "is_scripting", "is_tracing", "script_method", "freeze", "fork", "wait", "save", "load",
           "annotate", "isinstance", "script_if_tracing", "optimize_for_inference", "interface", "Attribute"]

_isinstance = isinstance
__path__ = []           # programs import torch.jit.annotations


class _Given(type):
    """``isinstance`` is true of the class's own objects and of modules that :func:`script` or :func:`trace` were given."""

    def __instancecheck__(cls, obj):
        return type.__instancecheck__(cls, obj) or bool(getattr(obj, "__dict__", {}).get("_scripted"))


def _noted(obj):
    from .nn import Module
    if _isinstance(obj, Module):
        for module in obj.modules():
            module.__dict__["_scripted"] = True
    return obj


def script(obj=None, *args, **kwargs):
    """``obj`` itself: functions and modules run as Python.

    Example:
        >>> net = clnn.jit.script(nn.Linear(2, 1))
        >>> net(clnn.ones(1, 2)).shape
        clnn.Size([1, 1])
    """
    return _noted(obj) if obj is not None else script


def trace(func, example_inputs=None, **kwargs):
    """``func`` itself, called once with the example, as tracing does.

    Example:
        >>> net = clnn.jit.trace(nn.Linear(2, 1), clnn.ones(1, 2))
        >>> net(clnn.ones(1, 2)).shape
        clnn.Size([1, 1])
    """
    if example_inputs is not None:
        func(*(example_inputs if _isinstance(example_inputs, (tuple, list)) else (example_inputs,)))
    return _noted(func)


def _same(obj=None, *args, **kwargs):
    """The decorated function itself."""
    return obj if callable(obj) else _same


script_method = script_if_tracing = _script_if_tracing = _overload = _overload_method = ignore = unused = export = interface = _same


def freeze(module, *args, **kwargs):
    """``module`` in eval mode."""
    return module.eval()


optimize_for_inference = freeze


def is_scripting() -> bool:
    """Always False."""
    return False


is_tracing = is_scripting


def fork(func, *args, **kwargs):
    """Call ``func`` now; the result waits for :func:`wait`."""
    return func(*args, **kwargs)


def wait(future):
    """The result of :func:`fork`."""
    return future


def annotate(the_type, the_value):
    """``the_value``."""
    return the_value


def Attribute(value, type):
    """``value``."""
    return value


def isinstance(obj, target_type) -> bool:
    """Python's ``isinstance``, with PyTorch's tuples of types."""
    return _isinstance(obj, target_type)


def save(module, f, **kwargs):
    """Save the module's ``state_dict``: a module's code cannot be saved."""
    import clnn
    warnings.warn("clnn.jit.save writes the state_dict only; load it into the model's class", stacklevel=2)
    clnn.save(module.state_dict(), f)


def load(f, map_location=None, **kwargs):
    """Refused: a TorchScript file holds code."""
    raise RuntimeError("clnn.jit.load: TorchScript files hold compiled code, which clnn does not run; save the model's state_dict instead")


class TracerWarning(Warning):
    """A category that programs silence; never raised here."""


class ScriptWarning(Warning):
    """A category that programs silence; never raised here."""


class Error(RuntimeError):
    """PyTorch's exception of compiled code; never raised here."""


def trace_module(mod, inputs, *args, **kwargs):
    """``mod`` itself."""
    return _noted(mod)


def set_fusion_strategy(strategy):
    """Accepted: elementwise chains always fuse."""
    return strategy


enable_onednn_fusion = set_fusion_strategy


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """A block that changes nothing."""
    yield


class ScriptFunction:
    """PyTorch's compiled functions: there are none."""


def __getattr__(name):
    if name in ("ScriptModule", "RecursiveScriptModule", "TracedModule", "TopLevelTracedModule"):
        from .nn import Module
        made = _Given("ScriptModule", (Module,), {"__module__": __name__, "__doc__": "A module that :func:`script` or :func:`trace` was given, or a base class."})
        for key in ("ScriptModule", "RecursiveScriptModule", "TracedModule", "TopLevelTracedModule"):
            globals()[key] = made
        return made
    raise AttributeError(f"module 'clnn.jit' has no attribute {name!r}")
