"""How integers stand for numbers: one scale and zero point for a tensor, or one for each place along an axis."""
from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..core.layout import per_channel_affine, per_channel_affine_float_qparams, per_tensor_affine
from ..ops.fake_quantize import dequantized, quantized_places, quantized_steps

QINT8, QUINT8, QINT32 = (dt.from_name(name) for name in ("qint8", "quint8", "qint32"))
INTEGERS = {QINT8: dt.int8, QUINT8: dt.uint8, QINT32: dt.int32}                     # what is stored
LIMITS = {QINT8: (-128, 127), QUINT8: (0, 255), QINT32: (-2 ** 31, 2 ** 31 - 1)}
SPOKEN = {QINT8: "QInt8", QUINT8: "QUInt8", QINT32: "QInt32"}                       # PyTorch's names in types and errors


def single(x) -> float:
    """The nearest 32-bit float."""
    return float(np.float32(x))


def inverse(scale) -> float:
    """``1 / scale`` as PyTorch's kernels have it, in 32-bit floats."""
    with np.errstate(divide="ignore"):
        return float(np.float32(1) / np.float32(scale))


class PerTensor:
    """One scale, a Python float, and one zero point, an int."""

    __slots__ = ("scale", "zero_point")
    scheme = per_tensor_affine

    def __init__(self, scale, zero_point):
        self.scale, self.zero_point = scale, zero_point

    def integers(self, x, dtype, together=True):
        """The integers of the numbers ``x``; ``together``: the zero point is added before rounding."""
        low, high = LIMITS[dtype]
        if dtype is QINT32:
            return ((x * inverse(self.scale)).round().to(dt.int64) + self.zero_point).clamp(low, high).to(dt.int32)
        rule = quantized_places if together else quantized_steps
        return rule(x, inverse(self.scale), self.zero_point, low, high).to(INTEGERS[dtype])

    def numbers(self, integers, fused=False):
        """The numbers of integers; ``fused``: by one multiply-add."""
        scale = single(self.scale)
        if fused:
            return dequantized(integers.to(dt.float32), scale, -single(np.float32(scale) * np.float32(self.zero_point)))
        return (integers - self.zero_point if integers.dtype is dt.int32 else integers.to(dt.float32) - self.zero_point) * scale

    def moved(self, move):
        """The same on another device: ``move`` takes tensors there."""
        return self

    def shown(self):
        return [f"quantization_scheme={self.scheme}", f"scale={self.scale}", f"zero_point={self.zero_point}"]

    def same(self, other):
        return isinstance(other, PerTensor) and self.scale == other.scale and self.zero_point == other.zero_point


class PerChannel:
    """A scale and a zero point for each place along ``axis``: tensors ``(C)`` of float64 and int64, or both of float32 (``floats``: zero points
    lie between integers, as for tables of embeddings)."""

    __slots__ = ("scales", "zero_points", "axis", "floats")
    scheme = property(lambda self: per_channel_affine_float_qparams if self.floats else per_channel_affine)

    def __init__(self, scales, zero_points, axis, floats=False):
        self.scales, self.zero_points, self.axis, self.floats = scales, zero_points, axis, floats

    def _spread(self, t, ndim):
        shape = [1] * ndim
        shape[self.axis] = -1
        return t.to(dt.float32).reshape(shape)

    def integers(self, x, dtype, together=True):
        """The integers of the numbers ``x``."""
        low, high = LIMITS[dtype]
        scales, zeros = self._spread(self.scales, x.ndim), self._spread(self.zero_points, x.ndim)
        return quantized_places(x, scales.reciprocal(), zeros, low, high).to(INTEGERS[dtype])

    def numbers(self, integers, fused=False):
        """The numbers of integers."""
        scales, zeros = self._spread(self.scales, integers.ndim), self._spread(self.zero_points, integers.ndim)
        return (integers.to(dt.float32) - zeros) * scales

    def moved(self, move):
        """The same on another device."""
        return PerChannel(move(self.scales), move(self.zero_points), self.axis, self.floats)

    def shown(self):
        indent = " " * 7
        scales, zeros = (str(t).replace("\n", "\n" + indent) for t in (self.scales, self.zero_points))
        return [f"quantization_scheme={self.scheme}", f"scale={scales}", f"zero_point={zeros}", f"axis={self.axis}"]

    def same(self, other):
        return isinstance(other, PerChannel) and self.axis == other.axis and bool((self.scales == other.scales).all()) \
            and bool((self.zero_points == other.zero_points).all())


def through_numbers(t, fn, quantizer=None, dtype=None, fused=False, together=True):
    """``fn`` of the numbers of the quantised tensor ``t``, rounded to ``quantizer`` (that of ``t``) again."""
    from .tensor import make
    quantizer, dtype = quantizer or t.quantizer, dtype or t.dtype
    return make(quantizer.integers(fn(t.numbers(fused)), dtype, together), dtype, quantizer)
