"""Functions of a known kind as one entry of the tape, which keeps what their operators would.

A function made of operators leaves an entry per operator that it calls, and finding each costs the host more than the device needs for a few thousand
elements. Where its operators and launches follow from shapes, dtypes and attributes alone, the second call of a kind is observed: its launches become a
recipe whose results are the function's and whatever its entries keep. Later calls run that and leave a single entry. The operators' own entries are
made again, over the kept values and without computing anything, when a walk over the tape or a program asks for them; a backward pass that is repeated
(see ``passes``) needs none.
"""
from __future__ import annotations

import functools
from collections import Counter

from ..core import dtype as dt
from ..core.config import config
from ..core.shape import Size
from ..graph import fuse
from ..graph.node import Storage
from ..runtime import launch as launcher
from ..runtime.params import on_change
from . import foreign, override, repeat, tape
from .dispatch import plain
from .entries import FACTORS, FREED, OpNode, inference_saved
from .grad_mode import state
from .tensor import Tensor, edge, make

FEW = 1 << 18           # elements of all operands: with more, the host's part of the time is small
_TRIES = 4              # calls of a kind that are observed at most
_MOST = 4096            # kinds of call remembered
_STEPS = 64             # entries of one function
_new = object.__new__


class _Unlike(Exception):
    """A function whose entries cannot be told."""


class _Kept:
    """A value that an entry keeps: where it is found at a later call, and whose output it is (``producer``: step and output number) where that matters.

    ``place``: the number of an operand, of a kept result (counted on behind the operands), or -1 for a constant. An operand itself has no ``geometry``; parts
    of memory have their shape, strides, offset and so on.
    """

    __slots__ = ("place", "geometry", "producer", "value")

    def __init__(self, place, geometry=None, producer=None, value=None):
        self.place, self.geometry, self.producer, self.value = place, geometry, producer, value


class _Step:
    """What an entry is but for the memory of its values. ``edges``: None, (step, output number) or the number of an operand."""

    __slots__ = ("op", "edges", "outs", "values", "metas", "keeps", "result", "label", "lasts")


class Template:
    """A kind of call: its launches, its entries oldest first, and which operands these keep."""

    __slots__ = ("recipe", "steps", "root", "wanted", "uses_up", "keeps_result")

    def __init__(self, recipe, steps, root, wanted, keeps_result):
        self.recipe, self.steps, self.root, self.wanted, self.keeps_result = recipe, steps, root, wanted, keeps_result
        self.uses_up = any(not s.lasts and (s.keeps or s.result is not None or s.op.name in FACTORS) for s in steps)


class SplicedNode(tape.Node):
    """The entry of a function whose operators' entries are made when they are needed.

    ``operands``, ``versions``: the tensors that the entries keep, else None, and their versions; ``kept``: the result (for its memory) and the values between.
    """

    __slots__ = ("template", "operands", "versions", "kept", "owner", "version", "whole")
    freed, label, unfolds = False, "", True

    def name(self):
        root = self.template.steps[self.template.root[0]]
        return self.label or root.label or root.op.grad_name

    def __repr__(self):
        return f"<{self.name()} object at {hex(id(self))}>"

    def unfold(self):
        """From now on gradients go through the operators' own entries."""
        if self.whole is None and not self.freed:
            self.whole = self._entries()[self.template.root[0]]
            if self.label:
                self.whole.label = self.label
            self.edges = [(self.whole, self.template.root[1])]

    def shown(self):
        """The function's last operator, as a program sees it."""
        self.unfold()
        return self if self.whole is None else self.whole.shown()

    def _entries(self):
        template, ends, nodes, values = self.template, self.edges, [], {}
        for n, step in enumerate(template.steps):
            node = _new(OpNode)
            node.seq = self.seq - 1 + (n + 1) / (len(template.steps) + 1)       # between its neighbours
            node.op, node.outs, node.metas, node.keeps = step.op, step.outs, step.metas, step.keeps
            node.edges = [None if e is None else ends[e] if e.__class__ is int else (nodes[e[0]], e[1]) for e in step.edges]
            got = [self._value(kept, nodes, values) for kept in step.values]
            node.values, node.versions = [v for v, _ in got], [version for _, version in got]
            nodes.append(node)
            if step.result is not None:
                node.result = [None if kept is None else self._output(kept, nodes, values) for kept in step.result]
            if step.label:
                node.label = step.label
            if step.lasts:
                node.lasts = True
        return nodes

    def _value(self, kept, nodes, values):
        """(the value, the version that it has to have)."""
        at, count = kept.place, len(self.operands)
        if at < 0:
            return kept.value, 0
        if kept.geometry is None:
            return self.operands[at], self.versions[at]
        t = values.get(kept)
        if t is None:
            source = self.operands[at] if at < count else self.kept[at - count]
            t = values[kept] = _new(Tensor)
            t._storage, t.dtype = source._storage, source.dtype
            t.shape, t._strides, t._offset, t._numel, t._dense = kept.geometry
            if at < count:
                t._offset += source._offset
                t._dense = t._dense and not t._offset
                if source._ver is not None:
                    t._ver = source._ver
            if kept.producer is not None:
                t._grad_fn, t._out_nr, t._rg = nodes[kept.producer[0]], kept.producer[1], True
        return t, self.versions[at] if at < count else self.version if at == count and self.owner is not None else 0

    def _output(self, kept, nodes, values):
        """An output that its own entry keeps: without history, or the two would hold each other."""
        t, version = self._value(_Kept(kept.place, kept.geometry), nodes, values)
        first = kept.place == len(self.operands)
        return t, self.owner if first else None, version if first else 0

    def apply(self, grads, needed):
        if self.whole is None:                                  # it was used up before
            raise RuntimeError(FREED)
        return grads

    def release(self):
        if self.template.uses_up:
            self.operands = self.kept = self.owner = None
            self.freed = True

    def traits(self):
        """See :meth:`tape.Node.traits`."""
        if self.whole is not None:
            return (SplicedNode,), ()
        if self.freed or self.owner is not None and self.owner.version != self.version:
            return None
        tensors = [t for t in self.operands if t is not None]
        for t, version in zip(self.operands, self.versions):
            if t is not None and (t._ver or t._storage).version != version:
                return None
        return (self.template,), [*tensors, *[t for t in self.kept if t is not None]]


class Spliced:
    """The kinds of call of some functions.

    What they launch must follow from shapes, dtypes, attributes and the tensors named as operands: no random numbers, no state, no values read.
    """

    def __init__(self):
        self.known = {}
        on_change(self.known.clear)
        dt.default_listeners.append(self.known.clear)

    def call(self, body, operands, key):
        """``body()``, or the same in fewer steps.

        Args:
            body: computes one tensor from ``operands``.
            operands: all tensors that it reads; None for those that are missing.
            key: a tuple that tells the function and its attributes.
        """
        if launcher.recorders is not None or launcher.recording is not None or not repeat.on or state.watched or state.autocast is not None \
                or foreign.early is not None or foreign.dispatched is not None or override.local.modes or state.pushing:
            return body()
        kind = self._kind(operands, key)
        if kind is None:
            return body()
        key, buffers, tracked = kind
        found = self.known.get(key, 0)
        if found.__class__ is Template:
            return self._again(found, operands, buffers, tracked)
        if found > _TRIES:
            return body()
        if len(self.known) > _MOST:
            self.known.clear()
        if not found or not repeat._lock.acquire(blocking=False):
            self.known[key] = found + 1
            return body()
        try:
            result, template = _learn(body, operands, buffers, tracked)
        finally:
            repeat._lock.release()
        if template is not repeat.WAITS:
            self.known[key] = template or found + 1
        return result

    @staticmethod
    def _kind(operands, key):
        """(key of the call, memory of the operands, whether gradients are recorded); None where the function goes as it is."""
        key, buffers, total, tracked, grad, device = [config.matmul_precision, config.tensor_cores, *key], [], 0, False, bool(state.grad), None
        for t in operands:
            if t is None:
                key.append(None)
                continue
            if t.__class__ not in plain or t.dtype.is_complex:
                return None
            st = t._storage
            if st.__class__ is not Storage or st.device is not device and device is not None:
                return None
            device = st.device
            if st.node is not None:
                fuse.realize(st)
            buffers.append(st.buf)
            total += t._numel
            tracks = grad and t._rg
            tracked = tracked or tracks
            key += (t.shape, t._strides, t._offset, t.dtype, tracks)
        if not 0 < total <= FEW:
            return None
        if len(set(map(id, buffers))) < len(buffers):
            ids = list(map(id, buffers))
            key.append(tuple(map(ids.index, ids)))
        key.append(device)
        return tuple(key), buffers, tracked

    @staticmethod
    def _again(template, operands, buffers, tracked):
        got = template.recipe.run(buffers)
        out = got[0]
        if not tracked:
            return out
        node = _new(SplicedNode)
        node.seq, node.outs, node.template, node.whole = next(tape._counter), 1, template, None
        edges, kept, versions = node.edges, node.operands, node.versions = [], [], []
        for t, keep in zip(operands, template.wanted):
            edges.append(edge(t) if t is not None and t._rg else None)
            kept.append(t if keep else None)
            versions.append((t._ver or t._storage).version if keep else 0)
            if versions[-1] < 0:
                raise inference_saved()
        node.kept = [out._alias(), *got[1:]] if template.keeps_result else [None, *got[1:]]
        node.owner, node.version = (out._storage, out._storage.version) if template.keeps_result else (None, 0)
        out._grad_fn, out._rg = node, True
        return out


def _learn(body, operands, buffers, tracked):
    """(result, its Template, None or WAITS)."""
    said = []

    def watched(*_):
        r = body()
        if r.__class__ is not Tensor or r._rg is not tracked:
            return r
        try:
            between, *rest = _told(r, operands) if tracked else ([],)
        except _Unlike:
            return r
        said.append((r, rest))
        return (r, *between)
    given = [t for t in operands if t is not None]
    result, recipe = repeat.observe(watched, given, buffers, FEW)
    if not said:
        return result, None
    r, rest = said[0]
    if recipe is repeat.WAITS or recipe is None:
        return r, recipe
    return r, Template(recipe, *rest) if tracked else Template(recipe, (), None, (), False)


def spliced(body, bind):
    """``body`` of a composite with one result, as one entry where it has few elements (decorator). ``bind``: (args, kwargs) -> one value per parameter."""
    kinds = Spliced()

    @functools.wraps(body)
    def call(*args, **kwargs):
        if not state.grad:
            return body(*args, **kwargs)
        try:
            values = bind(args, kwargs)
        except TypeError:
            return body(*args, **kwargs)
        operands, key, tracked = [], [], False
        for v in values:
            kind = v.__class__
            if isinstance(v, Tensor):
                operands.append(v)
                key.append(Tensor)
                tracked = tracked or v._rg
            elif kind.__hash__ is None or kind is tuple and any([isinstance(x, Tensor) for x in v]):
                return body(*args, **kwargs)
            else:
                key += (v if kind is not float or v else str(v), kind)
        return kinds.call(lambda: body(*args, **kwargs), operands, key) if tracked else body(*args, **kwargs)
    return call


def _told(r, operands):
    """(values between as flat tensors, steps, root, which operands are kept, whether the result is) of the graph from ``r`` down to the operands."""
    ends, memory, between = {}, {}, []
    for i, t in enumerate(operands):
        if t is not None:
            memory.setdefault(id(t._storage), i)
            if t._rg:
                ends.setdefault(edge(t), i)
    if id(r._storage) in memory:
        raise _Unlike
    nodes = _between(r._grad_fn, ends)
    number, count = {node: n for n, node in enumerate(nodes)}, len(operands)
    memory[id(r._storage)] = count
    wanted = [False] * count

    def kept(v):
        if not isinstance(v, Tensor):
            if v.__class__ in (list, tuple) and any(isinstance(x, Tensor) for x in v):
                raise _Unlike
            return _Kept(-1, value=v)
        if v.__class__ not in plain or not isinstance(v._storage, Storage):
            raise _Unlike
        producer = (number[v._grad_fn], v._out_nr) if v._grad_fn in number else None
        at = memory.get(id(v._storage))
        if at is None:
            at = memory[id(v._storage)] = count + 1 + len(between)
            st = v._storage
            n = st.nbytes // v.dtype.itemsize
            between.append(make(st, Size((n,)), v.dtype, n))
        offset = v._offset
        if at < count:
            wanted[at] = True
            for i, t in enumerate(operands):
                if t is v:
                    wanted[i] = True
                    return _Kept(i)
            offset -= operands[at]._offset
        if v.dtype is not (operands[at] if at < count else r if at == count else between[at - count - 1]).dtype or v._grad_fn is not None and producer is None:
            raise _Unlike
        return _Kept(at, (v.shape, v._strides, offset, v._numel, v._dense), producer)
    steps = [_step(node, number, ends, kept) for node in nodes]
    if len(steps) == 1:                                         # which makes its own entry as fast
        raise _Unlike
    uses = Counter(k.place for s in steps for k in (*s.values, *(s.result or ())) if k is not None)
    return between, steps, (number[r._grad_fn], r._out_nr), wanted, uses[count] > 0


def _between(root, ends):
    """The entries from ``root`` down to ``ends``, oldest first."""
    seen, stack = {root}, [root]
    while stack:
        node = stack.pop()
        if not isinstance(node, OpNode) or node.freed or node.hooks or node.pre_hooks or node.retains or node.trace or len(seen) > _STEPS:
            raise _Unlike
        for e in node.edges:
            if e is not None and e not in ends and e[0] not in seen:
                seen.add(e[0])
                stack.append(e[0])
    return sorted(seen, key=tape._age)


def _step(node, number, ends, kept):
    step = _Step()
    step.op, step.outs, step.metas, step.keeps, step.label, step.lasts = node.op, node.outs, node.metas, node.keeps, node.label, node.lasts
    step.edges = [None if e is None else ends[e] if e in ends else (number[e[0]], e[1]) for e in node.edges]
    step.values = [kept(v) for v in node.values]
    step.result = None if node.result is None else [None if r is None else kept(_without_owner(r)) for r in node.result]
    return step


def _without_owner(kept):
    if kept.__class__ is not tuple:
        raise _Unlike
    return kept[0]

