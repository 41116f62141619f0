"""The operations of a program in order, and the Python text that computes them."""
from __future__ import annotations

import builtins
import keyword
import math
import operator
import re
import types
import typing
from collections import namedtuple

import clnn
from clnn.core.config import config

from . import _pytree as fx_pytree
from ._codegen import CodeGen, _PyTreeCodeGen, _PyTreeInfo  # noqa: F401
from .node import Node, map_aggregate, map_arg, qualified_name, type_name

PythonCode = namedtuple("PythonCode", "src globals")
_INFIX = {operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.gt: ">", operator.le: "<=", operator.ge: ">=", operator.add: "+", operator.sub: "-",
          operator.mul: "*", operator.floordiv: "//", operator.truediv: "/", operator.mod: "%", operator.lshift: "<<", operator.rshift: ">>",
          operator.and_: "&", operator.or_: "|", operator.xor: "^", operator.matmul: "@", operator.pow: "**"}
_PREFIX = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}
_INPLACE = {operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=", operator.ifloordiv: "//=", operator.imod: "%=",
            operator.iand: "&=", operator.ior: "|=", operator.ixor: "^=", operator.ilshift: "<<=", operator.irshift: ">>=", operator.ipow: "**=",
            operator.imatmul: "@="}


class _Names:
    """Names that are not taken yet and mean nothing to Python."""

    def __init__(self):
        self.used = set()

    def make(self, wish):
        wish = re.sub(r"\W+", "_", wish) or "_unnamed"
        wish = "_" + wish if wish[0].isdigit() else wish
        base, number = wish, None
        found = re.match(r"(.*)_(\d+)$", wish)
        if found and found[1]:
            base, number = found[1], int(found[2])
        name = wish
        while name in self.used or keyword.iskeyword(name) or hasattr(builtins, name) or name in ("clnn", "torch", "inf", "nan", "device", "self"):
            number = 1 if number is None else number + 1
            name = f"{base}_{number}"
        self.used.add(name)
        return name


class Graph:
    """A list of :class:`Node`, from placeholders to the output, each behind those that it uses.

    Example::

        >>> graph = clnn.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(clnn.relu, (x,))
        >>> _ = graph.output(y)
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %relu : [num_users=1] = call_function[target=clnn.relu](args = (%x,), kwargs = {})
            return relu
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self.owning_module, self._tracer_cls = owning_module, tracer_cls
        self._nodes, self._names, self._at, self._codegen = [], _Names(), None, CodeGen()
        self._root = Node(self, "", "root", "", (), {})

    def set_codegen(self, codegen):
        """Choose how the function takes its arguments and gives its result."""
        self._codegen = codegen

    def process_inputs(self, *args):
        """The values of the placeholders for the function's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """The function's result for the value of the output."""
        return self._codegen.process_outputs(out)

    @property
    def nodes(self):
        """The nodes in order, as a list of their own."""
        return list(self._nodes)

    # -- building ---------------------------------------------------------------------------------------------------------------
    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Add a node at the place of insertion, the end unless :meth:`inserting_before` or :meth:`inserting_after` says otherwise."""
        if not isinstance(args or (), tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs or {}, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        wish = name or (target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__))
        node = Node(self, self._names.make(wish if name or op == "placeholder" else _snake(wish)), op, target, args or (), kwargs or {}, type_expr)
        near, step = self._at or (None, len(self._nodes))
        place = step if near is None else self._nodes.index(near) + step
        self._nodes.insert(place, node)
        return node

    def placeholder(self, name, type_expr=None, default_value=Ellipsis):
        """An input of the graph."""
        return self.create_node("placeholder", name, () if default_value is Ellipsis else (default_value,), type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """A parameter or another attribute of the module, by its dotted name."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of a submodule, by its dotted name."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result, type_expr=None):
        """What the graph returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda n: n):
        """A copy of a node of another graph; ``arg_transform`` gives this graph's node for one of the other's."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copy all nodes of ``g`` but its output; returns what that returned, in this graph's nodes. ``val_map`` gets node for node."""
        for node in g._nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def inserting_before(self, n=None):
        """From now on, or in a ``with`` block, new nodes come before ``n``; by default each at the start."""
        return _InsertPoint(self, self._checked(n, "before", 0))

    def inserting_after(self, n=None):
        """From now on, or in a ``with`` block, new nodes come right behind ``n``, each before those made earlier; by default at the end."""
        return _InsertPoint(self, self._checked(n, "after", 1))

    def _checked(self, n, where, step):
        if n is None:
            return None if step else (None, 0)
        if n.graph is not self:
            raise AssertionError(f"Node to insert {where} is not in graph.")
        return n, step

    # -- changing -----------------------------------------------------------------------------------------------------------------
    def erase_node(self, to_erase):
        """Take out a node that has no users. Raises RuntimeError if it has."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!")
        if to_erase._erased:
            return
        to_erase._update((), {})
        self._nodes.remove(to_erase)
        to_erase._erased = True

    def eliminate_dead_code(self, is_impure_node=None):
        """Take out nodes whose values nobody uses, except those that do something; returns whether there were any."""
        before = len(self._nodes)
        for node in reversed(self.nodes):
            if not node.users and not (is_impure_node(node) if is_impure_node else node.is_impure()):
                self.erase_node(node)
        return len(self._nodes) < before

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes with this ``op``, and ``target``, which calls of functions need and others may have."""
        if target is None and op == "call_function":
            raise AssertionError(f"target must not be None for {op} op")
        return [n for n in self._nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self):
        """The output, which is the last node."""
        last = self._nodes[-1] if self._nodes else self._root
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    def lint(self):
        """Raise RuntimeError unless nodes use earlier nodes of this graph, names differ, and modules and attributes exist."""
        seen, names = set(), set()
        for node in self._nodes:
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            for n in node.all_input_nodes:
                if n.graph is not self:
                    raise RuntimeError(f"Argument '{n}' of Node '{node}' does not belong to this Graph, but was used as an argument! "
                                       f"If you are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{self}")
                if n not in seen:
                    raise RuntimeError(f"Argument '{n}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph are "
                                       f"topologically ordered\n{self}")
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                try:
                    operator.attrgetter(node.target)(self.owning_module)
                except AttributeError:
                    raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute of {type(self.owning_module)}") from None
            seen.add(node)
            names.add(node.name)

    # -- text -----------------------------------------------------------------------------------------------------------------------
    def __str__(self):
        return "graph():" + "".join("\n    " + n.format_node() for n in self._nodes)

    def print_tabular(self):
        """Print the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")] + [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self._nodes]
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))
        print("\n".join("  ".join(v.ljust(w) for v, w in zip(r, widths)).rstrip() for r in rows))

    def python_code(self, root_module="self", *, verbose=False, **options):
        """The text of a function ``forward`` and the globals that it needs; ``verbose``: with shapes, and the lines of the program."""
        return (_Verbose if verbose else _Writer)(self, root_module).write()

    def __deepcopy__(self, memo):
        other = Graph(tracer_cls=self._tracer_cls)
        other._codegen = self._codegen
        mapping = {}
        result = other.graph_copy(self, mapping)
        if self.find_nodes(op="output"):
            other.output(result)
        memo[id(self)] = other
        return other

    def __getstate__(self):
        state = {**self.__dict__, "owning_module": None, "_at": None}
        if self._tracer_cls is not None and "<locals>" in self._tracer_cls.__qualname__:        # no name leads to it
            from ._symbolic_trace import Tracer
            state["_tracer_cls"] = Tracer
        return state


class _InsertPoint:
    """Where new nodes go, until the block ends."""

    def __init__(self, graph, at):
        self.graph, self.before, graph._at = graph, graph._at, at

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        self.graph._at = self.before


def _snake(name):
    """``Linear2D`` as ``linear2_d``: names of classes and functions as variables."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


class _Writer:
    """Python text of a graph."""

    def __init__(self, graph, root):
        self.graph, self.root, self.names, self.wrapped, self.free = graph, root, {}, {}, _Names()
        self.free.used.update(node.name for node in graph._nodes)
        self.globals = {"clnn": clnn, config.spoken: clnn, "inf": math.inf, "nan": math.nan, "device": clnn.device}
        self.trees = graph._codegen if isinstance(graph._codegen, _PyTreeCodeGen) else None
        self.last = {}
        for node in graph._nodes:
            for n in node.all_input_nodes:
                self.last[n] = node

    def write(self):
        params, lines, gives = ["self"] if self.root == "self" else [], [], ""
        if self.trees is not None:
            lines.append(self.trees.opening([node.name for node in self.graph._nodes if node.op == "placeholder"]))
            params += self.trees.pytree_info.orig_args
            self.globals.update(fx_pytree=fx_pytree, pytree=clnn.utils._pytree)
        for node in self.graph._nodes:
            if node.op == "placeholder" and self.trees is not None:
                continue
            if node.op == "placeholder":
                params.append(node.target + self.annotation(node) + (f" = {self.value(node.args[0])}" if node.args else ""))
                if node.name != node.target.lstrip("*"):
                    lines.append(f"{node.name} = {node.target.lstrip('*')}")
                continue
            if node.op == "output" and node.type is not None:
                gives = f" -> {self.type(node.type)}"
            if node.op != "output":
                lines += self.source(node)
            text = self.line(node)
            gone = [n.name for n in node.all_input_nodes if self.last.get(n) is node] if node.op != "output" else []
            unused = [node.name] if node not in self.last and node.op != "output" else []
            lines.append(text + (f";  {' = '.join(gone + unused)} = None" if gone or unused else ""))
        body = "\n".join("    " + line if line else "" for line in lines) or "    pass"
        wraps = "\n".join(f'{config.spoken}.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        return PythonCode(f"\n{wraps}\n\ndef forward({', '.join(params)}){gives}:\n{body}\n    ", self.globals)

    def line(self, node):
        if node.op == "output" and self.trees is not None and self.trees.pytree_info.out_spec is not None:
            return f"return pytree.tree_unflatten({self.value(node.args[0])}, self._out_spec)"
        if node.op == "output":
            return f"return {self.value(node.args[0])}"
        return f"{node.name}{self.annotation(node)} = {self.expression(node)}"

    def source(self, node):
        """Lines that say where the node comes from."""
        return []

    def annotation(self, node):
        return "" if node.type is None else f" : {self.type(node.type)}"

    def type(self, annotation):
        """An annotation, with names for its parts."""
        if annotation == ():
            return "()"
        parts = typing.get_args(annotation)
        if isinstance(annotation, types.UnionType):
            return "|".join(map(self.type, parts))
        origin = getattr(annotation, "__origin__", None)
        if origin is None:
            return self.function(annotation)
        if not isinstance(annotation, types.GenericAlias):
            origin = getattr(typing, getattr(annotation, "_name", None) or "", origin)           # List, not list
        if getattr(annotation, "_name", None) == "Optional":
            origin = typing.Union
        name = self.function(origin)
        return f"{name}[{','.join(map(self.type, parts))}]" if parts else name

    def expression(self, node):
        args, target = node.args, node.target
        if node.op == "get_attr":
            return self.path(target)
        if node.op == "call_module":
            return f"{self.path(target)}({self.arguments(node)})"
        if node.op == "call_method":
            return f"{self.operand(args[0])}.{target}({self.arguments(node, 1)})"
        if not node.kwargs and len(args) == 2 and target in _INFIX:
            return f"{self.operand(args[0])} {_INFIX[target]} {self.operand(args[1], (int, float, str))}"
        if not node.kwargs and len(args) == 1 and target in _PREFIX:
            return _PREFIX[target] + self.operand(args[0])
        if not node.kwargs and len(args) == 2 and target in _INPLACE and isinstance(args[0], Node):
            return f"{args[0].name};  {node.name} {_INPLACE[target]} {self.operand(args[1])}"
        if target is operator.getitem and len(args) == 2:
            return f"{self.operand(args[0])}[{self.value(args[1])}]"
        if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{self.operand(args[0])}.{args[1]}"
        name = self.function(target, node.meta.get("is_wrapped"))
        return f"{name}({self.arguments(node)})"

    def path(self, dotted):
        text = self.root
        for part in dotted.split("."):
            text = f"{text}.{part}" if part.isidentifier() and not keyword.iskeyword(part) else f'getattr({text}, "{part}")'
        return text

    def arguments(self, node, start=0):
        return ", ".join([self.value(a) for a in node.args[start:]] + [f"{k} = {self.value(v)}" for k, v in node.kwargs.items()])

    def operand(self, value, bare=()):
        """A value beside an operator, in parentheses unless it is a name, of a type in ``bare`` or a positive number."""
        text = self.value(value)
        return text if isinstance(value, (Node, tuple, *bare)) or isinstance(value, (int, float)) and value >= 0 else f"({text})"

    def value(self, value):
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return f"({', '.join(map(self.value, value))}{',' * (len(value) == 1)})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        if value is None or value is Ellipsis or type(value) in (int, float, bool, complex, str, bytes):
            return "Ellipsis" if value is Ellipsis else repr(value)
        if isinstance(value, (clnn.dtype, clnn.device, clnn.Size)):
            return repr(value)
        return self.function(value)

    def function(self, fn, wrapped=None):
        """A name for a function or any other object; ``wrapped``: one that stays a call when the text is traced."""
        name = self._function(fn)
        if wrapped:
            self.wrapped[name] = None
        return name

    def _function(self, fn):
        known = type_name(fn) if isinstance(fn, str) or fn is type(None) or not hasattr(fn, "__name__") else qualified_name(fn)
        root, *rest = known.split(".")
        if root == "builtins" and len(rest) == 1 and getattr(builtins, rest[0], None) is fn:
            return rest[0]
        place = {"clnn": clnn, config.spoken: clnn}.get(root)
        if place is not None and rest:
            try:
                if operator.attrgetter(".".join(rest))(place) is fn:
                    self.globals[root] = place
                    return known
            except AttributeError:
                pass
        name = self.names.get(id(fn))
        if name is None:
            name = self.names[id(fn)] = self.free.make(self._wish(fn, known))
            self.globals[name] = fn
        return name

    @staticmethod
    def _wish(fn, known):
        if known.startswith("operator."):
            return "_" + known                                  # where Python keeps them
        return "_lambda_" if known.endswith("<lambda>") else known or "_constant"


__all__ = ["Graph", "PythonCode", "map_aggregate"]


_SHORT = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128", "int64": "i64", "int32": "i32",
          "int16": "i16", "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8"}
_FRAME = re.compile(r'  File "(.*)", line (\d+), in (.*)\n    (.*)\n')


class _Verbose(_Writer):
    """Text for reading: values with their dtypes and shapes, and above them the lines of the program that made them."""

    before = None

    def source(self, node):
        frames = _FRAME.findall(node.stack_trace or "")
        said = "File: {}:{} in {}, code: {}".format(*frames[-1]) if frames else "No stacktrace found for following nodes"
        noted = {key: value if len(str(value)) <= 40 else f"{str(value)[:40]}..." for key, value in node.meta.get("custom", {}).items()}
        said = f"Annotation: {noted} {said}" if noted else said
        if said == self.before:
            return []
        first, self.before = self.before is None, said
        return [*[""] * (not first), f"# {said}"]

    def annotation(self, node):
        value = node.meta.get("val")
        if not isinstance(value, clnn.Tensor):
            return super().annotation(node)
        name = str(value.dtype).rpartition(".")[2]
        return f': "{_SHORT.get(name, name)}[{", ".join(map(str, value.shape))}]"'
