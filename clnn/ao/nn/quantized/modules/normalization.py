"""Normalisation of quantised tensors: computed with the numbers, rounded by a scale of its own."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn._quantized import functions as quantized

from ... import intrinsic as nni
from .base import output_scale

__all__ = ["BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]
_BATCH = """``nn.{name}`` of quantised tensors, by the statistics of training.

    Example::

        >>> layer = nn.quantized.{name}(2)
        >>> layer(clnn.quantize_per_tensor(clnn.ones{size}, 0.5, 0, clnn.quint8)).shape
        clnn.Size({shown})
    """
_NORM = """``nn.{name}`` of quantised tensors.

    Example::

        >>> layer = nn.quantized.{name}({args}, clnn.ones(2), clnn.zeros(2), 0.1, 100)
        >>> layer(clnn.quantize_per_tensor(clnn.ones{size}, 0.5, 0, clnn.quint8)).q_zero_point()
        100
    """


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    _dims, _relu = 2, False

    def __init__(self, num_features, eps=1e-5, momentum=0.1, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self.register_buffer("scale", clnn.tensor(1.0, device=device, dtype=dtype))
        self.register_buffer("zero_point", clnn.tensor(0, device=device, dtype=dtype))

    def _get_name(self):
        return f"QuantizedB{'NReLU' if self._relu else 'atchNorm'}{self._dims}d"

    def _check_input_dim(self, input):
        if input.ndim != self._dims + 2:
            raise ValueError(f"Input shape must be `(N, C, {'H, W' if self._dims == 2 else 'H, W, D'})`!")

    def forward(self, input):
        self._check_input_dim(input)
        function = quantized.batch_norm_relu if self._relu else quantized.batch_norm
        return function(input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised layer of one that was observed."""
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        mod = mod[0] if isinstance(mod, nni._FusedModule) else mod
        made = cls(mod.num_features, mod.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(mod, name))
        made.scale, made.zero_point = scale.reshape(()), zero_point.reshape(())
        return made


def batch_norm(name, dims, relu=False, text=None):
    """A class of quantised batch normalisation."""
    size = (1, 2) + (2,) * dims
    return type(name, (_BatchNorm,), {"_dims": dims, "_relu": relu, "__doc__": text or _BATCH.format(name=name, size=size, shown=list(size)),
                                      "__module__": __name__})


BatchNorm2d, BatchNorm3d = batch_norm("BatchNorm2d", 2), batch_norm("BatchNorm3d", 3)


class _Scaled:
    """A layer with weights of floats whose result has a scale and a zero point, buffers."""

    def _scaled(self, weight, bias, scale, zero_point, device=None, dtype=None):
        self.weight, self.bias = (None if t is None else t if isinstance(t, nn.Parameter) else nn.Parameter(t) for t in (weight, bias))
        self.register_buffer("scale", clnn.tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", clnn.tensor(zero_point, device=device, dtype=dtype))

    def _get_name(self):
        return "Quantized" + type(self).__name__


class LayerNorm(_Scaled, nn.LayerNorm):
    __doc__ = _NORM.format(name="LayerNorm", args="2", size="(3, 2)")

    def __init__(self, normalized_shape, weight, bias, scale, zero_point, eps=1e-5, elementwise_affine=True, device=None, dtype=None):
        super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine, device=device, dtype=dtype)
        self._scaled(weight, bias, scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised layer of one that was observed."""
        return cls(mod.normalized_shape, mod.weight, mod.bias, *output_scale(mod), mod.eps, mod.elementwise_affine)


class GroupNorm(_Scaled, nn.GroupNorm):
    __doc__ = _NORM.format(name="GroupNorm", args="1, 2", size="(3, 2, 2)")

    def __init__(self, num_groups, num_channels, weight, bias, scale, zero_point, eps=1e-5, affine=True, device=None, dtype=None):
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self._scaled(weight, bias, scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised layer of one that was observed."""
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, *output_scale(mod), mod.eps, mod.affine)


class _InstanceNorm(_Scaled):
    def __init__(self, num_features, weight, bias, scale, zero_point, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self._scaled(weight, bias, scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.instance_norm(input, self.weight, self.bias, self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised layer of one that was observed."""
        return cls(mod.num_features, mod.weight, mod.bias, *output_scale(mod), mod.eps, mod.affine)


def _instance_norm(dims):
    name = f"InstanceNorm{dims}d"
    text = _NORM.format(name=name, args="2", size=(3, 2) + (2,) * dims)
    return type(name, (_InstanceNorm, getattr(nn, name)), {"__doc__": text, "__module__": __name__})


InstanceNorm1d, InstanceNorm2d, InstanceNorm3d = map(_instance_norm, (1, 2, 3))
