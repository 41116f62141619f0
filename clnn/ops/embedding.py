"""Embedding tables: rows by number, and bags of rows. Gradients add rows in the order of the indices, without atomics."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.grad_mode import no_grad
from .._tensor.repeat import once
from .._tensor.writing import write
from ..core import dtype as dt
from ..core.shape import Size, whole
from ..core.warn import warn
from ..graph.op import REGISTRY
from . import _bags, _scatter
from .creation import arange
from .indexing import _add_rows
from .selection import where


def _table_grad(g, input, padding_idx, by_frequency, shape, sparse):
    """Sum of the rows of ``g`` for each row of the table; the padding row gets none."""
    if sparse:
        return _sparse_grad(g, input.reshape(-1), padding_idx, by_frequency, shape)
    if padding_idx >= 0:
        g = where((input == padding_idx).unsqueeze(-1), 0.0, g)
    if by_frequency:
        g = g / _counts(input, shape[0], g.dtype).index_select(0, input.reshape(-1)).reshape(tuple(input.shape) + (1,))
    return _add_rows(g, input, tuple(shape), 0, 1, False)


def _sparse_grad(g, index, padding_idx, by_frequency, shape):
    """The same as a sparse tensor: the rows of ``g`` and their numbers."""
    from ..sparse._build import rows_tensor
    if by_frequency:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    rows = g.reshape(index.shape[0], shape[1])
    if padding_idx < 0:
        index = index.clone()                           # the program may write other numbers into its own
    else:
        kept = REGISTRY["nonzero"].fn(index != padding_idx).reshape(-1)
        index, rows = index.index_select(0, kept), rows.index_select(0, kept)
    return rows_tensor(index, rows, shape)


def _counts(input, rows, dtype):
    flat = input.reshape(-1)
    return flat.new_zeros((rows,), dtype=dtype).index_add(0, flat, flat.new_ones((flat._numel,), dtype=dtype))


@kernel("_embedding", complex=True, method=False, repeat=True, vjp=dict(
    weight=lambda g, input, padding_idx, by_frequency, shape, sparse: _table_grad(g, input, padding_idx, by_frequency, shape, sparse)))
def _embedding(weight, input, padding_idx, by_frequency, shape, sparse):
    rows, width = shape
    _scatter.check_rows("embedding", 0, rows, input._numel)
    err = _scatter.code(weight._storage.device, "embedding", 0, rows)
    return _scatter.read_rows(weight.contiguous(), input.contiguous(), Size((*input.shape, width)), 1, rows, width, False, err)


_embedding.op.grad_name = "EmbeddingBackward0"


def _limit_norms(input, weight, max_norm, norm_type):
    """Scale down, in place, the rows that ``input`` names and that are longer than ``max_norm``."""
    once()
    with no_grad():
        table = weight.detach()
        norms = table.norm(norm_type, 1)
        long = (norms > max_norm) & (_counts(input, weight.shape[0], weight.dtype) > 0)
        scale = where(long, max_norm / (norms + 1e-7), 1.0)
        write(weight, (table * scale.unsqueeze(1)).to(weight.dtype))


def _check(name, input, weight):
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D ({name}: weight.shape={tuple(weight.shape)})")
    if input.dtype not in (dt.int64, dt.int32):
        raise RuntimeError(f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {input.type()} "
                           f"instead (while checking arguments for {name})")


def _padding(name, padding_idx, rows):
    if padding_idx is None:
        return -1
    if not -rows <= whole(padding_idx) < rows:
        if name == "embedding_bag":
            raise RuntimeError(f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}")
        raise AssertionError(f"Padding_idx must be within num_embeddings ({name}: padding_idx={padding_idx}, num_embeddings={rows})")
    return padding_idx % rows


def _samples():
    table = np.random.default_rng(0).normal(0, 1, (7, 5))
    index = np.array([[1, 2, 6], [2, 0, 2]])
    return [((index, table), {}), ((np.array(3), table), {})]


@composite("embedding", repeat=True, complex=True, method=False, torch="nn.functional.embedding", samples=_samples, errors=(
    ((np.array([7]), np.zeros((7, 2))), {}, IndexError, "index out of range"),))
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of ``weight`` by number.

    Args:
        input: ``(*)``, int32 or int64.
        weight: ``(V, E)``.
        padding_idx: a row that gets no gradient.
        max_norm: longer rows (of norm ``norm_type``) are scaled down to it first, in place.
        scale_grad_by_freq: divide the gradient of a row by how often it occurs.
        sparse: the gradient of ``weight`` is sparse: one row per number looked up.

    Returns:
        ``(*, E)``.

    Raises:
        IndexError: at the next synchronisation, if a number is out of range.

    Example:
        >>> clnn.nn.functional.embedding(clnn.tensor([1]), clnn.tensor([[1., 2.], [3., 4.]]))
        tensor([[3., 4.]])
    """
    _check("embedding", input, weight)
    padding = _padding("embedding", padding_idx, weight.shape[0])
    if max_norm is not None:
        _limit_norms(input, weight, max_norm, norm_type)
    return _embedding(weight, input, padding, bool(scale_grad_by_freq), tuple(weight.shape), bool(sparse))


def _bag_samples():
    rng = np.random.default_rng(1)
    table, two, one, offsets = rng.normal(0, 1, (7, 5)), np.array([[1, 2, 6], [2, 0, 2]]), np.array([1, 2, 4, 5, 4, 3]), np.array([0, 2, 2, 5])
    return [((two, table), {"mode": "sum"}), ((two, table), {}), ((two, table), {"mode": "max"}), ((one, table, offsets), {"mode": "sum"}),
            ((one, table, offsets), {"mode": "mean", "padding_idx": 4}), ((one, table, offsets), {"mode": "max"}),
            ((two, table), {"mode": "sum", "per_sample_weights": rng.normal(0, 1, (2, 3))})]


def _check_bags(input, weight, offsets, by_frequency, mode, sparse, per_sample_weights, include_last):
    if not weight.dtype.is_floating_point:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, Double; but got "
                           f"{weight.type()} instead (while checking arguments for embedding_bag)")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max (embedding_bag: got {mode!r})")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if mode == "max" and by_frequency:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
                                      f"mode='{mode}'). Please open a feature request on GitHub.")
        if per_sample_weights.shape != input.shape:
            raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape "
                             f"as the input ({input.shape})")
        if per_sample_weights.dtype != weight.dtype:
            raise RuntimeError(f"Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but "
                               f"type {weight.type()} does not equal {per_sample_weights.type()} (while checking arguments for embedding_bag)")
    if input.ndim == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, found "
                         f"offsets of type {type(offsets)}")
    if input.ndim == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets is not None and offsets.dtype not in (dt.int32, dt.int64):
        raise RuntimeError("Expected tensor for argument #1 'offsets' to have one of the following scalar types: Long, Int; but got "
                           f"{offsets.type()} instead (while checking arguments for embedding_bag)")
    if input.ndim == 1 and offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if include_last and offsets is not None and not offsets._numel:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if input.ndim not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")


@composite("embedding_bag", method=False, torch="nn.functional.embedding_bag", samples=_bag_samples)
def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Sum, mean or maximum of the rows of each bag: ``input`` ``(B, N)``, or ``(N)`` with the start of each bag in ``offsets`` ``(B)``.

    ``per_sample_weights`` (mode ``"sum"``) scale the rows; the row ``padding_idx`` is left out. Empty bags give zeros.
    """
    if getattr(weight, "dtype", None) is dt.int64 and input.dtype.is_floating_point:
        warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and should now be "
             "`embedding_bag(input, weight, ...)`.")
        input, weight = weight, input
    _check("embedding_bag", input, weight)
    _check_bags(input, weight, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset)
    padding = _padding("embedding_bag", padding_idx, weight.shape[0])
    if max_norm is not None:
        _limit_norms(input, weight, max_norm, norm_type)
    if include_last_offset and offsets is not None and (padding >= 0 or mode == "max"):
        offsets, include_last_offset = offsets[:-1], False      # as in PyTorch: here the last bag ends where the input does
    args = (input, offsets, per_sample_weights, padding, bool(scale_grad_by_freq), mode, bool(include_last_offset))
    return _bags_of_rows(weight, *args, True) if sparse else _bag(weight, *args)


def _bags_of_rows(weight, input, offsets, scales, padding, by_frequency, mode, include_last, sparse=False):
    """``_bag`` of differentiable operators: the rows, scaled, and then reduced."""
    rows = _embedding(weight, input, padding, by_frequency, tuple(weight.shape), sparse)
    if scales is not None:
        rows = rows * scales.unsqueeze(-1)
    keep = None if padding < 0 else (input != padding).unsqueeze(-1)
    return _even_bags(rows, keep, mode) if offsets is None else _ragged_bags(rows, keep, mode, offsets, include_last)


def _bag_numbers(count, offsets, include_last):
    """The number of the bag of each of ``count`` elements."""
    starts = (offsets[:-1] if include_last else offsets).to(dt.int64).contiguous()
    return REGISTRY["searchsorted"].fn(starts, arange(count, device=offsets.device), right=True) - 1


def _bag_gradients(g, weight, input, offsets, scales, padding, by_frequency, mode, include_last, kept, needs):
    """Gradients of ``_bag`` by the table and by the scales."""
    if mode == "max":
        g, at = where(kept < 0, 0.0, g), where(kept < 0, 0, kept).to(dt.int64)
        return g.new_zeros(weight.shape).scatter_add(0, at, g), None
    by_scale = _bags.scale_gradient(g, weight, input, offsets, scales, padding, include_last) if needs[1] else None
    if not needs[0]:
        return None, by_scale
    if by_frequency:
        often = (1.0 / _counts(input, weight.shape[0], weight.dtype)).index_select(0, input.reshape(-1)).reshape(tuple(input.shape))
        scales = often if scales is None else scales * often
    share = kept if mode == "mean" else None
    if _scatter.on_cpu(g._storage.device):
        return _bags.table_gradient(g, weight, input, offsets, scales, share, padding, include_last), by_scale
    g = g if share is None else g * share.unsqueeze(1)           # the gradients of all rows, which are sorted
    rows = g.unsqueeze(1).expand(-1, input.shape[1], -1) if offsets is None else g.index_select(0, _bag_numbers(input._numel, offsets, include_last))
    rows = rows if scales is None else rows * scales.unsqueeze(-1)
    return _table_grad(rows, input, padding, False, tuple(weight.shape), False), by_scale


@kernel("_bag", method=False, repeat=True, outputs=("out", "kept"), public=1, decompose=_bags_of_rows, vjp={
    "weight, scales": lambda g, weight, input, offsets, scales, padding, by_frequency, mode, include_last, kept, needs: _bag_gradients(
        g, weight, input, offsets, scales, padding, by_frequency, mode, include_last, kept, needs)})
def _bag(weight, input, offsets, scales, padding, by_frequency, mode, include_last):
    return _bags.forward(weight, input, offsets, scales, padding, mode, include_last)


_bag.op.grad_name = "EmbeddingBagBackward0"


def _even_bags(rows, keep, mode):
    if mode == "max":
        if keep is None:
            return rows.amax(1) if rows.shape[1] else rows.sum(1)
        best = where(keep, rows, float("-inf")).amax(1)
        return where(best == float("-inf"), 0.0, best)
    total = (rows if keep is None else where(keep, rows, 0.0)).sum(1)
    if mode == "sum":
        return total
    count = rows.shape[1] if keep is None else keep.to(rows.dtype).sum(1).clamp_min(1)
    return total / count


def _ragged_bags(rows, keep, mode, offsets, include_last):
    bags, n = offsets.shape[0] - (1 if include_last else 0), rows.shape[0]
    bag, shape = _bag_numbers(n, offsets, include_last), (bags, rows.shape[1])
    if mode == "max":
        x = rows if keep is None else where(keep, rows, float("-inf"))
        best = rows.new_full(shape, float("-inf")).scatter_reduce(0, bag.unsqueeze(1).expand(tuple(rows.shape)), x, "amax", include_self=True)
        return where(best == float("-inf"), 0.0, best)
    x = rows if keep is None else where(keep, rows, 0.0)
    total = rows.new_zeros(shape).index_add(0, bag, x)
    if mode == "sum":
        return total
    ones = rows.new_ones((n,)) if keep is None else keep.squeeze(-1).to(rows.dtype)
    return total / rows.new_zeros((bags,)).index_add(0, bag, ones).clamp_min(1).unsqueeze(1)
