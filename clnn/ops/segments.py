"""Reductions over runs of neighbouring rows: graphs of a batch one after the other, sentences of different lengths."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite
from .._tensor.inplace import type_name
from .._tensor.interop import read
from ..core.shape import wrap_dim
from .creation import full, tensor
from .scattering import index_add, index_reduce
from .selection import where

_REDUCTIONS = {"sum": "sum", "prod": "prod", "mean": "mean", "max": "amax", "amax": "amax", "min": "amin", "amin": "amin"}
_STARTS = dict(sum=0.0, mean=0.0, prod=1.0, amax=-math.inf, amin=math.inf)


def _lengths(data, lengths, offsets, axis, unsafe):
    """The lengths of the runs as an array of the host, checked."""
    given = lengths if offsets is None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if axis != len(given.shape) - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {'lengths' if offsets is None else 'offsets'} but got {axis}.")
    if given.dtype.is_floating_point:
        raise NotImplementedError(f'"_segment_reduce_{"lengths" if offsets is None else "offsets"}_cpu_kernel1" not implemented for '
                                  f"'{type_name(given.dtype)}'")
    counts = read(given.detach())
    counts = counts if offsets is None else np.diff(counts, axis=-1)
    if (counts < 0).any():
        raise RuntimeError("lengths contains negative value!")
    if not unsafe and (counts.sum(-1) != data.shape[axis]).any():
        raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.")
    return counts


def _samples():
    x = np.random.default_rng(3).standard_normal((6, 2))
    return [((x, r), dict(lengths=np.array([2, 3, 1]))) for r in ("sum", "mean", "max", "min", "prod")]


@composite("segment_reduce", method=False, samples=_samples, errors=[((np.ones(3), "sum"), {}, RuntimeError, "Either lengths or offsets must be defined")])
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """The sum, mean, product, maximum or minimum of runs of neighbouring elements along ``axis``.

    Args:
        data: (*B, N, *) floats, with ``axis`` as the dimension of N.
        reduce: ``"sum"``, ``"mean"``, ``"prod"``, ``"max"`` or ``"min"``.
        lengths: (*B, S) integers: the lengths of the S runs, which add up to N.
        offsets: (*B, S + 1) integers in place of ``lengths``: where each run starts, and N.
        initial: what each run starts from; without it a run of no elements gives 0, NaN, 1, -inf and inf.

    Returns:
        (*B, S, *).

    Raises:
        RuntimeError: neither lengths nor offsets, another dimension than their last, negative lengths, or lengths that do not add up to N.

    Example:
        >>> clnn.segment_reduce(clnn.tensor([1., 2., 3.]), "sum", lengths=clnn.tensor([2, 1]))
        tensor([3., 3.])
    """
    how = _REDUCTIONS.get(reduce)
    if how is None:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    axis = wrap_dim(axis, len(data.shape))
    counts = _lengths(data, lengths, offsets, axis, unsafe)
    device, rest = data._storage.device, tuple(data.shape[axis + 1:])
    index = tensor(np.repeat(np.arange(counts.size), counts.ravel()), device=device)
    start = full((counts.size, *rest), _STARTS[how] if initial is None else initial, dtype=data.dtype, device=device)
    rows = data.reshape((math.prod(data.shape[:axis + 1]), *rest))
    if index._numel != len(rows):                                  # ``unsafe``: elements outside of the runs are left out
        begins = np.zeros(counts.shape[:-1], np.int64) if offsets is None else read(offsets.detach())[..., 0]
        places = [k * data.shape[axis] + b + np.arange(n) for k, (b, n) in enumerate(zip(begins.ravel(), counts.sum(-1).ravel()))]
        rows = rows[tensor(np.concatenate(places), device=device)]
    if how in ("sum", "mean"):
        found = index_add(start, 0, index, rows)
    else:
        found = index_reduce(start, 0, index, rows, how)
    if how == "mean":
        number = tensor(counts.reshape(-1, *[1] * len(rest)), dtype=data.dtype, device=device)
        found = found / number if initial is None else where(number > 0, found / number.clamp(min=1), found)
    return found.reshape((*counts.shape, *rest))
