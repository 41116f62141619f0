"""One operation of a graph."""
from __future__ import annotations

import operator
import types
from typing import Any, Callable, Union

from .immutable_collections import immutable_dict, immutable_list

Target = Union[Callable[..., Any], str]         # what a node calls or names
Argument = Any
OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
_impure: set = {setattr, operator.setitem}


def has_side_effect(fn):
    """Mark a function whose calls stay in a graph though nobody uses their results (decorator)."""
    _impure.add(fn)
    return fn


def map_aggregate(value, fn):
    """``fn`` of every leaf of nested tuples, lists, dictionaries and slices."""
    if isinstance(value, tuple):
        items = [map_aggregate(v, fn) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items) if type(value) is tuple else fn(value)
    if isinstance(value, list):
        return immutable_list(map_aggregate(v, fn) for v in value)
    if isinstance(value, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in value.items())
    if isinstance(value, slice):
        return slice(*[map_aggregate(v, fn) for v in (value.start, value.stop, value.step)])
    return fn(value)


def map_arg(value, fn):
    """``fn`` of every Node in a nested structure; the rest stays."""
    return map_aggregate(value, lambda v: fn(v) if isinstance(v, Node) else v)


class Node:
    """A placeholder, an attribute, a call or the output.

    Attributes:
        op: ``placeholder``, ``get_attr``, ``call_function``, ``call_method``, ``call_module`` or ``output``.
        target: the argument's, attribute's, method's or module's name, or the function.
        args, kwargs: of the call; nodes stand for their values.
        users: the nodes that use this one, as keys.
        meta: notes of who looks at the graph.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in OPS and op != "root":
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if target is None:
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a Callable is expected")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users, self.meta = {}, {}
        self._args, self._kwargs, self._erased = (), {}, False
        self._update(tuple(args), dict(kwargs))

    def _update(self, args, kwargs):
        for n in self.all_input_nodes:
            n.users.pop(self, None)
        self._args, self._kwargs = map_aggregate((args, kwargs), lambda v: v)           # lists and dictionaries that nobody changes
        for n in self.all_input_nodes:
            n.users[self] = None

    @property
    def args(self):
        return self._args

    @args.setter
    def args(self, value):
        self._update(tuple(value), self._kwargs)

    @property
    def kwargs(self):
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._update(self._args, dict(value))

    @property
    def stack_trace(self):
        """Where a program made the value, if that was noted."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    @property
    def all_input_nodes(self):
        """The nodes among the arguments, each once."""
        found = {}
        map_arg((self._args, self._kwargs), lambda n: found.setdefault(n))
        return list(found)

    def update_arg(self, idx, arg):
        """Replace one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = args

    def insert_arg(self, idx, arg):
        """Put a positional argument before number ``idx``."""
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key, arg):
        """Replace one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input, new_input):
        """Use another node where this one used ``old_input``."""
        args, kwargs = map_arg((self._args, self._kwargs), lambda n: new_input if n is old_input else n)
        self._update(args, kwargs)

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Let all users of this node use another one; returns the users that changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [u for u in self.users if delete_user_cb(u) and u is not replace_with]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def _neighbour(self, step):
        nodes = self.graph._nodes
        if self.op == "root":                                   # before the first node, and after the last
            return nodes[0 if step > 0 else -1] if nodes else self
        at = nodes.index(self) + step
        return nodes[at] if 0 <= at < len(nodes) else self.graph._root

    @property
    def next(self):
        return self._neighbour(1)

    @property
    def prev(self):
        return self._neighbour(-1)

    def _takes(self, x):
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        return x is not self

    def prepend(self, x):
        """Move ``x`` before this node."""
        if self._takes(x):
            self.graph._nodes.remove(x)
            self.graph._nodes.insert(self.graph._nodes.index(self), x)

    def append(self, x):
        """Move ``x`` behind this node."""
        if self._takes(x):
            self.graph._nodes.remove(x)
            self.graph._nodes.insert(self.graph._nodes.index(self) + 1, x)

    def is_impure(self, impure_random=True):
        """Whether the node does something besides giving a value."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if getattr(getattr(self.target, "_schema", None), "is_mutable", False):
                return True
            name = getattr(self.target, "_opname", None) or getattr(self.target, "__name__", "")        # without the overload
            return self.target in _impure or name.endswith("_") and not name.startswith("_")
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.startswith("_")
        if self.op == "call_module":
            owner = self.graph.owning_module
            return owner is not None and getattr(owner.get_submodule(self.target), "_is_impure", False)
        return False

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """The arguments with defaults filled in and, past those given by position, by name (see ``operator_schemas``); None where that is not known."""
        from .operator_schemas import normalize_function, normalize_module
        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs)
        return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs) if self.op == "call_module" else None

    def format_node(self, placeholder_names=None, maybe_return_typename=None):
        """The node as a line of text."""
        if self.op == "output":
            return f"return {self.args[0]}"
        default = f"(default={self.args[0]})" if self.op == "placeholder" and self.args else ""
        target = self._pretty_print_target(self.target)
        call = "" if self.op in ("placeholder", "get_attr") else f"(args = {_text(self.args)}, kwargs = {_text(self.kwargs)})"
        kind = f"{type_name(self.type)} " if self.type else ""
        return f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={target}]{default}{call}"

    @staticmethod
    def _pretty_print_target(target):
        return target if isinstance(target, str) else qualified_name(target)

    def __repr__(self):
        return self.name

    def __lt__(self, other):
        nodes = self.graph._nodes
        return nodes.index(self) < nodes.index(other)


def _text(value):
    """Arguments as they are printed: nodes with a percent sign, strings bare."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_text(v)}" for k, v in value.items()) + "}"
    return value if isinstance(value, str) else qualified_name(value) if callable(value) and hasattr(value, "__name__") else str(value)


def type_name(annotation):
    """An annotation as it is printed: classes by their dotted name."""
    if not isinstance(annotation, type) or isinstance(annotation, types.GenericAlias):
        return "..." if annotation is Ellipsis else repr(annotation)
    return annotation.__qualname__ if annotation.__module__ == "builtins" else f"{annotation.__module__}.{annotation.__qualname__}"


_NATIVE = {name: name for name in "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus softshrink".split()}
_NATIVE["logsigmoid"] = "log_sigmoid"
_TOP = frozenset("""adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_""".split())


def qualified_name(fn):
    """The dotted name of a function, as programs write it."""
    from clnn._custom import OpOverload, OpOverloadPacket
    from clnn.core.config import config
    from clnn.overrides import resolve_name
    if isinstance(fn, (OpOverload, OpOverloadPacket)):
        return f"{config.spoken}.ops.{fn}"
    known = resolve_name(fn)
    if known is not None:
        place, _, name = known.rpartition(".")
        if place == f"{config.spoken}.nn.functional":           # functions that PyTorch's compiled part defines
            return f"{config.spoken}._C._nn.{_NATIVE[name]}" if name in _NATIVE else f"{config.spoken}.{name}" if name in _TOP else known
        return known
    module = getattr(fn, "__module__", None) or "builtins"
    if module.partition(".")[0] == "clnn":
        import clnn
        for place, holder in ("", clnn), (".ops.quantized", clnn.ops.quantized):       # where programs find it, not the file that defines it
            if getattr(holder, getattr(fn, "__name__", ""), None) is fn:
                return f"{config.spoken}{place}.{fn.__name__}"
        module = config.spoken + module[4:]
    return f"{'operator' if module == '_operator' else module}.{getattr(fn, '__name__', repr(fn))}"
