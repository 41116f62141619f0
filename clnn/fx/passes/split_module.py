"""A graph module cut into submodules."""
from __future__ import annotations

import operator

from clnn.fx.graph import Graph
from clnn.fx.graph_module import GraphModule, _fetch
from clnn.fx.node import map_arg

__all__ = ["Partition", "split_module"]


class Partition:
    """The nodes of one submodule: what it takes, what others take of it, and the partitions that it needs."""

    def __init__(self, name):
        self.name, self.submod_name = name, f"submod_{name}"
        self.nodes, self.inputs, self.outputs, self.needs = [], {}, {}, {}

    def __repr__(self):
        return f"name: {self.name},\n nodes: {[n.name for n in self.nodes]},\n inputs: {[n.name for n in self.inputs]},\n outputs: {[n.name for n in self.outputs]}"


def split_module(m, root_m, split_callback, qualname_map=None, keep_original_order=False, keep_original_node_name=False, keep_original_input_name=True, *,
                 partition_affix=None):
    """A module of submodules ``submod_0``, ``submod_1``, ...: ``split_callback(node)`` gives the number of that which a node goes to.

    Args:
        m: the :class:`GraphModule` to cut. root_m: the module that it was traced from.
        qualname_map: a dictionary that gets the dotted name of each submodule's module -> its name in ``m``.

    Raises RuntimeError if the parts need one another.

    Example::

        >>> from clnn.fx.passes.split_module import split_module
        >>> traced = clnn.fx.symbolic_trace(lambda x: (x + 1).relu() * 2)
        >>> halves = split_module(traced, traced, lambda node: int(node.name == "mul"))
        >>> [name for name, _ in halves.named_children()], halves(clnn.tensor([-3., 1.]))
        (['submod_0', 'submod_1'], tensor([0., 4.]))
    """
    parts, home = {}, {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = str(split_callback(node))
            part = parts.get(name)
            if part is None:
                part = parts[name] = Partition(name if partition_affix is None else f"{partition_affix}_{name}")
            part.nodes.append(node)
            home[node] = part
    for node in m.graph.nodes:
        mine = home.get(node)
        for n in node.all_input_nodes:
            theirs = home.get(n)
            if theirs is not None and theirs is not mine:
                theirs.outputs[n] = None
            if mine is not None and theirs is not mine:
                mine.inputs[n] = None
                if theirs is not None:
                    mine.needs[theirs] = None
    base, held, values = Graph(), {}, {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            values[node] = base.node_copy(node)
            if node.op == "get_attr":
                held[node.target] = _fetch(m, node.target)
    for part in _in_order(list(parts.values())):
        held[part.submod_name] = _submodule(m, part, qualname_map, keep_original_node_name)
        call = base.call_module(part.submod_name, tuple(values[n] for n in part.inputs))
        several = len(part.outputs) > 1
        for i, n in enumerate(part.outputs):
            values[n] = base.call_function(operator.getitem, (call, i)) if several else call
    for node in m.graph.find_nodes(op="output"):
        made = base.output(map_arg(node.args[0], lambda n: values[n]))
        made.meta = dict(node.meta)
    base._codegen = m.graph._codegen
    return GraphModule(held, base)


def _in_order(parts):
    """The parts, each behind those that it needs."""
    done, waiting = {}, parts
    while waiting:
        ready = [p for p in waiting if all(n in done for n in p.needs)]
        if not ready:
            raise RuntimeError("cycle exists between partitions!")
        done[ready[0]] = None
        waiting = [p for p in waiting if p is not ready[0]]
    return list(done)


def _submodule(m, part, names, keep_names):
    graph, values, held = Graph(), {}, {}
    for n in part.inputs:
        values[n] = graph.placeholder(n.name, type_expr=n.type)
        values[n].meta = dict(n.meta)
    for node in part.nodes:
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: values[n])
        name = node.name if keep_names else None
        values[node] = made = graph.create_node(node.op, node.target, args, kwargs, name or (node.target if node.op == "call_module" else None), node.type)
        made.meta = dict(node.meta)
        if node.op == "call_module":
            made.target = node.target.replace(".", "_")
            held[made.target] = _fetch(m, node.target)
            if names is not None:
                names[f"{part.submod_name}.{made.target}"] = node.target
    results = tuple(values[n] for n in part.outputs)
    graph.output(results[0] if len(results) == 1 else results)
    return GraphModule(held, graph)
