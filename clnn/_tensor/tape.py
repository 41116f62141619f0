"""The autograd tape: nodes recorded by operators and the iterative engine that walks them backward.

A node refers to the nodes of its inputs (``edges``); nothing refers forward, so a graph dies with its last output. Nodes are numbered as
they are made, and a consumer is always younger than what it consumes, so a heap on that number visits each node after all its consumers.
"""
from __future__ import annotations

import heapq
import itertools
import operator
import threading
import warnings
import weakref
from functools import lru_cache

from ..core import native
from . import later
from .grad_mode import no_grad, state
from .handles import RemovableHandle

_push, _pop = heapq.heappush, heapq.heappop
_counter, _new = itertools.count(1), object.__new__
_LAST = 1 << 62
_choosing = threading.Lock()        # held while nothing is computed or made
adding = threading.RLock()          # held while gradients are added to those of leaves, which other threads' passes may share


class Node:
    """Base of everything that ``tensor.grad_fn`` can be."""

    __slots__ = ("seq", "edges", "outs", "__weakref__", "__dict__")
    op_name = "node"
    unfolds = False                                 # whether the entry stands for others, which ``unfold()`` makes: they take its place in walks that are not recorded
    pre_hooks = hooks = retains = trace = None      # rarely set: defaults on the class keep nodes cheap
    bare = False                                    # whether it keeps no tensors, so that a copy with other edges does the same for other operands
    operands = None                                 # which of the edges belong to operands; None for all
    fills = False                                   # whether ``apply`` makes zeros of gradients that are missing, or asks for none

    def __init__(self, edges, outs=1):
        self.seq, self.edges, self.outs = next(_counter), edges, outs

    def apply(self, grads, needed):
        """Gradients of the inputs, aligned with ``edges``; ``needed`` says which are wanted."""
        raise NotImplementedError

    def release(self):
        """Free what was saved for backward."""

    def traits(self):
        """What ``apply`` follows from besides gradients and edges: (hashable values, tensors). None where that is not known, or the entry cannot be
        applied: a pass over it is never repeated (see ``passes``)."""
        return None

    def take(self, told):
        """For an entry that keeps no tensors: be as ``told``, the values of :meth:`traits` with other sizes."""
        raise NotImplementedError

    def name(self):
        return type(self).__name__

    def shown(self, nr=0):
        """The node as a program sees it, asked about output ``nr``: its class goes by the name of the operator, which tools that draw graphs print."""
        name = self.name().rpartition("::")[2]
        if type(self).__name__ != name:
            self.__class__ = called(type(self), name)
        return self

    @property
    def next_functions(self):
        return tuple((e[0].shown(e[1]), e[1]) if e is not None else (None, 0) for e in self.edges)

    def register_hook(self, fn):
        """``fn(grad_inputs, grad_outputs)`` runs after the node; a returned tuple replaces grad_inputs."""
        return _add_hook(self, "hooks", fn)

    @property
    def metadata(self):
        """A dict that a program may keep with the node."""
        return self.__dict__.setdefault("notes", {})

    def _sequence_nr(self):
        return self.seq

    def __call__(self, *grads):
        """The gradients of the inputs for those of the outputs; one alone if there is but one."""
        if len(grads) != self.outs:
            raise TypeError(f"expected {self.outs} arguments, got {len(grads)} instead")
        for i, g in enumerate(grads):
            if g is not None and not hasattr(g, "dtype"):
                raise TypeError(f"argument {i} is not a Variable")
        with no_grad():
            got = (None,) * len(self.edges) if self._idle(grads) else tuple(self.apply(list(grads), [e is not None for e in self.edges]))
        got = tuple(g for g, e in zip(got, self.edges) if e is not None) if len(got) > 1 else got
        return got[0] if len(got) == 1 else got

    def _idle(self, grads):
        """Whether no gradient arrived, so that none goes on."""
        return not self.fills and all([g is None for g in grads])

    def register_prehook(self, fn):
        """``fn(grad_outputs)`` runs before the node; a returned tuple replaces grad_outputs."""
        return _add_hook(self, "pre_hooks", fn)

    def __repr__(self):
        return f"<{self.name().rpartition('::')[2]} object at {hex(id(self))}>"


@lru_cache(maxsize=None)
def called(cls, name):
    return type(name, (cls,), {"__slots__": (), "__module__": "builtins"})       # as PyTorch's print


def _add_hook(owner, slot, fn):
    table = getattr(owner, slot)
    if table is None:
        table = {}
        setattr(owner, slot, table)
    handle = RemovableHandle(table)
    table[handle.id] = fn
    return handle


@native.know
class AccumulateGrad(Node):
    """The end of a path: adds to ``variable.grad``. Holds its leaf weakly, as the leaf holds it."""

    __slots__ = ("variable",)

    def __init__(self, variable):
        super().__init__((), 1)
        self.seq -= _LAST                           # after all that computes, unless hooks see them; the leaves that were used last come first
        self.variable = variable

    def name(self):
        return "torch::autograd::AccumulateGrad"

    def __repr__(self):
        return f"<AccumulateGrad object at {hex(id(self))}>"

    def shown(self, nr=0):
        return self                                 # whose class has a name of its own

    def is_watched(self):
        """Whether hooks see when the gradient of the leaf is complete."""
        return self.hooks or self.pre_hooks or self.retains or self.variable._post_accumulate_hooks


def accumulator(t):
    """The AccumulateGrad node of a leaf, made once."""
    known = t._accumulator
    acc = known() if known is not None else None
    return _accumulator(t) if acc is None else acc


def _accumulator(t):
    acc = _new(AccumulateGrad)                      # as its constructor would make it: each step of a training loop makes one per parameter
    acc.seq, acc.edges, acc.outs, acc.variable = next(_counter) - _LAST, (), 1, t
    ref = weakref.ref(acc)                          # the graph owns it; a strong reference would make a cycle per leaf
    with _choosing:
        known = t._accumulator
        other = known() if known is not None else None
        if other is not None:                       # of another thread, meanwhile
            return other
        t._accumulator = ref
    hooks = t._leaf_hooks
    if hooks is not None:
        acc.retains = hooks
    return acc


native.give(entry=Node, accumulator=accumulator, last=_LAST, number=_counter.__next__)


class Task:
    """One walk over the tape: which nodes it comes by, for hooks that wait for several gradients."""

    final = ()                  # what programs want called when it is over

    def __init__(self, roots, inputs, accumulate, create_graph):
        self.unfolds = not create_graph
        self.roots, self.arrive, self.execute, self.needed, self.notes = roots, None, None, None, {}
        if inputs is not None:
            targets = {node for node, _ in inputs}
            leads = _leading_to(roots, targets, self.unfolds)
            self.arrive = self.needed = leads | targets
            self.execute = self.arrive if accumulate else leads     # what is only looked at need not run

    def arrivals(self):
        """How many gradients come to each leaf in this walk."""
        counts, seen, stack = {}, {node for node, _ in self.roots}, [node for node, _ in self.roots]
        for node in stack:
            if node.__class__ is AccumulateGrad:
                counts[node] = counts.get(node, 0) + 1
        while stack:
            node = stack.pop()
            if node.unfolds and self.unfolds:
                node.unfold()
            for e in node.edges if self.execute is None or node in self.execute else ():
                if e is None or self.needed is not None and e[0] not in self.needed:
                    continue
                if e[0].__class__ is AccumulateGrad:
                    counts[e[0]] = counts.get(e[0], 0) + 1
                elif e[0] not in seen:
                    seen.add(e[0])
                    stack.append(e[0])
        return counts

    def comes_by(self, node):
        """Whether the gradient of ``node``'s output is computed in this walk."""
        if self.arrive is None:
            self.arrive, stack = {n for n, _ in self.roots}, [n for n, _ in self.roots]
            while stack:
                at = stack.pop()
                if at.unfolds and self.unfolds:
                    at.unfold()
                for e in at.edges:
                    if e is not None and e[0] not in self.arrive:
                        self.arrive.add(e[0])
                        stack.append(e[0])
        return node in self.arrive


def run(roots, grads, keep, create_graph, inputs=None, accumulate=True):
    """Walk the tape from ``roots`` (list of (node, output number)) with output gradients ``grads``.

    With ``inputs`` (list of (node, output number)) only what leads to them is computed; without ``accumulate`` the gradients that arrive there are returned.
    """
    task = Task(roots, inputs, accumulate, create_graph)
    needed, execute, wanted = task.arrive, task.execute, {}
    for i, (node, nr) in enumerate(inputs or () if not accumulate else ()):
        wanted.setdefault(node, []).append((i, nr))
    captured = [None] * len(inputs or ())
    buffers, heap, leaves, waits, node = {}, [], [], None, None
    prev, state.grad, outer, state.task = state.grad, create_graph or None, state.task, task    # None: what rules make are no views to a program
    try:
        edges, results = roots, grads
        while True:
            for at, grad in zip(edges, results):
                if at is None or grad is None and needed is not None and at[0] not in needed:
                    continue
                to, nr = at
                slots = buffers.get(to)
                if slots is None:
                    slots = buffers[to] = [None] * to.outs
                    _push(heap, (-to.seq, id(to), to))
                    if waits is None and to.__class__ is AccumulateGrad and to.is_watched():
                        waits = task.arrivals()
                if grad is not None:                            # where none came, the entry has its turn all the same: hooks and functions are told
                    slots[nr] = grad if slots[nr] is None else slots[nr] + grad
            if waits is not None:
                _complete(node, edges, waits, buffers, heap)
            if not heap:
                break
            edges = results = ()
            node, grad = _pop(heap)[2], None                    # what nobody refers to any more can be written over
            slots = buffers.pop(node, None)
            if slots is None:                                   # a leaf that had its turn
                continue
            if node.unfolds and not create_graph:
                node.unfold()
            if node.retains:
                _tensor_hooks(node, slots)
            for i, nr in wanted.get(node, ()):
                captured[i] = slots[nr]
            if execute is not None and node not in execute:
                continue
            if node.__class__ is AccumulateGrad:
                _arrive(node, slots, create_graph)
                leaves.append(node.variable)
            else:
                edges, results = node.edges, _step(node, slots, needed, keep)
    finally:
        state.grad, state.task = prev, outer
    if not create_graph:
        with adding:
            for leaf in leaves:             # a gradient left pending would keep its inputs, whole activations, alive
                if leaf._grad is not None:
                    leaf._grad._settle()
    for callback in task.final:
        callback()
    return captured


def at_end(callback):
    """Call ``callback()`` when the walk that is under way in this thread is over."""
    if state.task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if not state.task.final:
        state.task.final = []
    state.task.final.append(callback)


def _complete(node, edges, waits, buffers, heap):
    """The leaves whose gradients have all arrived with those of ``node``'s inputs come next, in the order of the edges."""
    if getattr(getattr(node, "op", None), "name", "") == "_linear2d":
        edges = edges[::-1]                                     # in PyTorch the weight is behind its transposition, the bias is not
    for at in edges:
        if at is not None and at[0] in waits:
            waits[at[0]] -= 1
            if not waits[at[0]] and at[0] in buffers:
                _push(heap, (-2 * _LAST, next(_counter), at[0]))


def _before(node, slots):
    """Run the hooks that see the gradients of the outputs first."""
    for hook in list(node.pre_hooks.values()):
        new = hook(tuple(slots))
        if new is not None:
            slots = _replacements(new, slots, hook)
    return slots


def _after(node, results, slots):
    """Run the hooks that see the gradients of inputs and outputs last. An input is a tensor; settings of the operator are none."""
    places = node.operands if results else None
    seen = results if places is None else [results[i] for i in places]
    for hook in list(node.hooks.values()):
        new = hook(tuple(seen), tuple(slots))
        if new is not None:
            seen = _replacements(new, seen, hook)
    if places is None:
        return seen
    results = list(results)
    for i, value in zip(places, seen):
        results[i] = value
    return results


def _replacements(new, old, hook):
    """What a node's hook returned, checked to stand for the gradients that it was given."""
    if not isinstance(new, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
    if len(new) != len(old):
        raise RuntimeError(f"hook '{_named(hook)}' has returned an incorrect number of values (got {len(new)}, but expected {len(old)})")
    return [None if a is None else _replacement(a, b, hook) for a, b in zip(new, old)]


def _step(node, slots, needed, keep):
    """Apply one node: the gradients of its inputs, hooks included."""
    edges = node.edges
    if node.pre_hooks:
        slots = _before(node, slots)
    if needed is None:
        flags = [e is not None for e in edges]
    else:
        flags = [e is not None and e[0] in needed for e in edges]
    try:
        if slots[0] is None and node._idle(slots):
            results = [None] * len(edges)
        else:
            results = node.apply(slots, flags) if not state.anomaly else _watched(node, slots, flags)
    except NotImplementedError as refused:
        by_samples = getattr(refused, "by_samples", None)        # gradients without memory of their own
        if by_samples is None:
            raise
        results = by_samples(node, slots, flags)
    if node.hooks:
        results = _after(node, results, slots)
    if not keep:
        node.release()
    return results


def _turn(entry):
    """Hooks go by age, between the cast to ``grad_dtype`` and what keeps the gradient."""
    return entry[0] if isinstance(entry[0], int) else -1 if entry[0] == "first" else float("inf")


def _tensor_hooks(node, slots):
    """Hooks registered on tensors that this node produced (or on the leaf it accumulates into)."""
    for nr, table in list(node.retains.items()):
        for key, hook in sorted(table.items(), key=_turn):
            if slots[nr] is None and not isinstance(key, int):
                continue                                        # only a program's own hooks see that there is none
            new = hook(slots[nr])
            if new is not None:
                slots[nr] = new if key == "first" else _replacement(new, slots[nr], hook)


def _named(hook):
    return getattr(hook, "__name__", type(hook).__name__)


def _replacement(new, old, hook):
    """What a tensor's hook returned, checked to be a gradient of that tensor."""
    if not hasattr(new, "dtype"):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if new.shape != old.shape:
        raise RuntimeError(f"hook '{_named(hook)}' has changed the size of value")
    if new.dtype is not old.dtype:
        raise RuntimeError(f"hook '{_named(hook)}' has changed the type of value (was {old.type()} got {new.type()})")
    return new


def _laid_out(grad, leaf):
    """``grad`` in the memory order of its leaf, as optimizers read both."""
    try:
        if grad._dense and leaf._dense or grad._strides == leaf._strides:
            return grad
        order = later.memory_order(leaf, dense=True)
        if order is not None:
            return grad.permute(order).contiguous().permute([order.index(d) for d in range(len(order))])
        return grad.contiguous()                                # so also beside a leaf with gaps
    except later.NoStrides:
        return grad


def _add(leaf, grad, create_graph):
    with adding:
        have = leaf._grad
        if have is None:
            laid = _laid_out(grad, leaf)
            leaf._grad = laid.clone() if create_graph else laid._snapshot()         # neither is a view, nor what a program gave
        elif create_graph or have.is_sparse is not grad.is_sparse:      # a sum of both kinds is dense: another tensor
            leaf._grad = have + grad
        else:
            have._assign(have + grad)


def _arrive(node, slots, create_graph):
    """The end of a path: the gradient is added to the leaf's, hooks of the node and of the leaf included."""
    if node.pre_hooks:
        slots = _before(node, slots)
    leaf, grad = node.variable, slots[0]
    if not leaf._rg:                                # frozen since it was used
        return
    if grad is not None:
        _add(leaf, grad, create_graph)
    for hook in list((leaf._post_accumulate_hooks or {}).values()):
        if (got := hook(leaf)) is not None and got is not leaf:
            if not hasattr(got, "dtype"):
                raise TypeError(f"expected Variable, but hook returned '{type(got).__name__}'")
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    if node.hooks:
        _after(node, (), slots)


def move_retained(owner, node, nr):
    """After an in-place operator: ``.grad`` is to be that of the new value, no longer that of the output ``nr`` of ``node``."""
    keep = node.retains.get(nr, {}).pop("retain", None) if node is not None and node.retains else None
    if keep is not None:
        owner._hook_table()["retain"] = keep


def _leading_to(roots, targets, unfolds):
    """Nodes with a path to one of ``targets``: what was made earlier first, so that a node comes after all that it leads to."""
    found = {node for node, _ in roots}
    stack, leads = list(found), set()
    while stack:
        node = stack.pop()
        if node.unfolds and unfolds:
            node.unfold()
        for e in node.edges:
            if e is not None and e[0] not in found:
                found.add(e[0])
                stack.append(e[0])
    for node in sorted(found, key=_age):
        for e in node.edges:
            if e is not None and (e[0] in leads or e[0] in targets):
                leads.add(node)
                break
    return leads


_age = operator.attrgetter("seq")


def _watched(node, slots, flags):
    """Apply one node in anomaly mode: what fails, or gives NaN, tells where its forward call was."""
    try:
        results = node.apply(slots, flags)
        if state.anomaly_check:
            for i, r in enumerate(results):
                if r is not None and r.dtype.differentiable and bool(r.isnan().any()):
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    except Exception:
        where = f"Traceback of forward call that caused the error:\n{node.trace}" if node.trace else "No forward pass information available."
        warnings.warn(f"Error detected in {node.name()}. {where}", UserWarning, stacklevel=2)
        raise
    return results
