"""Scaled dot-product attention with memory linear in the sequence length.

On CPUs :mod:`._attention` does it in one launch, on GPUs :mod:`._attention_gpu` where it can. Elsewhere, and for doubles, queries are taken in blocks:
scores of a block by the GEMM family, weights in place, then the product with the values. Only the log-sum-exp of each query is kept; backward computes
the weights again.
"""
from __future__ import annotations

import math

from .._tensor import foreign
from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.refusals import spoken
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.shape import Size, broadcast_shapes
from . import _attention as _attend
from . import _attention_gpu as _fused
from . import _attention_gradients as _gradients
from ._gemm import gemm
from .creation import filled, ones

SCRATCH = 4 << 20           # score elements held at once


class Sizes:
    """Shapes of one call: ``z`` batches of ``groups`` query heads that share keys, ``length`` queries, ``keys`` keys."""

    __slots__ = ("z", "groups", "heads", "length", "keys", "dim", "out_dim", "block", "acc")

    def __init__(self, query, key, value, groups, heads):
        self.groups, self.heads = groups, heads
        self.z = query.shape[0] // groups
        self.length, self.dim = query.shape[1], query.shape[2]
        self.keys, self.out_dim = key.shape[1], value.shape[2]
        fit = max(1, SCRATCH // max(1, query.shape[0] * self.keys))
        self.block = max(1, min(self.length, max(16, fit // 16 * 16)))
        self.acc = dt.float64 if query.dtype is dt.float64 else dt.float32


def _gemm(device, dtypes, out_dtype, M, N, K, a, b, c, rcs, z, beta=0.0):
    """``c[z] = a[z] @ b[z] + beta * c[z]``; operands are (tensor, offset, (row, column) strides, (batch, group) strides)."""
    (at, ao, as_, ab), (bt, bo, bs, bb), (ct, co, cb) = a, b, c
    gemm(device, dtypes, M, N, K, at._storage.buf, at._offset + ao, as_, bt._storage.buf, bt._offset + bo, bs, ct._storage.buf, ct._offset + co,
         rcs, z, tuple(zip(ab, bb, cb)), beta=beta, out_dtype=out_dtype)


def _operands(s, query, key, value):
    """(strides, batch strides) builders of the four matrices of a call."""
    g = s.groups
    qb = (g * s.length * s.dim, s.length * s.dim)
    kb, vb = (s.keys * s.dim, 0), (s.keys * s.out_dim, 0)
    ob = (g * s.length * s.out_dim, s.length * s.out_dim)
    return qb, kb, vb, ob


def _mask_args(s, mask):
    """Strides of the mask over (batch, head, query, key) of the flattened batch."""
    return (mask, *mask._strides)


def _drop_args(seed, first, p, acc=dt.float32):
    return seed, first, round((1.0 - p) * 2.0 ** 32), acc.number(1.0 / (1.0 - p) if p < 1 else 0.0)


def _row_launch(device, rows, n):
    if device.loops:
        chunk = max(1, min(-(-rows // (4 * device.compute_units)), max(1, 4096 // max(n, 1))))
        return "loop", 64 if n >= 256 else 16, chunk, (-(-rows // chunk),), (1,)
    return "group", 64, 1, (rows * 64,), (64,)


def _weights(s, scores, lse, mask, causal, scale, drop, first, rows, n):
    device = scores._storage.device
    form, lanes, chunk, gs, ls = _row_launch(device, s.z * s.groups * rows, n)
    extra = (_mask_args(s, mask) if mask is not None else ()) + (drop or ())
    run(device, "attention/weights", dict(T=s.acc, FORM=form, LANES=lanes, MASK=None if mask is None else mask.dtype, CAUSAL=int(causal),
                                          DROP=int(drop is not None)), gs, ls,
        scores, lse, s.z * s.groups * rows, n, chunk, s.acc.number(scale), rows, first, s.length, s.heads, *extra)


def _blocks(s, causal):
    """(first query, queries, keys that they see)."""
    for first in range(0, s.length, s.block):
        rows = min(s.block, s.length - first)
        yield first, rows, min(s.keys, first + rows) if causal else s.keys


_MUCH = 1 << 29             # multiply-adds that are worth more launches
_FEW_WEIGHTS = 1 << 19      # weights of attention that are worth PyTorch's numbers


def _grad(g, query, key, value, mask, dropout_p, causal, scale, groups, seed, first, out, lse):
    return _attention_backward(g, query, key, value, out, lse, mask, dropout_p, causal, scale, groups, seed, first)


def _decompose(query, key, value, mask, dropout_p, causal, scale, groups, seed, first):
    if dropout_p:
        raise NotImplementedError("scaled_dot_product_attention: second derivatives with dropout are not available; use dropout_p=0")
    k, v = (t.repeat_interleave(groups, 1) if groups > 1 else t for t in (key, value))
    scores = _masked((query * scale) @ k.transpose(2, 3), mask, causal)
    out = scores.softmax(-1) @ v
    return out, scores.logsumexp(-1)


@kernel("_attention", method=False, repeat=True, outputs=("out", "lse"), public=1, autocast="low", decompose=_decompose,
        vjp={"query, key, value": _grad})
def _attention(query, key, value, mask, dropout_p, causal, scale, groups, seed, first):
    """``query`` (B, H, L, E), ``key`` (B, H / groups, S, E), ``value`` (B, H / groups, S, Ev); ``mask`` of 4 dimensions or None."""
    drop = _drop_args(seed, first, dropout_p) if dropout_p else None
    if _attend.Form.suits(query, key, value):
        out, lse = _attend.forward(query, key, value, mask, drop, causal, scale, groups)
        return out.to(query.dtype), lse
    fused = _fused.form(query, key, value, mask, dropout_p, scale)
    if fused is not None:
        return _fused.forward(fused, query, key, value, mask, drop, causal, scale, groups)
    shape = (*query.shape[:3], value.shape[3])
    flat = (t.reshape(t.shape[0] * t.shape[1], *t.shape[2:]) for t in (query, key, value))
    out, lse = _forward_blocks(*flat, mask, dropout_p, causal, scale, groups, query.shape[1], seed, first)
    out = out.reshape(shape)
    return _attend.dense(out, shape[3], True) if out._numel and _attend.heads_inside(query) else out, lse


_attention.op.grad_name = "ScaledDotProductFlashAttentionForCpuBackward0"


@kernel("_attention_backward", method=False, repeat=True, outputs=("dq", "dk", "dv"), public=3)
def _attention_backward(grad, query, key, value, out, lse, mask, dropout_p, causal, scale, groups, seed, first):
    """Gradients of query, key and value."""
    low, fused = query.dtype, _fused.form(query, key, value, mask, dropout_p, scale)
    if fused == "tensor":
        return _fused.backward(grad, query, key, value, out, lse, mask, causal, scale, groups)
    drop = _drop_args(seed, first, dropout_p) if dropout_p else None
    if _attend.Form.suits(query, key, value):
        dq, dk, dv = _attend.backward(grad, query, key, value, out, lse, mask, drop, causal, scale, groups)
    elif fused is not None and _gradients.serves(query, value):
        dq, dk, dv = _gradients.backward(grad, query, key, value, out, lse, mask, drop, causal, scale, groups)
    else:
        flat = (t.reshape(t.shape[0] * t.shape[1], *t.shape[2:]) for t in (grad, query, key, value, out))
        got = _backward_blocks(*flat, lse, mask, dropout_p, causal, scale, groups, query.shape[1], seed, first)
        dq, dk, dv = (t.reshape(*query.shape[:2], *t.shape[1:]) for t in got)
    if groups > 1:
        dk, dv = (t.reshape(t.shape[0], t.shape[1] // groups, groups, *t.shape[2:]).sum(2) for t in (dk, dv))
    return dq.to(low), dk.to(low), dv.to(low)


def _forward_blocks(query, key, value, mask, dropout_p, causal, scale, groups, heads, seed, first):
    """Forward by kernels of the GEMM family: ``query`` (Z * groups, L, E), ``key`` (Z, S, E), ``value`` (Z, S, Ev)."""
    s = Sizes(query, key, value, groups, heads)
    device, low = query._storage.device, query.dtype
    query, key, value = (t.contiguous() for t in (query, key, value))
    for t in (query, key, value):
        t._storage.buffer()
    out = empty(Size((s.z * groups, s.length, s.out_dim)), low, device)
    lse = empty(Size((s.z * groups, s.length)), s.acc, device)
    if not out._numel or not s.keys:
        return filled(out.shape, 0, low, device), lse
    scores = empty(Size((s.z * groups * s.block * s.keys,)), s.acc, device)
    drop = (*_drop_args(seed, first, dropout_p, s.acc), s.keys) if dropout_p else None
    qb, kb, vb, ob = _operands(s, query, key, value)
    for at, rows, n in _blocks(s, causal):
        sb = (groups * rows * n, rows * n)
        _gemm(device, low, s.acc, rows, n, s.dim, (query, at * s.dim, (s.dim, 1), qb), (key, 0, (1, s.dim), kb), (scores, 0, sb), n,
              (s.z, groups))
        _weights(s, scores, lse, mask, causal, scale, drop, at, rows, n)
        _gemm(device, (s.acc, low), low, rows, s.out_dim, n, (scores, 0, (n, 1), sb), (value, 0, (s.out_dim, 1), vb),
              (out, at * s.out_dim, ob), s.out_dim, (s.z, groups))
    return out, lse


def _backward_blocks(grad, query, key, value, out, lse, mask, dropout_p, causal, scale, groups, heads, seed, first):
    """Backward of :func:`_forward_blocks`; the gradients of keys and values are per query head."""
    s = Sizes(query, key, value, groups, heads)
    s.block = max(1, min(s.length, max(16, s.block // 2)))              # two score matrices are held
    if causal and not query._storage.device.loops and query.shape[0] * s.length * s.keys * s.dim >= _MUCH:
        s.block = min(s.block, max(128, -(-s.length // 64) * 16))      # a quarter of the queries: the first ones see few keys
    device, low = query._storage.device, query.dtype
    grad, query, key, value = (t.contiguous() for t in (grad, query, key, value))
    delta = (grad.to(s.acc) * out.to(s.acc)).sum(-1)
    for t in (grad, query, key, value, delta):
        t._storage.buffer()
    dq = empty(query.shape, low, device)
    heads_out = Size((s.z * groups, s.keys, s.dim)), Size((s.z * groups, s.keys, s.out_dim))
    dk, dv = (filled(shape, 0, s.acc, device) for shape in heads_out)
    for t in (dk, dv):
        t._storage.buffer()
    scores, dp = (empty(Size((s.z * groups * s.block * s.keys,)), s.acc, device) for _ in range(2))
    drop = (*_drop_args(seed, first, dropout_p, s.acc), s.keys) if dropout_p else ()
    qb, kb, vb, ob = _operands(s, query, key, value)
    dkb, dvb = ((groups * s.keys * d, s.keys * d) for d in (s.dim, s.out_dim))
    z = (s.z, groups)
    for at, rows, n in _blocks(s, causal):
        sb = (groups * rows * n, rows * n)
        q = (query, at * s.dim, (s.dim, 1), qb)
        go = (grad, at * s.out_dim, (s.out_dim, 1), ob)
        _gemm(device, low, s.acc, rows, n, s.dim, q, (key, 0, (1, s.dim), kb), (scores, 0, sb), n, z)
        _gemm(device, low, s.acc, rows, n, s.out_dim, go, (value, 0, (1, s.out_dim), vb), (dp, 0, sb), n, z)
        _backward_rows(s, scores, dp, lse, delta, mask, causal, scale, drop, at, rows, n)
        _gemm(device, (s.acc, low), low, rows, s.dim, n, (dp, 0, (n, 1), sb), (key, 0, (s.dim, 1), kb), (dq, at * s.dim, qb), s.dim, z)
        _gemm(device, (s.acc, low), s.acc, n, s.dim, rows, (dp, 0, (1, n), sb), q, (dk, 0, dkb), s.dim, z, beta=1.0)
        _gemm(device, (s.acc, low), s.acc, n, s.out_dim, rows, (scores, 0, (1, n), sb), go, (dv, 0, dvb), s.out_dim, z, beta=1.0)
    return dq, dk, dv


def _backward_rows(s, scores, dp, lse, delta, mask, causal, scale, drop, first, rows, n):
    device = scores._storage.device
    total, loop = s.z * s.groups * rows, device.loops
    gs, ls = ((total,), (1,)) if loop else ((n, total), (64 if n >= 64 else 16, 1))
    extra = (_mask_args(s, mask) if mask is not None else ()) + tuple(drop)
    run(device, "attention/gradients", dict(T=s.acc, LOOP=int(loop), MASK=None if mask is None else mask.dtype, CAUSAL=int(causal),
                                           DROP=int(bool(drop))), gs, ls,
        scores, dp, lse, delta, total, n, s.acc.number(scale), rows, first, s.length, s.heads, *extra)


def _check(query, key, value, attn_mask, dropout_p, is_causal):
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got query.dtype: {spoken(query.dtype)} key.dtype: {spoken(key.dtype)} and "
                           f"value.dtype: {spoken(value.dtype)} instead.")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.ndim} key.dim: {key.ndim} and "
                           f"value.dim: {value.ndim} instead.")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(f"scaled_dot_product_attention: sizes differ; got query.shape={tuple(query.shape)}, key.shape={tuple(key.shape)}, "
                           f"value.shape={tuple(value.shape)}")
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    if attn_mask is not None and is_causal and (query.ndim != 4 or dropout_p or attn_mask._rg):
        raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None and attn_mask.dtype not in (dt.bool_, dt.float32, query.dtype):
        raise RuntimeError(f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {spoken(attn_mask.dtype)} and  "
                           f"query.dtype: {spoken(query.dtype)} instead.")


def _shared_heads(query, key, value):
    """Keys, values, and how many heads of queries share one of theirs; where keys and values have different numbers of heads, both are repeated."""
    heads = query.shape[-3]
    if any(not t.shape[-3] or heads % t.shape[-3] for t in (key, value)):
        raise RuntimeError("Number of heads in key and value must divide the number of heads in query (scaled_dot_product_attention: "
                           f"query.shape={tuple(query.shape)}, key.shape={tuple(key.shape)}, value.shape={tuple(value.shape)})")
    if key.shape[-3] != value.shape[-3]:
        key, value = (t.repeat_interleave(heads // t.shape[-3], -3) for t in (key, value))
    return key, value, heads // key.shape[-3]


@composite("scaled_dot_product_attention", repeat=True, method=False, torch="nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """``softmax(query @ key.T * scale + mask) @ value`` without storing the weights of all queries.

    Args:
        query: ``(*, H, L, E)``; key: ``(*, Hk, S, E)``; value: ``(*, Hk, S, Ev)``.
        attn_mask: broadcastable to ``(*, H, L, S)``: bool (True takes part) or float (added to the scores).
        dropout_p: probability of dropping a weight. is_causal: query i sees keys 0..i, of those that a mask leaves (four dimensions, no dropout).
        scale: default ``1 / sqrt(E)``. enable_gqa: ``H`` may be a multiple of ``Hk``.

    Returns:
        ``(*, H, L, Ev)``

    Raises:
        RuntimeError: sizes or dtypes do not fit.
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    if attn_mask is not None and is_causal:
        seen = ones(query.shape[-2], key.shape[-2], dtype=dt.bool_, device=query.device).tril()
        attn_mask, is_causal = attn_mask & seen if attn_mask.dtype is dt.bool_ else attn_mask.masked_fill(~seen, -math.inf), False
    key, value, groups = _shared_heads(query, key, value) if enable_gqa and min(query.ndim, key.ndim, value.ndim) > 2 else (key, value, 1)
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    lead = tuple(query.shape[:-2])
    if groups == 1:
        try:
            lead = broadcast_shapes(lead, tuple(key.shape[:-2]), tuple(value.shape[:-2]))
        except ValueError as exc:
            raise RuntimeError(f"{exc} (scaled_dot_product_attention: query.shape={tuple(query.shape)}, key.shape={tuple(key.shape)}, "
                               f"value.shape={tuple(value.shape)})") from None
        key, value = (t if tuple(t.shape[:-2]) == lead else t.expand(*lead, *t.shape[-2:]) for t in (key, value))
        query = query if tuple(query.shape[:-2]) == lead else query.expand(*lead, *query.shape[-2:])
    heads = lead[-1] if lead else 1
    mask = None
    if attn_mask is not None:
        full = (*lead, query.shape[-2], key.shape[-2])
        try:
            mask = attn_mask.expand(full)
        except RuntimeError:
            try:
                broadcast_shapes(full, tuple(attn_mask.shape))      # says in PyTorch's words which sizes differ
            except ValueError as exc:
                raise RuntimeError(f"{exc} (scaled_dot_product_attention: attn_mask.shape={tuple(attn_mask.shape)}, weights of {full})") from None
            raise
        if mask._rg:
            return _composed(query, key, value, mask, dropout_p, is_causal, scale, groups)
        mask = mask.reshape(math.prod(lead[:-1]), heads, *full[-2:]) if mask.ndim != 4 else mask
    if dropout_p and (foreign.here.maps or _numbered(query, key)):    # each sample its own numbers, or the same for all; or those that PyTorch draws
        return _composed(query, key, value, mask if mask is None else attn_mask, dropout_p, is_causal, scale, groups)
    seed, first = _stream(query, key, dropout_p)
    q, k, v = (t if t.ndim == 4 else t.reshape(math.prod(lead[:-1]), n, *t.shape[-2:])
               for t, n in ((query, heads), (key, heads // groups), (value, heads // groups)))
    out = _attention(q, k, v, mask, float(dropout_p), is_causal, scale, groups, seed, first)
    return out if query.ndim == 4 else out.reshape(*lead, *out.shape[-2:])


def _numbered(query, key):
    """Whether weights are dropped by numbers of PyTorch's sequence, which need memory for all weights: where there are few."""
    from .random import in_sequence
    return query._numel // max(1, query.shape[-1]) * key.shape[-2] <= _FEW_WEIGHTS and in_sequence(query)


def _stream(query, key, dropout_p):
    if not dropout_p:
        return 0, 0
    from .random import _stream as stream
    return stream(None, query._numel // max(1, query.shape[-1]) * key.shape[-2])


def _composed(query, key, value, mask, dropout_p, causal, scale, groups):
    """The same of operators: a bias that is learned needs its own gradient of the size of the scores."""
    from .dropout import dropout
    if groups > 1:
        key, value = (t.repeat_interleave(groups, -3) for t in (key, value))
    scores = _masked((query * scale) @ key.transpose(-2, -1), mask, causal)
    return dropout(scores.softmax(-1).to(value.dtype), dropout_p, True) @ value


def _masked(scores, mask, causal):
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is dt.bool_ else scores + mask
    if causal:
        keep = filled(Size(scores.shape[-2:]), 1, dt.bool_, scores._storage.device).tril()
        scores = scores.masked_fill(~keep, -math.inf)
    return scores


__all__ = ["Tensor"]
