"""Replacing a pattern of operations by another."""
from __future__ import annotations

from collections import namedtuple

from .graph_module import GraphModule
from .node import Node

Match = namedtuple("Match", "anchor nodes_map")


def _same(pattern, node, found):
    """Whether ``node`` and what it uses look like ``pattern``; fills ``found``: pattern node -> node."""
    if pattern in found:
        return found[pattern] is node
    if pattern.op == "placeholder":
        found[pattern] = node
        return True
    if not isinstance(node, Node) or node.op != pattern.op or node.target != pattern.target:
        return False
    if len(node.args) != len(pattern.args) or set(node.kwargs) != set(pattern.kwargs):
        return False
    found[pattern] = node
    pairs = [*zip(pattern.args, node.args), *((v, node.kwargs[k]) for k, v in pattern.kwargs.items())]
    return all(_alike(p, n, found) for p, n in pairs)


def _alike(pattern, value, found):
    if isinstance(pattern, Node):
        return _same(pattern, value, found)
    if isinstance(pattern, (list, tuple)):
        return isinstance(value, (list, tuple)) and len(pattern) == len(value) and all(_alike(p, v, found) for p, v in zip(pattern, value))
    return type(pattern) is type(value) and pattern == value


def replace_pattern(gm, pattern, replacement):
    """Replace each place of ``gm`` that computes what ``pattern`` does by ``replacement``; returns what matched.

    Args:
        gm: a :class:`GraphModule`; it is changed and compiled anew.
        pattern, replacement: functions or modules of the same arguments, which match anything. Values inside a match must not be used outside.

    Example::

        >>> traced = clnn.fx.symbolic_trace(lambda x: clnn.relu(x + 1) * 2)
        >>> len(clnn.fx.replace_pattern(traced, lambda a: clnn.relu(a + 1), lambda a: clnn.sigmoid(a)))
        1
        >>> traced(clnn.zeros(1))
        tensor([1.])
    """
    from ._symbolic_trace import Tracer
    graphs = [f.graph if isinstance(f, GraphModule) else Tracer().trace(f) for f in (pattern, replacement)]
    wanted = graphs[0].output_node().args[0]
    if not isinstance(wanted, Node):
        raise RuntimeError("replace_pattern: the pattern returns one value")
    matches, taken = [], set()
    for node in gm.graph.nodes:
        found = {}
        if not _same(wanted, node, found):
            continue
        inner = {n for p, n in found.items() if p.op != "placeholder"}
        if inner & taken or any(u not in inner for n in inner if n is not node for u in n.users):
            continue
        taken |= inner
        matches.append(Match(node, found))
    inputs = [n for n in graphs[0].nodes if n.op == "placeholder"]
    for match in matches:
        _replace(gm.graph, match, inputs, graphs[1])
    gm.recompile()
    return matches


def _replace(graph, match, inputs, replacement):
    values = {new: match.nodes_map.get(old) for old, new in zip(inputs, (n for n in replacement.nodes if n.op == "placeholder"))}
    with graph.inserting_before(min(match.anchor.users, default=match.anchor)):
        result = graph.graph_copy(replacement, values)
    if not isinstance(result, Node):
        raise RuntimeError("replace_pattern: the replacement returns one value")
    match.anchor.replace_all_uses_with(result)
    for node in reversed(graph.nodes):
        if node in match.nodes_map.values() and not node.users and node.op != "placeholder":
            graph.erase_node(node)


__all__ = ["Match", "replace_pattern"]
