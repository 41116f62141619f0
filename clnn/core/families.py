"""What was worked out for some sizes, for sizes that were never met.

Cases that differ in numbers alone are a family. At one of its first cases those that changed are traced (``symbols``), so that what is worked out becomes a function of
them, with the conditions that were asked about. The next cases are worked out as ever, and the function has to say the same; from then on it stands for
that. Other conditions are another variant.
"""
from __future__ import annotations

from .shape import Size

CHECKS = 2              # cases that a variant has to agree with
_VARIANTS = 32          # of a family
_PATIENCE = 2           # cases after the first one that are worked out before a trace, which takes as long as some of them, is worth it
_FAILURES = 7           # traces of a family that came to nothing
_INT = {int}
_ONE = object()         # a number, in what :func:`split` gives, or the beginning of what says how many
debug = None            # a function that is told of failures: (what the family is of, an exception), or (what was said, what is right)


class Variant:
    """What holds for numbers that meet some conditions: ``make`` gives what varies, or None, and ``base.varied`` the whole."""

    __slots__ = ("make", "base", "checks", "places")

    def __init__(self, make, base, places):
        self.make, self.base, self.places, self.checks = make, base, places, 0

    def of(self, numbers):
        """The whole for the ``numbers`` of a key, or None."""
        try:
            got = self.make(*[numbers[i] for i in self.places])
        except Exception:                                       # no such step for these: a division by zero, more than a word holds
            return None
        return None if got is None else self.base.varied(*got)


class Family:
    """Cases that differ in numbers alone; ``first`` are those of the first one."""

    __slots__ = ("first", "varying", "variants", "failures", "rest")

    def __init__(self, numbers):
        self.first, self.varying, self.variants, self.failures, self.rest = numbers, set(), [], 0, _PATIENCE

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
        if self.rest:
            self.rest -= 1
            return False
        return self.failures < _FAILURES and len(self.variants) < _VARIANTS and self.first != numbers

    def learn(self, numbers, trace, *case):
        """``trace(numbers, places, *case)`` gives (what varies as a function of the numbers in ``places``, the whole for these numbers)."""
        changed = self._changed(numbers)
        if not self.varying.issuperset(changed):
            self.varying.update(changed)
            self.variants.clear()
        places = sorted(self.varying)
        try:
            self.variants.append(Variant(*trace(numbers, places, *case), places))
        except Exception as exc:                                # whatever the code has to say about such numbers: it works with plain ones as ever
            self._failed(case[0], exc)

    def check(self, variant, said, right, same):
        """Compare what a variant said with what is right."""
        if same(said, right):
            variant.checks += 1
        elif variant in self.variants:
            self.variants.remove(variant)
            self._failed(said, right)

    def _failed(self, of, why):
        self.failures += 1
        self.rest = 1 << self.failures
        if debug is not None:
            debug(of, why)


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


def marked(key, numbers, places, traced):
    """``key``, which has ``numbers``, as a list with the ``traced`` ones in their ``places``."""
    given, out = dict(zip(places, traced)), []
    numbers = iter([given.get(i, n) for i, n in enumerate(numbers)])
    for part in split(key)[0]:
        if part is _ONE:
            out.append(next(numbers))
        elif part.__class__ is tuple and part and part[0] is _ONE:
            out.append(part[1]([next(numbers) for _ in range(part[2])]))
        else:
            out.append(part)
    return out


def find(families, key, manner, most=1024):
    """(the family of a case that is met for the first time, the numbers of its key); (None, None) for the first of a family. ``manner``: of the device."""
    kind, numbers = split(key)
    kind += manner
    family = families.get(kind)
    if family is not None:
        return family, numbers
    if len(families) > most:
        families.clear()
    families[kind] = Family(numbers)
    return None, None
