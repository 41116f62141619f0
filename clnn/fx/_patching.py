"""While a program is traced, functions of modules and methods of classes are others: what replaces them, and how that is undone."""
from __future__ import annotations

import builtins
import contextlib
import functools

from clnn._tensor import override
from clnn._tensor.overridable import FACTORIES
from clnn.overrides import TorchFunctionMode

from .node import map_aggregate
from .proxy import Proxy

_wrapped_fns_to_patch: dict = {}             # (identity of globals, name) -> globals of functions that stay calls


class _Factories(TorchFunctionMode):
    """Calls of functions that make tensors, of sizes that are stand-ins, go into the graph: such functions do not ask their arguments."""

    NAMES = FACTORIES - {"tensor", "as_tensor", "asarray"}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", None) in self.NAMES:
            found = []
            map_aggregate((args, kwargs or {}), lambda v: found.append(v) if isinstance(v, Proxy) else None)
            if found:
                return Proxy.__torch_function__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))


def _create_wrapped_func(orig_fn):
    """``orig_fn``, that becomes a node when it is called with a stand-in; in the text of the graph it is wrapped again."""
    @functools.wraps(orig_fn)
    def wrapped(*args, **kwargs):
        found = []
        map_aggregate((args, kwargs), lambda v: found.append(v) if isinstance(v, Proxy) else None)
        if not found:
            return orig_fn(*args, **kwargs)
        proxy = found[0].tracer.create_proxy("call_function", orig_fn, args, kwargs)
        proxy.node.meta["is_wrapped"] = True
        return proxy
    return wrapped


class _Patcher:
    """A block in which names mean something else; functions of tensors ask stand-ins there."""

    def __init__(self):
        self.visited, self._undo = set(), contextlib.ExitStack()

    def patch(self, frame_dict, name, new_fn, deduplicate=True):
        """Let ``name`` of a module's globals be ``new_fn``."""
        if getattr(frame_dict.get(name), "__fx_already_patched", False):
            return
        new_fn.__fx_already_patched = deduplicate
        if name in frame_dict:
            self._undo.callback(frame_dict.__setitem__, name, frame_dict[name])
        elif hasattr(builtins, name):
            self._undo.callback(frame_dict.__delitem__, name)
        frame_dict[name] = new_fn

    def patch_method(self, cls, name, new_fn, deduplicate=True):
        """Let ``cls.name`` be ``new_fn``."""
        found = getattr(cls, name)
        if not getattr(found, "__fx_already_patched", False):
            new_fn.__fx_already_patched = deduplicate
            self._undo.callback(setattr, cls, name, found)
            setattr(cls, name, new_fn)

    def visit_once(self, thing):
        """Whether this is the first call with ``thing``."""
        first = id(thing) not in self.visited
        self.visited.add(id(thing))
        return first

    def __enter__(self):
        if not override.active:
            override.activate()
            self._undo.callback(override.deactivate)
        self._undo.enter_context(_Factories())
        return self

    def __exit__(self, *exc):
        self._undo.close()


def _patch_wrapped_functions(patcher):
    """Let the functions that :func:`wrap` names stay calls."""
    for (_, name), space in _wrapped_fns_to_patch.copy().items():
        patcher.patch(space, name, _create_wrapped_func(space.get(name, getattr(builtins, name, None))))


def _autowrap_check(patcher, frame_dict, function_ids):
    """Let functions that stay calls be recorded under the names that a module's globals give them."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if id(value) in function_ids and not name.startswith("_") and callable(value):
                patcher.patch(frame_dict, name, _create_wrapped_func(value))
