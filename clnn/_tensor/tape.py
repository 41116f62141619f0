"""The autograd tape: nodes recorded by operators and the iterative engine that walks them backward.

A node refers to the nodes of its inputs (``edges``); nothing refers forward, so a graph dies with its last output. Nodes are numbered as
they are made, and a consumer is always younger than what it consumes, so a heap on that number visits each node after all its consumers.
"""
from __future__ import annotations

import heapq
import itertools
import warnings
from functools import lru_cache

from .grad_mode import state

_counter = itertools.count(1)


class Node:
    """Base of everything that ``tensor.grad_fn`` can be."""

    __slots__ = ("seq", "edges", "outs", "__weakref__", "__dict__")
    op_name = "node"
    pre_hooks = hooks = retains = trace = None      # rarely set: defaults on the class keep nodes cheap

    def __init__(self, edges, outs=1):
        self.seq, self.edges, self.outs = next(_counter), edges, outs

    def apply(self, grads, needed):
        """Gradients of the inputs, aligned with ``edges``; ``needed`` says which are wanted."""
        raise NotImplementedError

    def release(self):
        """Free what was saved for backward."""

    def name(self):
        return type(self).__name__

    def shown(self):
        """The node as a program sees it: its class goes by the name of the operator, which tools that draw graphs print."""
        name = self.name()
        if type(self).__name__ != name:
            self.__class__ = _called(type(self), name)
        return self

    @property
    def next_functions(self):
        return tuple((e[0].shown(), e[1]) if e is not None else (None, 0) for e in self.edges)

    def register_hook(self, fn):
        """``fn(grad_inputs, grad_outputs)`` runs after the node; a returned tuple replaces grad_inputs."""
        return _add_hook(self, "hooks", fn)

    def register_prehook(self, fn):
        """``fn(grad_outputs)`` runs before the node; a returned tuple replaces grad_outputs."""
        return _add_hook(self, "pre_hooks", fn)

    def __repr__(self):
        return f"<{self.name()} object at {hex(id(self))}>"


@lru_cache(maxsize=None)
def _called(cls, name):
    return type(name, (cls,), {"__slots__": (), "__module__": cls.__module__})


class Handle:
    """Returned by every hook registration; ``remove()`` takes the hook out."""

    _ids = itertools.count()

    def __init__(self, table):
        self.id, self.table = next(Handle._ids), table

    def remove(self):
        self.table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def _add_hook(owner, slot, fn):
    table = getattr(owner, slot)
    if table is None:
        table = {}
        setattr(owner, slot, table)
    handle = Handle(table)
    table[handle.id] = fn
    return handle


class AccumulateGrad(Node):
    """The end of a path: adds to ``variable.grad``. Holds its leaf weakly, as the leaf holds it."""

    __slots__ = ("variable",)

    def __init__(self, variable):
        super().__init__((), 1)
        self.seq = 0
        self.variable = variable

    def name(self):
        return "AccumulateGrad"


def run(roots, grads, keep, create_graph, inputs=None, allow_unused=False, accumulate=True):
    """Walk the tape from ``roots`` (list of (node, output number)) with output gradients ``grads``.

    With ``inputs`` (list of (node, output number)) the gradients that arrive there are returned, and only what leads to them is computed.
    """
    needed = _leading_to(roots, inputs) if inputs is not None else None
    wanted = {}
    if inputs is not None:
        for i, at in enumerate(inputs):
            wanted.setdefault(at, []).append(i)
    captured = [None] * len(inputs or ())
    buffers, heap, leaves = {}, [], []

    def deliver(node, nr, grad):
        slots = buffers.get(node)
        if slots is None:
            slots = buffers[node] = [None] * node.outs
            heapq.heappush(heap, (-node.seq, id(node), node))
        have = slots[nr]
        slots[nr] = grad if have is None else have + grad

    prev, state.grad = state.grad, create_graph
    try:
        for (node, nr), grad in zip(roots, grads):
            deliver(node, nr, grad)
        while heap:
            node = heapq.heappop(heap)[2]
            slots = buffers.pop(node)
            if node.retains:
                _tensor_hooks(node, slots)
            if wanted:
                for nr in range(node.outs):
                    for i in wanted.get((node, nr), ()):
                        captured[i] = slots[nr]
            if node.__class__ is AccumulateGrad:
                if accumulate:
                    _accumulate(node.variable, slots[0], create_graph)
                    leaves.append(node.variable)
                continue
            if needed is not None and node not in needed:
                continue
            for edge, grad in zip(node.edges, _step(node, slots, needed, keep)):
                if grad is not None and edge is not None:
                    deliver(edge[0], edge[1], grad)
    finally:
        state.grad = prev
    if not create_graph:
        for leaf in leaves:                 # a gradient left pending would keep its inputs, whole activations, alive
            if leaf._grad is not None:
                leaf._grad._settle()
    return captured


def _step(node, slots, needed, keep):
    """Apply one node: the gradients of its inputs, hooks included."""
    edges = node.edges
    if node.pre_hooks:
        for hook in list(node.pre_hooks.values()):
            new = hook(tuple(slots))
            if new is not None:
                slots = list(new) if isinstance(new, (tuple, list)) else [new]
    if needed is None:
        flags = [e is not None for e in edges]
    else:
        flags = [e is not None and e[0] in needed for e in edges]
    if state.anomaly:
        results = _watched(node, slots, flags)
    else:
        results = node.apply(slots, flags)
    if node.hooks:
        for hook in list(node.hooks.values()):
            new = hook(tuple(results), tuple(slots))
            if new is not None:
                results = new if isinstance(new, (tuple, list)) else (new,)
    if not keep:
        node.release()
    return results


def _tensor_hooks(node, slots):
    """Hooks registered on tensors that this node produced (or on the leaf it accumulates into)."""
    for nr, table in list(node.retains.items()):
        if slots[nr] is not None:
            for key, hook in sorted(table.items(), key=lambda kv: kv[0] if isinstance(kv[0], int) else float("inf")):
                new = hook(slots[nr])
                if new is not None:
                    slots[nr] = new


def _accumulate(leaf, grad, create_graph):
    if grad is None:
        return
    have = leaf._grad
    if have is None:
        leaf._grad = grad if create_graph else grad._snapshot()
    elif create_graph or have.is_sparse is not grad.is_sparse:      # a sum of both kinds is dense: another tensor
        leaf._grad = have + grad
    else:
        have._assign(have + grad)
    hooks = leaf.__dict__.get("_post_accumulate_hooks")
    if hooks:
        for hook in list(hooks.values()):
            hook(leaf)


def _leading_to(roots, inputs):
    """Nodes from which some input is reached (iterative post-order)."""
    targets = {node for node, _ in inputs}
    leads, done = set(targets), set()
    stack = [(node, False) for node, _ in roots]
    while stack:
        node, after = stack.pop()
        if after:
            if any(e is not None and e[0] in leads for e in node.edges):
                leads.add(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((e[0], False) for e in node.edges if e is not None and e[0] not in done)
    return leads


def _watched(node, slots, flags):
    """Apply one node in anomaly mode: what goes wrong in it is reported with the forward call that made it."""
    try:
        results = node.apply(slots, flags)
        _check_nan(node, results)
    except Exception:
        where = (f"Traceback of forward call that caused the error:\n{node.trace}" if node.trace else
                 "No forward pass information available. Enable detect anomaly during forward pass for more information.")
        warnings.warn(f"Error detected in {node.name()}. {where}", UserWarning, stacklevel=5)
        raise
    return results


def _check_nan(node, results):
    if not state.anomaly_check:
        return
    for i, r in enumerate(results):
        if r is not None and r.dtype.differentiable and bool(r.isnan().any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
