"""Types of tensors by their sizes, for annotations of programs that are traced: ``x: TensorType((1, 2, Dyn))``."""
from __future__ import annotations

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """Tensors of these sizes, some of which may be :data:`Dyn`.

    Example:
        >>> from clnn.fx.tensor_type import Dyn, TensorType, is_consistent
        >>> TensorType((1, Dyn)), is_consistent(TensorType((1, Dyn)), TensorType[1, 3])
        (TensorType[(1, Dyn)], True)
    """

    __hash__ = None

    def __init__(self, dim):
        self.__origin__, self.__args__ = TensorType, dim

    @property
    def dims(self):
        return self.__args__

    def __repr__(self):
        return f"TensorType[{self.dims}]"

    def __eq__(self, other):
        return isinstance(other, type(self)) and list(self.dims) == list(other.dims)

    @staticmethod
    def __class_getitem__(dims):
        return TensorType(dims if isinstance(dims, tuple) else (dims,))


class _DynType:
    """Any type, or any size."""

    __name__ = "_DynType"
    __hash__ = None

    def __eq__(self, other):
        return isinstance(other, type(self))

    def __repr__(self):
        return "Dyn"


Dyn = _DynType()


def _agree(t1, t2, alike):
    """Whether two types of tensors have equally many sizes that are all ``alike``."""
    return isinstance(t1, TensorType) and isinstance(t2, TensorType) and len(t1.dims) == len(t2.dims) and all(map(alike, t1.dims, t2.dims))


def is_consistent(t1, t2):
    """Whether a value may be of both types: ``Dyn`` and everything, equal types, tensors whose sizes are consistent."""
    return t1 == t2 or t1 == Dyn or t2 == Dyn or _agree(t1, t2, is_consistent)


def is_more_precise(t1, t2):
    """Whether ``t1`` says at least as much as ``t2``: all types as much as ``Dyn``."""
    return t1 == t2 or t2 == Dyn or _agree(t1, t2, is_more_precise)
