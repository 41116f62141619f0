"""Programs as graphs: tracing a module with stand-ins for its inputs, looking at the graph, changing it, and running it again as a module.

Example::

    >>> from clnn import fx
    >>> traced = fx.symbolic_trace(lambda x: clnn.relu(x) + 1)
    >>> for node in traced.graph.find_nodes(op="call_function", target=clnn.relu):
    ...     node.target = clnn.sigmoid
    >>> traced.recompile()
    >>> traced(clnn.zeros(1))
    tensor([1.5000])
"""
from . import graph, graph_module, interpreter, node, operator_schemas, proxy, subgraph_rewriter, tensor_type, traceback
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy, TraceError
from .subgraph_rewriter import replace_pattern

__all__ = ["PH", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "TraceError", "Tracer", "Transformer", "graph", "graph_module",
           "has_side_effect", "interpreter", "map_arg", "node", "operator_schemas", "proxy", "replace_pattern", "subgraph_rewriter", "symbolic_trace", "tensor_type",
           "traceback", "wrap"]
