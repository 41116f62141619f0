"""``vmap``: a function of one sample applied to a batch of them."""
from __future__ import annotations

import functools

import clnn
from clnn._tensor.tensor import Tensor
from clnn.utils._pytree import broadcast_prefix, tree_flatten, tree_unflatten

__all__ = ["vmap"]


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that applies ``func`` to every slice of its arguments and stacks the results.

    The slices are taken one after the other: the result is that of a vectorised map, and gradients flow through it, but each sample
    costs a call. Write the batch into ``func`` where speed matters.

    Args:
        func: takes and gives tensors in nested structures; keyword arguments are shared by all samples.
        in_dims: the dimension to map over, per argument (an int, None for arguments that every sample shares, or a nested structure of these).
        out_dims: where the mapped dimension goes in each output.
        randomness: ``"error"`` (random operators raise), ``"different"`` (each sample draws its own) or ``"same"``.
        chunk_size: accepted.

    Raises:
        ValueError: no argument is mapped, sizes differ, or a dimension does not exist.
        RuntimeError: a random operator with ``randomness="error"``.

    Example::

        >>> clnn.vmap(clnn.dot)(clnn.ones(3, 2), clnn.ones(3, 2))
        tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"vmap: randomness is 'error', 'different' or 'same', got {randomness!r}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        leaves, spec = tree_flatten(args)
        dims, size = _in_dims(args, leaves, spec, in_dims)
        columns = [_slices(t, d, size) for t, d in zip(leaves, dims)]
        results = []
        for i in _samples(size, randomness):
            results.append(func(*tree_unflatten([c[i] for c in columns], spec), **kwargs))
        return _stacked(results, out_dims)
    return wrapper


def _samples(size, randomness):
    """The sample numbers, with the random stream kept as ``randomness`` says."""
    stream = clnn.random.default_generator
    for i in range(size):
        before = stream.key, stream.offset
        yield i
        drew = (stream.key, stream.offset) != before
        if drew and randomness == "error":
            raise RuntimeError("vmap: a random operator was called; say randomness='different' (each sample draws its own numbers) or 'same'")
        if drew and randomness == "same" and i < size - 1:
            stream.key, stream.offset = before


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


def _slices(value, dim, size):
    return [value] * size if dim is None else value.unbind(dim)


def _stacked(results, out_dims):
    if not results:
        raise ValueError("vmap: the mapped dimension has size 0")
    spec = tree_flatten(results[0])[1]
    places = broadcast_prefix(out_dims, spec)
    if places is None:
        raise ValueError(f"vmap: out_dims={out_dims} does not have the structure of the output")
    out = []
    for column, place in zip(zip(*[tree_flatten(r)[0] for r in results]), places):
        if not isinstance(column[0], Tensor):
            raise ValueError(f"vmap: the function returns tensors, got {type(column[0]).__name__}")
        out.append(column[0] if place is None else clnn.stack(column, place))
    return tree_unflatten(out, spec)
