"""The functions that make quantised tensors and read them."""
from __future__ import annotations

from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..ops import creation
from .ranges import range_of
from .schemes import INTEGERS, LIMITS, SPOKEN, PerChannel, PerTensor
from .tensor import QTensor, make


def _checked(input, dtype):
    if dtype not in INTEGERS:
        raise RuntimeError(f"ScalarType {dt.SPOKEN.get(getattr(dtype, 'name', None), dtype)} is not supported in new_qtensor.")
    if isinstance(input, QTensor) or input.dtype is not dt.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {SPOKEN.get(input.dtype) or dt.SPOKEN[input.dtype.name]}")
    return input.detach()


def quantize_per_tensor(input, scale, zero_point, dtype):
    """A quantised tensor: ``round(input / scale + zero_point)``, clamped to what ``dtype`` holds.

    Args:
        input: (*), float32, or a list of such tensors, with a scale and a zero point for each.
        scale, zero_point: numbers, or tensors of one element.
        dtype: ``clnn.quint8``, ``clnn.qint8`` or ``clnn.qint32``.

    Example:
        >>> clnn.quantize_per_tensor(clnn.tensor([-1.0, 0.0, 1.0, 2.0]), 0.1, 10, clnn.quint8)
        tensor([-1.,  0.,  1.,  2.], size=(4,), dtype=clnn.quint8,
               quantization_scheme=clnn.per_tensor_affine, scale=0.1, zero_point=10)
    """
    if isinstance(input, (list, tuple)):
        return tuple([quantize_per_tensor(t, s, z, dtype) for t, s, z in zip(input, scale.tolist(), zero_point.tolist())])
    x = _checked(input, dtype)
    scale, zero_point = (v.item() if isinstance(v, Tensor) else v for v in (scale, zero_point))
    low, high = LIMITS[dtype]
    for wrong, text in ((zero_point > high, "above upper"), (zero_point < low, "below lower")):
        if wrong:
            raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {int(zero_point)} is {text} bound.")
    quantizer = PerTensor(float(scale), int(zero_point))
    return make(quantizer.integers(x, dtype), dtype, quantizer)


def quantize_per_channel(input, scales, zero_points, axis, dtype):
    """:func:`quantize_per_tensor` with a scale and a zero point, tensors ``(C)``, for each place along ``axis``. Zero points may be floats.

    Example:
        >>> x = clnn.tensor([[-1.0, 0.0], [1.0, 2.0]])
        >>> clnn.quantize_per_channel(x, clnn.tensor([0.1, 0.01]), clnn.tensor([10, 0]), 0, clnn.quint8).int_repr()
        tensor([[  0,  10],
                [100, 200]], dtype=clnn.uint8)
    """
    quantizer = _per_channel(scales, zero_points, axis)
    x = _checked(input, dtype)
    if len(scales.shape) != 1 or scales.numel() != x.shape[axis]:
        raise RuntimeError(f"length of scales must equal to channel, expected {x.shape[axis]} got, {scales.numel()}")
    if zero_points.numel() != scales.numel():
        raise RuntimeError(f"number of elements in scales and zero_points must match: {scales.numel()} and {zero_points.numel()}")
    return make(quantizer.integers(x, dtype), dtype, quantizer)


def _per_channel(scales, zero_points, axis):
    floats = zero_points.dtype.is_floating_point
    kinds = (dt.float32, dt.float32) if floats else (dt.float64, dt.int64)
    if not scales._home.has_fp64 and not floats:
        kinds = (dt.float32, dt.int64)
    return PerChannel(scales.detach().to(kinds[0]).clone(), zero_points.detach().to(kinds[1]).clone(), axis, floats)


def quantize_per_tensor_dynamic(input, dtype, reduce_range):
    """:func:`quantize_per_tensor` with the scale and the zero point that cover the least and the greatest element; with half the integers where
    ``reduce_range`` asks for it.

    Example:
        >>> clnn.quantize_per_tensor_dynamic(clnn.tensor([0.0, 2.55]), clnn.quint8, False).int_repr()
        tensor([  0, 255], dtype=clnn.uint8)
    """
    if dtype not in LIMITS or dtype.itemsize != 1:
        raise RuntimeError(f"dtype {dtype} not supported")
    x = _checked(input, dtype)
    scale, zero_point = range_of(x, *LIMITS[dtype], reduce_range)
    return quantize_per_tensor(x, scale, zero_point, dtype)


def dequantize(tensors):
    """The numbers of a quantised tensor, or of each in a list, as float32.

    Example:
        >>> clnn.dequantize(clnn.quantize_per_tensor(clnn.tensor([0.24]), 0.1, 0, clnn.quint8))
        tensor([0.2000])
    """
    if isinstance(tensors, (list, tuple)):
        return tuple([t.dequantize() for t in tensors])
    return tensors.dequantize()


def _reader(name, text):
    def read(input):
        return getattr(input, name)()
    read.__name__ = read.__qualname__ = name
    read.__doc__ = text
    return read


int_repr = _reader("int_repr", """A copy of the integers of a quantised tensor.

    Example:
        >>> clnn.int_repr(clnn.quantize_per_tensor(clnn.tensor([0.24]), 0.1, 1, clnn.quint8))
        tensor([3], dtype=clnn.uint8)
    """)
q_scale = _reader("q_scale", """The scale of a quantised tensor, as a Python float.

    Example:
        >>> clnn.q_scale(clnn.quantize_per_tensor(clnn.ones(1), 0.5, 1, clnn.quint8))
        0.5
    """)
q_zero_point = _reader("q_zero_point", """The zero point of a quantised tensor, as a Python int.

    Example:
        >>> clnn.q_zero_point(clnn.quantize_per_tensor(clnn.ones(1), 0.5, 1, clnn.quint8))
        1
    """)
q_per_channel_scales = _reader("q_per_channel_scales", """The scales of a tensor that was quantised by channels.

    Example:
        >>> t = clnn.quantize_per_channel(clnn.ones(2, 1), clnn.tensor([0.5, 1.0]), clnn.tensor([0, 1]), 0, clnn.quint8)
        >>> clnn.q_per_channel_scales(t).tolist()
        [0.5, 1.0]
    """)
q_per_channel_zero_points = _reader("q_per_channel_zero_points", """The zero points of a tensor that was quantised by channels.

    Example:
        >>> t = clnn.quantize_per_channel(clnn.ones(2, 1), clnn.tensor([0.5, 1.0]), clnn.tensor([0, 1]), 0, clnn.quint8)
        >>> clnn.q_per_channel_zero_points(t)
        tensor([0, 1])
    """)
q_per_channel_axis = _reader("q_per_channel_axis", """The dimension along which a tensor was quantised by channels.

    Example:
        >>> t = clnn.quantize_per_channel(clnn.ones(2, 1), clnn.tensor([0.5, 1.0]), clnn.tensor([0, 1]), 0, clnn.quint8)
        >>> clnn.q_per_channel_axis(t)
        0
    """)


def _empty_affine_quantized(size, *, scale=1.0, zero_point=0, dtype, device=None, **ignored):
    """A quantised tensor of this size; its integers are zero."""
    return make(creation.zeros(tuple(size), dtype=INTEGERS[dtype], device=device), dtype, PerTensor(float(scale), int(zero_point)))


def _empty_per_channel_affine_quantized(size, *, scales, zero_points, axis, dtype, device=None, **ignored):
    """As :func:`_empty_affine_quantized`, by channels."""
    return make(creation.zeros(tuple(size), dtype=INTEGERS[dtype], device=device), dtype, _per_channel(scales, zero_points, axis))


def _dtype_of(integers):
    return next(q for q, row in INTEGERS.items() if row is integers.dtype)


def _make_per_tensor_quantized_tensor(input, scale, zero_point):
    """A quantised tensor of integers."""
    return make(input.clone(), _dtype_of(input), PerTensor(float(scale), int(zero_point)))


def _make_per_channel_quantized_tensor(input, scale, zero_point, axis):
    """A tensor quantised by channels, of integers."""
    return make(input.clone(), _dtype_of(input), _per_channel(scale, zero_point, axis))


def _choose_qparams_per_tensor(input, reduce_range=False):
    """(scale, zero point) for the elements of ``input`` as ``quint8``."""
    return range_of(input.detach(), 0, 255, reduce_range)


__all__ = ["quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "dequantize", "int_repr", "q_scale", "q_zero_point",
           "q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis"]
