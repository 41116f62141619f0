"""What functions return: tensors in containers, in classes derived from them, and in objects that keep tensors as attributes."""
from __future__ import annotations

import copy
import types

from ._tensor.tensor import Tensor

_DEPTH = 6
_WHOLE = (str, bytes, int, float, complex, type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType)


def map_tensors(fn, value, depth=0, known=None):
    """``value`` with ``fn(t)`` in the place of each tensor ``t``; what holds no tensor stays the same object."""
    if isinstance(value, Tensor):
        return fn(value)
    if value is None or isinstance(value, _WHOLE) or depth > _DEPTH:
        return value
    known = {} if known is None else known              # what was met before, which may lead back to itself
    if id(value) in known:
        return known[id(value)]
    known[id(value)] = value
    if isinstance(value, (list, tuple)):
        new = _sequence(value, [map_tensors(fn, v, depth + 1, known) for v in value])
    elif isinstance(value, dict):
        new = _mapping(value, {k: map_tensors(fn, v, depth + 1, known) for k, v in value.items()})
    else:
        new = _object(fn, value, depth, known)
    known[id(value)] = new
    return new


def _changed(old, new):
    return any(a is not b for a, b in zip(old, new))


def _sequence(value, items):
    if not _changed(value, items):
        return value
    if hasattr(value, "_fields"):
        return type(value)(*items)
    if type(value) in (list, tuple) or isinstance(value, tuple):
        return type(value)(items)
    new = copy.copy(value)
    new[:] = items
    return new


def _mapping(value, items):
    if type(value) is dict or not _changed(value.values(), items.values()):
        return items if type(value) is dict else value
    new = copy.copy(value)
    for k, v in items.items():
        new[k] = v
    return new


def _object(fn, value, depth, known):
    """An object of a program's own class with other tensors in its attributes; modules own theirs and stay as they are."""
    attributes = getattr(value, "__dict__", None)
    if not attributes or type(value).__module__.partition(".")[0] in ("builtins", "clnn") or "_parameters" in attributes:
        return value
    items = {k: map_tensors(fn, v, depth + 1, known) for k, v in attributes.items()}
    if not _changed(attributes.values(), items.values()):
        return value
    new = copy.copy(value)
    new.__dict__.update(items)
    return new


def keeps_tensors(value) -> bool:
    """Whether ``value``, neither a tensor nor a container, has a tensor in its attributes."""
    found = []

    def note(t):
        found.append(t)
        return t
    map_tensors(note, value)
    return bool(found)
