"""``multi_head_attention_forward``: projections, scaled dot-product attention and the output projection."""
from __future__ import annotations

import math

from .._tensor import foreign, tape
from .._tensor.declare import composite
from .._tensor.grad_mode import state
from .._tensor.tensor import Tensor, edge, make_view
from ..core import dtype as dt
from ..core.shape import Size
from ..core.warn import warn
from ..graph.node import Storage
from .attention import scaled_dot_product_attention
from .creation import filled
from .dropout import dropout
from .joining import cat, stack
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
    where = f"For {'batched' if batched else 'unbatched'} ({query.ndim}-D) `query`, expected"
    _expect(key.ndim == query.ndim and value.ndim == query.ndim, f"{where} `key` and `value` to be {query.ndim}-D but found {key.ndim}-D and "
            f"{value.ndim}-D tensors respectively")
    if key_padding_mask is not None:
        _expect(key_padding_mask.ndim == query.ndim - 1, f"{where} `key_padding_mask` to be `None` or {query.ndim - 1}-D but found {key_padding_mask.ndim}-D "
                "tensor instead")
    if attn_mask is not None:
        _expect(attn_mask.ndim in (2, 3), f"{where} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor instead")
        if not batched and attn_mask.ndim == 3:
            _expect(attn_mask.shape == (num_heads, query.shape[0], key.shape[0]), f"Expected `attn_mask` shape to be "
                    f"{(num_heads, query.shape[0], key.shape[0])} but got {attn_mask.shape}")
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


def _check_weights(query, key, value, weights):
    size = query.shape[-1]
    for name, w, x in zip(("query", "key", "value"), weights, (query, key, value)):
        _expect(w is not None, f"use_separate_proj_weight is True but {name[0]}_proj_weight is None")
        _expect(tuple(w.shape) == (size, x.shape[-1]), f"expecting {name} weights shape of {(size, x.shape[-1])}, but got {w.shape}")


def _separate(query, key, value, weights, bias):
    """The three projections by weights of their own."""
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


class _Heads(tape.Node):
    """Projections seen head by head: one entry where views would be several for each of them."""

    bare = True

    def __init__(self, base, parts, heads, batch_first):
        super().__init__([edge(base)], parts)
        self.heads, self.batch_first, self.shape, self.dtype, self.device = heads, batch_first, base.shape, base.dtype, base._storage.device

    def name(self):
        return "TransposeBackward0"

    def traits(self):
        return (_Heads, self.outs, self.heads, self.batch_first, self.shape, self.dtype), ()

    def take(self, told):
        _, self.outs, self.heads, self.batch_first, self.shape, _ = told

    def apply(self, grads, needed):
        a, b, width = self.shape
        size = (a, b, self.heads, width // (self.outs * self.heads))
        order = (0, 2, 1, 3) if self.batch_first else (2, 0, 1, 3)
        parts = [filled(Size(size), 0, self.dtype, self.device) if g is None else g.permute(order) for g in grads]
        return [stack(parts, 2).reshape(self.shape)]


def heads_by_steps(y, parts, heads, batch_first):
    """What :func:`_heads` gives, by views one after the other."""
    a, b, width = y.shape
    return y.reshape(a, b, parts, heads, width // (parts * heads)).permute((2, 0, 3, 1, 4) if batch_first else (2, 1, 3, 0, 4)).unbind(0)


def _heads(y, parts, heads, batch_first):
    """``parts`` views (N, h, L, d) of the dense ``y``, (N, L, parts h d) or (L, N, parts h d)."""
    a, b, width = y.shape
    size = width // (parts * heads)
    if y.__class__ is not Tensor or foreign.stand_ins or not isinstance(y._storage, Storage):
        return heads_by_steps(y, parts, heads, batch_first)
    outer, inner = (b * width, width) if batch_first else (width, b * width)
    shape = Size((a, heads, b, size) if batch_first else (b, heads, a, size))
    out = tuple([make_view(y, shape, (outer, size, inner, 1), y._offset + k * heads * size) for k in range(parts)])
    if state.grad and y._rg:
        node = _Heads(y, parts, heads, batch_first)
        for nr, t in enumerate(out):
            t._grad_fn, t._out_nr, t._rg = node, nr, True
    return out


def _by_heads(query, key, value, weight, weights, bias, heads, batch_first):
    """Query, key and value (N, h, L, d), by one weight ``(3 E, E)`` or by three; equal inputs share a product."""
    if weight is not None and key is value:
        if query is key:
            return _heads(linear(query, weight, bias), 3, heads, batch_first)
        size = query.shape[-1]
        q, kv = linear(query, weight[:size], None if bias is None else bias[:size]), linear(key, weight[size:], None if bias is None else bias[size:])
        return (*_heads(q, 1, heads, batch_first), *_heads(kv, 2, heads, batch_first))
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple([_heads(linear(x, w, b), 1, heads, batch_first)[0]
                  for x, w, b in zip((query, key, value), weight.chunk(3) if weight is not None else weights, biases)])


def _wider(mask):
    """The mask with one more key, which all may see."""
    return None if mask is None else pad(mask, (0, 1))


def _fixed(x, name, bsz, heads, dim):
    """A key or value that the caller projected: ``(N h, S, d)``."""
    _expect(x.shape[0] == bsz * heads and x.shape[2] == dim,
            f"expecting {name} of sizes ({bsz * heads}, *, {dim}), but got {tuple(x.shape)}")
    return x


def _with_more_keys(query, key, value, weight, weights, bias, heads, bias_k, bias_v, add_zero_attn, static_k, static_v):
    """(query, key, value ``(N h, L, d)``, number of keys that were added)."""
    (length, bsz, size), more = query.shape, 0
    q, k, v = _separate(query, key, value, weights, bias) if weight is None else _packed(query, key, value, weight, bias)
    if bias_k is not None and bias_v is not None:
        _expect(static_k is None and static_v is None, "bias cannot be added to static key or value")
        k, v, more = cat([k, bias_k.expand(1, bsz, size)]), cat([v, bias_v.expand(1, bsz, size)]), 1
    rows, dim = bsz * heads, size // heads
    q = q.reshape(length, rows, dim).transpose(0, 1)
    k = k.reshape(k.shape[0], rows, dim).transpose(0, 1) if static_k is None else _fixed(static_k, "static_k", bsz, heads, dim)
    v = v.reshape(v.shape[0], rows, dim).transpose(0, 1) if static_v is None else _fixed(static_v, "static_v", bsz, heads, dim)
    if add_zero_attn:
        k, v = (cat([t, t.new_zeros((rows, 1, dim))], 1) for t in (k, v))
        more += 1
    return q, k, v, more


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
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {want}.")
    return mask


@composite("multi_head_attention_forward", repeat="small", splice=True, method=False, torch="nn.functional.multi_head_attention_forward")
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
    length, bsz, _ = query.shape
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    attn_mask, key_padding_mask, is_causal = _masks(attn_mask, key_padding_mask, is_causal, need_weights, query.dtype,
                                                     (length, bsz, key.shape[0]), num_heads)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    if use_separate_proj_weight:
        _check_weights(query, key, value, weights)
        in_proj_weight = None
    else:
        _expect(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
    if add_zero_attn or static_k is not None or static_v is not None or bias_k is not None and bias_v is not None:
        more = _with_more_keys(query, key, value, in_proj_weight, weights, in_proj_bias, num_heads, bias_k, bias_v, add_zero_attn, static_k, static_v)
        q, k, v = [t.reshape(bsz, num_heads, *t.shape[1:]) for t in more[:3]]
        for _ in range(more[3]):
            attn_mask, key_padding_mask = _wider(attn_mask), _wider(key_padding_mask)
    else:
        q, k, v = _by_heads(query, key, value, in_proj_weight, weights, in_proj_bias, num_heads, False)
    out, weights = _attend(q, k, v, attn_mask, key_padding_mask, dropout_p if training else 0.0, is_causal, need_weights, out_proj_weight, out_proj_bias, False)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not batched:
        out, weights = out.squeeze(1), None if weights is None else weights.squeeze(0)
    return out, weights


@composite("_batch_first_attention", repeat=True, splice=True, method=False)
def batch_first_attention(query, key, value, embed_dim, num_heads, in_proj_weight, in_proj_bias, dropout_p, out_proj_weight, out_proj_bias, key_padding_mask,
                          attn_mask, is_causal, weights):
    """``multi_head_attention_forward`` without weights for operands ``(N, L, E)``, which are not turned; None where sizes do not fit or are told otherwise."""
    size, first = query.shape[-1], key.shape[:2]
    fits = size == embed_dim and size % num_heads == 0 and (key.shape == value.shape if weights is None else first == value.shape[:2])
    masks = (attn_mask is None or attn_mask.ndim in (2, 3)) and (key_padding_mask is None or key_padding_mask.ndim == 2)
    if not (fits and masks) or key.ndim != 3 or value.ndim != 3 or first[0] != query.shape[0]:
        return None
    if weights is not None:
        _check_weights(query, key, value, weights)
    sizes = query.shape[1], query.shape[0], key.shape[1]
    attn_mask, key_padding_mask, is_causal = _masks(attn_mask, key_padding_mask, is_causal, False, query.dtype, sizes, num_heads)
    q, k, v = _by_heads(query, key, value, in_proj_weight, weights, in_proj_bias, num_heads, True)
    return _attend(q, k, v, attn_mask, key_padding_mask, dropout_p, is_causal, False, out_proj_weight, out_proj_bias, True)[0]


def _check_sizes(query, key, value, embed_dim, heads, separate):
    size = query.shape[-1]
    _expect(size == embed_dim, f"was expecting embedding dimension of {embed_dim}, but got {size}")
    _expect(size % heads == 0, f"embed_dim {size} not divisible by num_heads {heads}")
    if separate:
        _expect(key.shape[:2] == value.shape[:2], f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    else:
        _expect(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")


def _masks(attn_mask, key_padding_mask, is_causal, need_weights, dtype, sizes, heads):
    """(attn_mask of 3 dimensions or None, key_padding_mask, is_causal), both masks to add to the scores."""
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method `generate_square_subsequent_mask` to "
                           "create this mask.")
    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype is not attn_mask.dtype:
        warn("Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.")
    key_padding_mask = _additive(key_padding_mask, "key_padding_mask", dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True                                  # the attention kernel needs no mask for that
    length, bsz, keys = sizes
    attn_mask = _check_mask(_additive(attn_mask, "attn_mask", dtype), ((length, keys), (bsz * heads, length, keys)))
    return attn_mask, key_padding_mask, False


def _attend(q, k, v, attn_mask, key_padding_mask, dropout_p, is_causal, need_weights, weight, bias, batch_first):
    """(output of attention by heads, ``(N, L, E)`` or ``(L, N, E)``; weights ``(N, h, L, S)`` or None)."""
    bsz, heads, length, dim = q.shape
    mask = None if attn_mask is None else attn_mask.unsqueeze(0) if attn_mask.shape[0] == 1 else attn_mask.reshape(bsz, heads, *attn_mask.shape[1:])
    if key_padding_mask is not None:
        for at, size in enumerate((bsz, k.shape[2])):
            if key_padding_mask.shape[at] != size:
                raise AssertionError(f"Expected key_padded_mask.shape[{at}] to be {size}, but got {key_padding_mask.shape[at]}")
        padding = key_padding_mask.reshape(bsz, 1, 1, k.shape[2])
        mask = padding if mask is None else mask + padding
    weights = None
    if need_weights:
        out, weights = _with_weights(q, k, v, mask, dropout_p)
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    rows = out.permute(0, 2, 1, 3) if batch_first else out.permute(2, 0, 1, 3)
    return linear(rows.reshape(*rows.shape[:2], heads * dim), weight, bias), weights
