"""Tools around models: data loading, hooks, counters."""

import importlib


def swap_tensors(t1, t2):
    """Exchange two tensors: what held the one holds the other's values, class and attributes, and the other way round.

    Example::

        >>> a, b = clnn.ones(1), clnn.zeros(2)
        >>> clnn.utils.swap_tensors(a, b)
        >>> a
        tensor([0., 0.])
    """
    from clnn._tensor import handle
    from clnn._tensor.tensor import Tensor
    if t1 is t2:
        return
    for t in (t1, t2):
        if t._all.get("_post_accumulate_hooks"):
            raise RuntimeError("Cannot swap tensors that have post accumulate grad hooks")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    handle.swap(t1, t2)
    for name in ("_storage", "shape", "_strides", "_offset", "dtype", "_numel", "_dense"):
        slot = vars(Tensor)[name]
        first, second = slot.__get__(t1), slot.__get__(t2)
        slot.__set__(t1, second)
        slot.__set__(t2, first)
    for t in (t1, t2):                                      # where gradients of a leaf arrive names the leaf
        arrival = t._all.get("_accumulator")
        arrival = arrival() if arrival is not None else None
        if arrival is not None:
            arrival.variable = t


def __getattr__(name):
    """Submodules load on first use, so that `clnn.utils.data` works after a plain `import clnn`."""
    if not name.startswith("__"):
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
