"""Tools around models: data loading, hooks, counters."""

import importlib
import weakref

from .throughput_benchmark import ThroughputBenchmark  # noqa: F401


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
    from clnn._tensor.wrapped import is_wrapped
    if t1 is t2:
        return
    for t in (t1, t2):
        if t._post_accumulate_hooks:
            raise RuntimeError("Cannot swap tensors that have post accumulate grad hooks")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    handle.swap(t1, t2)
    slots = [vars(Tensor)[name] for name in ("_storage", "_shape", "_strides", "_offset", "_dtype", "_numel", "_dense")]
    held = [_taken(t1, slots), _taken(t2, slots)]
    for t, values in zip((t2, t1), held):
        for slot, value in values:
            slot.__set__(t, value)
        if is_wrapped(t):
            t._storage.of = weakref.ref(t)
    for t in (t1, t2):                                      # where gradients of a leaf arrive names the leaf
        arrival = t._accumulator
        arrival = arrival() if arrival is not None else None
        if arrival is not None:
            arrival.variable = t


def _taken(t, slots):
    """The filled ones of ``slots`` with what ``t`` held there: a tensor of a program's own class has no strides."""
    values = []
    for slot in slots:
        try:
            values.append((slot, slot.__get__(t)))
        except AttributeError:
            continue
        slot.__delete__(t)
    return values


def __getattr__(name):
    """Submodules load on first use, so that `clnn.utils.data` works after a plain `import clnn`."""
    if not name.startswith("__"):
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
