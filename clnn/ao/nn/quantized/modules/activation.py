"""Activations of quantised tensors, batch normalisation, and the two ends of a quantised model."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn._quantized import functions as quantized

from .base import output_scale

__all__ = ["Quantize", "DeQuantize", "ReLU6", "Hardswish", "ELU", "LeakyReLU", "Sigmoid", "Softmax", "PReLU", "Dropout"]


class Quantize(nn.Module):
    """``clnn.quantize_per_tensor`` as a module: what ``QuantStub`` becomes.

    Example::

        >>> nn.quantized.Quantize(0.1, 0, clnn.quint8)(clnn.tensor([0.26])).dequantize()
        tensor([0.3000])
    """

    def __init__(self, scale, zero_point, dtype, factory_kwargs=None):
        super().__init__()
        options = factory_kwargs or {}
        for name, value, kind in (("scale", scale, clnn.float32), ("zero_point", zero_point, clnn.int64)):
            value = value.detach().to(kind).reshape(-1) if isinstance(value, clnn.Tensor) else clnn.tensor([value], dtype=kind, **options)
            self.register_buffer(name, value)
        self.dtype = dtype

    def forward(self, X):
        return clnn.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The module of a stub that was observed."""
        return cls(*output_scale(mod), mod.activation_post_process.dtype)

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """``Tensor.dequantize`` as a module: what ``DeQuantStub`` becomes.

    Example::

        >>> nn.quantized.DeQuantize()(clnn.quantize_per_tensor(clnn.tensor([0.26]), 0.1, 0, clnn.quint8))
        tensor([0.3000])
    """

    def forward(self, Xq):
        return Xq.dequantize()

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """The module of a stub."""
        return DeQuantize()


class ReLU6(nn.ReLU):
    """ReLU6 of quantised tensors.

    Example::

        >>> nn.quantized.ReLU6()(clnn.quantize_per_tensor(clnn.tensor([-1.0, 7.0]), 0.1, 20, clnn.quint8)).dequantize()
        tensor([0., 6.])
    """

    def forward(self, input):
        return quantized.relu6(input, self.inplace)

    def _get_name(self):
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """The quantised module of a float one."""
        return ReLU6(mod.inplace)


class _Rescaled(nn.Module):
    """An activation whose result has a scale and a zero point, buffers."""

    def _scaled(self, scale, zero_point, device=None, dtype=None):
        self.register_buffer("scale", clnn.tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", clnn.tensor(zero_point, device=device, dtype=dtype))


class Hardswish(_Rescaled):
    """``nn.Hardswish`` of quantised tensors.

    Example::

        >>> nn.quantized.Hardswish(0.1, 0)(clnn.quantize_per_tensor(clnn.tensor([3.0]), 0.1, 20, clnn.quint8)).dequantize()
        tensor([3.])
    """

    def __init__(self, scale, zero_point, device=None, dtype=None):
        super().__init__()
        self._scaled(scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.hardswish(input, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """The quantised module of one that was observed."""
        return Hardswish(*output_scale(mod))


class ELU(nn.ELU):
    """``nn.ELU`` of quantised tensors.

    Example::

        >>> nn.quantized.ELU(0.1, 10)(clnn.quantize_per_tensor(clnn.tensor([3.0]), 0.1, 20, clnn.quint8)).dequantize()
        tensor([3.])
    """

    def __init__(self, scale, zero_point, alpha=1.0):
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input):
        return quantized.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self):
        return "QuantizedELU"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """The quantised module of one that was observed."""
        return ELU(*output_scale(mod), mod.alpha)


class LeakyReLU(_Rescaled, nn.LeakyReLU):
    """``nn.LeakyReLU`` of quantised tensors.

    Example::

        >>> nn.quantized.LeakyReLU(0.1, 10, 0.5)(clnn.quantize_per_tensor(clnn.tensor([-1.0]), 0.1, 20, clnn.quint8)).dequantize()
        tensor([-0.5000])
    """

    def __init__(self, scale, zero_point, negative_slope=1e-2, inplace=False, device=None, dtype=None):
        nn.LeakyReLU.__init__(self, negative_slope, inplace)
        self._scaled(scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.leaky_relu(input, self.negative_slope, self.inplace, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised module of one that was observed."""
        return cls(*output_scale(mod), mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """``nn.Sigmoid`` of quantised tensors.

    Example::

        >>> nn.quantized.Sigmoid(1 / 256, 0)(clnn.quantize_per_tensor(clnn.tensor([0.0]), 0.1, 20, clnn.quint8)).dequantize()
        tensor([0.5000])
    """

    def __init__(self, output_scale, output_zero_point):
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input):
        return quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised module of one that was observed."""
        return cls(*output_scale(mod))


class Softmax(nn.Softmax):
    """``nn.Softmax`` of quantised tensors.

    Example::

        >>> nn.quantized.Softmax(0, 1 / 256, 0)(clnn.quantize_per_tensor(clnn.zeros(2), 0.1, 20, clnn.quint8)).dequantize()
        tensor([0.5000, 0.5000])
    """

    def __init__(self, dim=None, scale=1.0, zero_point=0):
        super().__init__(dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input):
        dim = self.dim if self.dim is not None else 0 if input.ndim in (0, 1, 3) else 1
        return quantized.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """The quantised module of one that was observed."""
        return Softmax(mod.dim, *output_scale(mod))


class PReLU(nn.Module):
    """``nn.PReLU`` of quantised tensors, with a quantised slope.

    Example::

        >>> layer = nn.quantized.PReLU(0.1, 10)
        >>> layer.set_weight(clnn.quantize_per_tensor(clnn.tensor([0.5]), 0.1, 0, clnn.quint8))
        >>> layer(clnn.quantize_per_tensor(clnn.tensor([-1.0]), 0.1, 20, clnn.quint8)).dequantize()
        tensor([-0.5000])
    """

    def __init__(self, output_scale, output_zero_point, num_parameters=1):
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        self.set_weight(clnn.quantize_per_tensor(clnn.randn(num_parameters), 1.0, 0, clnn.quint8))

    def set_weight(self, w):
        """Another slope."""
        self.weight = w

    def forward(self, input):
        return quantized.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised module of one that was observed."""
        made = cls(*output_scale(mod), mod.num_parameters)
        weight = mod.weight.detach().float()
        observer = mod.qconfig.weight()
        observer(weight)
        scale, zero_point = observer.calculate_qparams()
        made.set_weight(clnn.quantize_per_tensor(weight, float(scale), int(zero_point), clnn.quint8))
        return made


class Dropout(nn.Dropout):
    """The identity.

    Example::

        >>> nn.quantized.Dropout()(clnn.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input):
        return input

    def _get_name(self):
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised module of a float one."""
        return cls(mod.p, mod.inplace)
