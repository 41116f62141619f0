"""``torch.cond`` in graphs: both branches as graphs of their own, of which the values choose one."""
from __future__ import annotations

from clnn._tensor.tensor import Tensor
from clnn._tensor.wrapped import local
from clnn.core.config import config
from clnn.utils._pytree import tree_flatten, tree_unflatten

from ._by_operator import _line_of_program
from .graph_module import GraphModule


class HigherOrder:
    """An operator whose arguments are graphs."""

    def __init__(self, name, fn):
        self.__name__ = self.__qualname__ = self._name = name
        self.__module__, self._fn = "clnn.ops.higher_order", fn

    def name(self):
        return self._name

    def __call__(self, *args, **kwargs):
        return self._fn(*args, **kwargs)

    def __str__(self):
        return self._name

    def __repr__(self):
        return f"{config.spoken}.ops.higher_order.{self._name}"

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _found, (self._name,)


def _found(name):
    return {"cond": COND}[name]


COND = HigherOrder("cond", lambda pred, true_fn, false_fn, operands=(): (true_fn if pred else false_fn)(*operands))


def record(recorder, pred, true_fn, false_fn, operands):
    """Write a branch into the graph of ``recorder``; returns the result for the values at hand."""
    before, local.modes = local.modes, local.modes[:-1]
    try:
        return _recorded(recorder, pred, true_fn, false_fn, operands)
    finally:
        local.modes = before


def _recorded(recorder, pred, true_fn, false_fn, operands):
    leaves, spec = tree_flatten(tuple(operands))
    outside: dict = {}
    for fn in (true_fn, false_fn):                              # what the branches read of the graph around them, and both get
        _graph(recorder, fn, spec, leaves, outside)
    given = [*leaves, *outside.values()]
    (yes, made), (no, other) = (_graph(recorder, fn, spec, given, outside) for fn in (true_fn, false_fn))
    if made != other:
        raise RuntimeError(f"Unmatched output spec from cond branches: true branch tree_spec {made} vs false branch tree_spec {other}.")
    number = sum(name.startswith("true_graph_") for name in recorder.root._modules)
    parts = []
    for name, graph in ((f"true_graph_{number}", yes), (f"false_graph_{number}", no)):
        graph.__class__.__name__ = name
        recorder.root.add_module(name, graph)
        parts.append(recorder.graph.get_attr(name))
        parts[-1].stack_trace = _line_of_program()
    values = (yes if pred else no)(*given)
    recorder.note(values, recorder.graph.call_function(COND, (recorder.node_of(pred), *parts, tuple(map(recorder.node_of, given))), name="cond"))
    return tree_unflatten(list(values), made)


def _graph(recorder, fn, spec, given, outside):
    """(the graph of one branch, the structure of what it returns)."""
    inner, made = type(recorder)(recorder.lines, recorder.composites), []
    known = {id(t): t for t in given if isinstance(t, Tensor)}

    def node_of(value):
        if isinstance(value, Tensor) and id(value) not in inner.nodes and id(value) in recorder.nodes and id(value) not in known:
            outside[id(value)] = value
        return type(recorder).node_of(inner, value)
    inner.node_of = node_of
    for t in given:
        node = recorder.node_of(t)
        inner.note(t, inner.graph.placeholder(node.name if hasattr(node, "op") else "arg"))
    with inner:
        flat, result = tree_flatten(fn(*tree_unflatten(list(given[:spec.num_leaves]), spec)))
    made.append(result)
    inner.graph.output(tuple(map(node_of, flat)))
    return GraphModule(inner.root, inner.graph), result
