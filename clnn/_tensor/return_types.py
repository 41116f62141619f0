"""Named results of operators with several outputs, such as ``clnn.return_types.sort(values=..., indices=...)``."""
from __future__ import annotations

from ..core.config import config

_made: dict = {}


class _Named(tuple):
    """A tuple whose items also have names; it prints as ``clnn.return_types.<name>(field=..., ...)``."""

    __slots__ = ()
    _fields: tuple = ()
    _name = ""

    def __new__(cls, *items):
        if len(items) == 1 and len(cls._fields) != 1:
            items = tuple(items[0])
        if len(items) != len(cls._fields):
            raise TypeError(f"{config.spoken}.return_types.{cls._name}() takes a {len(cls._fields)}-sequence ({len(items)}-sequence given)")
        return tuple.__new__(cls, items)

    def __repr__(self):
        body = ",\n".join(f"{f}={v!r}" for f, v in zip(self._fields, self))
        return f"{config.spoken}.return_types.{self._name}(\n{body})"

    def __reduce__(self):
        return (_rebuild, (self._name, self._fields, tuple(self)))

    def _asdict(self):
        return dict(zip(self._fields, self))


def _rebuild(name, fields, items):
    return named(name, *fields)(*items)


def named(name: str, *fields: str):
    """The result class of operator ``name``; the same class for every call.

    Example:
        >>> from clnn._tensor.return_types import named
        >>> named("sort", "values", "indices")(1, 2).indices
        2
    """
    cls = _made.get(name)
    if cls is None:
        body = {"__doc__": f"What :func:`clnn.{name}` returns: ``({', '.join(fields)})``.", "__slots__": (), "_fields": fields, "_name": name, "n_fields": len(fields),
                "n_sequence_fields": len(fields), "n_unnamed_fields": 0}
        for i, field in enumerate(fields):
            body[field] = property(lambda self, i=i: self[i], doc=f"Item {i}.")
        cls = _made[name] = type(name, (_Named,), body)
        cls.__module__ = "clnn.return_types"
    return cls


def written(result, items):
    """``items`` as what an operator returns that wrote ``result`` into the tensors given as ``out=``: a class of its own, as in PyTorch."""
    return named(f"{result._name}_out", *result._fields)(*items)
