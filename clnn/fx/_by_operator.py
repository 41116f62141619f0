"""Graphs of operators of ``aten``: what a function calls for given arguments, below autograd."""
from __future__ import annotations

import functools
import inspect
import operator

from clnn._tensor.tensor import Tensor
from clnn.nn.modules.module import Module
from clnn.utils._python_dispatch import TorchDispatchMode
from clnn.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .graph import Graph
from .graph_module import GraphModule


class Recorder(TorchDispatchMode):
    """Writes each operator into a graph. Tensors that it has not seen become constants."""

    def __init__(self):
        super().__init__()
        self.graph, self.root, self.nodes = Graph(), Module(), {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func._opname == "_local_scalar_dense" and id(args[0]) in self.nodes and self.nodes[id(args[0])][0].op != "get_attr":
            raise RuntimeError("It appears that you're trying to get value out of a tracing tensor with aten._local_scalar_dense.default - erroring out! It's likely "
                               "that this is caused by data-dependent control flow or similar.  It may be possible to trace this with dynamic shapes; try setting "
                               "tracing_mode='symbolic' in your make_fx call.")
        known = tree_map(self.node_of, (list(args), kwargs))
        result = func(*args, **kwargs)
        self.note(result, self.graph.call_function(func, tuple(known[0]), known[1], name=func._opname))
        return result

    def node_of(self, value):
        """The node of a tensor; anything else as it is."""
        if not isinstance(value, Tensor):
            return value
        found = self.nodes.get(id(value))
        if found is None:
            name = f"_tensor_constant{len(self.root._buffers)}"
            self.root.register_buffer(name, value.detach())
            found = self.nodes[id(value)] = (self.graph.get_attr(name), value)
        return found[0]

    def note(self, result, node):
        """Remember which node a result is; kept alive, so that no other tensor takes its id."""
        if isinstance(result, Tensor):
            self.nodes[id(result)] = (node, result)
        elif isinstance(result, (tuple, list)):
            for i, r in enumerate(result):
                if isinstance(r, Tensor):
                    self.note(r, self.graph.call_function(operator.getitem, (node, i)))


def traced(f, args, names):
    """The graph module of ``f(*args)``; ``names`` are those of the tensors among ``args``, in order."""
    recorder = Recorder()
    leaves, spec = tree_flatten(list(args))
    names = iter(names)
    seen = []
    for v in leaves:
        if isinstance(v, Tensor):
            v = v.detach().requires_grad_(v.requires_grad)
            recorder.note(v, recorder.graph.placeholder(next(names)))
        else:
            recorder.graph.placeholder(next(names))
        seen.append(v)
    with recorder:
        result = f(*tree_unflatten(seen, spec))
    recorder.graph.output(tree_map(recorder.node_of, tuple(result) if isinstance(result, tuple) else result))          # names of results are not kept
    recorder.graph.eliminate_dead_code()
    return GraphModule(recorder.root, recorder.graph)


def make_fx(f, decomposition_table=None, tracing_mode="real", **ignored):
    """A function that gives the graph of what ``f`` calls for its arguments, as operators of ``clnn.ops.aten``.

    Example::

        >>> from clnn.fx._by_operator import make_fx
        >>> print(make_fx(lambda x: x.sin() + 1)(clnn.zeros(2)).graph)
        graph():
            %x_1 : [num_users=1] = placeholder[target=x_1]
            %sin : [num_users=1] = call_function[target=clnn.ops.aten.sin.default](args = (%x_1,), kwargs = {})
            %add : [num_users=1] = call_function[target=clnn.ops.aten.add.Tensor](args = (%sin, 1), kwargs = {})
            return add
    """
    @functools.wraps(f)
    def run(*args):
        try:
            given = [p.name for p in inspect.signature(f).parameters.values() if p.kind is not p.VAR_KEYWORD]
        except (TypeError, ValueError):
            given = []
        count = len(tree_flatten(list(args))[0])
        names = [f"{n}_1" for n in given] if len(given) == count else [f"arg{i}_1" for i in range(count)]
        return traced(f, args, names)
    return run
