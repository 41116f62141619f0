"""Views of a known kind: those that follow from the shape and strides of a function's first argument and from numbers are worked out once.

A view costs no launch, only the host's time, and a program makes more of them than of anything else.
"""
from __future__ import annotations

from ..core import native, symbols
from ..core.shape import Size, is_contiguous
from . import foreign, repeat
from .dispatch import plain
from .entries import OpNode
from .grad_mode import state
from .tensor import Tensor, edge, view_of

_MOST = 1 << 12         # kinds of call remembered per function
_NUMBERS = frozenset((int,))
_LISTS = frozenset((tuple, Size))
_OTHER = ()             # in place of a view: what such a call gives is none, or not one that follows from its key


def recalled(known, args):
    """The view that a call with ``args`` gives. Else the key to :func:`note` what it gives under, or None where that does not follow from a key."""
    if foreign.early is not None or symbols.tracing is not None or not repeat.on or not args or args[0].__class__ not in plain:
        return None
    x, *rest = args
    for v in rest:
        if v.__class__ is not int and not (v.__class__ in _LISTS and _NUMBERS.issuperset([n.__class__ for n in v])):
            return None
    tracked = bool(x._rg and state.grad)
    key = (x.shape, x._strides, tracked, *rest)
    found = known.get(key)
    if found is None:
        return key
    if found is _OTHER:
        return None
    shape, strides, further, numel, dense, op, values, label = found
    offset = x._offset + further
    view = view_of(x, shape, strides, offset, numel, offset == 0 and dense)
    if tracked:
        op.attach(op, view, (x, *values))
        if label:
            view._grad_fn.label = label
    return view


native.give(recalled=recalled, foreign=vars(foreign), symbols=vars(symbols))
recalled = native.form("recalled", recalled)


def note(known, key, x, view):
    """Remember that a call with this ``key`` gave this ``view`` of ``x``."""
    if len(known) > _MOST:
        known.clear()
    known[key] = _told(x, view, key[2]) or _OTHER


def _told(x, view, tracked):
    if view.__class__ is not Tensor or view is x or view._storage is not x._storage or view.dtype is not x.dtype:
        return None
    if state.grad is not None and view._base is not (x if x._base is None else x._base):
        return None
    node, dense = view._grad_fn, is_contiguous(view.shape, view._strides)
    told = view.shape, view._strides, view._offset - x._offset, view._numel, dense
    if not tracked:
        return (*told, None, (), "") if node is None else None
    if node.__class__ is not OpNode or node.op.kind != "view" or node.edges[0] != edge(x) or node.versions != [0] * len(node.versions):
        return None
    values = tuple(node.values[1:])
    return (*told, node.op, values, node.__dict__.get("label", "")) if node.values[0] is None and _numbers(values) else None


def _numbers(values):
    """Whether there is no more to a view's attributes than numbers, in tuples or not."""
    return all([v is None or v.__class__ is int or v.__class__ in _LISTS and _numbers(v) for v in values])
