"""Functions of quantised tensors: ``clnn.ao.nn.quantized.functional``."""
from __future__ import annotations

import clnn
from clnn._quantized import functions as quantized
from clnn.nn import functional as F

__all__ = ["avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "conv1d", "conv2d", "conv3d", "interpolate", "linear", "max_pool1d",
           "max_pool2d", "celu", "leaky_relu", "hardtanh", "hardswish", "threshold", "elu", "hardsigmoid", "clamp", "upsample", "upsample_bilinear",
           "upsample_nearest"]


def _expect(name, input):
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def _same(name):
    """The function of plain tensors, for quantised ones only."""
    plain = getattr(F, name)
    size, arguments = (1, 1) + (4,) * (3 if name.endswith("3d") else 2), ", 2" if "pool" in name else ""

    def function(input, *args, **kwargs):
        _expect(name, input)
        return plain(input, *args, **kwargs)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""``nn.functional.{name}`` of quantised tensors: the scale stays.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.ones{size}, 0.5, 10, clnn.quint8)
        >>> clnn.ao.nn.quantized.functional.{name}(x{arguments}).q_zero_point()
        10
    """
    return function


avg_pool2d, avg_pool3d, adaptive_avg_pool2d, adaptive_avg_pool3d, hardtanh = map(_same, (
    "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "hardtanh"))


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """``nn.functional.interpolate`` of quantised tensors: the scale stays.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.ones(1, 1, 4, 4), 0.5, 10, clnn.quint8)
        >>> clnn.ao.nn.quantized.functional.interpolate(x, scale_factor=2).shape
        clnn.Size([1, 1, 8, 8])
    """
    _expect("interpolate", input)
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def hardsigmoid(input, inplace=False):
    """``nn.functional.hardsigmoid`` of quantised tensors; the result's scale is 1/256.

    Example::

        >>> clnn.ao.nn.quantized.functional.hardsigmoid(clnn.quantize_per_tensor(clnn.zeros(1), 0.5, 10, clnn.quint8)).dequantize()
        tensor([0.5000])
    """
    _expect("hardsigmoid", input)
    return F.hardsigmoid(input)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """``nn.functional.max_pool1d`` of quantised tensors.

    Example::

        >>> clnn.ao.nn.quantized.functional.max_pool1d(clnn.quantize_per_tensor(clnn.ones(1, 1, 4, 4), 0.5, 10, clnn.quint8)[0], 2).shape
        clnn.Size([1, 4, 2])
    """
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """``nn.functional.max_pool2d`` of quantised tensors.

    Example::

        >>> clnn.ao.nn.quantized.functional.max_pool2d(clnn.quantize_per_tensor(clnn.ones(1, 1, 4, 4), 0.5, 10, clnn.quint8), 2).shape
        clnn.Size([1, 1, 2, 2])
    """
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def linear(input, weight, bias=None, scale=None, zero_point=None):
    """A linear layer with a quantised weight; without a scale the result has that of the input.

    Example:
        >>> x = clnn.quantize_per_tensor(clnn.ones(1, 2), 0.5, 0, clnn.quint8)
        >>> w = clnn.quantize_per_tensor(clnn.ones(3, 2), 0.5, 0, clnn.qint8)
        >>> clnn.ao.nn.quantized.functional.linear(x, w).dequantize()
        tensor([[2., 2., 2.]])
    """
    scale = input.q_scale() if scale is None else scale
    return quantized.linear(input, quantized.linear_prepack(weight, bias), scale, input.q_zero_point() if zero_point is None else zero_point)


def _conv(dims):
    def conv(input, weight, bias, stride=1, padding=0, dilation=1, groups=1, padding_mode="zeros", scale=1.0, zero_point=0, dtype=clnn.quint8):
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if input.dtype is not clnn.quint8:
            raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
        if weight.dtype is not clnn.qint8:
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        if input.ndim != dims + 2:
            raise ValueError(f"Input shape must be {dims + 2}-dimensional, got {input.ndim}")
        packed = getattr(quantized, f"conv{dims}d_prepack")(weight, bias, stride, padding, dilation, groups)
        return getattr(quantized, f"conv{dims}d")(input, packed, scale, zero_point)
    conv.__name__ = conv.__qualname__ = f"conv{dims}d"
    size = (1, 1) + (3,) * dims
    conv.__doc__ = f"""``nn.functional.conv{dims}d`` of quantised tensors with a quantised weight; the result has this scale and zero point.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.ones{size}, 0.5, 0, clnn.quint8)
        >>> w = clnn.quantize_per_tensor(clnn.ones{size}, 0.5, 0, clnn.qint8)
        >>> clnn.ao.nn.quantized.functional.conv{dims}d(x, w, None).int_repr().item()
        {3 ** dims}
    """
    return conv


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))


def celu(input, scale, zero_point, alpha=1.0):
    """``nn.functional.celu`` with this scale and zero point.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.tensor([-1.0, 2.0]), 0.5, 10, clnn.quint8)
        >>> clnn.ao.nn.quantized.functional.celu(x, 0.5, 10).dequantize()
        tensor([-0.5000,  2.0000])
    """
    _expect("celu", input)
    return quantized.celu(input, scale, zero_point, alpha)


def elu(input, scale, zero_point, alpha=1.0):
    """``nn.functional.elu`` with this scale and zero point.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.tensor([-1.0, 2.0]), 0.5, 10, clnn.quint8)
        >>> clnn.ao.nn.quantized.functional.elu(x, 0.5, 10).dequantize()
        tensor([-0.5000,  2.0000])
    """
    _expect("elu", input)
    return quantized.elu(input, scale, zero_point, alpha)


def hardswish(input, scale, zero_point):
    """``nn.functional.hardswish`` with this scale and zero point.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.tensor([-1.0, 2.0]), 0.5, 10, clnn.quint8)
        >>> clnn.ao.nn.quantized.functional.hardswish(x, 0.5, 10).dequantize()
        tensor([-0.5000,  1.5000])
    """
    _expect("hardswish", input)
    return quantized.hardswish(input, scale, zero_point)


def leaky_relu(input, negative_slope=0.01, inplace=False, scale=None, zero_point=None):
    """``nn.functional.leaky_relu``, with this scale and zero point where they are given.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.tensor([-1.0, 2.0]), 0.5, 10, clnn.quint8)
        >>> clnn.ao.nn.quantized.functional.leaky_relu(x, 0.5).dequantize()
        tensor([-0.5000,  2.0000])
    """
    if scale is not None and zero_point is not None:
        return quantized.leaky_relu(input, negative_slope, inplace, scale, zero_point)
    return F.leaky_relu(input, negative_slope)


def threshold(input, threshold, value):
    """``nn.functional.threshold`` of quantised tensors.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.tensor([-1.0, 2.0]), 0.5, 10, clnn.quint8)
        >>> clnn.ao.nn.quantized.functional.threshold(x, 0.0, 3.0).dequantize()
        tensor([3., 2.])
    """
    _expect("threshold", input)
    if threshold is None or value is None:
        raise ValueError(f"Input to 'threshold' must be specified! threshold={threshold}, value={value}")
    return quantized.threshold(input, threshold, value)


def clamp(input, min_, max_):
    """``clnn.clamp`` of quantised tensors.

    Example::

        >>> x = clnn.quantize_per_tensor(clnn.tensor([-1.0, 2.0]), 0.5, 10, clnn.quint8)
        >>> clnn.ao.nn.quantized.functional.clamp(x, 0.0, 1.0).dequantize()
        tensor([0., 1.])
    """
    _expect("clamp", input)
    return clnn.clamp(input, min_, max_)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The old name of :func:`interpolate`.

    Example::

        >>> clnn.ao.nn.quantized.functional.upsample(clnn.quantize_per_tensor(clnn.ones(1, 1, 4, 4), 0.5, 10, clnn.quint8), scale_factor=2).shape
        clnn.Size([1, 1, 8, 8])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input, size=None, scale_factor=None):
    """:func:`interpolate` with ``mode="bilinear"`` and aligned corners.

    Example::

        >>> clnn.ao.nn.quantized.functional.upsample_bilinear(clnn.quantize_per_tensor(clnn.ones(1, 1, 4, 4), 0.5, 10, clnn.quint8), scale_factor=2).shape
        clnn.Size([1, 1, 8, 8])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def upsample_nearest(input, size=None, scale_factor=None):
    """:func:`interpolate` with ``mode="nearest"``.

    Example::

        >>> clnn.ao.nn.quantized.functional.upsample_nearest(clnn.quantize_per_tensor(clnn.ones(1, 1, 4, 4), 0.5, 10, clnn.quint8), scale_factor=2).shape
        clnn.Size([1, 1, 8, 8])
    """
    return interpolate(input, size, scale_factor, "nearest")
