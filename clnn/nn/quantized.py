"""What ``torch.nn.quantized`` has for models that compute in floats."""
from __future__ import annotations

from .modules.linear import Identity
from .modules.module import Module

__all__ = ["FloatFunctional"]


class FloatFunctional(Module):
    """Sums, products and joins as methods of a module, so that a quantised model can watch their results. Here they are the plain operators.

    Example::

        >>> nn.quantized.FloatFunctional().add_relu(clnn.tensor([1.0, -3.0]), clnn.ones(2))
        tensor([2., 0.])
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        """``x + y``."""
        return self.activation_post_process(x.add(y))

    add_scalar = add

    def mul(self, x, y):
        """``x * y``."""
        return self.activation_post_process(x.mul(y))

    mul_scalar = mul

    def matmul(self, x, y):
        """``x @ y``."""
        return self.activation_post_process(x.matmul(y))

    def add_relu(self, x, y):
        """``relu(x + y)``."""
        return self.activation_post_process(x.add(y).relu())

    def cat(self, x, dim=0):
        """``clnn.cat(x, dim)``."""
        from ..ops.joining import cat
        return self.activation_post_process(cat(x, dim))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from .._absent import Absent
    raise Absent(f"module 'clnn.nn.quantized' has no attribute {name!r}: clnn does not implement quantised dtypes")
