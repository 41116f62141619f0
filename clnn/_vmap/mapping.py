"""``vmap``: a function of one sample applied to a batch of them."""
from __future__ import annotations

import functools

import clnn
from clnn._tensor.tensor import Tensor
from clnn.core import rng
from clnn.utils._pytree import broadcast_prefix, tree_flatten, tree_unflatten

from . import levels
from .batched import NotBatched, Refused, stripped, wrap


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that applies ``func`` to every slice of its arguments and stacks the results.

    ``func`` runs once, on tensors that stand for one sample and hold all of them: each operator computes all samples at once. Gradients flow through it.

    Args:
        func: takes and gives tensors in nested structures; keyword arguments are shared by all samples.
        in_dims: the dimension to map over, per argument (an int, None for arguments that every sample shares, or a nested structure of these).
        out_dims: where the mapped dimension goes in each output.
        randomness: ``"error"`` (random operators raise), ``"different"`` (each sample draws its own) or ``"same"``.
        chunk_size: at most so many samples at once, which takes less memory; None for all.

    Raises:
        ValueError: no argument is mapped, sizes differ, or a dimension does not exist.
        RuntimeError: a random operator with ``randomness="error"``, or ``func`` asks a sample for a number (``item()``, ``if``).

    Example::

        >>> clnn.vmap(clnn.dot)(clnn.ones(3, 2), clnn.ones(3, 2))
        tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        leaves, spec = tree_flatten(args)
        dims, size = _in_dims(args, leaves, spec, in_dims)
        at_once = size if chunk_size is None else chunk_size
        parts, spec_out, places = [], None, None
        for start in range(0, size, at_once) if size else (0,):
            piece = [t if d is None or at_once >= size else t.narrow(d, start, min(at_once, size - start)) for t, d in zip(leaves, dims)]
            results, spec_out = _mapped(func, piece, dims, min(at_once, size - start), spec, kwargs, randomness)
            places = _out_dims(out_dims, spec_out)
            parts.append([_placed(r, place) for r, place in zip(results, places)])
        joined = parts[0] if len(parts) == 1 else [c[0] if place is None else clnn.cat(c, place) for c, place in zip(zip(*parts), places)]
        return tree_unflatten(joined, spec_out)
    return wrapper


def _mapped(func, leaves, dims, size, spec, kwargs, randomness):
    """(results with the samples first, their structure). A result is a pair: the tensor, and whether its samples may differ."""
    stream, before, counted = rng.default, levels.position(), levels.drawn()
    with levels.entered(size, randomness) as number:
        args = tree_unflatten([t if d is None else wrap(t.movedim(d, 0), number) for t, d in zip(leaves, dims)], spec)
        try:
            flat, spec_out = tree_flatten(func(*args, **kwargs))
            results = [_result(t, number, size) for t in flat]
        except NotBatched as refused:
            if isinstance(refused, Refused) or not size:
                raise
            results = None                                      # something that has no batched form, outside of any operator
    moved = levels.position() != before
    if moved and randomness == "error":
        raise RuntimeError(levels.RANDOM)
    alike = (stream.offset - before[1]) - (levels.drawn() - counted)            # numbers that were drawn once for all samples
    if results is None or moved and randomness == "different" and alike:
        stream.key, stream.offset = before
        return _one_by_one(func, leaves, dims, size, spec, kwargs, randomness)
    return results, spec_out


def _result(t, number, size):
    if not isinstance(t, Tensor):
        raise ValueError(f"vmap: the function must only return Tensors, got type {type(t).__name__}")
    differs = getattr(t, "level", None) == number
    return stripped(t, number, size), differs


def _placed(result, place):
    t, differs = result
    if place is not None:
        return t.movedim(0, place)
    if differs:
        raise ValueError("vmap: `out_dims` is None for an output that differs between the samples; give it a dimension")
    return t[0]


def _one_by_one(func, leaves, dims, size, spec, kwargs, randomness):
    """What :func:`_mapped` gives, from one call per sample."""
    columns, results = [[t] * size if d is None else t.unbind(d) for t, d in zip(leaves, dims)], []
    stream = rng.default
    for i in range(size):
        before = levels.position()
        results.append(func(*tree_unflatten([c[i] for c in columns], spec), **kwargs))
        if randomness == "same" and i < size - 1:
            stream.key, stream.offset = before
    spec_out = tree_flatten(results[0])[1]
    return [(clnn.stack(list(column)), False) for column in zip(*[tree_flatten(r)[0] for r in results])], spec_out


def _out_dims(out_dims, spec):
    places = broadcast_prefix(out_dims, spec)
    if places is None:
        raise ValueError(f"vmap: out_dims={out_dims} does not have the structure of the output")
    return places


def _in_dims(args, leaves, spec, in_dims):
    """(dimension or None per leaf, batch size)."""
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(f"vmap: in_dims is an int or a tuple with one entry per argument, got {type(in_dims).__name__}")
    dims = broadcast_prefix(tuple(in_dims) if isinstance(in_dims, list) else in_dims, spec)
    if dims is None:
        raise ValueError(f"vmap: in_dims={in_dims} does not have the structure of the {len(args)} arguments")
    size = None
    for t, (n, d) in zip(leaves, enumerate(dims)):
        if d is None:
            continue
        if isinstance(d, bool) or not isinstance(d, int):
            raise ValueError(f"vmap: in_dims holds ints and None, got {d!r}")
        if not isinstance(t, Tensor):
            if isinstance(in_dims, int) and len(leaves) > 1:
                dims[n] = None
                continue
            raise ValueError(f"vmap: in_dims says {d} for an argument that is no tensor but {type(t).__name__}; use None for it")
        if not -t.ndim <= d < t.ndim:
            raise ValueError(f"vmap: in_dims says {d} for an argument with {t.ndim} dimensions")
        if size is not None and t.shape[d] != size:
            raise ValueError(f"vmap: the arguments have different sizes in the mapped dimension: {size} and {t.shape[d]}")
        size = t.shape[d]
    if size is None:
        raise ValueError("vmap: no argument is mapped; in_dims is None for all of them")
    return dims, size
