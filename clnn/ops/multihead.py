"""``multi_head_attention_forward``: projections, scaled dot-product attention and the output projection."""
from __future__ import annotations

import math

from .._tensor.declare import composite
from ..core import dtype as dt
from ..core.warn import warn
from .attention import scaled_dot_product_attention
from .dropout import dropout
from .joining import cat
from .matmul import linear
from .padding import pad


def _expect(condition, message):
    if not condition:
        raise AssertionError(message)


def _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the call is batched, after checking the numbers of dimensions."""
    batched = query.ndim == 3
    if query.ndim not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor")
    _expect(key.ndim == query.ndim and value.ndim == query.ndim, f"For {'batched' if batched else 'unbatched'} ({query.ndim}-D) `query`, expected "
            f"`key` and `value` to be {query.ndim}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively")
    if key_padding_mask is not None:
        _expect(key_padding_mask.ndim == query.ndim - 1, f"expected `key_padding_mask` to be {query.ndim - 1}-D but found {key_padding_mask.ndim}-D")
    if attn_mask is not None:
        _expect(attn_mask.ndim in (2, 3), f"expected `attn_mask` to be 2-D or 3-D but found {attn_mask.ndim}-D")
        if not batched and attn_mask.ndim == 3:
            _expect(attn_mask.shape == (num_heads, query.shape[0], key.shape[0]), f"Expected `attn_mask` shape to be "
                    f"{(num_heads, query.shape[0], key.shape[0])} but got {tuple(attn_mask.shape)}")
    return batched


def _additive(mask, name, dtype):
    """A mask to add to the scores: minus infinity where a bool mask is true."""
    if mask is None:
        return None
    if mask.dtype is dt.bool_:
        return mask.new_zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)
    if not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


def _packed(query, key, value, weight, bias):
    """The three projections by one weight ``(3 E, E)``; equal inputs share a product."""
    size = query.shape[-1]
    if key is value:
        if query is key:
            return linear(query, weight, bias).chunk(3, -1)
        q = linear(query, weight[:size], None if bias is None else bias[:size])
        return (q, *linear(key, weight[size:], None if bias is None else bias[size:]).chunk(2, -1))
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases))


def _separate(query, key, value, weights, bias):
    """The three projections by weights of their own."""
    size = query.shape[-1]
    for name, w, x in zip("qkv", weights, (query, key, value)):
        _expect(w is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
        _expect(tuple(w.shape) == (size, x.shape[-1]), f"expecting {name}_proj_weight shape of {(size, x.shape[-1])}, but got {tuple(w.shape)}")
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _wider(mask):
    """The mask with one more key, which all may see."""
    return None if mask is None else pad(mask, (0, 1))


def _fixed(x, name, bsz, heads, dim):
    """A key or value that the caller projected: ``(N h, S, d)``."""
    _expect(x.shape[0] == bsz * heads and x.shape[2] == dim,
            f"expecting {name} of sizes ({bsz * heads}, *, {dim}), but got {tuple(x.shape)}")
    return x


def _merged(attn_mask, key_padding_mask, bsz, heads, keys):
    """Both masks as one of 3 dimensions (1 or N h, L or 1, S), or None."""
    if key_padding_mask is None:
        return attn_mask
    _expect(tuple(key_padding_mask.shape) == (bsz, keys), f"expecting key_padding_mask shape of {(bsz, keys)}, but got "
            f"{tuple(key_padding_mask.shape)}")
    wide = key_padding_mask.reshape(bsz, 1, 1, keys).expand(bsz, heads, 1, keys).reshape(bsz * heads, 1, keys)
    return wide if attn_mask is None else attn_mask + wide


def _with_weights(q, k, v, mask, dropout_p):
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
    weights = (scores if mask is None else scores + mask).softmax(-1)
    weights = dropout(weights, dropout_p, True) if dropout_p > 0 else weights
    return weights @ v, weights


def _check_mask(mask, shapes):
    if mask is None or mask.ndim == 2 and tuple(mask.shape) == shapes[0]:
        return None if mask is None else mask.unsqueeze(0)
    want = shapes[mask.ndim - 2]
    if tuple(mask.shape) != want:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {tuple(mask.shape)}, but should be {want}.")
    return mask


@composite("multi_head_attention_forward", repeat=True, method=False, torch="nn.functional.multi_head_attention_forward")
def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
                                 dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
                                 use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None,
                                 static_v=None, average_attn_weights=True, is_causal=False):
    """Attention with several heads, as :class:`clnn.nn.MultiheadAttention` does it.

    Args:
        query: ``(L, N, E)`` or ``(L, E)``; key, value: ``(S, N, *)`` or ``(S, *)``.
        embed_dim_to_check: E. num_heads: a divisor of it.
        in_proj_weight: ``(3 E, E)``; with ``use_separate_proj_weight`` q_, k_ and v_proj_weight take its place. in_proj_bias: ``(3 E)`` or None.
        bias_k, bias_v: ``(1, 1, E)``, one more key and value for all, or None. add_zero_attn: one more key and value of zeros.
        dropout_p: probability of dropping a weight while training.
        key_padding_mask: ``(N, S)``; attn_mask: ``(L, S)`` or ``(N num_heads, L, S)``: true (or minus infinity) hides; floats are added.
        need_weights: also return the weights, their mean over the heads with ``average_attn_weights``; else the memory-saving attention is used.
        static_k, static_v: ``(N num_heads, S, E / num_heads)``, used instead of the projections.
        is_causal: a hint that attn_mask is the causal mask.

    Returns:
        The output ``(L, N, E)``, and the weights ``(N, L, S)`` (``(N, num_heads, L, S)`` when not averaged) or None.

    Raises:
        AssertionError: sizes that do not fit. RuntimeError: a mask of the wrong shape, or ``is_causal`` without a mask.
    """
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, bsz, size = query.shape
    dim = _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    attn_mask, key_padding_mask, is_causal = _masks(attn_mask, key_padding_mask, is_causal, need_weights, query, key.shape[0], num_heads)
    if use_separate_proj_weight:
        q, k, v = _separate(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        _expect(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _packed(query, key, value, in_proj_weight, in_proj_bias)
    if bias_k is not None and bias_v is not None:
        _expect(static_k is None and static_v is None, "bias cannot be added to static key or value")
        k, v = cat([k, bias_k.expand(1, bsz, size)]), cat([v, bias_v.expand(1, bsz, size)])
        attn_mask, key_padding_mask = _wider(attn_mask), _wider(key_padding_mask)
    q = q.reshape(length, bsz * num_heads, dim).transpose(0, 1)
    k = k.reshape(k.shape[0], bsz * num_heads, dim).transpose(0, 1) if static_k is None else _fixed(static_k, "static_k", bsz, num_heads, dim)
    v = v.reshape(v.shape[0], bsz * num_heads, dim).transpose(0, 1) if static_v is None else _fixed(static_v, "static_v", bsz, num_heads, dim)
    if add_zero_attn:
        k, v = (cat([t, t.new_zeros((bsz * num_heads, 1, dim))], 1) for t in (k, v))
        attn_mask, key_padding_mask = _wider(attn_mask), _wider(key_padding_mask)
    mask = _merged(attn_mask, key_padding_mask, bsz, num_heads, k.shape[1])
    out, weights = _attend(q, k, v, mask, dropout_p if training else 0.0, is_causal, need_weights, bsz, num_heads)
    out = linear(out.transpose(0, 1).reshape(length * bsz, size), out_proj_weight, out_proj_bias)
    out = out.reshape(length, bsz, out.shape[1])
    if weights is not None:
        weights = weights.reshape(bsz, num_heads, length, weights.shape[-1])
        weights = weights.mean(1) if average_attn_weights else weights
    if not batched:
        out, weights = out.squeeze(1), None if weights is None else weights.squeeze(0)
    return out, weights


def _check_sizes(query, key, value, embed_dim, heads, separate):
    """The size of one head."""
    size = query.shape[-1]
    _expect(size == embed_dim, f"was expecting embedding dimension of {embed_dim}, but got {size}")
    _expect(size % heads == 0, f"embed_dim {size} not divisible by num_heads {heads}")
    if separate:
        _expect(key.shape[:2] == value.shape[:2], f"key's sequence and batch dims {tuple(key.shape[:2])} do not match value's "
                f"{tuple(value.shape[:2])}")
    else:
        _expect(key.shape == value.shape, f"key shape {tuple(key.shape)} does not match value shape {tuple(value.shape)}")
    return size // heads


def _masks(attn_mask, key_padding_mask, is_causal, need_weights, query, keys, heads):
    """(attn_mask of 3 dimensions or None, key_padding_mask, is_causal), both masks to add to the scores."""
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype is not attn_mask.dtype:
        warn("Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.")
    key_padding_mask = _additive(key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True                                  # the attention kernel needs no mask for that
    length, bsz = query.shape[:2]
    attn_mask = _check_mask(_additive(attn_mask, "attn_mask", query.dtype), ((length, keys), (bsz * heads, length, keys)))
    return attn_mask, key_padding_mask, False


def _attend(q, k, v, mask, dropout_p, is_causal, need_weights, bsz, heads):
    if need_weights:
        return _with_weights(q, k, v, mask, dropout_p)
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.reshape(bsz, heads, *mask.shape[1:])
    q, k, v = (t.reshape(bsz, heads, *t.shape[1:]) for t in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    return out.reshape(bsz * heads, *out.shape[2:]), None
