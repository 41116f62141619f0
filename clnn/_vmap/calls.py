"""Functions and operators of a program's own on batched tensors: by their own rule, as they are, or sample by sample."""
from __future__ import annotations

from collections import namedtuple

from .._tensor.tensor import Tensor
from ..utils._pytree import broadcast_prefix, tree_flatten, tree_unflatten
from .batched import NotBatched, spread
from .forms import sample_by_sample, samples_of

VmapInfo = namedtuple("VmapInfo", "batch_size randomness")
VmapInfo.__doc__ = "What a rule for ``vmap`` learns of the map: the number of samples, and what becomes of random numbers."


def as_they_are(plain, args, kwargs):
    """``plain(*args, **kwargs)`` with batched tensors; sample by sample where it asks for their memory."""
    samples = samples_of((*args, *kwargs.values()))
    level = [(samples.level, samples.size, samples.randomness)]
    try:
        return plain(*[spread(a, level) if isinstance(a, Tensor) and a._rg else a for a in args], **kwargs)
    except NotBatched:
        return sample_by_sample(plain, *args, **kwargs)


def by_rule(rule, args, kwargs):
    """What ``rule(info, in_dims, *args)`` gives, which computes all samples and tells along which dimensions they lie."""
    samples = samples_of((*args, *kwargs.values()))
    parts, spec = tree_flatten(list(args))
    dims = [0 if samples.has(p) else None for p in parts]
    got = rule(VmapInfo(samples.size, samples.randomness), tuple(_tops(tree_unflatten(dims, spec))),
                            *tree_unflatten([samples.of(p) for p in parts], spec), **kwargs)
    if not (isinstance(got, tuple) and len(got) == 2):
        raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output. Got a "
                           f"{type(got)} instead")
    result, out_dims = got
    flat, out_spec = tree_flatten(result)
    places = broadcast_prefix(out_dims, out_spec)
    if places is None or out_spec.is_leaf() and isinstance(out_dims, (tuple, list)):
        raise RuntimeError("The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected out_dims="
                           f"{out_dims} to be compatible with the structure of `output`. out_dims has structure {tree_flatten(out_dims)[1]} but output has "
                           f"structure {out_spec}.")
    return tree_unflatten([t if place is None or not isinstance(t, Tensor) else samples.wrapped(t.movedim(place, 0)) for t, place in zip(flat, places)],
                          out_spec)


def _tops(in_dims):
    """Per argument its dimension; for one that is a list without tensors, None."""
    return [None if isinstance(d, (list, tuple, dict)) and all(v is None for v in tree_flatten(d)[0]) else d for d in in_dims]
