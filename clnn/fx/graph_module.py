"""A graph as a module."""
from __future__ import annotations

import copy

from clnn.core.config import config
from clnn.nn import Module

from .graph import Graph


def _fetch(root, path):
    for part in path.split("."):
        root = getattr(root, part)
    return root


class GraphModule(Module):
    """A module whose ``forward`` is what a graph says.

    Args:
        root: a module with the submodules and attributes that the graph names, or a dictionary of them by dotted name.
        graph: the :class:`Graph`. After a change of it, :meth:`recompile` makes ``forward`` anew.
    """

    def __new__(cls, *args, **kwargs):
        kind = next(k for k in cls.__mro__ if k.__qualname__.rpartition(".")[2] != "GraphModuleImpl")     # a class of its own for each forward
        return Module.__new__(type("GraphModuleImpl", (kind,), {}))

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        named = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", self.training)
            if isinstance(root, _CodeOnlyModule):                               # a copy has also what the graph does not name
                named = [k for k, _ in (*root.named_children(), *root.named_buffers(), *root.named_parameters())] + named
            for target in named:
                self._take(target, _fetch(root, target))
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided in ``root``!")
            for target in sorted(named, key=lambda t: t.count(".")):            # what holds others comes before these
                self._take(target, root[target])
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        kind = graph._tracer_cls
        self._tracer_cls = kind if kind and "<locals>" not in kind.__qualname__ else None
        self.meta, self._tracer_extras, self.shape_env = {}, {}, None

    def _take(self, path, value):
        """Put ``value`` at a dotted name, with modules on the way."""
        *way, last = path.split(".")
        owner = self
        for part in way:
            if part not in owner._modules:
                owner.add_module(part, Module())
            owner = owner._modules[part]
        if last in owner.__dict__.get("_modules", {}) and not isinstance(value, Module):
            return
        known = hasattr(value, "dim") and not isinstance(value, Module) and type(value).__name__ == "Tensor"
        if known and last not in owner.__dict__:
            owner.register_buffer(last, value)
        else:
            setattr(owner, last, value)

    @property
    def graph(self):
        """The graph."""
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        object.__setattr__(self, "_graph", graph)
        graph.owning_module = self
        self.recompile()

    @property
    def code(self):
        """The text of ``forward``."""
        return self._code

    @property
    def _in_spec(self):
        """The structure of the arguments, where the graph works on their leaves."""
        return self._graph._codegen.pytree_info.in_spec

    @property
    def _out_spec(self):
        """The structure of the result."""
        return self._graph._codegen.pytree_info.out_spec

    def recompile(self):
        """Make ``forward`` from the graph as it is now."""
        made = self._graph.python_code("self")
        object.__setattr__(self, "_code", made.src)
        place = dict(made.globals)
        exec(compile(made.src, "<forward of a graph>", "exec"), place)
        type(self).forward = place["forward"]

    def add_submodule(self, target, m):
        """Put a module at a dotted name; returns whether that was possible."""
        *way, last = target.split(".")
        owner = self
        for part in way:
            if part in owner._modules and not isinstance(owner._modules[part], Module):
                return False
            if part not in owner._modules:
                owner.add_module(part, Module())
            owner = owner._modules[part]
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target):
        """Take out a module; returns whether it was there."""
        *way, last = target.split(".")
        try:
            owner = _fetch(self, ".".join(way)) if way else self
        except AttributeError:
            return False
        return owner._modules.pop(last, None) is not None

    def delete_all_unused_submodules(self):
        """Take out the modules that the graph does not name."""
        used = {n.target for n in self._graph.nodes if n.op in ("call_module", "get_attr")}
        keep = {".".join(t.split(".")[:i]) for t in used for i in range(1, t.count(".") + 2)}
        for name, _ in list(self.named_modules()):
            if name and name not in keep and not any(name.startswith(t + ".") for t in used):
                self.delete_submodule(name)

    def to_folder(self, folder, module_name="FxModule"):
        """Write the module as Python code with its parameters: a package ``folder`` with the class ``module_name``."""
        from ._folder import write
        write(self, folder, module_name)

    def print_readable(self, print_output=True, **options):
        """The text of the whole class; printed, and returned."""
        code = self._graph.python_code("self", verbose=True).src
        lines = ("    " + line if line.strip() else "" for line in code.strip("\n").split("\n"))
        text = f"class {type(self).__name__}({config.spoken}.nn.Module):\n" + "\n".join(lines)
        for child in self.children():
            if isinstance(child, GraphModule):
                inner = child.print_readable(print_output=False)
                text += "\n" + "\n".join("    " + line if line.strip() else "" for line in inner.split("\n"))
        if print_output:
            print(text)
        return text

    def _body(self):
        """The attributes without what follows from the graph."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}

    def __deepcopy__(self, memo):
        made = memo[id(self)] = type(self).__new__(type(self))
        body = copy.deepcopy(self._body(), memo)
        GraphModule.__init__(made, _CodeOnlyModule(body), copy.deepcopy(self._graph))       # PyTorch's copies, too, lose the name of the traced class
        made.__dict__.update({k: body[k] for k in _KEPT_HOOKS if k in body}, meta=body.get("meta", {}))
        for key, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, key, value)
        return made

    def __copy__(self):
        made = GraphModule(self, self._graph)
        made.meta = self.meta
        return made

    def __reduce__(self):
        return _restored, (self._body(), self._graph)

    __reduce_ex__ = lambda self, protocol: self.__reduce__()                         # noqa: E731

    def __str__(self):
        return "\n".join([super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"])


_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"       # in ``meta``: attributes that copies take along
_KEPT_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")


class _CodeOnlyModule(Module):
    """A module that consists of the attributes in a dictionary."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


def _restored(body, graph):
    """A module that was pickled; that loses the name of the traced class, too."""
    made = GraphModule(_CodeOnlyModule(body), graph)
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    return made


def _copy_attr(from_module, to_module, target):
    """Put what ``from_module`` has at a dotted name at that name of ``to_module``, with modules on the way."""
    GraphModule._take(to_module, target, _fetch(from_module, target))
