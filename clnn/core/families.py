"""What was worked out for some sizes, for sizes that were never met.

Cases that differ in numbers alone are a family. At one of its first cases those that changed are traced (``symbols``), so that what is worked out becomes a function of
them, with the conditions that were asked about. The next cases are worked out as ever, and the function has to say the same; from then on it stands for
that. Other conditions are another variant.
"""
from __future__ import annotations

import itertools
from operator import itemgetter

from . import native
from .shape import Size

KEPT = 3                # times that a case is met, from which on what a variant says of it is kept
CHECKS = 2              # cases that a variant has to agree with
_VARIANTS = 32          # of a family
_PATIENCE = 2           # cases after the first one that are worked out before a trace, which takes as long as some of them, is worth it
_REST = 2               # cases to go by per variant, before the next trace
_FAILURES = 7           # traces of a family that came to nothing
_SEEN = 4               # cases that tell which numbers go together
_INT = {int}
_ONE = object()         # a number, in what :func:`split` gives, or the beginning of what says how many
debug = None            # a function that is told of failures: (what the family is of, an exception), or (what was said, what is right)


class Variant:
    """What holds for numbers that meet some conditions: ``make`` gives what varies, or None, and ``base.varied`` the whole. ``places``: of the numbers that
    ``make`` takes in a key, in some more of which these have to be found again."""

    __slots__ = ("make", "base", "checks", "places", "once", "again")

    def __init__(self, make, base, groups):
        self.make, self.base, self.checks, self.places = make, base, 0, [group[0] for group in groups]
        pairs = [(group[0], i) for group in groups for i in group[1:]]
        self.once, self.again = [itemgetter(*places) for places in zip(*pairs)] or (None, None)

    def of(self, numbers):
        """The whole for the ``numbers`` of a key, or None."""
        if self.once is not None and self.once(numbers) != self.again(numbers):
            return None
        try:
            got = self.make(*[numbers[i] for i in self.places])
        except Exception:                                       # no such step for these: a division by zero, more than a word holds
            return None
        return None if got is None else self.base.varied(*got)


class Family:
    """Cases that differ in numbers alone; ``first`` are those of the first one, ``seen`` those of some others. ``fit``: for whoever asks, how many cases in a row
    were of a form that can be kept, below 0 how many were not."""

    __slots__ = ("first", "varying", "variants", "failures", "rest", "seen", "fit")

    def __init__(self, numbers):
        self.first, self.varying, self.variants, self.failures, self.rest, self.seen, self.fit = numbers, set(), [], 0, _PATIENCE, [], 0

    def of(self, numbers):
        """(a variant, what it gives for ``numbers``), or (None, None)."""
        if not self.varying.issuperset(self._changed(numbers)):
            return None, None
        for at, variant in enumerate(self.variants):
            got = variant.of(numbers)
            if got is not None:
                if at:                                          # what serves now is asked first; other threads may be asking
                    self.variants = [variant, *[v for v in self.variants if v is not variant]]
                return variant, got
        return None, None

    def _changed(self, numbers):
        return [i for i, (a, b) in enumerate(zip(self.first, numbers)) if a != b]

    def open(self, numbers):
        """Whether a trace is worth trying: what failed is left alone for ever more cases."""
        if len(self.seen) < _SEEN:
            self.seen.append(numbers)
        if self.rest:
            self.rest -= 1
            return False
        return self.failures < _FAILURES and len(self.variants) < _VARIANTS and self.first != numbers

    def learn(self, numbers, trace, *case):
        """``trace(numbers, groups, *case)`` gives (what varies as a function of one number for each of the ``groups`` of places, the whole for these numbers).
        (The variant that it makes, what that says of the case itself), or (None, None)."""
        changed = self._changed(numbers)
        if not self.varying.issuperset(changed):
            self.varying.update(changed)
            self.variants.clear()
        groups = self._alike(numbers)
        self.rest = _REST * len(self.variants)                  # where sizes are of ever more kinds, few traces are worth their time
        try:
            variant = Variant(*trace(numbers, groups, *case), groups)
        except Exception as exc:                                # whatever the code has to say about such numbers: it works with plain ones as ever
            self._failed(case[0], exc)
            return None, None
        self.variants.append(variant)
        return variant, variant.of(numbers)

    def _alike(self, numbers):
        """The places of what varies, those together that had the same number in all cases: one size is found in many shapes."""
        groups = {}
        for i in sorted(self.varying):
            groups.setdefault((self.first[i], numbers[i], *[case[i] for case in self.seen]), []).append(i)
        return list(groups.values())

    def check(self, variant, said, right, same):
        """Whether what a variant said is what is right."""
        if same(said, right):
            variant.checks += 1
            self.failures = 0
            return True
        if variant in self.variants:
            self.variants.remove(variant)
            self._failed(said, right)
        return False

    def _failed(self, of, why):
        self.failures += 1
        self.rest = 1 << self.failures
        if debug is not None:
            debug(of, why)


class Fixed(tuple):
    """Numbers of a key that cases of a family have in common."""

    __slots__ = ()


def split(key, deep=False):
    """(the key, a tuple, without its numbers, these); ``deep``: also those of tuples within it."""
    kind, numbers = [], []
    _split(key, kind, numbers, deep)
    return tuple(kind), numbers


native.give(one_number=_ONE)
split = native.form("split_key", split)


def _split(key, kind, numbers, deep):
    for part in key:
        c = part.__class__
        if c is int:
            numbers.append(part)
            kind.append(_ONE)
        elif (c is Size or c is tuple) and part and set(map(type, part)) == _INT:
            numbers.extend(part)
            kind.append((_ONE, c, len(part)))
        elif deep and c is tuple:
            kind.append((_ONE, None, len(part)))
            _split(part, kind, numbers, deep)
        else:
            kind.append(part)


def marked(key, numbers, groups, traced, deep=False):
    """``key``, which has ``numbers``, as a list with each of the ``traced`` ones in the places of its group."""
    given, kind = {i: number for group, number in zip(groups, traced) for i in group}, iter(split(key, deep)[0])
    numbers = iter([given.get(i, n) for i, n in enumerate(numbers)])

    def read(count):
        out = []
        for part in kind if count is None else itertools.islice(kind, count):
            if part is _ONE:
                out.append(next(numbers))
            elif part.__class__ is tuple and part and part[0] is _ONE:
                out.append(tuple(read(part[2])) if part[1] is None else part[1]([next(numbers) for _ in range(part[2])]))
            else:
                out.append(part)
        return out
    return read(None)


def find(families, key, manner, most=1024, deep=False):
    """(the family of a case that is met for the first time, the numbers of its key); (None, None) for the first of a family. ``manner``: of the device."""
    kind, numbers = split(key, deep)
    kind += manner
    family = families.get(kind)
    if family is not None:
        return family, numbers
    if len(families) > most:
        families.clear()
    families[kind] = Family(numbers)
    return None, None
