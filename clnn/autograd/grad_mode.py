"""Whether operators record what backward needs; the names are those of ``clnn.autograd`` and ``clnn``."""
from __future__ import annotations

from .._tensor.grad_mode import _Mode, enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled", "enforce_grad_layout_policy"]


class set_multithreading_enabled(_Mode):
    """Accepted, as a function, in a ``with`` block or as a decorator: a backward pass runs in the thread that asks for it.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> with clnn.autograd.grad_mode.set_multithreading_enabled(False):
        ...     x.sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    def __init__(self, mode: bool):
        self.mode = mode

    def clone(self):
        return type(self)(self.mode)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        pass


class enforce_grad_layout_policy(set_multithreading_enabled):
    """Accepted likewise: gradients of leaves lie in memory as these do, which optimizers read fastest."""

    def __init__(self, enable: bool = True):
        self.mode = enable
