"""Several layers in one that compute with quantised tensors."""
from __future__ import annotations

import importlib

import clnn
from clnn._quantized import functions as quantized

from .. import intrinsic as nni
from .. import quantized as nnq
from ..quantized.modules.normalization import batch_norm

_LAYERS = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU", "LinearLeakyReLU", "LinearTanh", "ConvAdd2d", "ConvAddReLU2d"]
__all__ = [*_LAYERS]


class LinearReLU(nnq.Linear):
    """``nnq.Linear`` and ReLU.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.quantized.LinearReLU(2, 3)
        >>> layer(clnn.quantize_per_tensor(clnn.ones(1, 2), 0.1, 0, clnn.quint8)).shape
        clnn.Size([1, 3])
    """

    _FLOAT_MODULE = (nni.LinearReLU,)
    _function = staticmethod(quantized.linear_relu)

    def _get_name(self):
        return "QuantizedLinearReLU"


class LinearLeakyReLU(nnq.Linear):
    """``nnq.Linear`` and leaky ReLU.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.quantized.LinearLeakyReLU(2, 3, 0.1)
        >>> layer(clnn.quantize_per_tensor(clnn.ones(1, 2), 0.1, 0, clnn.quint8)).shape
        clnn.Size([1, 3])
    """

    _FLOAT_MODULE = (nni.LinearLeakyReLU,)

    def __init__(self, in_features, out_features, negative_slope, bias=True, dtype=clnn.qint8):
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x):
        return quantized.linear_leaky_relu(x, self._packed(), self.scale, self.zero_point, self.negative_slope)

    def _get_name(self):
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def _made(cls, mod, dtype):
        return cls(mod.in_features, mod.out_features, mod.after.negative_slope, dtype=dtype)


class LinearTanh(nnq.Linear):
    """``nnq.Linear`` and tanh.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.quantized.LinearTanh(2, 3)
        >>> layer(clnn.quantize_per_tensor(clnn.ones(1, 2), 0.1, 0, clnn.quint8)).shape
        clnn.Size([1, 3])
    """

    _FLOAT_MODULE = (nni.LinearTanh,)
    _function = staticmethod(quantized.linear_tanh)

    def _get_name(self):
        return "QuantizedLinearTanh"


def _conv_relu(dims):
    name, size = f"ConvReLU{dims}d", (1, 2) + (5,) * dims
    text = f"""``nnq.Conv{dims}d`` and ReLU.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.quantized.{name}(2, 3, 3)
        >>> layer(clnn.quantize_per_tensor(clnn.rand{size}, 0.1, 0, clnn.quint8)).shape
        clnn.Size({[1, 3] + [3] * dims})
    """
    return type(name, (getattr(nnq, f"Conv{dims}d"),), {
        "_suffix": "_relu", "_FLOAT_MODULES": (getattr(nni, name),), "_get_name": lambda self: "Quantized" + name, "__doc__": text, "__module__": __name__})


ConvReLU1d, ConvReLU2d, ConvReLU3d = map(_conv_relu, (1, 2, 3))


class ConvAdd2d(nnq.Conv2d):
    """``nnq.Conv2d`` to whose result another tensor is added.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.ones(1, 1, 2, 2), 0.1, 0, clnn.quint8)
        >>> clnn.ao.nn.intrinsic.quantized.ConvAdd2d(1, 1, 1)(x, x).shape
        clnn.Size([1, 1, 2, 2])
    """

    _FLOAT_MODULES = (nni.ConvAdd2d,)
    _sum = staticmethod(quantized.conv2d_add)

    def forward(self, input, extra_input):
        return self._sum(input, extra_input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return "Quantized" + type(self).__name__


class ConvAddReLU2d(ConvAdd2d):
    """:class:`ConvAdd2d` and ReLU.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.ones(1, 1, 2, 2), 0.1, 0, clnn.quint8)
        >>> clnn.ao.nn.intrinsic.quantized.ConvAddReLU2d(1, 1, 1)(x, x).shape
        clnn.Size([1, 1, 2, 2])
    """

    _FLOAT_MODULES = (nni.ConvAddReLU2d,)
    _sum = staticmethod(quantized.conv2d_add_relu)


_TEXT = """``nnq.BatchNorm{0}d`` and ReLU.

    Example::

        >>> clnn.ao.nn.intrinsic.quantized.BNReLU{0}d(2).num_features
        2
    """
BNReLU2d, BNReLU3d = (batch_norm(f"BNReLU{d}d", d, True, _TEXT.format(d)) for d in (2, 3))


def __getattr__(name):
    if name == "dynamic":
        return importlib.import_module("._dynamic", nni.__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
