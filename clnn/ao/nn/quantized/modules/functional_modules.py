"""Sums, products and joins as modules, so that observers can watch their results and quantised ones have a scale."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn._quantized import functions as quantized

from .base import Scaled

__all__ = ["FloatFunctional", "FXFloatFunctional", "QFunctional"]


class FloatFunctional(nn.Module):
    """Sums, products and joins as methods of a module, so that a quantised model can watch their results. Here they are the plain operators.

    Example::

        >>> nn.quantized.FloatFunctional().add_relu(clnn.tensor([1.0, -3.0]), clnn.ones(2))
        tensor([2., 0.])
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        """``x + y``."""
        return self.activation_post_process(clnn.add(x, y))

    def add_scalar(self, x, y):
        """``x + y`` of a number: not observed, as the scale follows."""
        return clnn.add(x, y)

    def mul(self, x, y):
        """``x * y``."""
        return self.activation_post_process(clnn.mul(x, y))

    def mul_scalar(self, x, y):
        """``x * y`` of a number: not observed, as the scale follows."""
        return clnn.mul(x, y)

    def matmul(self, x, y):
        """``x @ y``."""
        return self.activation_post_process(clnn.matmul(x, y))

    def add_relu(self, x, y):
        """``relu(x + y)``."""
        return self.activation_post_process(clnn.add(x, y).relu())

    def cat(self, x, dim=0):
        """``clnn.cat(x, dim)``."""
        return self.activation_post_process(clnn.cat(x, dim))


class FXFloatFunctional(FloatFunctional):
    """As :class:`FloatFunctional`, without observers.

    Example::

        >>> nn.quantized.FXFloatFunctional().mul(clnn.ones(2), 3)
        tensor([3., 3.])
    """

    def __init__(self):
        nn.Module.__init__(self)
        object.__setattr__(self, "activation_post_process", lambda x: x)


class QFunctional(Scaled):
    """The methods of :class:`FloatFunctional` for quantised tensors; results have the scale ``scale`` and the zero point ``zero_point``.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.ones(2), 0.1, 0, clnn.quint8)
        >>> nn.quantized.QFunctional().add(x, x).dequantize()
        tensor([2., 2.])
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def _get_name(self):
        return "QFunctional"

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x):
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def _of_two(self, function, x, y):
        return self.activation_post_process(function(x, y, self.scale, self.zero_point))

    def add(self, x, y):
        """``x + y``."""
        return self._of_two(quantized.add, x, y)

    def add_scalar(self, x, y):
        """``x + y`` of a number."""
        return quantized.add_scalar(x, y)

    def mul(self, x, y):
        """``x * y``."""
        return self._of_two(quantized.mul, x, y)

    def mul_scalar(self, x, y):
        """``x * y`` of a number."""
        return quantized.mul_scalar(x, y)

    def matmul(self, x, y):
        """``x @ y``."""
        return quantized.matmul(x, y, self.scale, self.zero_point)

    def add_relu(self, x, y):
        """``relu(x + y)``."""
        return self._of_two(quantized.add_relu, x, y)

    def cat(self, x, dim=0):
        """``clnn.cat(x, dim)``."""
        return self.activation_post_process(quantized.cat(x, dim, self.scale, self.zero_point))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised module of one that was observed."""
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
