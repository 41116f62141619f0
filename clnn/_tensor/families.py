"""Traces of bodies: what a body would allocate and launch, as a function of the sizes it is called with (see ``core/families.py``).

The body runs with traced numbers in the shapes, strides and attributes of its operands, and nothing is launched.
"""
from __future__ import annotations

import functools
import itertools
import threading

from ..core import rng, symbols
from ..core.families import marked
from ..core.shape import Size, is_contiguous
from ..graph import fuse
from ..runtime import launch as launcher
from ..runtime.launch import Prepared
from ..runtime.memory import MIN_BYTES
from .recorded import Recorded, outputs, tensors_among
from .tape import AccumulateGrad
from .tensor import Tensor, edge

_new = object.__new__


def traced(numbers, groups, call, key, inputs, whole, device, recipe_of, whole_of=None, *, shared=False, drawn=(), deep=False):
    """(function of one number for each of the ``groups`` of places, what varies) of what has the ``key`` with these ``numbers``.

    ``call(key)`` does it, with others in the key. What varies is its recipe, or ``whole_of(recipe)``, which has that in it, and ``parts()`` besides; what it
    ``varies()``, where it does, is put down as its function ``more``, as that is rarely needed, and in words as ``told``. The rest is as :func:`repeat.observe`
    has it.
    """
    with device.lock, _Dry(device) as dry, symbols.Trace([numbers[group[0]] for group in groups]) as trace:
        result = call(marked(key, numbers, groups, trace.inputs, deep))
        for t in (result if result.__class__ is tuple else (result,)) if whole else ():
            if t.__class__ is Tensor and t._storage.node is not None and t._numel <= whole:
                fuse.realize(t._storage)
        recipe = recipe_of(device, result, inputs, dry.made, dry.launches, shared, drawn, True)
        if recipe is None:
            raise symbols.Refused("no recipe")
        launches = [(p.where, p.args) if p.__class__ is Prepared else (p.args,) for p, *_ in recipe.launches]
        base = recipe if whole_of is None else whole_of(recipe)
        varies = getattr(base, "varies", None)
        if varies is not None:
            text = trace.text(varies())
            told = trace.expanded(text)
            base.more, base.told = trace.function(text, False), told and (told, len(groups))
        return trace.function(trace.text((recipe.sizes, launches, recipe.results, *(() if whole_of is None else base.parts())))), base


class OfBody:
    """What :func:`traced` takes of a body that is repeated. ``tracks``: gradients are recorded."""

    def __init__(self, body, values, tracks=False):
        self.body, self.values, self.tracks = body, values, tracks

    def __call__(self, key):
        made = {}
        self.values = values = _with_numbers(self.values, iter(key[2:]), made)
        if not self.tracks:
            return self.body(*values)
        for t, new in made.values():
            if t._rg:
                _follow(t, new)
        self.result = self.body(*values)
        return outputs(self.result)

    def recorded(self, recipe):
        got = Recorded.of(recipe, self.result, tensors_among(self.values))
        if got is None:
            raise symbols.Refused("another history than one entry")
        return got


def _follow(t, new):
    """``new`` has the history of ``t``."""
    at = edge(t)
    new._grad_fn, new._out_nr, new._rg = None if at[0].__class__ is AccumulateGrad else at[0], at[1], True


def of_partial(body, operands, outcome):
    """The same of a function that is spliced: a ``functools.partial``, among whose arguments those of the ``operands`` are whose sizes are traced.
    ``outcome``: (function, arguments, those by name, the operands as they are traced) -> a tuple of all that it computes."""
    def call(key):
        key, made = iter(key[3:]), {}
        for t in operands:
            shape = next(key)
            if t is not None:
                strides, offset, _, tracks = [next(key) for _ in range(4)]
                if any(map(symbols.is_number, (*shape, *strides, offset))):
                    new = _handle(t, shape, strides, offset, made)
                    if tracks:
                        _follow(t, new)
        found = set()

        def other(x):
            if x.__class__ is tuple or x.__class__ is list:
                return x.__class__([other(v) for v in x])
            if id(x) not in made:
                return x
            found.add(id(x))
            return made[id(x)][1]
        args, kwargs = other(body.args), {k: other(v) for k, v in body.keywords.items()}
        if len(found) < len(made):
            raise symbols.Refused("an operand that is no argument")
        with _Untouched(operands):
            return outcome(body.func, args, kwargs, [made[id(t)][1] if id(t) in made else t for t in operands])
    return call


class _Untouched:
    """A block that leaves the memory of tensors as it was. Raises Refused where they were written in place: the trace has no results to write."""

    def __init__(self, tensors):
        storages = [t._storage for t in tensors if t is not None]
        self.before = [(st, st.buf, st.node, st.version) for st in storages]
        self.versions = [(t._ver, t._ver.version) for t in tensors if t is not None and t._ver is not None]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        written = any([st.version != version for st, _, _, version in self.before]) or any([ver.version != version for ver, version in self.versions])
        for st, buf, node, version in self.before:
            if st.buf is not buf or st.node is not node or st.version != version:
                st.buf, st.node, st.version = buf, node, version
        for ver, version in self.versions:
            ver.version = version
        if written:
            raise symbols.Refused("an operand is written")


def only_integers(values):
    """Whether a tuple is told by its value: 1.0 and True in it would be taken for 1."""
    return all([v.__class__ is int for v in values])


def _with_numbers(values, key, made):
    """``values`` with the numbers of ``key``, an iterator over what a call is told apart by."""
    out = []
    for v in values:
        kind = v.__class__
        if isinstance(v, Tensor):
            t = _handle(v, next(key), next(key), next(key), made)
            next(key), next(key)
            out.append(t)
        elif kind is list or kind is tuple and not only_integers(v):
            next(key)
            first = next(key) if v else None
            if first is ALIKE:
                shape, strides, _, _ = [next(key) for _ in range(4)]
                out.append(kind([_handle(t, shape, strides, 0, made) for t in v]))
            else:
                out.append(kind(_with_numbers(v, itertools.chain([first], key), made)) if v else v)
        else:
            told = next(key)
            next(key)
            out.append(told if kind in _COUNTS else v)          # what else a key tells may be a text
    return out


_COUNTS = frozenset((int, tuple, Size))
ALIKE = object()       # stands in keys for a list whose tensors are all of the kind that follows


def _handle(t, shape, strides, offset, made):
    _, got = made.get(id(t), (None, None))
    if got is None:
        got = _new(Tensor)
        made[id(t)] = t, got
        got._storage, got._shape, got._strides, got._offset, got._dtype = t._storage, shape, strides, offset, t.dtype
        got._numel = shape.numel()
        got._dense = bool(offset == 0 and is_contiguous(shape, strides))
    return got


class Ghost:
    """Stands for memory that is not there."""


class _Dry:
    """In place of a recording: takes what is launched by this thread, and nothing happens."""

    counts = False

    def __init__(self, device):
        self.device, self.thread, self.made, self.launches = device, threading.get_ident(), [], []

    def __enter__(self):
        device = self.device
        if launcher.recording is not None or device.recording is not None:
            raise symbols.Refused("another thread records")
        self.plain, self.transfers, self.stream = device.alloc, device.transfers, rng.current()
        self.place, self.mark = self.stream.position(), self.stream.mark()
        device.alloc = self._alloc
        launcher.recording = device.recording = self
        return self

    def __exit__(self, *exc):
        device = self.device
        if launcher.recording is self:
            launcher.recording = None
        device.recording = None
        device.alloc, device.transfers = self.plain, self.transfers
        if self.stream.position() != self.place:
            self.stream.back(self.mark)
            raise symbols.Refused("random numbers")

    def mine(self):
        return self.thread == threading.get_ident()

    def abandon(self, why):
        raise symbols.Refused(why)

    def follow(self, *args):
        pass

    def _alloc(self, nbytes):
        if not self.mine():
            return self.plain(nbytes)
        self.made.append((Ghost(), nbytes))
        return self.made[-1][0]

    def launch(self, kernel, global_size, local_size, args):
        self.launches.append((self.device, functools.partial(Prepared, kernel, tuple(global_size), local_size), list(args)))

    def transfer(self, name, *args):
        if name == "write":
            raise symbols.Refused("the host writes")
        if name == "fill":
            args = (args[0], bytes(args[1]), *args[2:])
        self.launches.append((self.device, functools.partial(launcher.Transfer, name), list(args)))


def same(recipe, seen):
    """Whether a variant's ``recipe`` does what was ``seen``. Which buffers share memory may differ: those of equal sizes do, as sizes happen to be."""
    (launches, results, made), (*others, sizes) = recipe.flow, seen.flow
    if [launches, results] != others or len(made) != len(sizes) or len(recipe.launches) != len(seen.launches):
        return False
    if any([recipe.sizes[at] != max(nbytes, MIN_BYTES) for (at, _), (place, nbytes) in zip(made, sizes) if place >= 0]):
        return False
    if [r and r.__class__ is tuple and r[1:] or r for r in recipe.results] != [r and r.__class__ is tuple and r[1:] or r for r in seen.results]:
        return False
    for (p, *_), (q, *_) in zip(recipe.launches, seen.launches):
        if p.__class__ is not q.__class__ or p.args != q.args:
            return False
        if p.__class__ is Prepared and (p.kernel is not q.kernel or launcher.sizes_of(recipe.device, p.kernel, *p.where) != q.where):
            return False
    return True


def same_recorded(said, seen):
    """The same of two Recorded."""
    return same(said.recipe, seen.recipe) and (said.op, said.places, said.values, said.label) == (seen.op, seen.places, seen.values, seen.label)
