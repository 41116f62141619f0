"""Dropout. On CPUs the mask follows PyTorch's sequence and is kept for backward; elsewhere it is drawn in the kernel that applies it, and again in backward."""
from __future__ import annotations

import math

from .._tensor import foreign
from .._tensor.declare import elementwise
from .._tensor.dispatch import in_order_of, memory_order
from .._tensor.inplace import apply_inplace, own_results
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import Size
from .random import _coins, _limit, _stream, in_sequence

_dropout = elementwise("_dropout", "input, seed, first, limit, scale",
                       "clnn_keep(clnn_random_word(seed, first, IDX), limit, input * scale)", method=False, inplace=False,
                       dtypes=dt.FLOATS, vjp=dict(input=lambda g, seed, first, limit, scale: _dropout(g, seed, first, limit, scale)))
_dropout.op.expr.longs = frozenset((1, 2, 3))
_dropout.op.grad_name = "NativeDropoutBackward0"
_masked = elementwise("_masked", "input, mask, scale", "(input * (mask * scale))", method=False, inplace=False, dtypes=dt.FLOATS,
                      vjp=dict(input=lambda g, mask, scale: _masked(g, mask, scale)))
_masked.op.grad_name = "MulBackward0"


def _check_p(p):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _nothing_left(input, p):
    """What is left when all is dropped, in the dtype of ``input``; None of a part, which integers cannot hold."""
    if p == 1.0:
        return input * input.new_zeros(())
    if not input.dtype.differentiable:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dt.SPOKEN[input.dtype.name]}")
    return None


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability ``p`` and scale the rest by ``1 / (1 - p)``; the identity when not training.

    The mask is the one that PyTorch draws from the same seed, or, on a GPU and in recordings, a function of (seed, position in the stream, element number) that
    backward draws again. Srivastava et al., "Dropout", 2014.

    Example:
        >>> x = nn.functional.dropout(clnn.ones(1000), 0.5)
        >>> sorted(x.unique().tolist())
        [0.0, 2.0]
    """
    _check_p(p)
    if not training or p == 0.0:
        return input
    out = _nothing_left(input, p)
    if out is not None:
        pass
    elif foreign.here.maps:
        out = input * (bernoulli_mask(input.shape, 1.0 - p, input.dtype, input._storage.device) * (1.0 / (1.0 - p)))
    else:
        order, followed = memory_order(input, dense=True), in_sequence(input)
        x, keep = input if order is None else input.permute(order), 1.0 - p
        if followed:
            out = _masked(x, _mask(x, keep), 1.0 / keep)
        else:
            out = _dropout(x, *_stream(None, x._numel), _limit(keep), 1.0 / keep)
        if order is not None:
            out = in_order_of(out, order, "MulBackward0" if followed else "NativeDropoutBackward0")
            own_results(out, (input,))
    return apply_inplace(input, out, "dropout") if inplace else out


def _mask(x, keep):
    """True with probability ``keep``: one byte per element is kept for backward."""
    order = x._drawn
    device = x._storage.device
    shape = x.shape if order is None else Size([x.shape[d] for d in order])
    mask = _coins(shape, keep, dt.bool_, device)
    return mask if order is None else mask.permute([order.index(d) for d in range(len(order))])


def bernoulli_mask(shape, keep, dtype, device) -> Tensor:
    """A recorded tensor of ones (probability ``keep``) and zeros."""
    return _coins(Size(shape), keep, dtype, device)


def _channel_shape(input):
    return input.shape[:2] + (1,) * (len(input.shape) - 2)


def feature_dropout(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels: input (N, C, *)."""
    _check_p(p)
    if not training or p == 0.0:
        return input
    if len(input.shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    out = _nothing_left(input, p)
    if out is None and input.dtype in (dt.float32, dt.float64):
        out = _masked(input, bernoulli_mask(_channel_shape(input), 1.0 - p, dt.bool_, input._storage.device), 1.0 / (1.0 - p))
    elif out is None:                                                # the factor is rounded, too
        out = input * (bernoulli_mask(_channel_shape(input), 1.0 - p, input.dtype, input._storage.device) * (1.0 / (1.0 - p)))
    return apply_inplace(input, out, "feature_dropout") if inplace else out


_ALPHA = 1.7580993408473766         # -(SELU's limit for x -> -inf), Klambauer et al. 2017


def alpha_dropout(input, p=0.5, training=False, inplace=False, *, channels=False):
    """Dropout that keeps mean and variance of SELU networks: dropped elements take the negative limit of SELU.

    Example:
        >>> nn.functional.alpha_dropout(clnn.ones(2), 0.5, training=False)
        tensor([1., 1.])
    """
    _check_p(p)
    if not training or p == 0.0:
        return input
    out = _nothing_left(input, p)
    if out is None:
        mask = bernoulli_mask(_channel_shape(input) if channels else input.shape, 1.0 - p, input.dtype, input._storage.device)
        a = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1.0) * (1.0 - p))
        out = input * (mask * a) + ((mask - 1.0) * (_ALPHA * a) + _ALPHA * a * p)
    return apply_inplace(input, out, "alpha_dropout") if inplace else out


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """:func:`alpha_dropout` of whole channels.

    Example:
        >>> nn.functional.feature_alpha_dropout(clnn.ones(1, 2), 0.5, training=False)
        tensor([[1., 1.]])
    """
    return alpha_dropout(input, p, training, inplace, channels=True)
