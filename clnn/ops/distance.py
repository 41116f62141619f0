"""Distances and similarities between vectors."""
from __future__ import annotations

import functools

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import kind_of, run
from .._tensor.inplace import type_name
from .._tensor.repeat import repeated
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.shape import broadcast_shapes
from .joining import broadcast_tensors
from .selection import where

_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _two(seed=0, shape=(4, 5)):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, shape), rng.normal(0, 1, shape)


@composite("pairwise_distance", repeat="ready small", splice=True, complex=True, method=False, torch="nn.functional.pairwise_distance", samples=lambda: [
    ((*_two(),), {}), ((*_two(), 1.0), {"keepdim": True})])
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """``|x1 - x2 + eps|_p`` over the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


@composite("cosine_similarity", repeat="whole", splice=True, method=False, torch="nn.functional.cosine_similarity", samples=lambda: [
    ((*_two(),), {}), ((*_two(), 0), {}), ((_two()[0], _two(1, (4, 1))[0]), {})])
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))`` along ``dim``, after broadcasting."""
    common = dt.result_type(*[(t.dtype, kind_of(t) % 3) for t in (x1, x2)])
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {type_name(common)}")
    if x1.shape != x2.shape:
        x1, x2 = broadcast_tensors(x1, x2)
    n1, n2 = (_at_least(x.to(common).norm(2, dim, keepdim=True), eps) for x in (x1, x2))
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def _at_least(norm, eps):
    """``max(norm, eps)`` with the gradient of ``norm`` everywhere, as PyTorch has it."""
    return norm + (norm.detach().clamp_min(eps) - norm.detach())


# -- all pairs of rows -----------------------------------------------------------------------------------------------------------------
DIRECT = 1 << 23            # differences up to which they take less time than a matrix product and what belongs to it,
NARROW = 32                 # and columns up to which they do for any number of rows


def _power(p):
    return p if p in (1, 2) else "any"


def _grid(device, dtype, rows, batch):
    """(lanes, rows per work-item)."""
    most = 8 if dtype.acc == "double" else 16
    return (most, max(1, min(64, -(-rows * batch // (4 * device.compute_units))))) if device.is_cpu else (1, 1)


def _launch_pairs(x1, x2, p, shape, triangle):
    """kernels/distance/pairs on contiguous (B, P, M) and (B, R, M)."""
    device, (batch, rows, m), others = x1._storage.device, x1.shape, x2.shape[1]
    out = empty(shape, x1.dtype, device)
    if not out._numel:
        return out
    lanes, chunk = _grid(device, x1.dtype, rows, batch)
    lanes = min(lanes, 1 << others.bit_length() - 1)
    params = dict(T=x1.dtype, P=_power(p), TRIANGLE=triangle, FORM="rows" if device.is_cpu else "item", W=lanes, COLUMNS=1 if others < 2 * lanes or lanes < 4 else 2)
    gs, ls = ((-(-rows // chunk), batch), (1, 1)) if device.is_cpu else ((others, batch * rows), (64 if others >= 64 else 16, 1))
    params["COLUMNS"] = params["COLUMNS"] if device.is_cpu else 1
    run(device, "distance/pairs", params, gs, ls, x1.contiguous(), x2.transpose(1, 2).contiguous(), out, rows, others, m, chunk, x1.dtype.number(p))
    return out


def _launch_gradient(w, x1, x2, p, triangle):
    """kernels/distance/pairs_backward: the gradient by ``x1``."""
    device, (batch, rows, m), others = x1._storage.device, x1.shape, x2.shape[1]
    out = empty(x1.shape, x1.dtype, device)
    if not out._numel or not others:
        return x1 * 0
    lanes, chunk = _grid(device, x1.dtype, rows, batch)
    items = -(-rows // chunk)
    line = empty((items * others if triangle else 1,), x1.dtype.acc_dtype, device)
    run(device, "distance/pairs_backward", dict(T=x1.dtype, P=_power(p), TRIANGLE=triangle, W=lanes), (items, batch), (1, 1),
        w.to(x1.dtype.acc_dtype).contiguous(), x1.contiguous(), x2.transpose(1, 2).contiguous(), out, line, rows, others, m, chunk, x1.dtype.number(p))
    return out


@functools.partial(repeated, mode="whole")
def _pairs_gradient(g, x1, x2, result, p, second, triangle):
    """The gradient by ``x1``, or by ``x2`` if ``second``."""
    w = g if p == 1 else where(result == 0, 0.0, g / (result if p == 2 else result ** (p - 1)))
    return _launch_gradient(w.transpose(1, 2), x2, x1, p, triangle) if second else _launch_gradient(w, x1, x2, p, triangle)


@kernel("_distances", method=False, repeat=True, decompose=lambda x1, x2, p: (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1), vjp=dict(
    x1=lambda g, x1, x2, p, result: _pairs_gradient(g, x1, x2, result, p, False, False),
    x2=lambda g, x1, x2, p, result: _pairs_gradient(g, x1, x2, result, p, True, False)))
def _distances(x1, x2, p):
    """p-norm distances between the rows of ``x1`` ``(B, P, M)`` and ``x2`` ``(B, R, M)``."""
    return _launch_pairs(x1, x2, p, (*x1.shape[:2], x2.shape[1]), False)


@kernel("_greatest", method=False, vjp=dict(input=lambda g, input, result: g.unsqueeze(-1) * where(input.abs() == result.unsqueeze(-1), input.sign(), 0.0)))
def _greatest(input):
    """The greatest magnitude in each row; all that have it get the whole gradient, as in PyTorch's distances, not a share of it."""
    return input.abs().amax(-1)


def _norms(differences, p):
    return _greatest(differences) if p == float("inf") and differences.shape[-1] else differences.norm(p, -1)


def _all_pairs(input, p):
    rows, columns = np.triu_indices(input.shape[0], 1)
    from .creation import tensor
    i, j = (tensor(v, device=input.device) for v in (rows, columns))
    return _norms(input.index_select(0, i) - input.index_select(0, j), p)


@kernel("_pair_distances", method=False, repeat=True, decompose=_all_pairs, vjp=dict(
    input=lambda g, input, p, result: _pairs_gradient(g, *[input.unsqueeze(0)] * 2, result, p, False, True).squeeze(0)))
def _pair_distances(input, p):
    """p-norm distances between all pairs of rows i < j."""
    n = input.shape[0]
    return _launch_pairs(input.unsqueeze(0), input.unsqueeze(0), p, (n * (n - 1) // 2,), True)


_distances.op.grad_name, _pair_distances.op.grad_name = "CdistBackward0", "PdistBackward0"


def _fits(p, *tensors):
    """Whether the kernels above do this norm of these tensors."""
    return 0 < p < float("inf") and all(t._numel and t.dtype is tensors[0].dtype and t.dtype.is_floating_point for t in tensors)


@composite("cdist", splice=True, repeat=True, method=False, samples=lambda: [((_two(0, (3, 5))[0], _two(1)[0]), {"p": p}) for p in (2.0, 1.0, 3.0)])
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """p-norm distances between all rows of ``x1`` ``(*, P, M)`` and ``x2`` ``(*, R, M)``: ``(*, P, R)``.

    With ``p=2`` and more than 25 rows (or ``compute_mode='use_mm_for_euclid_dist'``) they come from one matrix product, which loses digits of
    distances that are small beside the norms; ``'donot_use_mm_for_euclid_dist'`` takes differences always.
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {type_name(x.dtype)}")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {type_name(x1.dtype)} but found {type_name(x2.dtype)} (cdist)")
    if x1.ndim < 2 or x2.ndim < 2:
        raise RuntimeError(f"cdist only supports at least 2D tensors, X1 got: {x1.ndim}D, X2 got: {x2.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    direct = _fits(p, x1, x2)
    few = direct and (x1._numel * x2.shape[-2] <= DIRECT or x1.shape[-1] <= NARROW) and x1.device.type == "cpu"
    if p == 2 and (compute_mode == _MODES[1] or compute_mode == _MODES[0] and max(x1.shape[-2], x2.shape[-2]) > 25 and not few):
        squares = (x1 * x1).sum(-1, keepdim=True) + (x2 * x2).sum(-1).unsqueeze(-2) - 2 * (x1 @ x2.transpose(-2, -1))
        return _root(squares.clamp_min(0))
    if not direct:
        return _norms(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)
    try:
        lead = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    except ValueError as exc:
        raise RuntimeError(str(exc)) from None
    a, b = (t.expand(*lead, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (x1, x2))
    return _distances(a, b, p).reshape(*lead, x1.shape[-2], x2.shape[-2])


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
    return _pair_distances(input, p) if _fits(p, input) else _all_pairs(input, p)
