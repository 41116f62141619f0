"""The bilinear layer and the time-first convolution."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite
from .._tensor.refusals import spoken
from ..core.shape import wrap_dim
from .conv import conv1d
from .loss import cross_entropy
from .matmul import linear


def _numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 1, shape)


@composite("bilinear", splice=True, repeat="ready small", complex=True, method=False, samples=lambda: [
    ((_numbers(5, 3), _numbers(5, 4, seed=1), _numbers(2, 3, 4, seed=2), _numbers(2, seed=3)), {}),
    ((_numbers(2, 3, 3), _numbers(2, 3, 4, seed=1), _numbers(2, 3, 4, seed=2)), {})])
def bilinear(input1, input2, weight, bias=None):
    """``out[..., o] = sum over i, j of input1[..., i] weight[o, i, j] input2[..., j] + bias[o]``.

    Args:
        input1: ``(*, I)``; input2: ``(*, J)``; weight: ``(O, I, J)``; bias: ``(O)``.

    Raises:
        RuntimeError: sizes that do not fit.
    """
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for at, (m, n) in enumerate(zip(input1.shape[:-1], input2.shape[:-1])):
        if m != n:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {at}: got {m} and {n}")
    for at, x in ((1, input1), (2, input2)):
        if x.shape[-1] != weight.shape[wrap_dim(at, weight.ndim)]:
            raise RuntimeError(f"bilinear(): input{at} size does not match weight size: got {x.shape[-1]} but expected {weight.shape[at]}")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0] if bias.ndim else 1} but expected {weight.shape[0]}")
    if not input1.dtype is input2.dtype is weight.dtype:
        raise RuntimeError(f"All tensors must have the same dtype, got input1: {spoken(input1.dtype)}, input2: {spoken(input2.dtype)}, weight: "
                           f"{spoken(weight.dtype)}")
    products = input1.unsqueeze(-1) * input2.unsqueeze(-2)
    return linear(products.flatten(-2), weight.flatten(1), bias)


@composite("conv_tbc", repeat="ready small", method=False, samples=lambda: [((_numbers(6, 2, 3), _numbers(2, 3, 4, seed=1), _numbers(4, seed=2)), {"pad": 1})])
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


def _linear_ce_samples():
    rng = np.random.default_rng(5)
    x, w, b = rng.standard_normal((4, 3)), rng.standard_normal((5, 3)), rng.standard_normal(5)
    y, soft = np.array([0, 4, -100, 2]), rng.random((4, 5))
    deep, places = rng.standard_normal((5, 2, 3)), rng.integers(0, 5, (4, 2))
    return [((x, w, y), {}), ((x, w, y), dict(linear_bias=b, weight=np.abs(b), label_smoothing=0.2)), ((x, w, soft), dict(reduction="sum")),
            ((x[0], w, np.array(3)), {}), ((x, deep, places), dict(reduction="none", linear_bias=rng.standard_normal((5, 2)))),
            ((x, w, np.array([0, 4, 1, 2])), dict(ignore_index=4))]


@composite("linear_cross_entropy", repeat="small", method=False, torch="nn.functional.linear_cross_entropy", samples=_linear_ce_samples, errors=(
    ((np.zeros((4, 3)), np.zeros((5, 2)), np.zeros(4, np.int64)), {}, RuntimeError, "in_features"),))
def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None, label_smoothing=0.0,
                         options=None):
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    Args:
        input: ``(in)`` or ``(N, in)``.
        linear_weight: ``(C, in)``, or ``(C, d1, ..., dK, in)`` for logits ``(N, C, d1, ..., dK)``; linear_bias: its shape without the last dimension.
        target: as for ``cross_entropy``.
        weight: ``(C)``. ignore_index: default -100 for class numbers; probabilities take none.
        options: accepted: the logits are always computed as a whole.

    Example:
        >>> clnn.nn.functional.linear_cross_entropy(clnn.zeros(1, 3), clnn.ones(2, 3), clnn.tensor([1]))
        tensor(0.6931)
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    classes, *extra, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError(f"expected equal input and linear_weight last dimensions (in_features), got {input.shape[-1]} and {features}, respectively")
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}")
    if extra and input.ndim != 2:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, (N, {features}), got "
                           f"unbatched input with shape {tuple(input.shape)}")
    rows = math.prod(extra, start=classes)
    logits = linear(input, linear_weight.reshape(rows, features), None if linear_bias is None else linear_bias.reshape(rows))
    if target.dtype.is_floating_point and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    return cross_entropy(logits.reshape(*input.shape[:-1], classes, *extra), target, weight=weight, ignore_index=-100 if ignore_index is None else ignore_index,
                         reduction=reduction, label_smoothing=label_smoothing)
