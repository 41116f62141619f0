"""What a spliced function leaves on the tape: its entries, told from those that its operators left when it was observed (see ``splice``)."""
from __future__ import annotations

import copy

from ..core import native, rng
from ..core.shape import Size
from ..graph.node import Storage
from . import tape
from .dispatch import plain
from .entries import FACTORS, OpNode
from .families import same
from .tensor import Tensor, edge, make

_new = object.__new__
STEPS = 512             # entries of one function
_PENDING = 1 << 15      # elements of a kept value that is still to be computed: a larger one is rather computed where it is needed, with what reads it


class Unlike(Exception):
    """A function whose entries cannot be told."""


class Kept:
    """A value that an entry keeps: where it is found at a later call, and whose output it is (``producer``: step and output number) where that matters.

    ``place``: the number of an operand; behind the operands of a result; behind these of a value between; or -1 for a constant, -2 and less for places in the
    stream of random numbers. An operand itself has no ``geometry``, parts of memory have their shape, strides, offset and so on.
    """

    __slots__ = ("place", "geometry", "producer", "value")

    def __init__(self, place, geometry=None, producer=None, value=None):
        self.place, self.geometry, self.producer, self.value = place, geometry, producer, value

    def varies(self):
        """What may be another for other sizes."""
        return (self.value,) if self.place == -1 else self.geometry

    def varied(self, told):
        """The same with what it ``varies``."""
        return self if told is None else Kept(-1, value=told[0]) if self.place == -1 else Kept(self.place, told, self.producer)


class Step:
    """What an entry is but for the memory of its values. ``edges``: None, (step, output number) or the number of an operand. ``origin``: of a copy, whose
    it is: how many functions back the sources go, and the step there. ``bare``: an entry that keeps nothing, to be copied."""

    __slots__ = ("op", "edges", "outs", "values", "metas", "keeps", "result", "label", "lasts", "origin", "bare")

    def __init__(self, node, number, ends, kept):
        self.outs, self.label, self.bare = node.outs, getattr(node, "label", ""), None
        self.origin = node.__dict__.get("origin")
        edges = [through(e) for e in node.edges]
        self.edges = [None if e is None else ends[e] if e in ends else (number[e[0]], e[1]) for e in edges]
        if node.bare:
            self.bare = copy.copy(node)
            self.bare.edges = None
            return
        self.op, self.metas, self.keeps, self.lasts = node.op, node.metas, node.keeps, node.lasts
        self.values = [kept(v) for v in node.values]
        self.result = None if node.result is None else [None if r is None else kept(_unpacked(r)) for r in node.result]

    def varies(self):
        """What may be another for other sizes."""
        if self.bare is not None:
            return {name: getattr(self.bare, name) for name in _own(self.bare)}
        return self.metas, [v.varies() for v in self.values], self.result and [r and r.varies() for r in self.result]

    def frame(self):
        """What is the same for all sizes."""
        values = [*self.values, *(self.result or ())] if self.bare is None else ()
        of = type(self.bare) if self.bare is not None else (self.op, self.keeps, self.lasts, self.result is None)
        return of, self.outs, self.label, self.origin, tuple(self.edges), tuple([v and (v.place, v.geometry is None, v.producer) for v in values])

    def varied(self, told):
        """The same with what it ``varies``."""
        new = copy.copy(self)
        if self.bare is not None:
            new.bare = copy.copy(self.bare)
            for name, value in told.items():
                setattr(new.bare, name, value)
            return new
        new.metas, values, result = told
        new.values = [v.varied(one) for v, one in zip(self.values, values)]
        new.result = self.result and [r and r.varied(one) for r, one in zip(self.result, result)]
        return new

    def name(self):
        return self.label or (self.op.grad_name if self.bare is None else self.bare.name())

    def uses_up(self):
        return self.bare is None and not self.lasts and (self.keeps or self.result is not None or self.op.name in FACTORS)


def _own(node):
    """The attributes that an entry has besides those of all."""
    slots = [name for cls in type(node).__mro__[:type(node).__mro__.index(tape.Node)] for name in cls.__dict__.get("__slots__", ())]
    return [*slots, *node.__dict__]


@native.know
class Template:
    """A kind of call: its launches, its entries oldest first, whose outputs the results are, which operands and results the entries keep.

    ``draws``: functions that give the random numbers it takes, with their arguments, of which a shape is the first; they are operands behind the others. Or
    (None, how many blocks it takes of the stream, with which seed, None).
    ``more``: what it ``varies`` as a function of sizes, where such were traced; ``told``: a text for that.
    ``kin``: what tells it where it follows from that of other sizes: one with the same entries, and the sizes; of what was traced the first one with such entries.
    """

    __slots__ = ("recipe", "steps", "roots", "wanted", "kept", "uses_up", "single", "again", "draws", "reached", "kin", "more", "told")

    def __init__(self, recipe, single, draws, steps=(), roots=(None,), wanted=(), kept=(False,)):
        self.recipe, self.single, self.draws, self.steps, self.roots, self.wanted, self.kept = recipe, single, draws, steps, roots, wanted, kept
        self.uses_up = any(s.uses_up() for s in steps)
        ends = {e for s in steps for e in s.edges if e.__class__ is int}
        self.reached = [i in ends for i in range(len(wanted))]      # operands whose gradients the entries give
        self.again = None               # the kinds of its gradients that are differentiated again
        self.kin = None

    def varies(self):
        """What may be another for other sizes, of the entries."""
        return [s.varies() for s in self.steps]

    def parts(self):
        """What may be another for other sizes, besides the recipe and the entries: how many random numbers."""
        return ([shape for _, shape, _, _ in self.draws],)

    def varied(self, sizes, launches, results, shapes):
        """The same for other sizes, which ``kin`` is to tell; ``steps`` are made when they are needed. None under another seed."""
        if shapes and not self.seeded():
            return None
        new = _new(Template)
        new.roots, new.wanted, new.kept, new.uses_up, new.single, new.draws, new.reached = (
            self.roots, self.wanted, self.kept, self.uses_up, self.single, self.draws, self.reached)
        if shapes:
            new.draws = [(draw, shape, args, kwargs) for (draw, _, args, kwargs), shape in zip(self.draws, shapes)]
        new.recipe, new.again, new.kin = self.recipe.varied(sizes, launches, results), None, None
        return new

    def seeded(self):
        """Whether the stream of random numbers has the seed that was observed."""
        return all([draw is not None or seed == rng.signed(rng.current().key) for draw, _, seed, _ in self.draws])

    def frame(self):
        """What is the same for those of other sizes with the same entries."""
        return self.told or id(self), tuple(self.roots), tuple([s.frame() for s in self.steps])

    def of(self, *numbers):
        """The same for other sizes, without a recipe."""
        new = _new(Template)
        new.roots, new.uses_up, new.steps = self.roots, self.uses_up, [s.varied(one) for s, one in zip(self.steps, self.more(*numbers))]
        return new

    def same(self, seen):
        """Whether this, which follows from that of other sizes, is what was ``seen``."""
        return same(self.recipe, seen.recipe) and self.varies() == seen.varies() and self.roots == seen.roots and self.wanted == seen.wanted \
            and self.parts() == seen.parts() and [s.frame() for s in self.steps] == [s.frame() for s in seen.steps] and self.kept == seen.kept

    def __getattr__(self, name):
        if name != "steps":
            raise AttributeError(name)
        base, *numbers = self.kin
        self.steps = steps = base.of(*numbers).steps
        return steps


class Gate(tape.Node):
    """Where the gradient of an operand leaves the function."""

    __slots__ = ()

    def apply(self, grads, needed):
        return grads


def through(e):
    """An edge, or that behind a gate."""
    return e[0].edges[0] if e is not None and e[0].__class__ is Gate else e


def told(results, operands, edges, numbers=()):
    """(values between as flat tensors, steps, roots, which operands are kept, which results are) of the graph from ``results`` down to the operands."""
    told = _Telling(results, operands, edges, numbers)
    nodes = _between([r._grad_fn for r in results if r is not None and r._rg], told.ends)
    told.number = number = {node: n for n, node in enumerate(nodes)}
    steps = [Step(node, number, told.ends, told.kept) for node in nodes]
    roots = [(number[r._grad_fn], r._out_nr) if r is not None and r._rg else None for r in results]
    return told.between, steps, roots, told.wanted, told.results


class _Telling:
    """Where the values that entries keep are found: among the operands, the results, values between, or the very ``numbers``."""

    def __init__(self, results, operands, edges, numbers):
        self.drawn = {id(n): -2 - i for i, n in enumerate(numbers)}
        self.operands, self.ends, self.memory, self.between, self.number = operands, {}, {}, [], None
        for i, t in enumerate(operands):
            if t is not None:
                self.memory.setdefault(id(t._storage.buf), i)
            at = (edge(t) if t is not None and t._rg else None) if edges is None else edges[i]
            if at is not None:
                self.ends.setdefault(at, i)
        self.sources = list(operands)
        for r in results:
            if r is not None and self.memory.setdefault(id(r._storage.buffer()), len(self.sources)) != len(self.sources):
                raise Unlike                                   # an operand's memory, or that of two results
            self.sources.append(r)
        self.wanted, self.results = [False] * len(operands), [False] * len(results)

    def kept(self, v):
        if not isinstance(v, Tensor):
            if v.__class__ in (list, tuple) and any(isinstance(x, Tensor) for x in v):
                raise Unlike
            return Kept(self.drawn.get(id(v), -1), value=v)
        if v.__class__ not in plain or not isinstance(v._storage, Storage):
            raise Unlike
        if v._storage.node is not None and v._storage.node.buf is None and v._numel > _PENDING:
            raise Unlike
        count, producer = len(self.operands), (self.number[v._grad_fn], v._out_nr) if v._grad_fn in self.number else None
        at = self.memory.get(id(v._storage.buffer()))
        if at is None:
            at = self.memory[id(v._storage.buf)] = len(self.sources)
            n = v._storage.nbytes // v.dtype.itemsize
            self.between.append(make(v._storage, Size((n,)), v.dtype, n))
            self.sources.append(self.between[-1])
        offset = v._offset
        if at < count:
            for i, t in enumerate(self.operands):
                if t is v:
                    self.wanted[i] = True
                    return Kept(i)
            if v._storage is not self.operands[at]._storage:    # a copy that shares memory until one of them is written
                raise Unlike
            self.wanted[at] = True
            offset -= self.operands[at]._offset
        elif at - count < len(self.results):
            self.results[at - count] = True
        if v.dtype is not self.sources[at].dtype or v._grad_fn is not None and producer is None:
            raise Unlike
        return Kept(at, (v.shape, v._strides, offset, v._numel, v._dense), producer)


def _between(roots, ends):
    """The entries from ``roots`` down to ``ends``, oldest first."""
    seen, stack = set(roots), list(roots)
    while stack:
        node = stack.pop()
        if not (node.bare or isinstance(node, OpNode)) or getattr(node, "freed", False) or node.hooks or node.pre_hooks or node.retains or node.trace \
                or len(seen) > STEPS:
            raise Unlike
        for e in map(through, node.edges):
            if e is not None and e not in ends and e[0] not in seen:
                seen.add(e[0])
                stack.append(e[0])
    return sorted(seen, key=tape._age)


def _unpacked(kept):
    if kept.__class__ is not tuple:
        raise Unlike
    return kept[0]
