"""What a tensor's ``__dict__`` is: a program's own attributes beside the history that the tape keeps there."""
from __future__ import annotations

from collections.abc import MutableMapping

from ..core import native
from ..core.config import config

# What most tensors never have set, and what it is until then. ``_origin``: how a view came to be that may not be written while gradients are recorded (see
# views.refuse); ``_views``: views from before a tensor had a history; ``_rewritten``: the version at which a write gave it the history it has.
RARE = {"_rg": False, "_grad": None, "_grad_fn": None, "_out_nr": 0, "_base": None, "_ver": None, "_view_version": 0, "_origin": None, "_views": None,
        "_rewritten": -1, "_accumulator": None, "_post_accumulate_hooks": None, "_leaf_hooks": None}
HISTORY = frozenset((*RARE, "_inference", "_retain", "_grad_dtype"))
RESERVED = HISTORY | {"_is_param", "_is_buffer"}


class Kind(type):
    """The class of tensors' classes."""

    def __new__(kind, name, bases, namespace, **kwargs):
        if len(bases) > 1:                          # a class beside Tensor would show all
            namespace.setdefault("__dict__", attributes)
        return super().__new__(kind, name, bases, namespace, **kwargs)

    def __repr__(cls):
        package, dot, rest = cls.__module__.partition(".")
        return f"<class '{config.spoken if package == 'clnn' else package}{dot}{rest}.{cls.__qualname__}'>"

    def __setattr__(cls, name, value):
        super().__setattr__(name, value)
        if name == "__torch_function__":            # a protocol that a class gets later
            cls._takes_over()


class Handle(metaclass=Kind):
    """The place for attributes."""

    __slots__ = ("__dict__", "__weakref__")


_place = Handle._all = Handle.__dict__["__dict__"]


class _Attributes(dict):
    """A program's attributes of a tensor that has a history too: without it, and what is changed here is changed there."""

    __slots__ = ("of",)

    def __init__(self, of):
        super().__init__((k, v) for k, v in of.items() if k not in HISTORY)
        self.of = of

    def __reduce_ex__(self, protocol):
        return dict, (dict(self),)

    def __delitem__(self, name):
        super().__delitem__(name)
        del self.of[name]

    def __setitem__(self, name, value):
        if name not in HISTORY:
            super().__setitem__(name, value)
            self.of[name] = value

    def __ior__(self, other):
        self.update(other)
        return self

    def pop(self, name, *default):
        if name in self:
            del self.of[name]
        return super().pop(name, *default)

    setdefault, update, popitem, clear = MutableMapping.setdefault, MutableMapping.update, MutableMapping.popitem, MutableMapping.clear


def _put(self, attributes):
    """Programs give a tensor the attributes of another by assigning its ``__dict__``: in PyTorch there is no history among them."""
    kept = {k: v for k, v in _place.__get__(self).items() if k in RESERVED}
    _place.__set__(self, {**{k: v for k, v in attributes.items() if k not in RESERVED}, **kept})


def _get(self):
    place = _place.__get__(self)
    return place if HISTORY.isdisjoint(place) else _Attributes(place)


attributes = property(_get, _put, doc="A program's own attributes. The tape's are in ``_all`` as well.")


def told(t) -> dict:
    """What of its history was set, by name."""
    return {name: value for name, otherwise in RARE.items() if (value := getattr(t, name)) is not otherwise}


def swap(a, b):
    """Exchange all attributes of two tensors, the history included."""
    for name in native.slots(RARE):
        mine, other = getattr(a, name), getattr(b, name)
        setattr(a, name, other)
        setattr(b, name, mine)
    first, second = _place.__get__(a), _place.__get__(b)
    _place.__set__(a, second)
    _place.__set__(b, first)
