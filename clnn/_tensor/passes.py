"""Backward passes over graphs of a known kind, repeated as lists of launches.

A training loop builds the same graph in every step. What its backward pass launches follows from the operators, the shapes and the attributes alone, so
the second pass of a kind is observed and later ones do the same with other buffers: the host pays for telling the graph, not for every rule again.
"""
from __future__ import annotations

import functools
import operator
from collections import Counter

from ..core import dtype as dt
from ..core import families, native
from ..core.config import config
from ..graph import fuse
from ..runtime import launch as launcher
from ..runtime.device import Device
from ..runtime.params import on_change
from . import foreign, override, repeat, tape
from .dispatch import plain
from .entries import OpNode
from .families import same, traced
from .grad_mode import state
from .regraph import Copied
from .tensor import Tensor
from .writing import bump

_ATOMS = frozenset((int, str, bool, bytes, type(None), dt.dtype))
_PENDING = 1 << 13      # elements per entry, of saved values that are still to be computed: more of them gain by being fused with what reads them
_MOST = 256             # kinds of graph that are remembered
_LARGE = 4096           # entries of a graph
_BYTES = 1 << 26        # of all that a pass computes
_AHEAD = 4              # parts of a key that tell no tensor, in front
_MISSES = 40            # passes over graphs of one root and size in a row that were new, after which few are looked at
_SELDOM = 16
_OPS = __name__.partition(".")[0] + ".ops."
_age = operator.attrgetter("seq")


class _Unlike(Exception):
    """A graph that is walked as it is: its pass does more than to launch what follows from its kind."""


def _collect(roots):
    """The entries that a walk from ``roots`` meets."""
    seen = {node for node, _ in roots}
    stack = list(seen)
    while stack:
        for e in stack.pop().edges:
            if e is not None and e[0] not in seen:
                seen.add(e[0])
                stack.append(e[0])
        if len(seen) > _LARGE:
            raise _Unlike
    return seen


native.give(Unlike=_Unlike, atoms=_ATOMS, most_entries=_LARGE)
_collect = native.form("collect", _collect)


@native.know
class _Graph:
    """The entries of a graph by age, what tells its kind, and the memory that its pass reads.

    ``key``: of each entry what its part of the pass follows from, sizes among it. ``links``: numbers that tell what belongs to what, and sizes that do not vary.
    """

    __slots__ = ("nodes", "number", "key", "buffers", "places", "device", "leaves", "drawn", "sort", "pending", "links")

    def __init__(self, roots, device):
        self.device = device
        found = _collect(roots)
        self.sort, self.pending = (roots[0][0].name(), len(found)), _PENDING * len(found)
        if not _known.looks(self.sort):
            raise _Unlike
        self.nodes = sorted(found, key=_age, reverse=True)
        self.number = {node: i for i, node in enumerate(self.nodes)}
        self.key, self.links, self.buffers, self.places, self.leaves, self.drawn = [], [], [], {}, [], []

    def describe(self, accumulate):
        links, number = self.links, self.number
        for node in self.nodes:
            if node.pre_hooks or node.hooks or node.trace:
                raise _Unlike
            kind = node.__class__
            if kind is OpNode:
                self._operator(node)
            elif kind is tape.AccumulateGrad:
                self._leaf(node, accumulate)
            else:
                self._other(node)
            for e in node.edges:
                links += (None,) if e is None else (number[e[0]], e[1])

    def _operator(self, node):
        if node.freed or node.retains:
            raise _Unlike
        key = self.key
        key += (node.op, *node.metas)
        values = node.values if "seed" not in node.op.position else self._without_places(node.op, node.values)
        for v, version in zip(values, node.versions):
            kind = v.__class__
            if kind in plain:
                if version != (v._ver or v._storage).version:
                    raise _Unlike
                self.tensor(v)
            elif kind in _ATOMS:
                key += (v, kind)
            else:
                self._attribute(v, kind)
        for kept in node.result or ():
            if kept is None:
                key.append(None)
                continue
            if kept.__class__ is not tuple or kept[0].__class__ not in plain or kept[1] is not None and kept[1].version != kept[2]:
                raise _Unlike
            self.tensor(kept[0])

    def _without_places(self, op, values):
        """``values``, with their place in the stream of random numbers put aside, as it is another in each pass."""
        at = op.position["first"]
        place = values[at]
        if place.__class__ is not int or -6 < place < 257:      # small ones are one object wherever they are used
            return values
        return [*values[:at], f"drawn {self._place(place)}", *values[at + 1:]]

    def _place(self, place):
        """The number of a place in the stream among those of this graph."""
        number = next((i for i, n in enumerate(self.drawn) if n is place), len(self.drawn))
        if number == len(self.drawn):
            self.drawn.append(place)
        return number

    def _attribute(self, v, kind):
        if kind is float:
            self.key += (v if v else str(v), kind)              # 0.0 equals -0.0
        elif kind is tuple or kind is list or issubclass(kind, tuple):
            self.key += (kind, float(len(v)))
            for item in v:
                if item.__class__ in _ATOMS:
                    self.key += (item, item.__class__)
                elif item.__class__ in plain:
                    self.tensor(item)                           # as the rules find it
                else:
                    self._attribute(item, item.__class__)
        elif kind.__module__.startswith(_OPS):                  # geometry that an operator worked out, made once
            self.key.append(v)
        else:
            raise _Unlike

    def _other(self, node):
        traits = node.traits()
        if traits is None or node.retains:
            raise _Unlike
        self.key.append(traits[0])
        if node.unfolds:
            self.key += [f"drawn {self._place(n)}" for n in node.numbers]
        self.links += (len(traits[1]), len(node.edges), self.number.get(getattr(node, "source", None)))
        for t in traits[1]:
            if t.__class__ not in plain:
                raise _Unlike
            self.tensor(t)

    def _leaf(self, node, accumulate):
        leaf = node.variable
        if leaf.__class__ not in plain or not leaf._rg or node.retains and any(node.retains.values()) or leaf._post_accumulate_hooks:
            raise _Unlike
        self.key += (leaf.shape, leaf._strides, leaf._dense, leaf.dtype)
        if leaf.__class__ is not Tensor:                        # a parameter, whose sizes tell a model from others
            self.links.append(leaf.shape)
        if not accumulate:
            return
        self.leaves.append(leaf)
        have = leaf._grad
        if have is None:
            self.key.append(None)
            return
        if have.__class__ is not Tensor or have._base is not None or have._rg or have._ver is not None or not have._dense:
            raise _Unlike
        st = have._storage
        if st.pinned or st.mirrored or st.version < 0 or st.nbytes != have._numel * have.dtype.itemsize:
            raise _Unlike
        self.tensor(have)

    def tensor(self, v):
        """Add an operand of the pass."""
        st = v._storage
        if st.device is not self.device:
            raise _Unlike
        if st.node is not None:
            if st.node.buf is None:
                self.pending -= v._numel
                if self.pending < 0:
                    raise _Unlike
            fuse.realize(st)
        buf = st.buf
        at = self.places.get(id(buf))
        if at is None:
            at = self.places[id(buf)] = len(self.buffers)
            self.buffers.append(buf)
        self.key += (v.shape, v._strides, v._offset, v.dtype)
        self.links.append(at)


_describe = native.form("describe_graph", _Graph.describe)


class _Pass:
    """A pass over graphs of one kind: its launches, the entries that it uses up, and the leaves that its results belong to."""

    __slots__ = ("recipe", "freed")

    def __init__(self, recipe, freed):
        self.recipe, self.freed = recipe, freed

    def parts(self):
        """What may be another over graphs of other sizes, besides the recipe."""
        return ()

    def varied(self, sizes, launches, results):
        """The same over a graph of other sizes."""
        if sum(sizes) > _BYTES:
            raise OverflowError("more than is held for a pass")
        return _Pass(self.recipe.varied(sizes, launches, results), self.freed)


class _Known:
    """The kinds of graph that were met."""

    def __init__(self):
        self.passes, self.met, self.trials, self.akin, self.misses = {}, {}, {}, {}, Counter()

    def clear(self):
        self.passes.clear()
        self.akin.clear()
        self.met.clear()
        self.trials.clear()

    def keep(self, key, found):
        if len(self.passes) >= _MOST:
            self.passes.clear()
        self.passes[key] = found

    def looks(self, sort):
        """Whether the next graph of a sort is told at all: programs whose graphs are new each time, or too large, should not pay for it."""
        if len(self.misses) > _MOST:
            self.misses.clear()
        self.misses[sort] += 1
        return self.misses[sort] <= _MISSES or not self.misses[sort] % _SELDOM


_known = _Known()
on_change(_known.clear)
dt.default_listeners.append(_known.clear)


def run(roots, seeds, keep, places=None):
    """``tape.run`` where the pass itself is not recorded. ``places``: give the gradients that arrive there in place of adding up those of leaves."""
    with tape.adding:
        graph = _told(roots, seeds, keep, places)
        if graph is not None:
            key = tuple(graph.key)
            try:
                found = _known.passes.get(key)
            except TypeError:                                   # an attribute without a hash
                return tape.run(roots, seeds, keep, False, places, accumulate=places is None)
            if found is not None:
                del _known.misses[graph.sort]
                return _again(found, graph, places is None)
            return _first(key, graph, roots, seeds, keep, places)
    return tape.run(roots, seeds, keep, False, places, accumulate=places is None)           # not held here: hooks may wait for other threads


def _told(roots, seeds, keep, places):
    """The graph if a pass over it could be repeated, else None."""
    if launcher.recorders is not None or launcher.recording is not None or not repeat.on or state.anomaly or state.autocast is not None \
            or state.pushing or override.local.modes or foreign.here.maps or seeds[0].__class__ is not Tensor:
        return None
    device = seeds[0]._home
    if device.__class__ is not Device or device.waiting or config.debug:
        return None
    try:
        graph = _Graph(roots, device)
        number = graph.number
        graph.key += (device, keep, config.matmul_precision, config.tensor_cores)
        graph.links += [x for node, nr in roots for x in (number[node], nr)]
        for seed in seeds:
            if seed.__class__ not in plain:
                return None
            graph.tensor(seed)
        _describe(graph, places is None)
    except (_Unlike, foreign.NoStrides):
        return None
    if places is not None:
        graph.links += [x for node, nr in places for x in (number.get(node), nr)]
        graph.key.append("places")
    graph.key.append(families.Fixed(graph.links))
    return graph


def _first(key, graph, roots, seeds, keep, places):
    """Walk a graph of a kind that is not known yet; the second time, learn what the pass does, or where it follows from those over graphs of other sizes do that."""
    family, numbers = families.find(_known.akin, key, graph.device.manner(), _MOST, True)
    variant, said = (None, None) if family is None else family.of(numbers)
    sort = hash(key)
    if said is not None and variant.checks >= families.CHECKS:
        _known.met[sort] = count = _known.met.get(sort, 0) + 1
        if count >= families.KEPT:
            _known.keep(key, said)
        elif len(_known.met) > 16 * _MOST:
            _known.met.clear()
        del _known.misses[graph.sort]
        return _again(said, graph, places is None)

    def walk(*seeds):
        return _walked(graph.nodes, graph.leaves, roots, seeds, keep, places)
    count = _known.met[sort] = _known.met.get(sort, 0) + 1
    opens = said is not None or family is not None and family.open(numbers)
    if count == 1 and not opens or count > 4 or not repeat._lock.acquire(blocking=False):
        if len(_known.met) > 16 * _MOST:
            _known.met.clear()
        return list(walk(*seeds))
    try:
        if opens and said is None:
            variant, said = _trace(family, numbers, key, graph, roots, seeds, keep, places)
        result, recipe = repeat.observe(walk, seeds, graph.buffers, _PENDING * len(graph.nodes), _BYTES, graph.drawn, said is not None)
        if said is not None and recipe.__class__ is repeat.Recipe:
            family.check(variant, said.recipe, recipe, same)
    finally:
        repeat._lock.release()
    if recipe is repeat.WAITS:
        _known.met[sort] -= 1
    elif recipe is not None and (not graph.drawn or _confirmed(sort, recipe)):
        _known.keep(key, _Pass(recipe, _used_up(graph.nodes)))
    return list(result)


def _walked(nodes, leaves, roots, seeds, keep, places):
    """The gradients that a walk gives, or those of ``leaves`` that it has changed."""
    before = [None if leaf._grad is None else leaf._grad._storage.buf for leaf in leaves]
    got = tape.run(roots, list(seeds), keep, False, places, accumulate=places is None)
    return tuple(got) if places is not None else tuple([_gained(leaf, had) for leaf, had in zip(leaves, before)])


def _used_up(nodes):
    return [i for i, node in enumerate(nodes) if getattr(node, "freed", False)]


def _trace(family, numbers, key, graph, roots, seeds, keep, places):
    """What the ``family`` learns of what a walk over the graph does, as a function of sizes."""
    def call(key):
        nonlocal copied
        copied = Copied(graph.nodes, seeds, key[_AHEAD:], _ATOMS, plain, places is None)
        copies = copied.copies
        return _walked(None, copied.leaves, [(copies[node], nr) for node, nr in roots], copied.seeds, keep,
                       None if places is None else [(copies.get(node, node), nr) for node, nr in places])
    copied = None
    trace = functools.partial(traced, shared=True, drawn=graph.drawn, deep=True)
    return family.learn(numbers, trace, call, key, graph.buffers, _PENDING * len(graph.nodes), graph.device, repeat._recipe,
                        lambda recipe: _Pass(recipe, _used_up(copied.copies.values())))


def _confirmed(sort, recipe):
    """Whether a pass that draws random numbers did the same before, but for their places in the stream: nothing else may follow from these."""
    before = _known.trials.get(sort)
    _known.trials[sort] = recipe
    return before is not None and repeat.alike(before, recipe)


def _gained(leaf, had):
    """The gradient of a leaf if the pass has changed it."""
    grad = leaf._grad
    if grad.__class__ is Tensor and had is not None and grad._storage.buf is had:
        return None
    return grad                                                 # a sparse one is no result of a recipe


def _again(found, graph, accumulate):
    got = found.recipe.run(graph.buffers, graph.drawn)
    for i in found.freed:
        graph.nodes[i].release()
    if not accumulate:
        return list(got)
    for leaf, new in zip(graph.leaves, got):
        if new is None:
            continue
        have = leaf._grad
        if have is None:
            leaf._grad = new
        else:
            have._storage.node, have._storage.buf = None, new._storage.buf
            bump(have)
    return None
