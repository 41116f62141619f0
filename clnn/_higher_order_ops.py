"""Control flow as functions: a branch, a loop, scans and maps whose bodies are Python functions of tensors.

PyTorch's compiler turns them into one graph; here they run as the loops that they stand for, so gradients pass through them.
"""
from __future__ import annotations

import sys
import types

from ._function_forms import cond  # noqa: F401
from ._private import while_loop  # noqa: F401
from .utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten


def _length(leaves, dim, name):
    if not leaves:
        raise RuntimeError(f"{name}() operator requires xs to have at least one leaf")
    for t in leaves:
        if not -t.dim() <= dim < t.dim():
            raise RuntimeError(f"{name}(): dim {dim} is out of range for a leaf of shape {list(t.shape)}")
    if len({t.shape[dim] for t in leaves}) > 1:
        raise RuntimeError(f"{name}(): all leaves of xs must have the same size along dim {dim}, got {[list(t.shape) for t in leaves]}")
    return leaves[0].shape[dim]


def _stacked(results, dim, empty):
    """Trees of equal form, one per step, as one tree whose leaves have the steps along ``dim``."""
    import clnn
    if not results:
        return empty
    rows = [tree_flatten(r) for r in results]
    if any(spec != rows[0][1] for _, spec in rows):
        raise RuntimeError("the function must return trees of the same form in each step")
    return tree_unflatten([clnn.stack(list(column), dim) for column in zip(*(leaves for leaves, _ in rows))], rows[0][1])


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """``carry, y = combine_fn(carry, x)`` for every slice ``x`` of ``xs`` along ``dim``, from the last to the first with ``reverse``.

    Args:
        combine_fn: a function of the carry and one slice that returns the next carry and one result.
        init: the first carry; ``init``, ``xs`` and the results may be trees of tensors.

    Returns:
        (last carry, results with the steps along ``dim``).

    Example::

        >>> from clnn._higher_order_ops import scan
        >>> scan(lambda c, x: (c + x, c * x), clnn.tensor(0), clnn.arange(1, 5))
        (tensor(10), tensor([ 0,  2,  9, 24]))
    """
    if not callable(combine_fn):
        raise RuntimeError("Combine_fn must be a callable, but got something else")
    steps = _length(tree_leaves(xs), dim, "scan")
    carry, results, form = init, [], tree_flatten(init)[1]
    for i in reversed(range(steps)) if reverse else range(steps):
        carry, y = combine_fn(carry, tree_map(lambda t: t.select(dim, i), xs))
        if tree_flatten(carry)[1] != form:
            raise RuntimeError("scan(): combine_fn must return a carry of the form of init")
        results.append(y)
    return carry, _stacked(results[::-1] if reverse else results, dim, xs)


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """All running combinations along ``dim`` of an associative function: with addition, the cumulative sum.

    It needs about ``log2`` as many rounds as there are slices, each a single call for many pairs, so ``combine_fn`` must work on any number of slices
    at once, as elementwise functions do. ``combine_mode`` is accepted: both of PyTorch's modes give the same.

    Example::

        >>> from clnn._higher_order_ops import associative_scan
        >>> associative_scan(lambda a, b: a * b, clnn.arange(1, 6), 0)
        tensor([  1,   2,   6,  24, 120])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    steps = _length(tree_leaves(xs), dim, "associative_scan")
    step = 1
    if reverse:
        xs = tree_map(lambda t: t.flip(dim), xs)
    while step < steps:                                             # each element takes in the one ``step`` places before
        import clnn
        joined = combine_fn(tree_map(lambda t: t.narrow(dim, 0, steps - step), xs), tree_map(lambda t: t.narrow(dim, step, steps - step), xs))
        xs = tree_map(lambda t, j: clnn.cat([t.narrow(dim, 0, step), j], dim), xs, joined)
        step *= 2
    return tree_map(lambda t: t.flip(dim), xs) if reverse else xs


def map(f, xs, *args):                                              # noqa: A001
    """``f(x, *args)`` for every slice ``x`` of ``xs`` along the first dimension; the results are stacked along a new first one.

    Example::

        >>> from clnn._higher_order_ops import map
        >>> map(lambda x, y: x ** y, clnn.arange(4), clnn.tensor(2))
        tensor([0, 1, 4, 9])
    """
    steps = _length(tree_leaves(xs), 0, "map")
    if not steps:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    return _stacked([f(tree_map(lambda t: t[i], xs), *args) for i in range(steps)], 0, xs)


def foreach_map(op, *operands, **kwargs):
    """``op`` for every element of lists of tensors; operands that are no lists are the same for all.

    Example::

        >>> from clnn._higher_order_ops import foreach_map
        >>> foreach_map(lambda x, y: x + y, [clnn.ones(2), clnn.zeros(1)], 3)
        [tensor([4., 4.]), tensor([3.])]
    """
    lists = [o for o in operands if isinstance(o, (list, tuple))]
    if len({len(o) for o in lists}) != 1:
        raise RuntimeError("foreach_map() needs at least one list, and lists of the same length")
    return [op(*(o[i] if isinstance(o, (list, tuple)) else o for o in operands), **kwargs) for i in range(len(lists[0]))]


class _Place(types.ModuleType):
    """The submodule that a function lies in: an import of it hides the function behind it, so it can be called, too."""

    def __call__(self, *args, **kwargs):
        return vars(self)[self.__name__.rpartition(".")[2]](*args, **kwargs)


__path__ = []           # programs import from the submodules
for _fn in (associative_scan, cond, foreach_map, map, scan, while_loop):
    _place = sys.modules[f"{__name__}.{_fn.__name__}"] = _Place(f"{__name__}.{_fn.__name__}", _fn.__doc__)
    setattr(_place, _fn.__name__, _fn)
