"""What a tensor's ``__dict__`` is: a program's own attributes beside the history that the tape keeps there."""
from __future__ import annotations

HISTORY = frozenset(("_rg", "_grad", "_grad_fn", "_out_nr", "_base", "_ver", "_view_version", "_accumulator", "_leaf_hooks", "_post_accumulate_hooks",
                     "_rewritten", "_inference", "_retain", "_views"))
_OWN = HISTORY | {"_is_param", "_is_buffer"}


class Handle:
    """The place for attributes."""

    __slots__ = ("__dict__", "__weakref__")


_place = Handle.__dict__["__dict__"]


def _put(self, attributes):
    """Programs give a tensor the attributes of another by assigning its ``__dict__``: in PyTorch there is no history among them."""
    kept = {k: v for k, v in _place.__get__(self).items() if k in _OWN}
    _place.__set__(self, {**{k: v for k, v in attributes.items() if k not in _OWN}, **kept})


attributes = property(_place.__get__, _put, doc="A program's own attributes, and the history.")


def swap(a, b):
    """Exchange all attributes of two tensors, the history included."""
    first, second = _place.__get__(a), _place.__get__(b)
    _place.__set__(a, second)
    _place.__set__(b, first)
