"""Which nodes of a graph something else can compute."""
from __future__ import annotations

import abc

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]


class OperatorSupportBase(abc.ABC):
    """Says whether a node is supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules, node) -> bool:
        """``submodules``: the modules of the graph by dotted name."""


class OperatorSupport(OperatorSupportBase):
    """Support by a table: target -> None, or (tuple of dtypes for each argument, dictionary of those for named ones)."""

    def __init__(self, support_dict=None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules, node):
        if node.op not in ("call_module", "call_function", "call_method"):
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        places, named = wanted
        for i, dtypes in enumerate(places):
            if len(node.args) <= i:
                return False
            if _dtype_of(node.args[i]) not in dtypes:
                return False
        return all(k in node.kwargs and _dtype_of(node.kwargs[k]) in dtypes for k, dtypes in named.items())


def _dtype_of(arg):
    meta = getattr(arg, "meta", {}).get("tensor_meta")
    return getattr(meta, "dtype", None)


def get_node_target(submodules, node):
    """A name for what a node calls: a class with its module, a function with its module, or a method.

    Example:
        >>> from clnn.fx.passes.operator_support import get_node_target
        >>> [get_node_target({}, n) for n in clnn.fx.symbolic_trace(lambda x: x.relu()).graph.nodes if n.op == "call_method"]
        ['relu']
    """
    if node.op == "call_module":
        kind = type(submodules[node.target])
        return f"{kind.__module__}.{kind.__name__}"
    if node.op == "call_function":
        return node._pretty_print_target(node.target)
    return node.target


def create_op_support(is_node_supported):
    """A function of (submodules, node) as an :class:`OperatorSupportBase`."""
    class Supported(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return is_node_supported(submodules, node)
    return Supported()


def chain(*op_support):
    """Supported where all say so."""
    return create_op_support(lambda submodules, node: all(s.is_node_supported(submodules, node) for s in op_support))


def any_chain(*op_support):
    """Supported where one says so."""
    return create_op_support(lambda submodules, node: any(s.is_node_supported(submodules, node) for s in op_support))


class OpSupports:
    """Rules that are often needed."""

    @classmethod
    def decline_if_input_dtype(cls, dtype):
        """No node that takes a tensor of ``dtype``."""
        return create_op_support(lambda submodules, node: all(_dtype_of(arg) is not dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set):
        """No node of these names."""
        return create_op_support(lambda submodules, node: node.name not in disallow_set)
