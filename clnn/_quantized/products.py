"""Linear layers and convolutions of quantised tensors. Products of integers below 256 are added up in 32-bit floats, which hold them exactly, and scaled,
shifted and rounded once."""
from __future__ import annotations

import numpy as np

from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..graph.op import REGISTRY
from ..ops.fake_quantize import quantized_places, quantized_steps
from .ranges import covering, range_of
from .schemes import INTEGERS, LIMITS, PerChannel, PerTensor, inverse, single
from .tensor import QTensor, make


def _fn(name):
    return REGISTRY[name].fn


class Packed:
    """A quantised weight and a bias, in the form in which products take them: integers less their zero point as floats, kept from call to call."""

    out_axis = 0                # of the weight, where its channels of output are
    _ready = None

    def __init__(self, weight, bias=None):
        if not isinstance(weight, QTensor):
            raise RuntimeError(f"a packed weight is a quantized tensor, got one of dtype {weight.dtype}")
        self.weight_, self.bias_ = weight, None if bias is None else bias.detach()

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "_ready"}

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
        self.weight_, self.bias_, self._ready = fn(self.weight_), None if self.bias_ is None else fn(self.bias_), None
        return self


class LinearPackedParams(Packed):
    """A packed weight (out, in)."""

    def sums(self, x):
        """Sums of products of the integers ``x``, floats."""
        return _fn("linear")(x, self.ready()[0])


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

    def sums(self, x):
        """Sums of products of the integers ``x``, floats: padding is zero, which stands for the number zero."""
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
    sums = packed.sums(x.part.to(dt.float32) - x.quantizer.zero_point)
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
    r = packed.sums(quantized_places(x, over, zero, 0, 255) - zero) * factor
    r = r if bias is None else r + bias
    return r.relu() if relu else r
