"""Tracing: a module or function is called with stand-ins, and what it does becomes a graph."""
from __future__ import annotations

import functools
import inspect
import math
import sys
import types
import warnings
from types import FunctionType  # noqa: F401

from clnn import (_assert, _assert_async, bernoulli, device, dtype, layout, memory_format, multinomial, normal, poisson, rand, rand_like, randint, randint_like,
                  randn, randn_like, randperm)
from clnn._C import _set_grad_enabled
from clnn._serialization.quantized import ScriptObject
from clnn._tensor import override
from clnn._tensor.tensor import Tensor
from clnn.nn import Module, Parameter, Sequential

from ._compatibility import compatibility  # noqa: F401
from ._patching import _autowrap_check, _patch_wrapped_functions, _Patcher, _wrapped_fns_to_patch
from .graph import Graph
from .graph_module import GraphModule
from .node import has_side_effect, map_aggregate
from .proxy import Proxy, TraceError
from .traceback import tell

_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__
_PLAIN = (str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout)       # values that an argument can be checked to have

for _fn in (_assert, _assert_async, _set_grad_enabled, bernoulli, multinomial, normal, poisson, rand, rand_like, randint, randint_like, randn, randn_like, randperm):
    has_side_effect(_fn)                        # they check, or move the generator, whoever uses what they return


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
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _assert_is_none(value, msg):
    if isinstance(value, Proxy):
        return value.tracer.create_proxy("call_function", _assert_is_none, (value, msg), {})
    assert value is None, msg


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
        self._autowrap_search = list(autowrap_modules)          # their functions stay calls, and so do these functions
        self._autowrap_function_ids = {id(f) for m in autowrap_modules for name, f in vars(m).items() if not name.startswith("_") and callable(f)}
        self._autowrap_function_ids |= {id(f) for f in autowrap_functions}
        self.submodule_paths, self.tensor_attrs, self._held = None, {}, (None, {})

    @property
    def _names(self):
        """The names of the root's parameters and buffers, by their identities."""
        if self._held[0] is not self.root:
            self._held = self.root, {id(t): n for n, t in (*self.root.named_buffers(), *self.root.named_parameters())}
        return self._held[1]

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
        if self.submodule_paths is not None:
            path = self.submodule_paths.get(mod)
        else:
            path = next((n for n, m in self.root.named_modules() if m is mod), None)
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
            name = self._names.get(id(a)) or self.tensor_attrs.get(a)
            if name is None:
                i = 0
                while hasattr(self.root, f"_tensor_constant{i}"):
                    i += 1
                name = f"_tensor_constant{i}"
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return a

    def trace(self, root, concrete_args=None):
        """The graph of a module or function. ``concrete_args`` gives arguments values."""
        self.root = root if isinstance(root, Module) else Module()
        fn = type(root).forward if isinstance(root, Module) else root
        self.graph = Graph(tracer_cls=type(self))
        modules = list(self.root.named_modules())
        self.submodule_paths, self._held = {m: n for n, m in modules}, (None, {})
        self.tensor_attrs = {v: f"{n}.{k}" if n else k for n, m in modules for k, v in vars(m).items() if isinstance(v, (Tensor, ScriptObject))}
        call, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        with _Patcher() as patcher:
            self._patch(patcher, getattr(fn, "__globals__", {}))
            self.create_node("output", "output", (self.create_arg(call(*args)),), {}, type_expr=_annotation(fn, "return"))
        self.submodule_paths = None
        return self.graph

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """What to call to run a program (the root's ``forward``, if ``is_module``), and the stand-ins to call it with."""
        call, args, kwargs = self._inputs(root_fn.__get__(self.root) if is_module else root_fn, concrete_args or {})
        run = functools.wraps(root_fn)(lambda *given: call(*given[is_module:], **kwargs))
        return run, [self.root] * is_module + args

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

    def _patch(self, patcher, space):
        """Let modules called, attributes read and wrapped functions go through the tracer."""
        plain_call, plain_get, cache = Module.__call__, Module.__getattr__, {}

        def module_call(m, *args, **kwargs):
            _autowrap_check(patcher, getattr(m.forward, "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(m, lambda *a, **k: plain_call(m, *a, **k), args, kwargs)

        def module_get(m, name):
            return self.getattr(name, plain_get(m, name), cache)
        patcher.patch_method(Module, "__getattr__", module_get, deduplicate=False)
        patcher.patch_method(Module, "__call__", module_call, deduplicate=False)
        _patch_wrapped_functions(patcher)
        for place in (space, *map(vars, self._autowrap_search)):
            _autowrap_check(patcher, place, self._autowrap_function_ids)


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
