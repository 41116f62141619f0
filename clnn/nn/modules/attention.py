"""Multi-head attention."""
from functools import partial

import clnn
from clnn.nn import functional as F
from clnn.nn import init
from clnn.nn.parameter import Parameter
from clnn.ops.multihead import batch_first_attention

from ._chain import as_one, parted
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


@parted("in_proj_weight in_proj_bias q_proj_weight k_proj_weight v_proj_weight bias_k bias_v",
        "training embed_dim num_heads dropout batch_first add_zero_attn _qkv_same_embed_dim")
class MultiheadAttention(Module):
    """``concat(head_1, ..., head_h) W_o`` with ``head_i = softmax(Q_i K_i^T / sqrt(E / h)) V_i`` of linearly mapped inputs.

    Args:
        embed_dim: size E of the query and output rows.
        num_heads: number h of heads; it divides E.
        dropout: probability of dropping an attention weight. Default: 0.
        bias: whether the linear maps have biases. Default: ``True``.
        add_bias_kv: append a learned row to keys and values. Default: ``False``.
        add_zero_attn: append a row of zeros to keys and values. Default: ``False``.
        kdim, vdim: sizes of the key and value rows. Default: E.
        batch_first: inputs and output are ``(N, L, E)`` instead of ``(L, N, E)``. Default: ``False``.

    Shape:
        query ``(L, N, E)``, key and value ``(S, N, E)``; without a batch ``(L, E)`` and ``(S, E)``. Output like the query; weights
        ``(N, L, S)``, with ``average_attn_weights=False`` ``(N, h, L, S)``.

    Source: Vaswani et al., Attention Is All You Need, 2017 (arXiv:1706.03762).

    Example::

        >>> x = clnn.randn(5, 2, 8)
        >>> out, weights = nn.MultiheadAttention(8, 2)(x, x, x)
        >>> out.shape, weights.shape
        (clnn.Size([5, 2, 8]), clnn.Size([2, 5, 5]))
    """

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
                 batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError("embed_dim and num_heads must be greater than 0, got "
                             f"embed_dim={embed_dim} and num_heads={num_heads} instead")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape):
            return Parameter(clnn.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k = parameter(1, 1, embed_dim)
            self.bias_v = parameter(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
                is_causal=False):
        """Attend.

        Args:
            key_padding_mask: ``(N, S)``; true (or minus infinity) for keys to leave out.
            need_weights: also return the weights; without them a faster way is taken. Default: ``True``.
            attn_mask: ``(L, S)`` or ``(N h, L, S)``; true for pairs to leave out, or values that are added to the scores.
            average_attn_weights: return the mean of the weights over the heads. Default: ``True``.
            is_causal: tells that *attn_mask* is the causal mask. Default: ``False``.

        Returns:
            (output, weights or ``None``).
        """
        inputs = query, key, value, key_padding_mask, attn_mask
        about = need_weights, average_attn_weights, is_causal
        if query.__class__ is not clnn.Tensor:
            return self._attend(*inputs, *about)
        output, weights = as_one(self, partial(self._attend, *inputs, *about), inputs, key is value, query is key, *about)
        if self.training and weights is None and self.batch_first and query.dim() == 3:
            output._drawn = (1, 0, 2)                           # as PyTorch's result lies in memory
        return output, weights

    def _attend(self, query, key, value, key_padding_mask, attn_mask, need_weights, average_attn_weights, is_causal):
        swap = self.batch_first and query.dim() == 3
        if swap and not need_weights and self.bias_k is None and not self.add_zero_attn and query.__class__ is clnn.Tensor:
            output = batch_first_attention(
                query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.dropout if self.training else 0.0,
                self.out_proj.weight, self.out_proj.bias, key_padding_mask, attn_mask, is_causal,
                None if self._qkv_same_embed_dim else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight))
            if output is not None:
                return output, None
        if swap:
            same_kv, same_qk = value is key, key is query
            query = query.transpose(0, 1)
            key = query if same_qk else key.transpose(0, 1)
            value = key if same_kv else value.transpose(0, 1)
        separate = {}
        if not self._qkv_same_embed_dim:
            separate = {"use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight, "k_proj_weight": self.k_proj_weight,
                        "v_proj_weight": self.v_proj_weight}
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            average_attn_weights=average_attn_weights, is_causal=is_causal, **separate)
        return (output.transpose(0, 1) if swap else output), weights

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """(both masks as one that adds up, ``(N, heads, L, L)`` where there is an ``attn_mask``; its kind: 1 for padding alone, else 2), or None twice."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("_qkv_same_embed_dim", True)
