"""``torch.ops.quantized``: functions of quantised tensors whose result gets a scale and a zero point of its own."""
from __future__ import annotations

import numpy as np

from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..graph.op import REGISTRY
from . import forms
from .forms import FORMS, joined
from .making import quantize_per_tensor_dynamic
from .products import ConvPackedParams, LinearPackedHalf, LinearPackedParams, dynamic, product
from .recurrent import (make_quantized_cell_params_dynamic, make_quantized_cell_params_fp16, quantized_gru_cell_dynamic, quantized_lstm_cell_dynamic,  # noqa: F401
                        quantized_rnn_relu_cell_dynamic, quantized_rnn_tanh_cell_dynamic)
from .schemes import LIMITS, QUINT8, PerTensor, single, through_numbers
from .tables import embedding_bag_byte, embedding_bag_prepack, embedding_bag_unpack, embedding_byte  # noqa: F401
from .tensor import make


def _fn(name):
    return REGISTRY[name].fn


def _quantizer(scale, zero_point):
    scale, zero_point = (v.item() if isinstance(v, Tensor) else v for v in (scale, zero_point))
    return PerTensor(float(scale), int(zero_point))


# -- sums and products of elements ----------------------------------------------------------------------------------------------------
def add(qa, qb, scale=None, zero_point=None):
    """``qa + qb``; where ``qb`` is a number, with a scale and a zero point that follow."""
    return _added(qa, qb, scale, zero_point, False) if isinstance(qb, Tensor) else add_scalar(qa, qb)


def add_relu(qa, qb, scale=None, zero_point=None):
    """``relu(qa + qb)``."""
    return _added(qa, qb, scale, zero_point, True) if isinstance(qb, Tensor) else FORMS["relu"](add_scalar(qa, qb))


def _added(a, b, scale, zero_point, relu):
    quantizer = _quantizer(scale, zero_point)
    total = a.numbers(True) + b.numbers(True)
    return make(quantizer.integers(total.relu() if relu else total, a.dtype, False), a.dtype, quantizer)


def mul(qa, qb, scale=None, zero_point=None):
    """``qa * qb``; where ``qb`` is a number, the scale follows."""
    return _multiplied(qa, qb, scale, zero_point, False) if isinstance(qb, Tensor) else mul_scalar(qa, qb)


def mul_relu(qa, qb, scale=None, zero_point=None):
    """``relu(qa * qb)``."""
    return _multiplied(qa, qb, scale, zero_point, True) if isinstance(qb, Tensor) else FORMS["relu"](mul_scalar(qa, qb))


def _multiplied(a, b, scale, zero_point, relu):
    quantizer, (low, high) = _quantizer(scale, zero_point), LIMITS[a.dtype]
    integers = (a.part.to(dt.float32) - a.quantizer.zero_point) * (b.part.to(dt.float32) - b.quantizer.zero_point)
    factor = single(np.float32(single(a.quantizer.scale)) * np.float32(single(b.quantizer.scale)) * (np.float32(1) / np.float32(quantizer.scale)))
    places = (integers * factor).round() + quantizer.zero_point
    return make(places.clamp(max(low, quantizer.zero_point) if relu else low, high).to(a.part.dtype), a.dtype, quantizer)


def add_scalar(qa, b):
    """``qa + b``: the zero point moves, and where it would leave the integers the scale grows."""
    (low, high), q = LIMITS[qa.dtype], qa.quantizer
    zero = q.zero_point - int(np.rint(float(b) / q.scale))
    if low <= zero <= high:
        return make(qa.part.clone(), qa.dtype, PerTensor(q.scale, zero))
    wide = PerTensor((high - zero if zero < low else zero - low) / (high - low) * q.scale, low if zero < low else high)
    numbers = PerTensor(q.scale, zero).numbers(qa.part)
    return make(wide.integers(numbers, qa.dtype), qa.dtype, wide)


def mul_scalar(qa, b):
    """``qa * b``: the scale changes; of a negative number the integers turn round as well."""
    (low, high), q, b = LIMITS[qa.dtype], qa.quantizer, float(b)
    if b > 0:
        return make(qa.part.clone(), qa.dtype, PerTensor(q.scale * b, q.zero_point))
    if b == 0:
        return make(qa.part * 0, qa.dtype, PerTensor(1.0, 0))
    turned = (high + low - qa.part.to(dt.int32)).to(qa.part.dtype)
    return make(turned, qa.dtype, PerTensor(q.scale * -b, high + low - q.zero_point))


def add_scalar_relu(qa, b):
    """``relu(qa + b)``."""
    return FORMS["relu"](add_scalar(qa, b))


def mul_scalar_relu(qa, b):
    """``relu(qa * b)``."""
    return FORMS["relu"](mul_scalar(qa, b))


def matmul(qa, qb, scale, zero_point):
    """The matrix product."""
    q = _quantizer(scale, zero_point)
    a, b = (t.part.to(dt.float32) - t.quantizer.zero_point for t in (qa, qb))
    return make(q.integers(_fn("matmul")(a, b) * single(qa.quantizer.scale * qb.quantizer.scale), qa.dtype, False), qa.dtype, q)


def cat(qx, dim, scale=None, zero_point=None):
    """One after another, with this scale."""
    return joined(list(qx), dim, qx[0].quantizer if scale is None else _quantizer(scale, zero_point))


def cat_relu(qx, dim, scale=None, zero_point=None):
    """:func:`cat`, then ReLU."""
    return FORMS["relu"](cat(qx, dim, scale, zero_point))


# -- functions of one tensor ----------------------------------------------------------------------------------------------------------
def _rescaled(name, fused=True):
    """An operator of numbers, with arguments between the tensor and the scale as ``names`` says."""
    def function(qx, output_scale, output_zero_point, *args):
        return through_numbers(qx, lambda x: _fn(name)(x, *args), _quantizer(output_scale, output_zero_point), fused=fused, together=False)
    function.__name__, function.__doc__ = name, f"``{name}`` with this scale and zero point."
    return function


elu, celu, hardswish, sigmoid = (_rescaled(name) for name in ("elu", "celu", "hardswish", "sigmoid"))


def leaky_relu(qx, negative_slope, inplace, output_scale, output_zero_point):
    """Leaky ReLU with this scale and zero point."""
    return through_numbers(qx, lambda x: _fn("leaky_relu")(x, negative_slope), _quantizer(output_scale, output_zero_point), fused=True, together=False)


def softmax(qx, dim, output_scale, output_zero_point):
    """Softmax with this scale and zero point."""
    return through_numbers(qx, lambda x: _fn("softmax")(x, dim), _quantizer(output_scale, output_zero_point))


def prelu(qx, weight, output_scale, output_zero_point):
    """PReLU with this scale and zero point."""
    return through_numbers(qx, lambda x: _fn("prelu")(x, weight.numbers(True)), _quantizer(output_scale, output_zero_point), fused=True, together=False)


def relu6(qx, inplace=False):
    """ReLU6."""
    return FORMS["relu6"](qx)


def clamp(qx, min=None, max=None):
    """Between two numbers."""
    return forms.clamp(qx, min, max)


def threshold(qx, threshold, value):
    """``value`` where a number is not above ``threshold``."""
    return forms.threshold(qx, threshold, value)


def dropout(self, output_scale, output_zero_point, p=0.5, training=False):
    """The identity."""
    return self


def max_pool1d(qx, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The greatest integers."""
    return FORMS["max_pool1d"](qx, kernel_size, stride or None, padding, dilation, ceil_mode)


def max_pool2d(qx, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The greatest integers."""
    return FORMS["max_pool2d"](qx, kernel_size, stride or None, padding, dilation, ceil_mode)


# -- normalisation --------------------------------------------------------------------------------------------------------------------
def _normalised(qx, fn, scale, zero_point):
    return through_numbers(qx, fn, _quantizer(scale, zero_point), together=False)


def batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
    """Batch normalisation by given statistics."""
    return _normalised(qx, lambda x: _fn("batch_norm")(x, mean, var, weight, bias, False, 0.0, eps), output_scale, output_zero_point)


def batch_norm_relu(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
    """:func:`batch_norm`, then ReLU."""
    return _normalised(qx, lambda x: _fn("batch_norm")(x, mean, var, weight, bias, False, 0.0, eps).relu(), output_scale, output_zero_point)


batch_norm1d = batch_norm2d = batch_norm3d = batch_norm
batch_norm1d_relu = batch_norm2d_relu = batch_norm3d_relu = batch_norm_relu


def layer_norm(qx, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    """Layer normalisation."""
    return _normalised(qx, lambda x: _fn("layer_norm")(x, normalized_shape, weight, bias, eps), output_scale, output_zero_point)


def group_norm(qx, num_groups, weight, bias, eps, output_scale, output_zero_point):
    """Group normalisation."""
    return _normalised(qx, lambda x: _fn("group_norm")(x, num_groups, weight, bias, eps), output_scale, output_zero_point)


def instance_norm(qx, weight, bias, eps, output_scale, output_zero_point):
    """Instance normalisation."""
    return _normalised(qx, lambda x: _fn("instance_norm")(x, None, None, weight, bias, True, 0.1, eps), output_scale, output_zero_point)


# -- linear layers --------------------------------------------------------------------------------------------------------------------
linear_prepack, linear_prepack_fp16 = LinearPackedParams, LinearPackedHalf


def linear_unpack(W_prepack):
    """(weight, bias)."""
    return W_prepack.unpack()


linear_unpack_fp16 = linear_unpack


def linear(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """A linear layer."""
    return product("linear", X, W_prepack, Y_scale_i, Y_zero_point_i)


def linear_relu(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """A linear layer and ReLU."""
    return product("linear_relu", X, W_prepack, Y_scale_i, Y_zero_point_i, True)


def linear_leaky_relu(X, W_prepack, Y_scale_i, Y_zero_point_i, negative_slope):
    """A linear layer and leaky ReLU."""
    return product("linear_leaky_relu", X, W_prepack, Y_scale_i, Y_zero_point_i, after=lambda x: _fn("leaky_relu")(x, negative_slope))


def linear_tanh(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """A linear layer and tanh."""
    return product("linear_tanh", X, W_prepack, Y_scale_i, Y_zero_point_i, after=_fn("tanh"))


def linear_dynamic(X, W_prepack, reduce_range=False):
    """A linear layer of floats with a quantised weight."""
    return dynamic(X, W_prepack, reduce_range)


def linear_relu_dynamic(X, W_prepack, reduce_range=False):
    """:func:`linear_dynamic`, then ReLU."""
    return dynamic(X, W_prepack, reduce_range, True)


def linear_dynamic_fp16(X, W_prepack):
    """A linear layer whose weight is rounded to float16."""
    return dynamic(X, W_prepack)


def linear_relu_dynamic_fp16(X, W_prepack):
    """:func:`linear_dynamic_fp16`, then ReLU."""
    return dynamic(X, W_prepack, relu=True)


# -- convolutions ---------------------------------------------------------------------------------------------------------------------
def _conv_functions(dims):
    """The functions of convolutions over ``dims`` dimensions, by name."""
    def each(v):
        return tuple(v) if isinstance(v, (tuple, list)) else (v,) * dims

    def prepack(weight, bias, stride=1, padding=0, dilation=1, groups=1):
        """A weight in the form that convolutions take."""
        return ConvPackedParams(weight, bias, each(stride), each(padding), each(dilation), groups, dims=dims)

    def transposed_prepack(weight, bias, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
        """A weight in the form that transposed convolutions take."""
        return ConvPackedParams(weight, bias, each(stride), each(padding), each(dilation), groups, each(output_padding), True, dims)

    def plain(qx, packed_weight, output_scale, output_zero_point):
        """A convolution."""
        return product(f"conv{dims}d", qx, packed_weight, output_scale, output_zero_point)

    def relu(qx, packed_weight, output_scale, output_zero_point):
        """A convolution and ReLU."""
        return product(f"conv{dims}d_relu", qx, packed_weight, output_scale, output_zero_point, True)

    def on_floats(qx, packed_weight, reduce_range=False):
        """A convolution of floats with a quantised weight. As in PyTorch the result, too, is rounded by the scale that covers the input."""
        x = quantize_per_tensor_dynamic(qx, QUINT8, reduce_range)
        return product(f"conv{dims}d_dynamic", x, packed_weight, x.quantizer.scale, x.quantizer.zero_point).dequantize()
    return {f"conv{dims}d": plain, f"conv{dims}d_relu": relu, f"conv{dims}d_prepack": prepack, f"conv{dims}d_unpack": linear_unpack,
            f"conv{dims}d_dynamic": on_floats, f"conv_transpose{dims}d": plain, f"conv_transpose{dims}d_prepack": transposed_prepack,
            f"conv_transpose{dims}d_unpack": linear_unpack, f"conv_transpose{dims}d_dynamic": on_floats}


for _dims in (1, 2, 3):
    globals().update(_conv_functions(_dims))


def conv2d_add(qx, qaccum, packed_weight, output_scale, output_zero_point):
    """A convolution plus ``qaccum``."""
    return product("conv2d_add", qx, packed_weight, output_scale, output_zero_point, after=lambda x: x + qaccum.numbers())


def conv2d_add_relu(qx, qaccum, packed_weight, output_scale, output_zero_point):
    """A convolution plus ``qaccum``, then ReLU."""
    return product("conv2d_add_relu", qx, packed_weight, output_scale, output_zero_point, after=lambda x: (x + qaccum.numbers()).relu())


