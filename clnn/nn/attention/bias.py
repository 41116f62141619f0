"""Masks of causal attention for queries and keys of different numbers, as in ``torch.nn.attention.bias``."""
from __future__ import annotations

import enum

import clnn
from clnn._tensor.tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal starts: at the upper left corner of the matrix of scores, or at the lower right one."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask for ``scaled_dot_product_attention``: True where a query sees a key.

    Args:
        variant: the :class:`CausalVariant`.
        seq_len_q, seq_len_kv: numbers of queries and keys.
    """

    def __new__(cls, variant, seq_len_q, seq_len_kv, device=None):
        if not isinstance(variant, CausalVariant):
            raise TypeError(f"CausalBias: variant is a CausalVariant, got {type(variant).__name__}")
        offset = 0 if variant == CausalVariant.UPPER_LEFT else seq_len_kv - seq_len_q
        seen = clnn.ones(seq_len_q, seq_len_kv, dtype=clnn.bool, device=device).tril(offset)
        bias = Tensor._make_subclass(cls, seen)
        bias.variant, bias.seq_len_q, bias.seq_len_kv = variant, seq_len_q, seq_len_kv
        return bias

    def __repr__(self):
        return repr(Tensor._make_subclass(Tensor, self))


def causal_upper_left(*size):
    """Query i sees keys 0 .. i.

    Example::

        >>> nn.attention.bias.causal_upper_left(2, 3)
        tensor([[ True, False, False],
                [ True,  True, False]])
    """
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size):
    """The last query sees all keys, the one before it all but the last: queries that continue a text whose keys are kept.

    Example::

        >>> nn.attention.bias.causal_lower_right(2, 3)
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
