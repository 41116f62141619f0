"""Replacing a pattern of operations by another."""
from __future__ import annotations

import copy
import operator
from collections import namedtuple
from dataclasses import dataclass

from clnn.nn import Module

from .graph import Graph
from .graph_module import GraphModule
from .node import Node

Match = namedtuple("Match", "anchor nodes_map")


@dataclass
class ReplacedPatterns:
    """A place that was replaced: the pattern's node from which it was found, what stood for the pattern's nodes, and the nodes that came."""

    anchor: Node
    nodes_map: dict
    replacements: list


def replace_pattern(gm, pattern, replacement):
    """Replace each place of ``gm`` that computes what ``pattern`` does by ``replacement``; returns what matched.

    Args:
        gm: a :class:`GraphModule`; it is changed and compiled anew.
        pattern, replacement: functions, modules or graphs of the same arguments, which match anything. Values inside a match must not be used outside.

    Example::

        >>> traced = clnn.fx.symbolic_trace(lambda x: clnn.relu(x + 1) * 2)
        >>> len(clnn.fx.replace_pattern(traced, lambda a: clnn.relu(a + 1), lambda a: clnn.sigmoid(a)))
        1
        >>> traced(clnn.zeros(1))
        tensor([1.])
    """
    return [Match(m.anchor, m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(gm, pattern, replacement=None, match_filters=None, ignore_literals=False, replacement_callback=None, node_name_match=""):
    """As :func:`replace_pattern`, where all of ``match_filters`` agree; each is asked with ``(match, graph, graph of the pattern)``.

    Args:
        ignore_literals: numbers and the like in the pattern match all others.
        replacement_callback: gives the graph to put there, asked like a filter; in place of ``replacement``.
        node_name_match: a node with this in its name is a match for the pattern's last.
    """
    from .passes.utils.matcher_utils import SubgraphMatcher
    wanted, graph = _graph(pattern), gm.graph
    matches = [m for m in SubgraphMatcher(wanted, ignore_literals=ignore_literals).match(graph, node_name_match=node_name_match)
               if all(ask(m, graph, wanted) for ask in match_filters or ())]
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    common = None if replacement is None else _graph(replacement)
    replaced, done = {}, []
    for match in matches:
        new = common if replacement_callback is None else replacement_callback(match, graph, wanted)
        done.append(_replace(graph, match, wanted, new, replaced))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_members(gm, replacement)
    return done


def _graph(program):
    from ._symbolic_trace import symbolic_trace
    return program if isinstance(program, Graph) else program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _replace(graph, match, wanted, new, replaced):
    """Put ``new`` in the place of ``match``; ``replaced`` leads from nodes that earlier matches took away to those that came for them."""
    inputs = [n for n in new.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    for place, node in match.nodes_map.items():
        if place.op == "placeholder" and isinstance(node, Node):
            match.nodes_map[place] = replaced.get(node, node)
    match.placeholder_nodes = [replaced.get(n, n) if isinstance(n, Node) else n for n in match.placeholder_nodes]
    values = dict(zip(inputs, match.placeholder_nodes))
    users = {u for n in match.returning_nodes for u in n.users}
    nodes = list(graph.nodes)
    first = next((n for n in nodes if n in users), None) if users else nodes[max(nodes.index(n) for n in match.returning_nodes) + 1]
    with graph.inserting_before(first):
        results = graph.graph_copy(new, values)
    results = (results,) if isinstance(results, Node) else results
    came = [n for n in values.values() if all(n is not p for p in match.placeholder_nodes)]
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    for old, result in zip(match.returning_nodes, results):
        old.replace_all_uses_with(result)
        replaced[old] = result
    for place in reversed(wanted.nodes):
        if place.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[place])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, came)


def _take_members(gm, replacement):
    """Give ``gm`` copies of the modules and tensors that came into its graph with ``replacement``."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        owner, get = node.target.rpartition(".")[::2], operator.attrgetter(node.target)
        try:
            get(gm)
            continue
        except AttributeError:
            pass
        try:
            member = copy.deepcopy(get(replacement))
        except AttributeError:
            raise RuntimeError('Attempted to create a "', node.op, '" node during subgraph rewriting with target ', node.target, ", but the referenced attribute "
                               "does not exist in the replacement GraphModule or the original GraphModule") from None
        if isinstance(member, Module):
            gm.add_submodule(node.target, member)
        else:
            setattr(gm.get_submodule(owner[0]), owner[1], member)
    gm.graph.lint()


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
