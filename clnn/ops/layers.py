"""The bilinear layer and the time-first convolution."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite
from .conv import conv1d
from .matmul import linear


def _numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 1, shape)


@composite("bilinear", method=False, samples=lambda: [
    ((_numbers(5, 3), _numbers(5, 4, seed=1), _numbers(2, 3, 4, seed=2), _numbers(2, seed=3)), {}),
    ((_numbers(2, 3, 3), _numbers(2, 3, 4, seed=1), _numbers(2, 3, 4, seed=2)), {})])
def bilinear(input1, input2, weight, bias=None):
    """``out[..., o] = sum over i, j of input1[..., i] weight[o, i, j] input2[..., j] + bias[o]``.

    Args:
        input1: ``(*, I)``; input2: ``(*, J)``; weight: ``(O, I, J)``; bias: ``(O)``.

    Raises:
        RuntimeError: sizes that do not fit.
    """
    if input1.ndim != input2.ndim or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(f"bilinear(): input batch dimensions do not match: got {list(input1.shape)} and {list(input2.shape)}")
    if weight.ndim != 3 or input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(f"bilinear(): input sizes do not match weight: got input1 {list(input1.shape)}, input2 {list(input2.shape)} and weight "
                           f"{list(weight.shape)}")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {list(bias.shape)} but expected [{weight.shape[0]}]")
    products = input1.unsqueeze(-1) * input2.unsqueeze(-2)
    return linear(products.flatten(-2), weight.flatten(1), bias)


@composite("conv_tbc", method=False, samples=lambda: [((_numbers(6, 2, 3), _numbers(2, 3, 4, seed=1), _numbers(4, seed=2)), {"pad": 1})])
def conv_tbc(input, weight, bias, pad=0):
    """Convolution over the first dimension: ``input`` ``(T, N, C)``, ``weight`` ``(K, C, O)``, ``bias`` ``(O)``; ``pad`` zeros at both ends.

    Raises:
        RuntimeError: wrong numbers of dimensions or channels.
    """
    for name, t, rank in (("Input", input, 3), ("Weight", weight, 3), ("Bias", bias, 1)):
        if t.ndim != rank:
            raise RuntimeError(f"{name} must have {rank} dims, got {list(t.shape)} (conv_tbc)")
    if input.shape[2] != weight.shape[1] or weight.shape[2] != bias.shape[0]:
        raise RuntimeError(f"conv_tbc: channels differ: input {list(input.shape)}, weight {list(weight.shape)}, bias {list(bias.shape)}")
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
