"""Linear layers and convolutions of quantised tensors. Products of integers below 256 are added up in 32-bit integers where the processor multiplies bytes,
else in 32-bit floats, which hold them exactly, and scaled, shifted and rounded once."""
from __future__ import annotations

import numpy as np

from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..graph.op import REGISTRY
from ..ops._gemm_words import FEW
from ..ops._gemm_words import kinds as word_kinds
from ..ops.fake_quantize import quantized_places, quantized_steps
from .ranges import covering, range_of
from .schemes import INTEGERS, LIMITS, PerChannel, PerTensor, inverse, single
from .tensor import QTensor, make


def _fn(name):
    return REGISTRY[name].fn


class Packed:
    """A quantised weight and a bias, in the form in which products take them: integers less their zero point as floats, kept from call to call."""

    out_axis = 0                # of the weight, where its channels of output are
    _ready = _bytes = None

    def __init__(self, weight, bias=None):
        if not isinstance(weight, QTensor):
            raise RuntimeError(f"a packed weight is a quantized tensor, got one of dtype {weight.dtype}")
        self.weight_, self.bias_ = weight, None if bias is None else bias.detach()

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k not in ("_ready", "_bytes")}

    def __deepcopy__(self, memo):
        import copy
        new = object.__new__(type(self))
        new.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__getstate__().items()})
        return new

    def unpack(self):
        """(weight, bias)."""
        return self.weight_, self.bias_

    def weight(self):
        return self.weight_

    def bias(self):
        return self.bias_

    def ready(self, ndim=2):
        """(weight as floats, its scale: a number or a tensor that fits the output, the bias in that shape)."""
        if self._ready is None:
            q, w = self.weight_.quantizer, self.weight_.part.to(dt.float32)
            shape = (-1, *[1] * (ndim - 2))
            if isinstance(q, PerChannel):
                along = [1] * w.ndim
                along[q.axis] = -1
                w, scale = w - q.zero_points.to(dt.float32).reshape(along), q.scales.to(dt.float32).reshape(shape)
            else:
                w, scale = w - q.zero_point, single(q.scale)
            bias = None if self.bias_ is None else self.bias_.to(dt.float32).reshape(shape)
            self._ready = w.contiguous(), scale, bias
        return self._ready

    def moved(self, fn):
        """The same elsewhere: ``fn`` moves tensors."""
        self.weight_, self.bias_, self._ready, self._bytes = fn(self.weight_), None if self.bias_ is None else fn(self.bias_), None, None
        return self


class LinearPackedParams(Packed):
    """A packed weight (out, in)."""

    def sums(self, x, zero):
        """Sums of products of the integers ``x``, of which ``zero`` stands for zero, floats."""
        rows = x.numel() // max(1, x.shape[-1])
        turned, total = self.bytes() if rows > FEW else (None, None)
        if turned is None:
            return _fn("linear")(x.to(dt.float32) - zero, self.ready()[0])
        r = _fn("_int_mm")(x.reshape(rows, x.shape[-1]).to(x.dtype if x.dtype.itemsize == 1 else dt.uint8), turned)
        return (r - total * zero).to(dt.float32).reshape(*x.shape[:-1], turned.shape[1])

    def bytes(self):
        """(the weight (in, out) in bytes, the sums of its columns) where the device multiplies such, and zero stands for zero; else (None, None)."""
        if self._bytes is None:
            q, w = self.weight_.quantizer, self.weight_.part
            fits = w.dtype is dt.int8 and "int8" in word_kinds(w.device.physical)
            if fits and not (q.zero_points.any().item() if isinstance(q, PerChannel) else q.zero_point):
                self._bytes = w.contiguous().t(), w.sum(1, dtype=dt.int32)
            else:
                self._bytes = None, None
        return self._bytes


class LinearPackedHalf(Packed):
    """A weight (out, in) rounded to float16: products are taken in 32 bits."""

    def __init__(self, weight, bias=None):
        self.weight_, self.bias_ = weight.detach().to(dt.float16).to(dt.float32), None if bias is None else bias.detach()

    def apply(self, x):
        return _fn("linear")(x, self.weight_, self.bias_)


class ConvPackedParams(Packed):
    """A packed weight of a convolution, and how it moves over its input."""

    def __init__(self, weight, bias, stride, padding, dilation, groups, output_padding=0, transposed=False, dims=2):
        super().__init__(weight, bias)
        self.stride_, self.padding_, self.dilation_, self.groups_ = tuple(stride), tuple(padding), tuple(dilation), groups
        self.output_padding_, self.transposed, self.dims = output_padding, transposed, dims

    def stride(self):
        return list(self.stride_)

    def padding(self):
        return list(self.padding_)

    def dilation(self):
        return list(self.dilation_)

    def groups(self):
        return self.groups_

    def sums(self, x, zero):
        """Sums of products of the integers ``x`` less ``zero``, floats: padding is zero, which stands for the number zero."""
        x = x.to(dt.float32) - zero
        weight = self.ready(self.dims + 2)[0]
        if self.transposed:
            return _fn(f"conv_transpose{self.dims}d")(x, weight, None, self.stride_, self.padding_, self.output_padding_, self.groups_, self.dilation_)
        return _fn(f"conv{self.dims}d")(x, weight, None, self.stride_, self.padding_, self.dilation_, self.groups_)


def _checked(name, x):
    if not isinstance(x, QTensor) or not isinstance(x.quantizer, PerTensor):
        raise NotImplementedError(f"Could not run 'quantized::{name}' with arguments from the '{'CUDA' if x.is_cuda else 'CPU'}' backend: the input is not quantized "
                                  "by one scale; pass it through clnn.quantize_per_tensor, as QuantStub does")
    if x.dtype.itemsize != 1:
        raise RuntimeError(f"quantized::{name}: expected a quint8 or qint8 input, got {x.dtype}")


def _scaled(a, b):
    """``a * b`` of a number and a number or tensor, in 32-bit floats."""
    return a * b if isinstance(b, Tensor) else single(np.float32(a) * np.float32(b))


def _over(a, b):
    return a / b if isinstance(a, Tensor) or isinstance(b, Tensor) else single(np.float32(a) / np.float32(b))


def product(name, x, packed, scale, zero_point, relu=False, after=None):
    """A quantised product of a quantised tensor.

    Args:
        scale, zero_point: of the result.
        after: a function of the result's numbers, applied before they are rounded.
    """
    _checked(name, x)
    scale, zero_point = (v.item() if isinstance(v, Tensor) else v for v in (scale, zero_point))
    sums = packed.sums(x.part, x.quantizer.zero_point)
    bias, factor = packed.ready()[2], _scaled(single(x.quantizer.scale), packed.ready()[1])
    low, high = LIMITS[x.dtype]
    quantizer = PerTensor(float(scale), int(zero_point))
    if after is not None:
        numbers = sums * factor if bias is None else sums * factor + bias
        return make(quantizer.integers(after(numbers), x.dtype, False), x.dtype, quantizer)
    sums = sums if bias is None else sums + bias / factor
    places = quantized_steps(sums, _over(factor, single(scale)), int(zero_point), max(low, int(zero_point)) if relu else low, high)
    return make(places.to(INTEGERS[x.dtype]), x.dtype, quantizer)


def dynamic(x, packed, reduce_range=True, relu=False):
    """A product of floats with a quantised weight: the input is rounded to integers that cover its least and greatest element, the result is not."""
    if isinstance(packed, LinearPackedHalf):
        r = packed.apply(x)
        return r.relu() if relu else r
    x = x.detach()
    weight, bias = packed.ready()[1:]
    if x.is_cpu or not x.numel():                               # there, to wait for two numbers costs less than to launch what works them out
        scale, zero = range_of(x, 0, 255, reduce_range)
        over, factor = inverse(scale), _scaled(single(scale), weight)
    else:
        scale, zero = covering(*x.aminmax(), 0, 127 if reduce_range else 255)
        over, factor = scale.reciprocal(), scale * weight
    r = packed.sums(quantized_places(x, over, zero, 0, 255), zero) * factor
    r = r if bias is None else r + bias
    return r.relu() if relu else r
