"""Linear layers of quantised tensors."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn._quantized import functions as quantized
from clnn.nn.utils.fusion import fuse_linear_bn_weights

from .base import Scaled, WeightedQuantizedModule, float_layer, hidden_repr, output_scale, quantize_weight, weight_rule

__all__ = ["LinearPackedParams", "Linear"]


class LinearPackedParams(nn.Module):
    """The weight and the bias of a linear layer, packed; its state holds them as a pair.

    Example::

        >>> clnn.ao.nn.quantized.modules.linear.LinearPackedParams().dtype
        clnn.qint8
    """

    _version = 3

    def __init__(self, dtype=clnn.qint8):
        super().__init__()
        self.dtype = dtype
        zero = clnn._empty_affine_quantized([1, 1], dtype=clnn.qint8) if dtype is clnn.qint8 else clnn.zeros(1, 1)
        self.set_weight_bias(zero, None)

    def set_weight_bias(self, weight, bias):
        """Pack another weight and bias."""
        if self.dtype is clnn.qint8:
            self._packed_params = quantized.linear_prepack(weight, bias)
        elif self.dtype is clnn.float16:
            self._packed_params = quantized.linear_prepack_fp16(weight, bias)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    def _weight_bias(self):
        return self._packed_params.unpack()

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"], destination[prefix + "_packed_params"] = self.dtype, self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("version") or 1
        self.dtype = state_dict.pop(prefix + "dtype") if version > 1 else clnn.qint8
        pair = state_dict.pop(prefix + "_packed_params") if version > 2 else (state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        self.set_weight_bias(*pair)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def __repr__(self):
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule, Scaled):
    """A linear layer of quantised tensors, with a quantised weight; its result has the scale ``scale`` and the zero point ``zero_point``.

    Args:
        in_features, out_features, bias_: as of ``nn.Linear``.
        dtype: of the weight, ``clnn.qint8``.

    Example::

        >>> layer = clnn.ao.nn.quantized.Linear(20, 30)
        >>> layer(clnn.quantize_per_tensor(clnn.randn(8, 20), 1.0, 0, clnn.quint8)).shape
        clnn.Size([8, 30])
    """

    _version = 3
    _FLOAT_MODULE = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)
    _function = staticmethod(quantized.linear)

    def __init__(self, in_features, out_features, bias_=True, dtype=clnn.qint8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        size = out_features, in_features
        weight = clnn._empty_affine_quantized(size, dtype=clnn.qint8) if dtype is clnn.qint8 else clnn.zeros(size)
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, clnn.zeros(out_features) if bias_ else None)

    def _get_name(self):
        return "QuantizedLinear"

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, zero_point={self.zero_point}, "
                f"qscheme={self.weight().qscheme()}")

    def __repr__(self):
        return hidden_repr(self, LinearPackedParams)

    def _packed(self):
        return self._packed_params._packed_params

    def forward(self, x):
        return self._function(x, self._packed(), self.scale, self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        if local_metadata.get("version") in (None, 1):              # weight and bias lay here before there were packed parameters
            for name in ("weight", "bias"):
                state_dict[prefix + "_packed_params." + name] = state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self):
        """The quantised weight."""
        return self._weight_bias()[0]

    def bias(self):
        """The bias, of floats."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w, b):
        """Pack another weight and bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def _made(cls, mod, dtype):
        return cls(mod.in_features, mod.out_features, dtype=dtype)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised layer of one that was observed, or trained with rounding."""
        scale = output_scale(mod)
        inner, weight, bias = float_layer(cls, mod, cls._FLOAT_MODULE, fuse_linear_bn_weights)
        rule = weight_rule(inner)
        if not use_precomputed_fake_quant:
            rule(weight)
        if rule.dtype is not clnn.qint8:
            raise AssertionError("Weight observer must have dtype torch.qint8")
        made = cls._made(mod if inner is mod else _Both(inner, mod), rule.dtype)
        made.set_weight_bias(quantize_weight(weight, rule), bias)
        made.scale, made.zero_point = scale
        return made

    @classmethod
    def from_reference(cls, ref_qlinear, output_scale, output_zero_point):
        """The quantised layer of one that has a quantised weight and computes in floats."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class _Both:
    """The linear layer of a fused pair, and what stands after it."""

    def __init__(self, linear, pair):
        self.in_features, self.out_features, self.after = linear.in_features, linear.out_features, pair[1]
