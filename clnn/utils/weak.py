"""Weak references and dictionaries that tell tensors apart by what they are, not by their values (``==`` of tensors compares elements)."""
from __future__ import annotations

import collections.abc
import weakref

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary", "WeakTensorRefKey"]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another one on the same object."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        a, b = self(), other() if isinstance(other, weakref.ref) else None
        return a is b if a is not None and b is not None else self is other


class TensorWeakRef:
    """A weak reference to a tensor: called, it gives the tensor, or None when that is gone.

    Example:
        >>> x = clnn.ones(2)
        >>> ref = clnn.utils.weak.TensorWeakRef(x)
        >>> ref() is x
        True
    """

    def __init__(self, tensor):
        self.ref = WeakIdRef(tensor)

    def __call__(self):
        return self.ref()


class WeakIdKeyDictionary(collections.abc.MutableMapping):
    """A dictionary whose keys are objects themselves; an entry goes when its key is gone.

    Example:
        >>> d, x = clnn.utils.weak.WeakIdKeyDictionary(), clnn.ones(2)
        >>> d[x] = "a"
        >>> d[x], clnn.ones(2) in d
        ('a', False)
        >>> del x
        >>> len(d)
        0
    """

    def __init__(self, dict=None, ref_type=WeakIdRef):      # noqa: A002
        self.data, self.ref_type = {}, ref_type
        self.update(dict or {})

    def _ref(self, key):
        def gone(ref, of=weakref.ref(self)):
            if (owner := of()) is not None:
                owner.data.pop(ref, None)
        return self.ref_type(key, gone)

    def __getitem__(self, key):
        try:
            return self.data[self.ref_type(key)]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key, value):
        self.data[self._ref(key)] = value

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __contains__(self, key):
        try:
            return self.ref_type(key) in self.data
        except TypeError:                           # nothing refers weakly to it
            return False

    def __iter__(self):
        return (key for ref in list(self.data) if (key := ref()) is not None)

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self):
        """The weak references to the keys."""
        return list(self.data)

    def copy(self):
        """A dictionary with the same entries."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __ior__(self, other):
        self.update(other)
        return self

    def __or__(self, other):
        new = self.copy()
        new.update(other)
        return new


WeakTensorKeyDictionary, WeakTensorRefKey = WeakIdKeyDictionary, WeakIdRef
