"""What PyTorch's operators do with quantised tensors, by the operators' names: integers are moved as they are, other operators compute with numbers or
integers and round once. What is not here PyTorch does not do either, and it is refused."""
from __future__ import annotations

import numpy as np

from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import wrap_dim
from ..graph.op import REGISTRY
from .schemes import LIMITS, QINT8, PerChannel, PerTensor, inverse, single, through_numbers
from .tensor import QTensor, make


def fn(name):
    """The operator ``name`` for plain tensors."""
    return REGISTRY[name].fn


def place(t, number):
    """The integer of ``t`` for a number."""
    low, high = LIMITS[t.dtype]
    return int(min(max(float(np.rint(np.float32(np.float32(number) * np.float32(inverse(t.quantizer.scale))) + np.float32(t.quantizer.zero_point))), low), high))


# -- moved as they are ----------------------------------------------------------------------------------------------------------------
def _moved(name):
    """Of tensors with one scale: the operator of the integers."""
    def form(input, *args, **kwargs):
        if isinstance(input.quantizer, PerChannel):
            raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
        got = fn(name)(input.part, *args, **kwargs)
        return type(got)([input.like(t) for t in got]) if isinstance(got, (tuple, list)) else got if not isinstance(got, Tensor) else input.like(got)
    return form


def _kept(name):
    """Also of tensors quantised by channels: the shape changes at most."""
    def form(input, *args, **kwargs):
        return input.like(fn(name)(input.part, *args, **kwargs))
    return form


def getitem(t, index):
    """``t[index]``."""
    q = t.quantizer
    if isinstance(q, PerTensor):
        return t.like(t.part[index])
    items = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(i, (int, slice)) for i in items):
        raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
    part = t.part[index]
    chosen = items[q.axis] if q.axis < len(items) else slice(None)
    if isinstance(chosen, int):
        return make(part, t.dtype, PerTensor(q.scales[chosen].item(), int(q.zero_points[chosen].item())))
    axis = q.axis - sum(isinstance(i, int) for i in items[:q.axis])
    return make(part, t.dtype, PerChannel(q.scales[chosen], q.zero_points[chosen], axis, q.floats))


def setitem(t, index, value):
    """``t[index] = value``: numbers are rounded to the integers of ``t``."""
    if isinstance(t.quantizer, PerChannel):
        raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
    if isinstance(value, QTensor):
        value = value.part if value.quantizer.same(t.quantizer) else t.quantizer.integers(value.numbers(), t.dtype)
    elif isinstance(value, Tensor):
        value = t.quantizer.integers(value.to(dt.float32), t.dtype)
    else:
        value = place(t, value)
    t.part[index] = value


def _basic_index(input, spec, shape):
    return input.like(fn("_basic_index")(input.part, spec, shape))


def select(input, dim, index):
    """One place of a dimension."""
    d = wrap_dim(dim, input.ndim)
    return getitem(input, (*[slice(None)] * d, index))


def index_select(input, dim, index):
    """Rows of a dimension."""
    if isinstance(input.quantizer, PerChannel):
        raise RuntimeError("Only per_tensor quantized quantized tensors are supported by index_select.")
    return input.like(fn("index_select")(input.part, dim, index))


def copy(input, src, *args, **kwargs):
    """What ``input.copy_(src)`` is to hold."""
    if not isinstance(input, QTensor):
        src._check_fits(input, "copy")
    if isinstance(src, QTensor):
        return src
    return input.like(input.quantizer.integers(src.to(dt.float32).expand(input.shape), input.dtype))


def fill(input, value):
    """``value`` everywhere."""
    return input.like(fn("fill")(input.part, place(input, value.item() if isinstance(value, Tensor) else value)))


def masked_fill(input, mask, value):
    """``value`` where ``mask`` is true."""
    return input.like(fn("masked_fill")(input.part, mask, place(input, value.item() if isinstance(value, Tensor) else value)))


def clone(input, *args, **kwargs):
    return QTensor.clone(input, *args, **kwargs)


def empty_like(input, *args, **kwargs):
    return input.like(fn("clone")(input.part))


def embedding(input, weight, *args, **kwargs):
    """Rows of a quantised table."""
    return weight.like(fn("index_select")(weight.part, 0, input.reshape(-1)).reshape(*input.shape, weight.shape[1]))


def pad(input, pad, mode="constant", value=None):
    """Padding with zero, or ``value``, or by reflection."""
    return input.like(fn("pad")(input.part, pad, mode, float(place(input, value or 0.0))) if mode == "constant" else _by_floats("pad")(input, pad, mode).part)


def _by_floats(name):
    """Operators that copy elements and take floats only: integers up to 255 are floats."""
    def form(input, *args, **kwargs):
        return input.like(fn(name)(input.part.to(dt.float32), *args, **kwargs).to(input.part.dtype))
    return form


def cat(tensors, dim=0, **kwargs):
    """One after another, with the scale of the first."""
    tensors = list(tensors)
    if any(not isinstance(t, QTensor) for t in tensors) or any(t.dtype is not tensors[0].dtype for t in tensors):
        raise RuntimeError("All dtypes must be the same.")
    return joined(tensors, dim, tensors[0].quantizer)


def joined(tensors, dim, quantizer):
    """One after another, with this quantizer."""
    one = tensors[0]
    parts = [t.part if t.quantizer.same(quantizer) else quantizer.integers(t.numbers(True), one.dtype, False) for t in tensors]
    return make(fn("cat")(parts, dim), one.dtype, quantizer)


def stack(tensors, dim=0, **kwargs):
    """Along a new dimension, with the scale of the first."""
    return cat([t.unsqueeze(dim) for t in tensors], dim)


def expand(input, *size):
    return input.like(input.part.expand(*size))


# -- compared and chosen --------------------------------------------------------------------------------------------------------------
def _compared(name):
    def form(input, other, **kwargs):
        return fn(name)(*[x.dequantize() if isinstance(x, QTensor) else x for x in (input, other)])
    return form


def equal(input, other):
    """Whether shape, integers and their meaning are the same."""
    return isinstance(input, QTensor) and isinstance(other, QTensor) and input.dtype is other.dtype and input.shape == other.shape \
        and input.quantizer.same(other.quantizer) and bool(fn("equal")(input.part, other.part))


def isclose(*args, **kwargs):
    """Refused, as PyTorch does."""
    raise RuntimeError("isclose is not supported for quantized inputs.")


def _extreme(name):
    """The integers decide."""
    def form(input, *args, **kwargs):
        got = fn(name)(input.part, *args, **kwargs)
        return type(got)(input.like(got[0]), *got[1:]) if isinstance(got, tuple) else input.like(got)
    return form


# -- computed -------------------------------------------------------------------------------------------------------------------------
def clamp(input, min=None, max=None):
    """Between two numbers."""
    low, high = LIMITS[input.dtype]
    return input.like(fn("clamp")(input.part, low if min is None else place(input, min), high if max is None else place(input, max)))


def relu(input, *args, **kwargs):
    """No integer below the zero point."""
    return input.like(fn("clamp")(input.part, input.quantizer.zero_point, LIMITS[input.dtype][1]))


def threshold(input, threshold, value, **kwargs):
    """``value`` where the number is not above ``threshold``."""
    return through_numbers(input, lambda x: fn("threshold")(x, threshold, value), fused=True, together=False)


def _with_range(name, scale, zero_signed, zero_unsigned):
    """A function whose results lie in a range that is known."""
    def form(input, *args, **kwargs):
        quantizer = PerTensor(scale, zero_signed if input.dtype is QINT8 else zero_unsigned)
        return through_numbers(input, fn(name), quantizer, fused=True, together=False)
    return form


def _same_range(name, fused=True, together=False):
    """A function whose results are rounded to the integers of its operand."""
    def form(input, *args, **kwargs):
        return through_numbers(input, lambda x: fn(name)(x, *args, **kwargs), fused=fused, together=together)
    return form


def pooled(name):
    """A mean, of the integers: its scale is theirs."""
    def form(input, *args, **kwargs):
        zero, (low, high) = input.quantizer.zero_point, LIMITS[input.dtype]
        got = fn(name)(input.part.to(dt.float32) - zero, *args, **kwargs)
        return input.like((got + zero).round().clamp(low, high).to(input.part.dtype))
    return form


def gelu(input, *, approximate="none"):
    """GELU; the scale becomes a 32-bit float, as in PyTorch."""
    q = PerTensor(single(input.quantizer.scale), input.quantizer.zero_point)
    return through_numbers(input, lambda x: fn("gelu")(x, approximate=approximate), q, fused=True, together=False)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, *args, **kwargs):
    """Images of another size; ``nearest`` copies, ``bilinear`` mixes."""
    form = _by_floats("interpolate") if mode.startswith("nearest") else pooled("interpolate")
    return form(input, size, scale_factor, mode, align_corners, *args, **kwargs)


def prelu(input, weight):
    """PReLU, rounded to the integers of the input."""
    return through_numbers(input, lambda x: fn("prelu")(x, weight.numbers(True)), fused=True, together=False)


def dropout(input, p=0.5, training=True):
    """The identity, as models that are quantised do not train."""
    return input


FORMS = {
    **{name: _moved(name) for name in """transpose swapaxes swapdims t permute unsqueeze _squeeze squeeze _as_strided as_strided diagonal unfold narrow split
       split_with_sizes chunk tensor_split unbind movedim moveaxis broadcast_to repeat _reshape_view _move""".split()},
    **{name: _kept(name) for name in "view reshape flatten ravel unflatten view_as reshape_as _contiguous contiguous".split()},
    **{name: _moved(name) for name in "flip _flip index _index _index_rows take".split()},
    **{name: _by_floats(name) for name in "max_pool1d max_pool2d max_pool3d pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle".split()},
    **{name: _compared(name) for name in "eq ne not_equal lt less le less_equal gt greater ge greater_equal".split()},
    **{name: _extreme(name) for name in "max min sort topk msort".split()},
    **{name: pooled(name) for name in "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d mean".split()},
    **{name: _same_range(name) for name in "hardtanh relu6 leaky_relu".split()}, "std": _same_range("std", False, True),
    "sigmoid": _with_range("sigmoid", 1 / 256, -128, 0), "tanh": _with_range("tanh", 2 / 256, 0, 128), "hardsigmoid": _with_range("hardsigmoid", 1 / 256, -128, 0),
    "_basic_index": _basic_index, "select": select, "index_select": index_select, "copy": copy, "fill": fill, "masked_fill": masked_fill, "clone": clone,
    "_clone": clone, "empty_like": empty_like, "embedding": embedding, "pad": pad, "constant_pad_nd": lambda input, p, value=0: pad(input, p, "constant", value),
    "cat": cat, "concat": cat, "concatenate": cat, "stack": stack, "_expand": expand, "expand": expand, "equal": equal, "isclose": isclose, "allclose": isclose,
    "clamp": clamp, "clip": clamp,
    "clamp_min": lambda input, min: clamp(input, min), "clamp_max": lambda input, max: clamp(input, None, max), "relu": relu, "_relu": relu,
    "threshold": threshold, "gelu": gelu, "interpolate": interpolate, "prelu": prelu, "dropout": dropout,
}

# Made of operators that have forms.
COMPOSED = frozenset("""hstack vstack row_stack dstack column_stack atleast_1d atleast_2d atleast_3d hsplit vsplit dsplit unsafe_chunk unsafe_split tile fliplr
                        flipud rot90 adjoint""".split())
