"""``vmap``: a function of one sample applied to a batch of them."""
from __future__ import annotations

import functools

import clnn
from clnn._tensor.tensor import Tensor
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
        _check_out_dims(func, out_dims)
        leaves, spec = tree_flatten(args)
        dims, size = _in_dims(func, leaves, spec, in_dims)
        at_once = size if chunk_size is None else chunk_size
        parts, spec_out, places = [], None, None
        for start in range(0, size, at_once) if size else (0,):
            piece = [t if d is None or at_once >= size else t.narrow(d, start, min(at_once, size - start)) for t, d in zip(leaves, dims)]
            results, spec_out = _mapped(func, piece, dims, min(at_once, size - start), spec, kwargs, randomness)
            places = _out_dims(func, out_dims, spec_out)
            parts.append([_placed(r, place, func) for r, place in zip(results, places)])
        joined = parts[0] if len(parts) == 1 else [c[0] if place is None else clnn.cat(c, place) for c, place in zip(zip(*parts), places)]
        return tree_unflatten(joined, spec_out)
    return wrapper


def _mapped(func, leaves, dims, size, spec, kwargs, randomness):
    """(results with the samples first, their structure). A result is a pair: the tensor, and whether its samples may differ."""
    start, before, due = levels.mark(), levels.position(), levels.here.due
    with levels.entered(size, randomness) as number:
        args = tree_unflatten([t if d is None else wrap(t.movedim(d, 0) if d else t, number) for t, d in zip(leaves, dims)], spec)
        try:
            flat, spec_out = tree_flatten(func(*args, **kwargs))
            results = [_result(t, number, size, func) for t in flat]
        except NotBatched as refused:
            if isinstance(refused, Refused) or not size:
                raise
            results = None                                      # something that has no batched form, outside of any operator
    now = levels.position()
    moved = now != before
    if moved and randomness == "error":
        raise RuntimeError(levels.RANDOM)
    alike = [n - d for n, d in zip(now, levels.here.due)] != [n - d for n, d in zip(before, due)]       # numbers that were drawn once for all samples
    if results is None or moved and randomness == "different" and alike:
        levels.back(start)
        return _one_by_one(func, leaves, dims, size, spec, kwargs, randomness)
    return results, spec_out


def _result(t, number, size, func):
    if not isinstance(t, Tensor):
        raise ValueError(f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(t)}. Did you mean to set out_dims= to None for output?")
    differs = getattr(t, "level", None) == number
    return stripped(t, number, size), differs


def _placed(result, place, func):
    t, differs = result
    if place is not None:
        return t if place in (0, -t.ndim) else t.movedim(0, place)          # the tape has no step for what stays
    if differs:
        raise ValueError(f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None")
    return t[0]


def _one_by_one(func, leaves, dims, size, spec, kwargs, randomness):
    """What :func:`_mapped` gives, from one call per sample."""
    columns, results = [[t] * size if d is None else t.unbind(d) for t, d in zip(leaves, dims)], []
    for i in range(size):
        before, start = levels.position(), levels.mark()
        results.append(func(*tree_unflatten([c[i] for c in columns], spec), **kwargs))
        if randomness == "error" and levels.position() != before:
            raise RuntimeError(levels.RANDOM)
        if randomness == "same" and i < size - 1:
            levels.back(start)
    spec_out = tree_flatten(results[0])[1]
    return [(clnn.stack(list(column)), False) for column in zip(*[tree_flatten(r)[0] for r in results])], spec_out


def _check_out_dims(func, out_dims):
    if not isinstance(out_dims, int) and not all(d is None or isinstance(d, int) for d in tree_flatten(out_dims)[0]):
        raise ValueError(f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing where in the "
                         "outputs the vmapped dimension should appear.")


def _out_dims(func, out_dims, spec):
    places = broadcast_prefix(out_dims, spec)
    if places is None or spec.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) != 1:
        raise ValueError(f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
                         f"structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}.")
    return places


def _name(func):
    return getattr(func, "__name__", None) or (f"functools.partial({_name(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func))


def _in_dims(func, leaves, spec, in_dims):
    """(dimension or None per leaf, batch size)."""
    def refuse(text):
        return ValueError(f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): {text}")
    if not isinstance(in_dims, (int, tuple)):
        raise refuse(f"expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}.")
    if not leaves:
        raise ValueError(f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no "
                         "inputs. The latter is unsupported.")
    dims = broadcast_prefix(in_dims, spec)
    if dims is None:
        raise refuse(f"in_dims is not compatible with the structure of `inputs`. in_dims has structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}.")
    for n, (t, d) in enumerate(zip(leaves, dims)):
        if d is None:
            continue
        if isinstance(d, bool) or not isinstance(d, int):
            raise refuse(f"Got in_dim={d} for an input but in_dim must be either an integer dimension or None.")
        if not isinstance(t, Tensor):
            if isinstance(in_dims, int) and any(isinstance(other, Tensor) for other in leaves):
                dims[n] = None
                continue
            raise refuse(f"Got in_dim={d} for an input but the input is of type {type(t)}. We cannot vmap over non-Tensor arguments, please use None as the "
                         "respective in_dim")
        if not -t.ndim <= d < t.ndim:
            raise refuse(f"Got in_dim={d} for some input, but that input is a Tensor of dimensionality {t.ndim} so expected in_dim to satisfy "
                         f"-{t.ndim} <= in_dim < {t.ndim}.")
    sizes = [t.shape[d] for t, d in zip(leaves, dims) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return dims, sizes[0]
