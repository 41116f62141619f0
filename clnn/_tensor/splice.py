"""Functions of a known kind as one entry of the tape, which keeps what their operators would.

A function made of operators leaves an entry per operator that it calls, and finding each costs the host more than the device needs for a few thousand
elements. Where its operators and launches follow from shapes, dtypes and attributes alone, the second call of a kind is observed: its launches become a
recipe whose results are the function's and whatever its entries keep. Later calls run that and leave a single entry. The operators' own entries are
made again, over the kept values and without computing anything, when a walk over the tape or a program asks for them; a backward pass that is repeated
(see ``passes``) needs none. Gradients that are differentiated again are such a function, too, of the kept values.
"""
from __future__ import annotations

import contextlib
import copy
import functools
import threading

from ..core import dtype as dt
from ..core import families, native, rng
from ..core.config import config
from ..core.shape import Size
from ..graph import fuse
from ..graph.node import Storage
from ..runtime import launch as launcher
from ..runtime.device import Device
from ..runtime.params import on_change
from . import foreign, override, repeat, tape
from .dispatch import plain
from .entries import FREED, OpNode, inference_saved
from .families import Ghost, of_partial, traced
from .grad_mode import state
from .template import Gate, Kept, Template, Unlike, told
from .tensor import Tensor, edge, make

FEW = 1 << 18           # elements of all operands: with more, the host's part of the time is small
_WHOLE = 1 << 16        # elements of a result that is still to be computed: with more it gains by being fused with what reads it
_TRIES = 4              # calls of a kind that are observed at most
_MANY = 48              # kinds of call, from which on sizes vary: to observe one that comes back rarely costs more than it saves
_MOST = 1024            # kinds of call remembered: each holds its launches and what its entries keep
_new = object.__new__


def _of_source(source, back, step):
    """An entry that an earlier function has of its own, or None where it is used up."""
    for _ in range(back):
        source = source.source
    source.unfold()
    return source.nodes and source.nodes[step]


@native.know
class SplicedNode(tape.Node):
    """The entry of a function whose operators' entries are made when they are needed.

    ``operands``, ``versions``: the tensors that the entries keep, else None, and their versions; ``kept``: the results and the values between that they keep;
    ``owners``: of kept results the memory and its version; ``nodes``: the operators' entries, once they were made to stay; ``source``: the entry whose
    gradients this function gives; ``numbers``: the places of the stream of random numbers where it drew.
    """

    __slots__ = ("template", "operands", "versions", "kept", "owners", "nodes", "source", "numbers")
    freed, label, unfolds = False, "", True

    def _last(self):
        at = next(r for r in self.template.roots if r is not None)
        return self.template.steps[at[0]]

    def name(self):
        return self.label or self._last().name()

    def __repr__(self):
        return f"<{self.name().rpartition('::')[2]} object at {hex(id(self))}>"

    def unfold(self):
        """From now on gradients go through the operators' own entries."""
        if self.nodes is None and not self.freed:
            self.nodes = nodes = self._entries(self.edges, self.source)
            self.edges = [None if r is None else (nodes[r[0]], r[1]) for r in self.template.roots]
            if self.label:
                next(e[0] for e in self.edges if e is not None).label = self.label

    def shown(self, nr=0):
        """The function's last operator, as a program sees it."""
        self.unfold()
        return self if self.nodes is None else (self.edges[nr] or next(e for e in self.edges if e is not None))[0].shown()

    def _entries(self, ends, source=None):
        """The operators' entries. ``ends``: the edge of each operand. What also stands for entries of ``source`` is these, so that gradients meet there; else
        it is a copy of them."""
        template, nodes, values = self.template, [], {}
        for n, step in enumerate(template.steps):
            if source is not None and step.origin is not None:
                own = _of_source(source, *step.origin)
                if own is not None:
                    nodes.append(own)
                    continue
            node = _new(OpNode) if step.bare is None else copy.copy(step.bare)
            node.seq = self.seq - 1 + (n + 1) / (len(template.steps) + 1)       # between its neighbours
            node.edges = [None if e is None else ends[e] if e.__class__ is int else (nodes[e[0]], e[1]) for e in step.edges]
            if step.bare is not None:
                nodes.append(node)
                continue
            node.op, node.outs, node.metas, node.keeps = step.op, step.outs, step.metas, step.keeps
            if step.label:
                node.label = step.label
            got = [self._value(kept, nodes, values) for kept in step.values]
            node.values, node.versions = [v for v, _ in got], [version for _, version in got]
            nodes.append(node)
            if step.result is not None:
                node.result = [None if kept is None else self._output(kept, nodes, values) for kept in step.result]
            if step.lasts:
                node.lasts = True
        return nodes

    def _value(self, kept, nodes, values):
        """(the value, the version that it has to have)."""
        at, count = kept.place, len(self.operands)
        if at < 0:
            return kept.value if at == -1 else self.numbers[-2 - at], 0
        if kept.geometry is None:
            return self.operands[at], self.versions[at]
        t = values.get(kept)
        if t is None:
            source = self.operands[at] if at < count else self.kept[at - count]
            t = values[kept] = _new(Tensor)
            t._storage, t._dtype = source._storage, source.dtype
            t._shape, t._strides, t._offset, t._numel, t._dense = kept.geometry
            if at < count:
                t._offset += source._offset
                t._dense = t._dense and not t._offset
                if source._ver is not None:
                    t._ver = source._ver
            if kept.producer is not None:
                t._grad_fn, t._out_nr, t._rg = nodes[kept.producer[0]], kept.producer[1], True
        if at < count:
            return t, self.versions[at]
        owner = self.owners[at - count] if at - count < len(self.owners) else None
        return t, owner[1] if owner is not None else 0

    def _output(self, kept, nodes, values):
        """An output that its own entry keeps: without history, or the two would hold each other."""
        t, version = self._value(Kept(kept.place, kept.geometry), nodes, values)
        at, count = kept.place, len(self.operands)
        if at < count:
            return t, t._ver or t._storage, version
        owner = self.owners[at - count] if at - count < len(self.owners) else None
        return t, owner and owner[0], version

    def apply(self, grads, needed):
        if self.nodes is not None:
            return grads
        if self.freed:
            raise RuntimeError(FREED)
        template = self.template
        ends = [i for i, flag in enumerate(needed) if flag]

        def gradients():
            return self._walked(grads, ends)
        if not self._unchanged():
            got = gradients()
        else:
            if template.again is None:
                template.again = Spliced(lasts=False)      # no longer than the template
            edges = [*[None if g is None else edge(g) for g in grads], *self.edges, *[None] * len(self.kept)]
            got = template.again.call(gradients, [*grads, *self.operands, *self.kept], ends, edges, self)
        out = [None] * len(needed)
        for i, g in zip(ends, got):
            out[i] = g
        return out

    def _walked(self, grads, ends):
        """The gradients of the operands ``ends``, with their history, by a walk over the entries."""
        gates = [None if e is None else Gate(()) for e in self.edges]
        for gate in filter(None, gates):
            gate.seq = self.seq - 1 + 0.5 / (len(self.template.steps) + 1)      # younger than what it leads to
        nodes = self._entries([None if g is None else (g, 0) for g in gates])
        for n, (node, step) in enumerate(zip(nodes, self.template.steps)):
            node.origin = (0, n) if step.origin is None else (step.origin[0] + 1, step.origin[1])
        roots = [((nodes[r[0]], r[1]), g) for r, g in zip(self.template.roots, grads) if r is not None and g is not None]
        got = tape.run([r for r, _ in roots], [g for _, g in roots], True, True, [(gates[i], 0) for i in ends], accumulate=False)
        for gate, e in zip(gates, self.edges):
            if gate is not None:
                gate.edges = [e]                                # the walk ended there; that over gradients of gradients goes on
        return tuple(got)

    def release(self):
        if self.template.uses_up:
            self.operands = self.kept = self.owners = None
            self.freed = True

    def _unchanged(self):
        """Whether nothing that is kept was overwritten."""
        for t, version in zip(self.operands, self.versions):
            if t is not None and (t._ver or t._storage).version != version:
                return False
        return all([owner is None or owner[0].version == owner[1] for owner in self.owners])

    def traits(self):
        """See :meth:`tape.Node.traits`."""
        if self.nodes is not None:
            return (SplicedNode,), ()
        if self.freed or not self._unchanged():
            return None
        return self.template.kin or self.template, [t for t in (*self.operands, *self.kept) if t is not None]


def usual() -> bool:
    """Whether nothing listens to the calls of operators, so that a function may run as what it was before."""
    return not (launcher.recorders is not None or launcher.recording is not None or not repeat.on or state.watched or state.autocast is not None
                or override.local.modes or state.pushing)


class _Outcome:
    """What a function that is traced comes to; ``inputs``: the memory that it reads, to which that of random numbers is added."""

    def __init__(self, tracked, inputs):
        self.tracked, self.inputs, self.single, self.entries, self.draws, self.numbers, self.places = tracked, inputs, False, (), [], [], []

    def __call__(self, body, args, kwargs, operands):
        """Everything that it computes: its results, and what its entries keep."""
        global _listening
        _listening = threading.get_ident(), self._listen, self._count
        try:
            result = body(*args, **kwargs)
        finally:
            _listening = None
        results, self.single = (result, False) if result.__class__ is tuple else ((result,), True)
        if any([r is not None and r._rg for r in results]) is not self.tracked:
            raise Unlike
        between, *self.entries = told(results, [*operands, *self.numbers], None, self.places) if self.tracked else ([],)
        return (*results, *between)

    def _listen(self, draw, shape, args, kwargs):
        shape, kind = Size(shape), next(v for v in (*args, *kwargs.values()) if v.__class__ is dt.dtype)
        numbers = make(Storage(next(v for v in (*args, *kwargs.values()) if v.__class__ is Device), shape.numel() * kind.itemsize, Ghost()), shape, kind, shape.numel())
        self.inputs.append(numbers._storage.buf)
        self.draws.append((draw, shape, args, kwargs))
        self.numbers.append(numbers)
        return numbers

    def _count(self, blocks):
        seed = rng.signed(rng.current().key)
        self.draws.append((None, blocks, seed, None))
        self.places.append((1 << 40) + len(self.places))        # an object of its own
        return seed, self.places[-1]

    def template(self, recipe):
        return Template(recipe, self.single, self.draws, *self.entries)


def _others(body, operands):
    """The geometry of the operands that are no arguments of ``body``, a ``functools.partial``: parameters, whose sizes tell a layer from others."""
    given, stack = set(), [*body.args, *body.keywords.values()]
    while stack:
        x = stack.pop()
        if x.__class__ is tuple or x.__class__ is list:
            stack += x
        else:
            given.add(id(x))
    return [(t.shape, t._strides) for t in operands if t is not None and id(t) not in given]


class Spliced:
    """The kinds of call of some functions.

    What they launch must follow from shapes, dtypes, attributes, the tensors named as operands and what they have :func:`drawn`: no other random numbers, no
    state, no values read.
    """

    def __init__(self, lasts=True):
        self.known, self.akin, self.kin, self.met, self.trials = {}, {}, {}, {}, {}
        for kept in (self.known, self.akin, self.kin, self.met, self.trials) if lasts else ():
            on_change(kept.clear)
            dt.default_listeners.append(kept.clear)

    def _confirmed(self, key, template):
        """Whether a function that takes places of the stream of random numbers did the same before from other places: nothing else may follow from these."""
        if all([draw is not None for draw, *_ in template.draws]):
            return True
        if len(self.trials) > _MOST:
            self.trials.clear()
        before = self.trials.pop(hash(key), None)
        self.trials[hash(key)] = template.recipe
        return before is not None and repeat.alike(before, template.recipe)

    def _met(self, key, template):
        """Keep the ``template`` of a call that comes back: many sizes are met once or twice."""
        told = hash(key)
        self.met[told] = count = self.met.get(told, 0) + 1
        if count >= families.KEPT:
            self.known[key] = template
        elif len(self.met) > 8 * _MOST:
            self.met.clear()

    def call(self, body, operands, key, edges=None, source=None):
        """``body()``, or the same in fewer steps.

        Args:
            body: computes a tensor, or a tuple of tensors and None, from ``operands``. Where it is a ``functools.partial`` with those of them whose sizes vary
                among its arguments, what it does for other sizes follows (see ``families``).
            operands: all tensors that it reads; None for those that are missing.
            key: a sequence that tells the function and its attributes.
            edges: where the gradients of the operands go, if that is not where they came from.
            source: the entry that ``body`` gives the gradients of.
        """
        if not usual():
            return body()
        kind = _kind(operands, key, edges, state.grad)
        if kind is None:
            return body()
        key, buffers, tracked = kind
        try:
            found = self.known.get(key, 0)
        except TypeError:                                       # an attribute without a hash
            return body()
        if found.__class__ is Template and found.draws and not found.seeded():
            found = 1                                           # what is known holds for another seed
        if found.__class__ is Template:
            return self._same(found, body, operands, buffers, tracked, edges, source)
        if found > _TRIES:
            return body()
        if len(self.known) > _MOST:
            self.known.clear()
        family = numbers = variant = template = None
        if not found and edges is None and body.__class__ is functools.partial and key[-1].__class__ is Device:
            family, numbers = families.find(self.akin, key, (*key[-1].manner(), *_others(body, operands)))
            variant, template = (None, None) if family is None else family.of(numbers)
            if template is not None:
                template.kin = variant.base.kin, *[numbers[i] for i in variant.places]
            if template is not None and variant.checks >= families.CHECKS:
                self._met(key, template)
                return self._same(template, body, operands, buffers, tracked, edges, source)
        if not (found > 2 * (len(self.known) > _MANY) or template is not None or family is not None and family.open(numbers)):
            self.known[key] = found + 1
            return body()
        return self._observed(body, operands, key, buffers, tracked, edges, found, family, numbers, variant, template)

    @staticmethod
    def _same(template, body, operands, buffers, tracked, edges, source):
        if template.draws:
            if foreign.here.maps:                                    # each sample may take its own numbers
                return body()
            operands, numbers = _with_draws(template, operands, buffers)
            return _again(template, operands, buffers, tracked, edges, source, numbers)
        return _again(template, operands, buffers, tracked, edges, source, ())

    def _observed(self, body, operands, key, buffers, tracked, edges, found, family, numbers, variant, said):
        """``body()``, from which it is learned what it does. ``said``: what the ``variant`` of its ``family`` says for the ``numbers`` of the key."""
        if not repeat._lock.acquire(blocking=False):            # within another body that is observed: no try
            return body()
        try:
            if numbers is not None and said is None and not config.debug:
                outcome = _Outcome(tracked, buffers.copy())
                trace = functools.partial(traced, drawn=outcome.places)
                variant, said = family.learn(numbers, trace, of_partial(body, operands, outcome), key, outcome.inputs, _WHOLE, key[-1], repeat._recipe,
                                             outcome.template)
                if variant is not None:
                    variant.base.kin = self.kin.setdefault(variant.base.frame(), variant.base)
                if said is not None:
                    said.kin = variant.base.kin, *[numbers[i] for i in variant.places]
            result, template = _learn(body, operands, buffers, tracked, edges, said is not None)
            if said is not None and template.__class__ is Template:
                right = family.check(variant, said, template, Template.same)
                template.recipe.flow = None
                template = said if right else template          # which passes over other sizes know, too
            if template.__class__ is Template and template is not said and not self._confirmed(key, template):
                template = repeat.WAITS
        finally:
            repeat._lock.release()
        if template is not repeat.WAITS:
            self.known[key] = template or found + 1
        return result


def _kind(operands, key, edges, grad):
    """(key of the call, memory of the operands, whether gradients are recorded); None where the function goes as it is."""
    total = 0
    for t in operands:
        if t is not None:
            if t.__class__ not in plain:
                return None
            total += t._numel
    if not 0 < total <= FEW:                # before anything is computed that would gain by being fused
        return None
    key, buffers, tracked, grad, device = [config.matmul_precision, config.tensor_cores, (tuple(key),)], [], False, bool(grad), None
    for i, t in enumerate(operands):
        if t is None:
            key.append(edges is not None and edges[i] is not None)
            continue
        st = t._storage
        if t.dtype.is_complex or not isinstance(st, Storage) or st.device is not device and device is not None:
            return None
        device = st.device
        if st.node is not None:
            fuse.realize(st)
        buffers.append(st.buf)
        tracks = grad and (t._rg if edges is None else edges[i] is not None)
        tracked = tracked or tracks
        key += (t.shape, t._strides, t._offset, t.dtype, tracks)
    if len(set(map(id, buffers))) < len(buffers):
        ids = list(map(id, buffers))
        key.append(str(list(map(ids.index, ids))))
    key.append(device)
    return tuple(key), buffers, tracked


native.give(kind=_kind, most_elements=FEW)
_kind = native.form("kind", _kind)


def _again(template, operands, buffers, tracked, ends, source, places):
    got = template.recipe.run(buffers, places)
    if not tracked:
        return got[0] if template.single else got
    node = _new(SplicedNode)
    node.seq, node.outs, node.template, node.nodes, node.source = next(tape._counter), len(template.roots), template, None, source
    node.numbers = places
    edges, kept, versions = node.edges, node.operands, node.versions = [], [], []
    for i, (t, keep, reached) in enumerate(zip(operands, template.wanted, template.reached)):
        edges.append((edge(t) if reached and t._rg else None) if ends is None else ends[i])
        kept.append(t if keep else None)
        versions.append((t._ver or t._storage).version if keep else 0)
        if versions[-1] < 0:
            raise inference_saved()
    node.kept, node.owners = list(got), []
    for nr, (root, keep) in enumerate(zip(template.roots, template.kept)):
        out = got[nr]
        node.owners.append((out._storage, out._storage.version) if keep else None)
        node.kept[nr] = out._alias() if keep else None
        if root is not None:
            out._grad_fn, out._out_nr, out._rg = node, nr, True
    return got[0] if template.single else got[:len(template.roots)]


_again = native.form("spliced", _again)


def _with_draws(template, operands, buffers):
    """(the operands of a call and the random numbers that it takes, whose memory is added to ``buffers``; places of the stream where it takes others)."""
    numbers, places = [], []
    for draw, size, args, kwargs in template.draws:
        if draw is None:
            places.append(rng.current().take(size)[1])
        else:
            numbers.append(draw(size, *args, **kwargs))
    buffers += [t._storage.buffer() for t in numbers]
    return [*operands, *numbers], places


_listening = None       # (thread, what is told of draws, or of places in the stream) while one observes a function that may draw


def drawn(draw, shape, args, kwargs):
    """What ``draw(shape, *args, **kwargs)`` gives: random numbers in a dense tensor of a shape that follows from those of operands. A function that is repeated
    has it draw again."""
    listening = _listening
    return draw(shape, *args, **kwargs) if listening is None or listening[0] != threading.get_ident() else listening[1](draw, shape, args, kwargs)


def counted(blocks):
    """(seed, first of ``blocks``) of the stream of random numbers, how many of which follows from the shapes of operands."""
    listening = _listening
    return rng.current().take(blocks) if listening is None or listening[0] != threading.get_ident() else listening[2](blocks)


def _versions(tensors):
    return [t is not None and (t._ver or t._storage).version for t in tensors]


def _learn(body, operands, buffers, tracked, edges, flow):
    """(what ``body`` gives, its Template, None or WAITS)."""
    said, draws, operands, places = [], [], list(operands), []

    def listen(draw, shape, args, kwargs):
        global _listening
        observing, _listening = repeat.observing, None
        with observing.apart() if observing is not None else contextlib.nullcontext():      # None: it is called as it is, as its kernels are to be built
            numbers = draw(shape, *args, **kwargs)
            buffers.append(numbers._storage.buffer())
        _listening = me, listen, count
        draws.append((draw, shape, args, kwargs))
        operands.append(numbers)
        return numbers

    def count(blocks):
        observing = repeat.observing
        with observing.apart() if observing is not None else contextlib.nullcontext():
            seed, first = rng.current().take(blocks)
        draws.append((None, blocks, seed, None))
        places.append(first)
        return seed, first

    def watched(*_):
        before = _versions(operands)
        result = body()
        results = result if result.__class__ is tuple else (result,)
        if _versions(operands[:len(before)]) != before:
            return result                                       # it writes to what it reads
        if not all([r is None or r.__class__ is Tensor for r in results]) or any([r is not None and r._rg for r in results]) is not tracked:
            return result
        try:
            between, *entries = told(results, operands, edges, places) if tracked else ([],)
        except Unlike:
            return result
        said.append((result, entries))
        return (*results, *between)
    given = [t for t in operands if t is not None]
    global _listening
    me = threading.get_ident()
    _listening = (me, listen, count) if edges is None else None
    try:
        result, recipe = repeat.observe(watched, given, buffers, _WHOLE, numbers=places, flow=flow)
    finally:
        _listening = None
    if not said:
        return result, None
    result, entries = said[0]
    if any([-6 < n < 257 for n in places]):         # small numbers are one object wherever they are used
        return result, repeat.WAITS
    return result, recipe if recipe is repeat.WAITS or recipe is None else Template(recipe, result.__class__ is not tuple, draws, *entries)


def _known_call(known, values, tracked):
    """What a call of a known kind gives; None where it is looked at anew. ``tracked``: only those that record gradients are meant."""
    return None


_known_call = native.form("known_call", _known_call)


def spliced(body, bind=None):
    """``body``, a function of tensors and other values with one result, as one entry where it has few elements (decorator).

    ``bind``: (args, kwargs) -> one value per parameter, where they may be named; then only calls that record gradients are looked at, as all others are
    repeated anyway.
    """
    kinds = Spliced()

    @functools.wraps(body)
    def call(*args, **kwargs):
        if bind is not None and not state.grad:
            return body(*args, **kwargs)
        try:
            values = args if bind is None else bind(args, kwargs)
        except TypeError:
            return body(*args, **kwargs)
        got = _known_call(kinds.known, values, bind is not None)
        if got is not None:
            return got
        operands, key, tracked = _apart(values)
        if key is None or bind is not None and not tracked:
            return body(*args, **kwargs)
        return kinds.call(functools.partial(body, *args, **kwargs), operands, key)
    call.known, call.rest = kinds.known, None if bind is None else bind.rest
    return call


def _apart(values):
    """(the tensors among the values of a call, what tells the others, whether a tensor requires gradients); the second is None where the call goes as it is."""
    operands, key, tracked = [], [], False
    for v in values:
        kind = v.__class__
        if isinstance(v, Tensor):
            operands.append(v)
            key.append(Tensor)
            tracked = tracked or v._rg
        elif kind.__hash__ is None or kind is tuple and any([isinstance(x, Tensor) for x in v]):
            return operands, None, tracked
        else:
            key += (v if kind is not float or v else str(v), kind)
    return operands, key, tracked


_apart = native.form("apart", _apart)
