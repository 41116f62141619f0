"""Places of a graph that compute what another graph does."""
from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, field

from clnn._tensor.tensor import Tensor

from ...node import Node
from ..infra.partitioner import leads_back


@dataclass
class InternalMatch:
    """A place that matches: ``nodes_map`` leads from the pattern's nodes to the graph's, or to what is no node where a placeholder stands for it."""

    anchors: list
    nodes_map: dict = field(default_factory=dict)
    placeholder_nodes: list = field(default_factory=list)
    returning_nodes: list = field(default_factory=list)
    name_node_map: dict = field(default_factory=dict)

    def __copy__(self):
        return InternalMatch(self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes))


class SubgraphMatcher:
    """Looks for the places of a graph that compute what ``pattern`` does, whatever their inputs are.

    Args:
        pattern: a :class:`Graph`, all of whose nodes are used.
        match_output: the pattern's output stands for an output.
        match_placeholder: its placeholders stand for placeholders; else for anything.
        remove_overlapping_matches: of places that share nodes the first only.
        ignore_literals: numbers and the like need not be equal.

    Example::

        >>> from clnn import fx
        >>> graphs = [fx.symbolic_trace(f).graph for f in (lambda x: clnn.relu(x + 1), lambda x: clnn.relu(clnn.relu(x + 1) + 1))]
        >>> matcher = fx.passes.utils.matcher_utils.SubgraphMatcher(graphs[0])
        >>> [m.returning_nodes for m in matcher.match(graphs[1])]
        [[relu], [relu_1]]
    """

    def __init__(self, pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True, ignore_literals=False):
        nodes = list(pattern.nodes)
        if not nodes:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        if any(n.op != "output" and not n.users and not n.is_impure() for n in nodes):
            raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        self.pattern_placeholder_nodes = [n for n in nodes if n.op == "placeholder"]
        self.pattern_returning_nodes = list(nodes[-1].all_input_nodes)
        self.pattern_anchors = [nodes[-1]] if match_output else [n for n in self.pattern_returning_nodes if len(n.users) == 1]

    def match(self, graph, node_name_match=""):
        """The places, each an :class:`InternalMatch`; values inside of one are not used outside, but for those that the pattern returns."""
        found = []
        if self.pattern_anchors:
            self._from(0, InternalMatch(self.pattern_anchors), list(graph.nodes), node_name_match, found)
        found = [m for m in found if self._closed(m) and not leads_back(self._computed(m))]
        if not self.remove_overlapping_matches:
            return found
        apart, taken = [], set()
        for m in found:
            nodes = self._computed(m)
            if taken.isdisjoint(nodes):
                taken.update(nodes)
                apart.append(m)
        return apart

    @staticmethod
    def _computed(match):
        return [n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output")]

    def _from(self, at, match, nodes, name, found):
        """Look for all ways to match the anchors from number ``at`` on."""
        if at == len(self.pattern_anchors):
            match.placeholder_nodes = [match.nodes_map[p] for p in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
            found.append(match)
            return
        for node in nodes:
            attempt = copy.copy(match)
            if self._node(self.pattern_anchors[at], node, attempt.nodes_map, name):
                self._from(at + 1, attempt, nodes, name, found)

    def _alike(self, pattern, node, name):
        if pattern.op == "placeholder" and not self.match_placeholder or name and name in node.name:
            return True
        if pattern.op != node.op:
            return False
        if pattern.op == "get_attr" and pattern.graph.owning_module is not None and node.graph.owning_module is not None:
            values = [operator.attrgetter(n.target)(n.graph.owning_module) for n in (pattern, node)]
            return type(values[0]) is type(values[1]) and isinstance(values[0], Tensor)
        return pattern.op in ("placeholder", "output") or pattern.target == node.target

    def _node(self, pattern, node, found, name=""):
        if pattern in found:
            return found[pattern] is node
        if any(n is node for n in found.values()) or not self._alike(pattern, node, name):         # two nodes of the pattern are two here
            return False
        found[pattern] = node
        if pattern.op == "placeholder":
            return True
        return list(pattern.kwargs) == list(node.kwargs) and self._values((pattern.args, *pattern.kwargs.values()), (node.args, *node.kwargs.values()), found)

    def _values(self, patterns, values, found):
        return len(patterns) == len(values) and all(self._value(p, v, found) for p, v in zip(patterns, values))

    def _value(self, pattern, value, found):
        if isinstance(pattern, Node):
            if isinstance(value, Node):
                return self._node(pattern, value, found)
            if pattern.op != "placeholder":
                return self.ignore_literals
            if pattern in found:
                return found[pattern] == value or self.ignore_literals
            found[pattern] = value
            return True
        if isinstance(pattern, (list, tuple)) and isinstance(value, (list, tuple)):
            return self._values(pattern, value, found)
        return self.ignore_literals or not isinstance(value, Node) and type(pattern) is type(value) and pattern == value

    def _closed(self, match):
        inside = {n: p for p, n in match.nodes_map.items() if p.op != "placeholder"}
        return all(p in self.pattern_returning_nodes or all(u in inside for u in n.users) for n, p in inside.items())


__all__ = ["InternalMatch", "SubgraphMatcher"]
