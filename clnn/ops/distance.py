"""Distances and similarities between vectors."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite
from .._tensor.dispatch import kind_of
from ..core import dtype as dt
from .joining import broadcast_tensors
from .selection import where

_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _two(seed=0, shape=(4, 5)):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, shape), rng.normal(0, 1, shape)


@composite("pairwise_distance", complex=True, method=False, torch="nn.functional.pairwise_distance", samples=lambda: [
    ((*_two(),), {}), ((*_two(), 1.0), {"keepdim": True})])
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """``|x1 - x2 + eps|_p`` over the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


@composite("cosine_similarity", repeat="whole", method=False, torch="nn.functional.cosine_similarity", samples=lambda: [((*_two(),), {}), ((*_two(), 0), {}), (
    (_two()[0], _two(1, (4, 1))[0]), {})])
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))`` along ``dim``, after broadcasting."""
    common = dt.result_type(*[(t.dtype, kind_of(t) % 3) for t in (x1, x2)])
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common}")
    if x1.shape != x2.shape:
        x1, x2 = broadcast_tensors(x1, x2)
    n1, n2 = (_at_least(x.to(common).norm(2, dim, keepdim=True), eps) for x in (x1, x2))
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def _at_least(norm, eps):
    """``max(norm, eps)`` with the gradient of ``norm`` everywhere, as PyTorch has it."""
    return norm + (norm.detach().clamp_min(eps) - norm.detach())


@composite("cdist", repeat=True, method=False, samples=lambda: [((_two(0, (3, 5))[0], _two(1)[0]), {"p": p}) for p in (2.0, 1.0, 3.0)])
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """p-norm distances between all rows of ``x1`` ``(*, P, M)`` and ``x2`` ``(*, R, M)``: ``(*, P, R)``.

    With ``p=2`` and more than 25 rows (or ``compute_mode='use_mm_for_euclid_dist'``) they come from one matrix product, which loses digits of
    distances that are small beside the norms; ``'donot_use_mm_for_euclid_dist'`` takes differences always.
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if x1.ndim < 2 or x2.ndim < 2:
        raise RuntimeError(f"cdist only supports at least 2D tensors, X1 got: {x1.ndim}D, X2 got: {x2.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if p == 2 and (compute_mode == _MODES[1] or compute_mode == _MODES[0] and max(x1.shape[-2], x2.shape[-2]) > 25):
        squares = (x1 * x1).sum(-1, keepdim=True) + (x2 * x2).sum(-1).unsqueeze(-2) - 2 * (x1 @ x2.transpose(-2, -1))
        return _root(squares.clamp_min(0))
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)


def _root(squares):
    """Square root whose gradient at 0 is 0."""
    zero = squares.detach() == 0
    return where(zero, 0.0, where(zero, 1.0, squares).sqrt())


@composite("pdist", method=False, samples=lambda: [((np.random.default_rng(0).normal(0, 1, (4, 5)),), {})])
def pdist(input, p=2.0):
    """p-norm distances between all pairs of rows i < j of ``input`` ``(N, M)``: ``N (N - 1) / 2`` numbers."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    rows, columns = np.triu_indices(input.shape[0], 1)
    from .creation import tensor
    i, j = (tensor(v, device=input.device) for v in (rows, columns))
    return (input.index_select(0, i) - input.index_select(0, j)).norm(p, -1)
