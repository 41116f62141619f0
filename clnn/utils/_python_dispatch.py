"""Modes and tensors that stand below autograd: ``__torch_dispatch__``."""
from __future__ import annotations

import contextlib

from clnn._tensor import modes
from clnn._tensor.tensor import Tensor
from clnn._tensor.wrapped import local

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing"]


class TorchDispatchMode:
    """A block whose operators ask ``__torch_dispatch__(func, types, args, kwargs)`` instead of computing; ``func`` is one of ``clnn.ops.aten``.

    The method calls ``func(*args, **kwargs)`` for what the operator gives; the mode is left meanwhile.

    Example::

        >>> from clnn.utils._python_dispatch import TorchDispatchMode
        >>> class Names(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> x = clnn.ones(2)
        >>> with Names():
        ...     y = x.exp() + 1
        aten.exp.default
        aten.add.Tensor
    """

    supports_higher_order_operators = False
    composites = False                  # whether it is told of functions like ``conv2d`` as one, above autograd (``clnn/_composites.py``)

    def __init__(self, _dispatch_key=None):
        pass

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        modes.push(self)
        return self

    def __exit__(self, *exc):
        modes.pop()

    @classmethod
    def push(cls, *args, **kwargs):
        """An older way to make a mode."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that computes every operator as it is."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode():
    """The innermost mode of this thread; None where there is none."""
    return local.modes[-1] if local.modes else None


def _get_current_dispatch_mode_stack():
    """The modes of this thread, the innermost last."""
    return list(local.modes)


def is_in_torch_dispatch_mode(include_infra_modes=True) -> bool:
    """Whether a mode is entered in this thread."""
    return bool(local.modes)


@contextlib.contextmanager
def _disable_current_modes():
    """A block without modes."""
    before, local.modes = local.modes, ()
    try:
        yield list(before)
    finally:
        local.modes = before


def is_traceable_wrapper_subclass(t) -> bool:
    """Whether the tensor is made of others that it can be taken apart into."""
    return isinstance(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t) -> bool:
    """The same of a class."""
    return issubclass(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def return_and_correct_aliasing(func, args, kwargs, out):
    """What an operator returns that a class computed: the tensor itself for in-place operators, else ``out``."""
    name = func._opname
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    return (kwargs or {}).get("out", out)
