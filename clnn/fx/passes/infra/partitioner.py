"""Parts of a graph that something else computes, as large as they can be."""
from __future__ import annotations

import itertools
import operator

from clnn.fx.graph import Graph
from clnn.fx.graph_module import GraphModule, _fetch

__all__ = ["CapabilityBasedPartitioner", "Partition"]


def leads_back(nodes) -> bool:
    """Whether a value computed from ``nodes`` elsewhere is used by one of them: these could not be one step."""
    inside, seen = set(nodes), set()
    waiting = [u for n in nodes for u in n.users if u not in inside]
    while waiting:
        node = waiting.pop()
        if node in inside:
            return True
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return False


class Partition:
    """Nodes that go together."""

    def __init__(self, id=None, nodes=None):                                        # noqa: A002
        self.id, self.nodes = id, dict.fromkeys(nodes or ())

    def add_node(self, node):
        self.nodes[node] = None

    def remove_node(self, node):
        del self.nodes[node]

    def size(self):
        return len(self.nodes)

    def __repr__(self):
        return str(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the nodes that ``operator_support`` says yes to, without making two groups need one another, and makes submodules of them.

    Example::

        >>> from clnn.fx.passes.infra.partitioner import CapabilityBasedPartitioner
        >>> from clnn.fx.passes.operator_support import create_op_support
        >>> traced = clnn.fx.symbolic_trace(lambda x: clnn.relu(clnn.sin(x)) + 1)
        >>> some = create_op_support(lambda modules, node: node.target in (clnn.relu, clnn.sin))
        >>> fused = CapabilityBasedPartitioner(traced, some).partition_and_fuse()
        >>> [n.name for n in fused.graph.nodes]
        ['x', 'fused_0', 'add', 'output']
    """

    def __init__(self, graph_module, operator_support, allows_single_node_partition=False, non_compute_ops=None, allowed_single_node_partition_ops=None,
                 skip_horizontal_fusion=False):
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition, self.skip_horizontal_fusion = allows_single_node_partition, skip_horizontal_fusion
        self.non_compute_ops, self.allowed_single_node_partition_ops = non_compute_ops or [], allowed_single_node_partition_ops or []

    def propose_partitions(self):
        """The groups, as :class:`Partition`."""
        modules, numbers, groups, home = dict(self.graph_module.named_modules()), itertools.count(), {}, {}
        for node in reversed(self.graph_module.graph.nodes):
            if node.op in ("placeholder", "output", "get_attr") or not self.operator_support.is_node_supported(modules, node):
                continue
            mine = next(numbers)
            others = list(dict.fromkeys(home[u] for u in node.users if u in home)) if self.skip_horizontal_fusion else list(groups)
            groups[mine] = Partition(mine, [node])
            home[node] = mine
            for other in others:
                if other == mine or other not in groups or leads_back({**groups[mine].nodes, **groups[other].nodes}):
                    continue
                keep, gone = (mine, other) if groups[mine].size() >= groups[other].size() else (other, mine)
                for n in groups.pop(gone).nodes:
                    groups[keep].add_node(n)
                    home[n] = keep
                mine = keep
        found = [groups[k] for k in sorted(groups)]
        return found if self.allows_single_node_partition else [p for p in found if self._computing(p) > 1]

    def _computing(self, part):
        """How many of the nodes are calls of functions that compute something."""
        named = [n._pretty_print_target(n.target) for n in part.nodes if n.op == "call_function"]
        if any(name in self.allowed_single_node_partition_ops for name in named):
            return 2
        idle = {"clnn.ops.aten.view", "torch.ops.aten.view", "operator.getitem", "_operator.getitem", *self.non_compute_ops}
        return sum(name not in idle for name in named)

    def fuse_partitions(self, partitions, prefix="fused_"):
        """The module with each group as a submodule."""
        for i, part in enumerate(partitions):
            self._fuse(part, f"{prefix}{i}")
        self.graph_module.recompile()
        return self.graph_module

    def _fuse(self, part, name):
        graph, inner, values, held = self.graph_module.graph, Graph(), {}, {}
        nodes = [n for n in graph.nodes if n in part.nodes]
        inputs = list(dict.fromkeys(i for n in nodes for i in n.all_input_nodes if i not in part.nodes))
        for n in inputs:
            values[n] = inner.placeholder(n.name, type_expr=n.type)
            values[n].meta = dict(n.meta)
        for n in nodes:
            values[n] = inner.node_copy(n, lambda m: values[m])
            if n.op == "call_module":
                held[n.target] = _fetch(self.graph_module, n.target)
        given = [n for n in nodes if any(u not in part.nodes for u in n.users)]
        inner.output(values[given[0]] if len(given) == 1 else tuple(values[n] for n in given))
        self.graph_module.add_submodule(name, GraphModule(held, inner, name))
        with graph.inserting_after(nodes[-1]):
            call = last = graph.call_module(name, tuple(inputs))
        results = [call] if len(given) == 1 else []
        while len(results) < len(given):
            with graph.inserting_after(last):
                last = graph.call_function(operator.getitem, (call, len(results)))
            results.append(last)
        for n, result in zip(given, results):
            for user in list(n.users):
                if user not in part.nodes:
                    user.replace_input_with(n, result)
            if len(given) == 1:
                result.meta = dict(n.meta)
        for n in reversed(nodes):
            graph.erase_node(n)
        legalize_graph(self.graph_module)

    def remove_bookend_non_compute_ops(self, partitions):
        """Take out of the groups what computes nothing at their beginnings and ends."""
        for part in partitions:
            changed = True
            while changed:
                idle = [n for n in part.nodes if n.op == "call_function" and n._pretty_print_target(n.target) in self.non_compute_ops
                        and (all(i not in part.nodes for i in n.all_input_nodes) or all(u not in part.nodes for u in n.users))]
                changed = bool(idle)
                for n in idle:
                    part.remove_node(n)

    def partition_and_fuse(self, prefix="fused_"):
        """Both at once."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def legalize_graph(gm):
    """Put the nodes into an order in which each comes behind those that it uses, and otherwise as they are."""
    done, waiting = {}, list(gm.graph.nodes)
    while waiting:
        later = []
        for node in waiting:
            if all(n in done for n in node.all_input_nodes) and (node.op != "output" or not later):
                done[node] = None
            else:
                later.append(node)
        if len(later) == len(waiting):
            raise RuntimeError("Input graph has cycles, unable to add " + str([n.name for n in waiting]))
        waiting = later
    gm.graph._nodes[:] = done
    return gm
