"""Functions of the top-level namespace around quantisation that are neither made nor read: pooling, normalisation, and observing while rounding."""
from __future__ import annotations

from ..graph.op import REGISTRY
from .functions import batch_norm, max_pool1d, max_pool2d
from .ranges import covering


def quantized_max_pool1d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """``nn.functional.max_pool1d`` of a quantised tensor.

    Example:
        >>> x = clnn.quantize_per_tensor(clnn.tensor([[[1.0, 3.0]]]), 0.5, 0, clnn.quint8)
        >>> clnn.quantized_max_pool1d(x, [2]).dequantize()
        tensor([[[3.]]])
    """
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool2d(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """``nn.functional.max_pool2d`` of a quantised tensor.

    Example:
        >>> x = clnn.quantize_per_tensor(clnn.tensor([[[[1.0, 3.0], [0.0, 2.0]]]]), 0.5, 0, clnn.quint8)
        >>> clnn.quantized_max_pool2d(x, [2, 2]).dequantize()
        tensor([[[[3.]]]])
    """
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point):
    """Batch normalisation of a quantised tensor by given statistics; the result has this scale and zero point.

    Example:
        >>> x = clnn.quantize_per_tensor(clnn.ones(1, 1, 2, 2), 0.5, 0, clnn.quint8)
        >>> one = clnn.ones(1)
        >>> clnn.quantized_batch_norm(x, one, one, one, one, 1e-5, 0.5, 2).int_repr().flatten()
        tensor([4, 4, 4, 4], dtype=clnn.uint8)
    """
    return batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point)


def fused_moving_avg_obs_fake_quant(input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis,
                                    per_row_fake_quant=False, symmetric_quant=False):
    """Keep moving averages of the least and the greatest element, choose a scale and a zero point from them, and round ``input`` so, as two switches say.

    Args:
        observer_on, fake_quant_on: tensors of one element: observe, round.
        running_min, running_max, scale, zero_point: tensors that are written: of one element, or, with ``per_row_fake_quant``, one for each place along ``ch_axis``.

    Example:
        >>> low, high, scale, zero = clnn.tensor(float("inf")), clnn.tensor(float("-inf")), clnn.ones(1), clnn.zeros(1, dtype=clnn.int32)
        >>> clnn.fused_moving_avg_obs_fake_quant(clnn.tensor([0.0, 2.55]), clnn.tensor([1]), clnn.tensor([1]), low, high, scale, zero, 0.01, 0, 255, 0)
        tensor([0.0000, 2.5500])
        >>> scale
        tensor([0.0100])
    """
    where = REGISTRY["where"].fn
    if observer_on.item() == 1:
        x = input.detach()
        low, high = (x.movedim(ch_axis, 0).flatten(1).aminmax(dim=1) if per_row_fake_quant else x.aminmax())
        if running_min.shape != low.shape:
            running_min.resize_(low.shape).fill_(float("inf"))
            running_max.resize_(high.shape).fill_(float("-inf"))
        running_min.copy_(where(running_min.isinf(), low, running_min + averaging_const * (low - running_min)))
        running_max.copy_(where(running_max.isinf(), high, running_max + averaging_const * (high - running_max)))
        for held, new in zip((scale, zero_point), covering(running_min, running_max, quant_min, quant_max, symmetric_quant)):
            (held if held.shape == new.shape else held.resize_(new.shape)).copy_(new)
    if fake_quant_on.item() != 1:
        return input
    if per_row_fake_quant:
        return REGISTRY["fake_quantize_per_channel_affine"].fn(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return REGISTRY["fake_quantize_per_tensor_affine"].fn(input, scale, zero_point, quant_min, quant_max)
