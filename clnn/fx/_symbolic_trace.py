"""Tracing: a module or function is called with stand-ins, and what it does becomes a graph."""
from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
import types
import warnings

from clnn import _assert, device, dtype, layout, memory_format
from clnn._tensor import override
from clnn._tensor.overridable import FACTORIES
from clnn._tensor.tensor import Tensor
from clnn.nn import Module, Parameter, Sequential
from clnn.overrides import TorchFunctionMode

from .graph import Graph
from .graph_module import GraphModule
from .node import map_aggregate
from .proxy import Proxy, TraceError
from .traceback import tell

_wrapped: dict = {}             # (identity of globals, name) -> globals of functions that stay calls
_PLAIN = (str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout)       # values that an argument can be checked to have


def _annotation(fn, name):
    """What a function says that an argument is; what it returns as PyTorch has it, not beside keywords and stars."""
    found = getattr(fn, "__annotations__", {}).get(name)
    if name == "return" and any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in inspect.signature(fn).parameters.values()):
        return None
    return found


def _flat(fn, args, kwargs):
    """A function with stars or keywords as one of all its variables: one stand-in is the whole of ``*args``."""
    plain = getattr(fn, "__func__", fn)
    code = getattr(plain, "__code__", None)
    if code is None or hasattr(plain, "__wrapped__") or not (code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)):
        return fn, args, kwargs
    args, names = [getattr(fn, "__self__", None)] * (plain is not fn) + args, inspect.getfullargspec(plain)
    args[len(names.args):] = [*(kwargs[n] for n in names.kwonlyargs), *args[len(names.args):], *(kwargs[n] for n in [names.varkw] if n)]
    code = code.replace(co_argcount=len(args), co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
    return types.FunctionType(code, plain.__globals__, plain.__name__, None, plain.__closure__), args, {}


class PHBase:
    """In ``concrete_args``: an argument that stays one."""

    def __repr__(self):
        return "PH"


PH = PHBase()


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


def wrap(fn_or_name):
    """Let calls of a function of the calling module stay calls in graphs, instead of what the function does: ``wrap("len")``, or a decorator.

    Example::

        >>> @clnn.fx.wrap
        ... def half(x):
        ...     return x / 2
        >>> [n.name for n in clnn.fx.symbolic_trace(lambda x: half(x)).graph.nodes]
        ['x', 'half', 'output']
    """
    if not isinstance(fn_or_name, str) and not callable(fn_or_name):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _assert_is_none(value, msg):
    if isinstance(value, Proxy):
        return value.tracer.create_proxy("call_function", _assert_is_none, (value, msg), {})
    assert value is None, msg


def _recording(fn):
    """``fn``, that becomes a node when it is called with a stand-in; in the text of the graph it is wrapped again."""
    @functools.wraps(fn)
    def call(*args, **kwargs):
        found = []
        map_aggregate((args, kwargs), lambda v: found.append(v) if isinstance(v, Proxy) else None)
        if not found:
            return fn(*args, **kwargs)
        proxy = found[0].tracer.create_proxy("call_function", fn, args, kwargs)
        proxy.node.meta["is_wrapped"] = True
        return proxy
    return call


class ProxyableClassMeta(type):
    """The metaclass of classes whose instances made of stand-ins are one step of the graph: the class is called there.

    Example:
        >>> class Pair(metaclass=clnn.fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        ...     def total(self):
        ...         return self.left + self.right
        >>> clnn.fx.symbolic_trace(lambda x, y: Pair(x, y).total())(clnn.ones(1), 2)
        tensor([3.])
    """

    def __call__(cls, *args, **kwargs):
        found = []
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None)
        return found[0].tracer.create_proxy("call_function", cls, args, kwargs) if found else super().__call__(*args, **kwargs)


class Tracer:
    """How programs become graphs; subclasses choose which modules stay calls (:meth:`is_leaf_module`) and more."""

    proxy_buffer_attributes = False

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self._kept_modules = tuple(autowrap_modules)            # their functions stay calls, and so do these functions
        self._kept = {id(f) for m in autowrap_modules for name, f in vars(m).items() if not name.startswith("_") and callable(f)}
        self._kept |= {id(f) for f in autowrap_functions}
        self._paths = {}

    # -- what subclasses change ---------------------------------------------------------------------------------------------------
    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module stays a call: those of ``clnn.nn`` do, except Sequential."""
        return type(m).__module__.startswith("clnn.nn") and not isinstance(m, Sequential)

    def call_module(self, m, forward, args, kwargs):
        """What a call of module ``m`` gives."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What an attribute of a module gives: stand-ins for parameters."""
        wanted = Parameter if not self.proxy_buffer_attributes else Tensor
        if isinstance(attr_val, wanted) and not isinstance(attr_val, Proxy):
            name = self._names.get(id(attr_val))
            if name is not None:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                return parameter_proxy_cache[name]
        return attr_val

    def path_of_module(self, mod):
        """The dotted name of a submodule. Raises NameError if it is none."""
        path = self._paths.get(id(mod))
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def to_bool(self, obj):
        """What a stand-in is as a condition."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """What iterating over a stand-in gives."""
        raise TraceError("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument. "
                         "See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can be traced, "
                         "and check out the Proxy docstring for help troubleshooting Proxy iteration errors")

    def keys(self, obj):
        """What the keys of a stand-in are."""
        return self.create_proxy("call_method", "keys", (obj,), {})

    def proxy(self, node):
        """The stand-in for a node."""
        return Proxy(node, self)

    # -- recording ---------------------------------------------------------------------------------------------------------------------
    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Add a node to the graph."""
        return tell(self.graph.create_node(kind, target, args, kwargs, name, type_expr))

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """Add a node to the graph; returns the stand-in for it."""
        node = self.create_node(kind, target, tuple(self.create_arg(a) for a in args), {k: self.create_arg(v) for k, v in kwargs.items()}, name, type_expr)
        return self.proxy(node)

    def create_arg(self, a):
        """A value as an argument of nodes: stand-ins as their nodes, tensors as attributes of the module."""
        return map_aggregate(a, self._leaf)

    def _leaf(self, a):
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Tensor):
            name = self._names.get(id(a))
            if name is None:
                i = 0
                while hasattr(self.root, f"_tensor_constant{i}"):
                    i += 1
                name = f"_tensor_constant{i}"
                setattr(self.root, name, a)
                self._names[id(a)] = name
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return a

    def trace(self, root, concrete_args=None):
        """The graph of a module or function. ``concrete_args`` gives arguments values."""
        self.root = root if isinstance(root, Module) else Module()
        fn = type(root).forward.__get__(root) if isinstance(root, Module) else root
        self.graph = Graph(tracer_cls=type(self))
        self._paths = {id(m): n for n, m in self.root.named_modules()}
        self._names = {id(t): n for n, t in (*self.root.named_buffers(), *self.root.named_parameters())}
        call, args, kwargs = self._inputs(fn, concrete_args or {})
        before = override.active
        override.activate()
        try:
            with self._patched(getattr(fn, "__globals__", {})), _Factories():
                self.create_node("output", "output", (self.create_arg(call(*args, **kwargs)),), {}, type_expr=_annotation(fn, "return"))
        finally:
            if not before:
                override.deactivate()
        return self.graph

    def _inputs(self, fn, concrete):
        args, kwargs, params = [], {}, list(inspect.signature(fn).parameters.values())
        if isinstance(concrete, tuple):
            if len(params) != len(concrete):
                raise RuntimeError(f"Tracing expected {len(params)} arguments but got {len(concrete)} concrete arguments")
            concrete = dict(zip((p.name for p in params), concrete))
        for p in sorted(params, key=lambda p: (p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD), p.kind)):          # stars last
            name, star = p.name, {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            default = () if p.default is p.empty else (p.default,)
            if not star and name in concrete:
                value = self._given(name, default, concrete[name])
            else:
                value = self.create_proxy("placeholder", star + name, default, {}, type_expr=_annotation(fn, name))
            if star == "**" or p.kind is p.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return _flat(fn, args, kwargs)

    def _given(self, name, default, value):
        """An argument that has a value: still an input of the graph, which checks that it gets that value."""
        proxy = self.create_proxy("placeholder", f"{name}_1", default, {})
        if isinstance(value, PHBase):
            return proxy
        says = f"{name} has been specialized to have value {value} but got another value"
        if type(value) in _PLAIN and type(value) is not Tensor:
            _assert(proxy == value, says)
        elif value is None:
            _assert_is_none(proxy, says)
        else:
            warnings.warn(f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user to make sure that "
                          "your inputs match the inputs you specialized the function with.")
        return value

    @contextlib.contextmanager
    def _patched(self, space):
        """Modules called, attributes read and wrapped functions go through the tracer."""
        plain_call, plain_get, cache, undo, seen = Module.__call__, Module.__getattr__, {}, [], set()

        def module_call(m, *args, **kwargs):
            self._keep(getattr(m.forward, "__globals__", {}), undo, seen)
            return self.call_module(m, lambda *a, **k: plain_call(m, *a, **k), args, kwargs)

        def module_get(m, name):
            return self.getattr(name, plain_get(m, name), cache)
        Module.__call__, Module.__getattr__ = module_call, module_get
        for (_, name), space in _wrapped.items():
            undo.append((space, name, space.get(name, undo)))
            known = space.get(name, getattr(__import__("builtins"), name, None))
            space[name] = _recording(known)
        for place in (space, *map(vars, self._kept_modules)):
            self._keep(place, undo, seen)
        try:
            yield
        finally:
            Module.__call__, Module.__getattr__ = plain_call, plain_get
            for space, name, old in reversed(undo):
                if old is undo:
                    del space[name]
                else:
                    space[name] = old

    def _keep(self, space, undo, seen):
        """Let the functions that stay calls be recorded under the names that a module's globals give them."""
        if id(space) not in seen:
            seen.add(id(space))
            for name, value in list(space.items()):
                if id(value) in self._kept and not name.startswith("_") and callable(value):
                    undo.append((space, name, value))
                    space[name] = _recording(value)


class GraphAppendingTracer(Tracer):
    """Writes into a graph that is there what is done with stand-ins for its nodes.

    Example::

        >>> graph = clnn.fx.Graph()
        >>> y = clnn.fx.Proxy(graph.placeholder("x")) + 1
        >>> _ = graph.output(y.node)
        >>> clnn.fx.GraphModule(clnn.nn.Module(), graph)(clnn.zeros(1))
        tensor([1.])
    """

    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        override.activate()                                     # functions that ask stand-ins for values would fail in other ways first

    def _leaf(self, a):
        if isinstance(a, (Tensor, Module)):
            raise NotImplementedError(f"argument of type: {type(a)}")       # there is no module to put it into
        return super()._leaf(a)


def symbolic_trace(root, concrete_args=None):
    """The module or function ``root`` as a :class:`GraphModule`.

    Example::

        >>> print(clnn.fx.symbolic_trace(lambda x, y: (x @ y).sum(dim=0)).code.strip())
        def forward(self, x, y):
            matmul = x @ y;  x = y = None
            sum_1 = matmul.sum(dim = 0);  matmul = None
            return sum_1
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    return GraphModule(tracer.root, graph, type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule"))


__all__ = ["PH", "Tracer", "symbolic_trace", "wrap"]
