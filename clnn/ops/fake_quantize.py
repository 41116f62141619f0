"""Rounding floats to the values that few integers would have: what training for quantised inference computes with."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite, elementwise
from .._tensor.tensor import Tensor
from ..core import dtype as dt


def _inside(g, input, scale, zero_point, low, high):
    """The gradient passes where the value was in range, as if nothing had been rounded (Bengio et al., 2013)."""
    places = (input / scale).round() + zero_point
    return g * ((places >= low) & (places <= high))


_fake_quantize = elementwise(
    "_fake_quantize", "input, scale, zero_point, low, high",
    "(fmin(fmax(rint(input * ((ACC)1 / scale)) + zero_point, low), high) - zero_point) * scale", result="float", dtypes=dt.FLOATS,
    vjp=dict(input=_inside), method=False, gradcheck=False)


def _inside_together(g, input, scale, zero_point, low, high):
    places = (input / scale + zero_point).round()
    return g * ((places >= low) & (places <= high))


# Zero points that are no integers are added before rounding.
_fake_quantize_between = elementwise(
    "_fake_quantize_between", "input, scale, zero_point, low, high",
    "(fmin(fmax(rint(input * ((ACC)1 / scale) + zero_point), low), high) - zero_point) * scale", result="float", dtypes=dt.FLOATS,
    vjp=dict(input=_inside_together), method=False, gradcheck=False)


def _checked(name, quant_min, quant_max, zero_point):
    if quant_min > quant_max:
        raise RuntimeError(f"{name}: `quant_min` should be less than or equal to `quant_max`; got {quant_min} and {quant_max}")
    if not isinstance(zero_point, Tensor) and not quant_min <= zero_point <= quant_max:
        raise RuntimeError(f"{name}: `zero_point` must be between `quant_min` and `quant_max`; got {zero_point}")


def _samples():
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    return [((x, 0.1, 2, 0, 15), {}), ((x, 0.25, 0, -4, 5), {})]


@composite("fake_quantize_per_tensor_affine", thin=True, samples=_samples, method=False, gradcheck=False)
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """``(clamp(round(x / scale) + zero_point, quant_min, quant_max) - zero_point) * scale``; the gradient passes where nothing was clamped.

    Args:
        scale, zero_point: numbers, or tensors of one element.

    Example:
        >>> clnn.fake_quantize_per_tensor_affine(clnn.tensor([0.07, 2.0, -1.0]), 0.1, 0, 0, 15)
        tensor([0.1000, 1.5000, 0.0000])
    """
    _checked("fake_quantize_per_tensor_affine", quant_min, quant_max, zero_point)
    return _fake_quantize(input, scale, zero_point, quant_min, quant_max).to(input.dtype)


def _channel_samples():
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    return [((x, np.array([0.1, 0.2, 0.3], np.float32), np.array([0, 1, 2], np.int32), 0, 0, 15), {})]


@composite("fake_quantize_per_channel_affine", repeat="ready small", samples=_channel_samples, method=False, gradcheck=False)
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """:func:`fake_quantize_per_tensor_affine` with a scale and a zero point, tensors ``(C)``, for each place along ``axis``.

    Example:
        >>> x = clnn.tensor([[0.07, 2.0], [0.07, 2.0]])
        >>> clnn.fake_quantize_per_channel_affine(x, clnn.tensor([0.1, 1.0]), clnn.tensor([0, 0]), 0, 0, 15)
        tensor([[0.1000, 1.5000],
                [0.0000, 2.0000]])
    """
    _checked("fake_quantize_per_channel_affine", quant_min, quant_max, zero_point)
    shape = [1] * input.ndim
    shape[axis] = -1
    rule = _fake_quantize_between if zero_point.dtype.is_floating_point else _fake_quantize
    return rule(input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max).to(input.dtype)


# -- the integers of quantised tensors ---------------------------------------------------------------------------------------------------
# PyTorch's kernels round in two ways, which differ where a value lies halfway between integers: with the zero point added before (what makes quantised
# tensors) or after (what computes with them, which takes numbers from integers by one fused multiply-add).

quantized_places = elementwise(
    "_quantized_places", "input, inverse, zero_point, low, high", "fmin(fmax(rint(input * inverse + zero_point), low), high)", result="float",
    dtypes=dt.FLOATS, method=False, gradcheck=False)
quantized_steps = elementwise(
    "_quantized_steps", "input, inverse, zero_point, low, high", "fmin(fmax(rint(input * inverse) + zero_point, low), high)", result="float",
    dtypes=dt.FLOATS, method=False, gradcheck=False)
dequantized = elementwise("_dequantized", "input, scale, shift", "fma(input, scale, shift)", result="float", dtypes=dt.FLOATS, method=False, gradcheck=False)
