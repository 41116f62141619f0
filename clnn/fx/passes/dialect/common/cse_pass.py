"""Equal computations done once."""
from __future__ import annotations

from clnn.fx.graph import Graph
from clnn.fx.graph_module import GraphModule
from clnn.fx.node import map_arg
from clnn.fx.passes.infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass"]

_RANDOM = frozenset("dropout bernoulli multinomial normal poisson rand randn randint randperm rand_like randn_like randint_like uniform_ normal_".split())


def get_CSE_banned_ops():
    """Names of operators that draw random numbers."""
    return _RANDOM


class CSEPass(PassBase):
    """Calls of one function or method with the same arguments become one.

    Example::

        >>> from clnn.fx.passes.dialect.common.cse_pass import CSEPass
        >>> result = CSEPass()(clnn.fx.symbolic_trace(lambda x: x.cos() + x.cos()))
        >>> result.modified, [n.name for n in result.graph_module.graph.nodes]
        (True, ['x', 'cos', 'add', 'output'])
    """

    def __init__(self, banned_ops=None):
        self.banned_ops = _RANDOM if banned_ops is None else banned_ops

    def call(self, graph_module):
        graph, values, seen, modified = Graph(), {}, {}, False
        for node in graph_module.graph.nodes:
            if node.op in ("placeholder", "output", "get_attr", "call_module") or self._kept(node):
                values[node] = graph.node_copy(node, lambda n: values[n])
                continue
            key = node.op, node.target, repr(map_arg((node.args, node.kwargs), lambda n: values[n]))
            if key in seen:
                values[node], modified = seen[key], True
            else:
                values[node] = seen[key] = graph.node_copy(node, lambda n: values[n])
        return PassResult(GraphModule(graph_module, graph), modified)

    def _kept(self, node):
        name = node.target if isinstance(node.target, str) else getattr(node.target, "_opname", None) or getattr(node.target, "__name__", "")
        return node.target in self.banned_ops or name in self.banned_ops or node.is_impure() or name.endswith("_") and not name.endswith("__")
