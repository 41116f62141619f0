"""Stand-ins for values: what is done with them is written into a graph."""
from __future__ import annotations

import dis
import inspect
import operator
import sys

from clnn._tensor.tensor import Tensor
from clnn.core.config import config

from .node import map_aggregate


class TraceError(ValueError):
    """A program asked a stand-in for its value."""


class Proxy:
    """A value that a traced program will compute. Operators, methods and functions of it give further stand-ins."""

    def __init__(self, node, tracer=None):
        self.node, self.tracer = node, tracer if tracer is not None else __getattr__("GraphAppendingTracer")(node.graph)

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        frame = sys._getframe(1)
        step = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
        if step is not None and step.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(step.argval))
        return self.tracer.iter(self)

    def __bool__(self):
        return self.tracer.to_bool(self)

    def __len__(self):
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
                           f"{config.spoken}.fx.wrap('len') at module scope")

    def keys(self):
        """The keys of a stand-in for a dictionary."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, orig_method, types, args=(), kwargs=None):
        tracer = find_tracer((args, kwargs))
        name = getattr(orig_method, "__name__", None)
        if inspect.isfunction(orig_method) and name and vars(Tensor).get(name) is orig_method:
            return tracer.create_proxy("call_method", name, args, kwargs or {})
        if inspect.isfunction(orig_method) or not hasattr(orig_method, "__self__"):
            return tracer.create_proxy("call_function", orig_method, args, kwargs or {})
        name = getattr(orig_method.__self__, "__name__", None) or orig_method.__self__.fget.__name__        # a property of Tensor
        return tracer.create_proxy("call_function", getattr, (args[0], name), {})


class Attribute(Proxy):
    """An attribute of a stand-in: a method, if it is called, and else written into the graph when it is used."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer, self._node = root, attr, root.tracer, None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def find_tracer(values):
    """The tracer of the first stand-in in a nested structure."""
    found = []
    map_aggregate(values, lambda v: found.append(v.tracer) if isinstance(v, Proxy) else None)
    return found[0]


def _magic(name, fn, reflected=False):
    def method(self, *args):
        return self.tracer.create_proxy("call_function", fn, (args[0], self) if reflected else (self, *args), {})
    method.__name__ = name
    setattr(Proxy, name, method)


for _name in "add sub mul floordiv truediv mod lshift rshift matmul pow".split():
    _magic(f"__{_name}__", getattr(operator, _name))
    _magic(f"__r{_name}__", getattr(operator, _name), True)
for _name, _fn in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
    _magic(f"__{_name}__", _fn)
    _magic(f"__r{_name}__", _fn, True)
for _name in "eq ne lt gt le ge pos neg invert getitem".split():
    _magic(f"__{_name}__", getattr(operator, _name))
_magic("__abs__", operator.abs)
_magic("__round__", round)
Proxy.__hash__ = object.__hash__


def __getattr__(name):
    if name in ("GraphAppendingTracer", "TracerBase"):
        from . import _symbolic_trace
        return getattr(_symbolic_trace, name.replace("TracerBase", "Tracer"))
    raise AttributeError(f"module 'clnn.fx.proxy' has no attribute {name!r}")


assert not issubclass(Proxy, Tensor)
