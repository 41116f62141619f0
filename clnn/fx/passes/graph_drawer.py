"""Graphs as pictures, by the package pydot."""
from __future__ import annotations

import importlib.util

from clnn.fx.graph_module import GraphModule

__all__ = ["FxGraphDrawer"]

_COLORS = {"placeholder": "AliceBlue", "call_module": "LemonChiffon1", "get_param": "Yellow2", "get_attr": "LightGrey", "output": "PowderBlue"}


class FxGraphDrawer:
    """A picture of a graph module: ``FxGraphDrawer(gm, "net").get_dot_graph().write_svg("net.svg")``. Raises RuntimeError where pydot is missing."""

    def __init__(self, graph_module, name, ignore_getattr=False, ignore_parameters_and_buffers=False, skip_node_names_in_args=True, parse_stack_trace=False,
                 dot_graph_shape=None, normalize_args=False):
        if importlib.util.find_spec("pydot") is None:
            raise RuntimeError("FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite Python package manager.")
        self._name, self._shape, self._without = name, dot_graph_shape or "record", ignore_getattr
        self._dot_graphs = {name: self._drawn(graph_module, name)}
        for child, module in graph_module.named_children():
            if isinstance(module, GraphModule):
                self._dot_graphs[f"{name}_{child}"] = self._drawn(module, f"{name}_{child}")

    def get_dot_graph(self, submod_name=None):
        """The picture of the module, or of one of its graph modules."""
        return self._dot_graphs[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self):
        """The picture of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name):
        """The picture of one of its graph modules."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self):
        """All pictures by name."""
        return self._dot_graphs

    def _drawn(self, module, name):
        import pydot
        picture = pydot.Dot(name, rankdir="TB")
        shown = [n for n in module.graph.nodes if not (self._without and n.op == "get_attr")]
        for node in shown:
            label = "|".join([f"name=%{node.name}", f"op_code={node.op}", f"target={node._pretty_print_target(node.target)}", f"num_users={len(node.users)}"])
            picture.add_node(pydot.Node(node.name, label="{" + label.replace("<", r"\<").replace(">", r"\>") + r"\n}", shape=self._shape,
                                        fillcolor=_COLORS.get(node.op, "White"), style='"filled,rounded"', fontcolor="#000000"))
        for node in shown:
            for user in node.users:
                picture.add_edge(pydot.Edge(node.name, user.name))
        return picture
