"""Convolutions of quantised tensors."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn._quantized import functions as quantized
from clnn.nn.utils.fusion import fuse_conv_bn_weights

from .base import Scaled, WeightedQuantizedModule, float_layer, output_scale, quantize_weight, weight_rule

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
_PADDINGS = ("zeros", "reflect")


def _tuple(value, dims):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims


class _ConvNd(WeightedQuantizedModule, Scaled):
    """What all of them have. Subclasses say over how many dimensions they go, and which functions they are."""

    _version = 1
    _dims, _transposed, _suffix = 2, False, ""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, transposed=False, output_padding=0, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{'in' if in_channels % groups else 'out'}_channels must be divisible by groups")
        if padding_mode not in _PADDINGS or transposed and padding_mode != "zeros":
            raise NotImplementedError(f"{padding_mode} padding mode is not supported")
        dims = self._dims
        self.in_channels, self.out_channels, self.groups, self.padding_mode, self.transposed = in_channels, out_channels, groups, padding_mode, transposed
        self.kernel_size, self.stride, self.dilation = (_tuple(v, dims) for v in (kernel_size, stride, dilation))
        self.padding, self.output_padding = padding if isinstance(padding, str) else _tuple(padding, dims), _tuple(output_padding, dims)
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        weight = clnn._empty_affine_quantized([*shape, *self.kernel_size], scale=1, zero_point=0, dtype=clnn.qint8, device=device)
        self.set_weight_bias(weight, clnn.zeros(out_channels, device=device) if bias else None)

    def _get_name(self):
        return f"QuantizedConv{'Transpose' * self._transposed}{self._dims}d"

    def extra_repr(self):
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, scale={self.scale}, "
                 f"zero_point={self.zero_point}"]
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * self._dims:
                parts.append(f"{name}={getattr(self, name)}")
        parts += [f"groups={self.groups}"] * (self.groups != 1) + ["bias=False"] * (self.bias() is None)
        return ", ".join(parts)

    def set_weight_bias(self, w, b):
        """Pack another weight and bias."""
        padding = (0,) * self._dims if self.padding_mode != "zeros" else self.padding
        pack = getattr(quantized, f"conv{'_transpose' * self._transposed}{self._dims}d_prepack")
        middle = (self.output_padding,) if self._transposed else ()
        self._packed_params = pack(w, b, self.stride, padding, *middle, self.dilation, self.groups)

    def _weight_bias(self):
        return self._packed_params.unpack()

    def weight(self):
        """The quantised weight."""
        return self._weight_bias()[0]

    def bias(self):
        """The bias, of floats."""
        return self._weight_bias()[1]

    def forward(self, input):
        dims = self._dims
        if input.ndim != dims + 2:
            raise ValueError(f"Input shape must be `({'N, C, ' + ', '.join({1: 'L', 2: 'HW', 3: 'DHW'}[dims])})`!")
        if self.padding_mode != "zeros":
            input = nn.functional.pad(input, [p for p in reversed(self.padding) for _ in (0, 1)], mode=self.padding_mode)
        function = getattr(quantized, f"conv{'_transpose' * self._transposed}{dims}d{self._suffix}")
        return function(input, self._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    @classmethod
    def _like(cls, mod):
        """An empty layer with the settings of a float one."""
        middle = dict(output_padding=mod.output_padding) if cls._transposed else {}
        return cls(mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, dilation=mod.dilation, groups=mod.groups,
                   bias=mod.bias is not None, padding_mode=mod.padding_mode, **middle)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised layer of one that was observed, or trained with rounding."""
        scale = output_scale(mod) if hasattr(mod, "activation_post_process") and hasattr(mod.activation_post_process, "calculate_qparams") else None
        inner, weight, bias = float_layer(cls, mod, cls._FLOAT_MODULES, fuse_conv_bn_weights)
        rule = weight_rule(inner)
        if not use_precomputed_fake_quant:
            rule(weight)
        if rule.dtype is not clnn.qint8:
            raise AssertionError("Weight observer must have a dtype of qint8")
        made = cls._like(inner)
        made.set_weight_bias(quantize_weight(weight, rule), bias)
        if scale is not None:
            made.scale, made.zero_point = scale
        return made

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        """The quantised layer of one that has a quantised weight and computes in floats."""
        made = cls._like(ref_qconv)
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class _Plain(_ConvNd):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None,
                 dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0, groups, bias, padding_mode, device, dtype)


class _Transposed(_ConvNd):
    _transposed = True

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros",
                 device=None, dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, True, output_padding, groups, bias, padding_mode, device, dtype)


def _kind(base, dims, floats):
    name = f"Conv{'Transpose' * base._transposed}{dims}d"
    size, out = (1, 2) + (5,) * dims, (1, 3) + ((7,) if base._transposed else (3,)) * dims
    text = f"""A {'transposed ' * base._transposed}convolution of quantised tensors over {dims} dimension{'s' * (dims > 1)}, with a quantised weight.

    Args:
        as of ``nn.{name}``. ``scale`` and ``zero_point`` are attributes.

    Example::

        >>> layer = clnn.ao.nn.quantized.{name}(2, 3, 3)
        >>> layer(clnn.quantize_per_tensor(clnn.rand{size}, 0.1, 0, clnn.quint8)).shape
        clnn.Size({list(out)})
    """
    return type(name, (base,), {"_dims": dims, "_FLOAT_MODULES": floats, "__doc__": text, "__module__": __name__})


Conv1d, Conv2d, Conv3d = (_kind(_Plain, dims, (getattr(nn, f"Conv{dims}d"),)) for dims in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (_kind(_Transposed, dims, (getattr(nn, f"ConvTranspose{dims}d"),)) for dims in (1, 2, 3))
