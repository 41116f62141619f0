"""Running a graph node by node, and rebuilding it on the way."""
from __future__ import annotations

from .graph import Graph
from .graph_module import GraphModule, _fetch
from .node import map_arg
from .proxy import Proxy


class Interpreter:
    """Runs a :class:`GraphModule` node by node; subclasses change what a kind of node does.

    Example::

        >>> class Count(clnn.fx.Interpreter):
        ...     calls = 0
        ...     def call_function(self, target, args, kwargs):
        ...         self.calls += 1
        ...         return super().call_function(target, args, kwargs)
        >>> counting = Count(clnn.fx.symbolic_trace(lambda x: clnn.relu(x) + 1))
        >>> counting.run(clnn.ones(1)), counting.calls
        (tensor([2.]), 2)
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module, self.graph = module, graph if graph is not None else module.graph
        self.garbage_collect_values, self.env = garbage_collect_values, {}
        self._done, self.submodules = {}, dict(module.named_modules())
        for node in self.graph.nodes:
            for n in node.all_input_nodes:
                self._done[n] = node

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """The graph's output for these inputs. ``initial_env``: values of nodes that are known."""
        args = self.graph.process_inputs(*args) if enable_io_processing else args
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as exc:
                note = (f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}\nUse tlparse to see full graph. "
                        "(https://github.com/pytorch/tlparse?tab=readme-ov-file#tlparse-parse-structured-pt2-logs)")
                exc.args = (f"{exc.args[0]}\n\n{note}", *exc.args[1:]) if exc.args and isinstance(exc.args[0], str) else (note, *exc.args)
                raise
            if node.op == "output":
                return self.graph.process_outputs(self.env[node]) if enable_io_processing else self.env[node]
            if self.garbage_collect_values:
                for n in node.all_input_nodes:
                    if self._done[n] is node:
                        self.env.pop(n, None)
        return None

    def run_node(self, n):
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        """The next input, or the default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from None

    def get_attr(self, target, args, kwargs):
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """A function's result."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """A method's result."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        """A submodule's result."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        """What is returned."""
        return args[0]

    def fetch_attr(self, target):
        """What the module has under a dotted name."""
        return _fetch(self.module, target)

    def fetch_args_kwargs_from_env(self, n):
        """A node's arguments with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """A structure with values in place of nodes."""
        return map_arg(args, lambda node: self.env[node])


class Transformer(Interpreter):
    """An :class:`Interpreter` on stand-ins: what its methods return becomes a new graph (:meth:`transform`)."""

    def __init__(self, module):
        super().__init__(module)
        from ._symbolic_trace import Tracer
        self.new_graph = Graph()
        self.tracer = Tracer()
        self.tracer.root, self.tracer.graph = module, self.new_graph

    def placeholder(self, target, args, kwargs):
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else Ellipsis), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self):
        """The new module."""
        result = super().run(enable_io_processing=False)
        self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph)
