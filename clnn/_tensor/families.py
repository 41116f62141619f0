"""Recipes for sizes that were never met: what a body did for two others says what it does, and for which sizes.

Calls that differ in sizes alone are a family. At its second size the body runs with traced numbers (``core/symbols.py``) in place of those that changed, and
nothing is launched: what it would allocate and launch becomes a function of the sizes, with the conditions that the body asked about. For the next
sizes the body is observed as ever, and the function has to say the same; from then on it stands for the body. Other conditions are another variant.
"""
from __future__ import annotations

import functools
import itertools
import threading

from ..core import rng, symbols
from ..core.shape import Size, is_contiguous
from ..graph import fuse
from ..runtime import launch as launcher
from ..runtime.launch import Prepared
from .tensor import Tensor

CHECKS = 2              # observed calls that a variant has to agree with
_VARIANTS = 12          # of a family
_FAILURES = 7           # traces of a family that came to nothing
_MOST = 1024            # families of a body
_new = object.__new__


class Variant:
    """A recipe of a family for sizes that meet some conditions: ``make`` gives what varies, or None."""

    __slots__ = ("make", "recipe", "checks", "places")

    def __init__(self, make, recipe, places):
        self.make, self.recipe, self.places, self.checks = make, recipe, places, 0

    def of(self, numbers):
        """The recipe for the ``numbers`` of a key, or None."""
        try:
            got = self.make(*[numbers[i] for i in self.places])
        except Exception:                                       # no such step for these: a division by zero, more than a word holds
            return None
        if got is None:
            return None
        old = self.recipe
        new = old.__class__()
        new.device, new.small, new.places, new.single = old.device, old.small, old.places, old.single
        new.sizes, launches, new.results = got
        new.launches = [(p.resized(*varying), pick, None) for (p, pick, _), varying in zip(old.launches, launches)]
        return new


class Family:
    """Calls of a body that differ in numbers alone; ``first`` are those of the first call."""

    __slots__ = ("first", "varying", "variants", "failures", "rest")

    def __init__(self, numbers):
        self.first, self.varying, self.variants, self.failures, self.rest = numbers, set(), [], 0, 0

    def of(self, numbers):
        """(a variant, its recipe for ``numbers``), or (None, None)."""
        if not self.varying.issuperset(self.changed(numbers)):
            return None, None
        for at, variant in enumerate(self.variants):
            recipe = variant.of(numbers)
            if recipe is not None:
                if at:                                          # what serves now is asked first
                    self.variants.insert(0, self.variants.pop(at))
                return variant, recipe
        return None, None

    def changed(self, numbers):
        return [i for i, (a, b) in enumerate(zip(self.first, numbers)) if a != b]

    def open(self, numbers):
        """Whether a trace is worth trying: what failed is left alone for ever more calls."""
        if self.rest:
            self.rest -= 1
            return False
        return self.failures < _FAILURES and len(self.variants) < _VARIANTS and self.first != numbers

    def learn(self, numbers, *call):
        """Trace a call, given as :func:`_traced` takes it."""
        changed = self.changed(numbers)
        if not self.varying.issuperset(changed):
            self.varying.update(changed)
            self.variants.clear()
        places = sorted(self.varying)
        try:
            self.variants.append(_traced(numbers, places, *call))
        except Exception as exc:                                # whatever a body has to say about such numbers: it is called as ever
            self._failed()
            if debug is not None:
                debug(call[0], exc)

    def _failed(self):
        self.failures += 1
        self.rest = 1 << self.failures

    def check(self, variant, recipe, seen):
        """Compare what a variant says with what was observed."""
        if same(recipe, seen):
            variant.checks += 1
        elif variant in self.variants:
            self.variants.remove(variant)
            self._failed()
            if debug is not None:
                debug(recipe, seen)


debug = None


def split(key):
    """(the key without its numbers, these)."""
    kind, numbers = [], []
    for part in key:
        c = part.__class__
        if c is int:
            numbers.append(part)
            kind.append(_ONE)
        elif (c is Size or c is tuple) and part and set(map(type, part)) == _INT:
            numbers.extend(part)
            kind.append((_ONE, c, len(part)))
        else:
            kind.append(part)
    return tuple(kind), numbers


_INT = {int}
_ONE = object()         # a number, in what :func:`split` gives, or the beginning of what says how many


def _joined(key, numbers):
    """``key`` with other numbers."""
    numbers, out = iter(numbers), []
    for part in split(key)[0]:
        if part is _ONE:
            out.append(next(numbers))
        elif part.__class__ is tuple and part and part[0] is _ONE:
            out.append(part[1]([next(numbers) for _ in range(part[2])]))
        else:
            out.append(part)
    return out


def _traced(numbers, places, body, values, key, inputs, whole, device, recipe_of):
    """The Variant of ``body(*values)``, a call with the ``key`` that has ``numbers``, for others in ``places``. The rest is as :func:`repeat.observe` has it."""
    with device.lock, _Dry(device) as dry, symbols.Trace([numbers[i] for i in places]) as trace:
        traced = list(numbers)
        for i, n in zip(places, trace.inputs):
            traced[i] = n
        result = body(*_with_numbers(values, iter(_joined(key, traced)[2:]), {}))
        for t in (result if result.__class__ is tuple else (result,)) if whole else ():
            if t.__class__ is Tensor and t._storage.node is not None and t._numel <= whole:
                fuse.realize(t._storage)
        recipe = recipe_of(device, result, inputs, dry.made, dry.launches, False, ())
        if recipe is None:
            raise symbols.Refused("no recipe")
        launches = [(p.where, p.args) if p.__class__ is Prepared else (p.args,) for p, *_ in recipe.launches]
        return Variant(trace.function(trace.text((recipe.sizes, launches, recipe.results))), recipe, places)


def _with_numbers(values, key, made):
    """``values`` with the numbers of ``key``, an iterator over what a call is told apart by."""
    out = []
    for v in values:
        kind = v.__class__
        if isinstance(v, Tensor):
            t = _handle(v, next(key), next(key), next(key), made)
            next(key), next(key)
            out.append(t)
        elif kind is list or kind is tuple and v and v[0].__class__ is not int:
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
    got = made.get(id(t))
    if got is None:
        got = made[id(t)] = _new(Tensor)
        got._storage, got.shape, got._strides, got._offset, got.dtype = t._storage, shape, strides, offset, t.dtype
        got._numel = shape.numel()
        got._dense = bool(offset == 0 and is_contiguous(shape, strides))
    return got


class _Ghost:
    """Stands for memory that is not there."""


class _Dry:
    """In place of a recording: takes what is launched by this thread, and nothing happens."""

    start = 0

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
        self.made.append((_Ghost(), nbytes))
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
    """Whether a variant's ``recipe`` does what was ``seen``."""
    if recipe.sizes != seen.sizes or recipe.results != seen.results or len(recipe.launches) != len(seen.launches):
        return False
    for (p, pick, _), (q, other, _) in zip(recipe.launches, seen.launches):
        if p.__class__ is not q.__class__ or p.args != q.args or pick(_MANY) != other(_MANY):
            return False
        if p.__class__ is Prepared and (p.kernel is not q.kernel or launcher.sizes_of(recipe.device, p.kernel, *p.where) != q.where):
            return False
    return True


_MANY = list(range(4096))
