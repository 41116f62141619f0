"""Answers to questions that programs put to private parts of PyTorch: about stand-ins for tensors, which clnn does not have."""
from __future__ import annotations

import contextlib

import clnn


def is_fake(x) -> bool:
    """False: a tensor without memory is one on the meta device."""
    return False


def get_proxy_mode():
    """None: no program is being traced operator by operator."""
    return None


def make_fx(f, *args, **kwargs):
    """The graph of what a function calls, operator by operator."""
    from clnn.fx._by_operator import make_fx as make
    return make(f, *args, **kwargs)


class FakeTensor:
    """A class that no tensor is an instance of."""


class FakeTensorMode:
    """A block in which tensors are without memory: on the meta device, unless the program names another one."""

    def __init__(self, *, allow_fallback_kernels=True, allow_non_fake_inputs=False, shape_env=None, static_shapes=None, export=False):
        self.allow_non_fake_inputs, self.shape_env, self.static_shapes, self._inside = allow_non_fake_inputs, shape_env, static_shapes, []

    def from_tensor(self, tensor, **ignored):
        """A tensor like this one, without memory."""
        return tensor.to("meta")

    def __enter__(self):
        self._inside.append(clnn.device("meta"))
        self._inside[-1].__enter__()
        return self

    def __exit__(self, *exc):
        self._inside.pop().__exit__(*exc)


unset_fake_temporarily = contextlib.nullcontext         # a block without such stand-ins
__all__ = ["FakeTensor", "FakeTensorMode", "get_proxy_mode", "is_fake"]


class Value:
    """A value of a TorchScript program: a class for annotations that nothing is an instance of."""


class Graph(Value):
    """As :class:`Value`, a program."""


class Node(Value):
    """As :class:`Value`, a step."""


for _name in clnn._PLACES["_questions"].split():
    globals()[_name] = type(_name, (Value,), {"__doc__": "As :class:`Value`, the type of values.", "__module__": __name__})


class _Keys(type):
    """A class whose attributes are their own names."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """Names of the layers that PyTorch hands a call through."""


class DispatchKeySet(frozenset):
    """A set of them."""

    def __new__(cls, keys):
        return frozenset.__new__(cls, [keys] if isinstance(keys, str) else keys)

    def __or__(self, other):
        return DispatchKeySet([*self, *other])

    add = __or__

    def has(self, key):
        return key in self


class ExcludeDispatchKeyGuard:
    """A block in which the named layers are passed by. Of them clnn has autocast."""

    def __init__(self, keys):
        self.cast = any(str(k).startswith("Autocast") for k in keys)

    def __enter__(self):
        from ._tensor.grad_mode import state
        self.before = state.autocast
        if self.cast:
            state.autocast = None

    def __exit__(self, *exc):
        from ._tensor.grad_mode import state
        state.autocast = self.before


def guard_or_false(a) -> bool:
    """``bool(a)``: sizes are numbers."""
    return bool(a)


guard_or_true = statically_known_true = guard_or_false


def free_symbols(val) -> set:
    """Empty: sizes are numbers."""
    return set()


free_unbacked_symbols = free_symbols
