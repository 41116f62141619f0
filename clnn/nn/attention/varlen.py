"""Attention within sequences of unequal length that lie one after another in memory, without padding."""
from __future__ import annotations

from typing import NamedTuple

import clnn
from clnn.nn import functional as F

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What :func:`varlen_attn` returns beside its result: ``lse``, the logarithms of the sums of exponentials of all scores."""

    lse: bool = False


def _places(starts, count, total):
    """(index of each sequence's first ``count`` rows in the packed tensor, lengths)."""
    starts = starts.to(clnn.int64)
    lengths = starts[1:] - starts[:-1]
    rows = starts[:-1, None] + clnn.arange(count, device=starts.device)
    return rows.clamp(max=max(total - 1, 0)), lengths


def _keys(key, value, cu_seq_k, max_k, seqused_k, block_table):
    """Keys and values as ``(N, max_k, H, D)`` and how many of them count."""
    if block_table is None:
        if cu_seq_k is None:
            raise ValueError("varlen_attn(): cu_seq_k is needed without a block_table")
        rows, lengths = _places(cu_seq_k, max_k, key.shape[0])
    else:
        if seqused_k is None:
            raise ValueError("varlen_attn(): block_table requires seqused_k")
        page = key.shape[1]
        at = clnn.arange(max_k, device=key.device)
        rows = block_table.to(clnn.int64)[:, at // page] * page + at % page
        key, value, lengths = key.flatten(0, 1), value.flatten(0, 1), None
    if seqused_k is not None:
        lengths = seqused_k.to(clnn.int64)
    return key[rows], value[rows], lengths


def _seen(long_q, long_k, max_q, max_k, window):
    """``(N, 1, max_q, max_k)``: which keys a query looks at. Windows are counted from the end of both sequences."""
    left, right = window
    i = clnn.arange(max_q, device=long_q.device)[:, None]
    j = clnn.arange(max_k, device=long_q.device)
    long_q, long_k = long_q[:, None, None], long_k[:, None, None]
    seen = (j < long_k) & (i < long_q)
    at = i + long_k - long_q
    if right >= 0:
        seen = seen & (j <= at + right)
    if left >= 0:
        seen = seen & (j >= at - left)
    return seen[:, None]


def varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, return_aux=None, scale=None, window_size=(-1, -1), enable_gqa=False,
                seqused_k=None, block_table=None, num_splits=None):
    """:func:`clnn.nn.functional.scaled_dot_product_attention` of each of N sequences with itself or with its own keys.

    Args:
        query: ``(T_q, H, D)``, all sequences one after another. key, value: ``(T_k, H_k, D)``, or pages ``(P, size, H_k, D)`` with ``block_table``.
        cu_seq_q, cu_seq_k: ``(N + 1,)``, where each sequence begins, and the end of the last one.
        max_q, max_k: the longest sequence.
        return_aux: ``AuxRequest(lse=True)`` returns ``(result, lse)``, ``lse`` of shape ``(H, T_q)``.
        scale: of the scores; ``1 / sqrt(D)`` by default.
        window_size: how many keys before and after its own place a query sees, -1 for all of them; ``(-1, 0)`` is causal attention.
        enable_gqa: fewer heads of keys than of queries, each for a group of queries.
        seqused_k: ``(N,)``, how many keys of each sequence count.
        block_table: ``(N, pages)``, the pages of each sequence in order; needs ``seqused_k``.
        num_splits: accepted; results never depend on other sequences.

    Returns:
        ``(T_q, H, D)``; zeros for a query that sees no key. Any float dtype, with gradients.

    Example::

        >>> from clnn.nn.attention.varlen import varlen_attn
        >>> q, ends = clnn.randn(5, 2, 8), clnn.tensor([0, 2, 5], dtype=clnn.int32)
        >>> varlen_attn(q, q, q, ends, ends, 3, 3, window_size=(-1, 0)).shape
        clnn.Size([5, 2, 8])
    """
    heads, total = query.shape[1], query.shape[0]
    rows, long_q = _places(cu_seq_q, max_q, total)
    keys, values, long_k = _keys(key, value, cu_seq_k, max_k, seqused_k, block_table)
    if keys.shape[2] != heads:
        if not enable_gqa or heads % keys.shape[2]:
            raise ValueError(f"varlen_attn(): {heads} heads of queries and {keys.shape[2]} of keys; enable_gqa=True serves multiples")
        keys, values = (t.repeat_interleave(heads // keys.shape[2], 2) for t in (keys, values))
    q, k, v = (t.transpose(1, 2) for t in (query[rows], keys, values))
    seen = _seen(long_q, long_k, max_q, max_k, window_size)
    some = seen.any(-1, keepdim=True)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=seen | ~some, scale=scale).masked_fill(~some, 0.0)
    where = clnn.arange(total, device=query.device)
    sequence = (clnn.searchsorted(cu_seq_q.to(clnn.int64), where, right=True) - 1).clamp(max=len(cu_seq_q) - 2)
    place = where - cu_seq_q.to(clnn.int64)[sequence]
    result = out[sequence, :, place]
    if return_aux is None or not return_aux.lse:
        return result
    scores = q.float() @ k.float().transpose(-2, -1) * (query.shape[2] ** -0.5 if scale is None else scale)
    return result, scores.masked_fill(~seen, float("-inf")).logsumexp(-1)[sequence, :, place].T


def varlen_attn_out(out, *args, **kwargs):
    """:func:`varlen_attn` that writes its result into ``out``."""
    got = varlen_attn(*args, **kwargs)
    if isinstance(got, tuple):
        return out.copy_(got[0]), got[1]
    return out.copy_(got)
