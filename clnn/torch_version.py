"""Versions as strings that compare as versions."""
from __future__ import annotations

import re
from itertools import zip_longest

__all__ = ["TorchVersion"]


def _key(value):
    """(numbers and words of a version in an order in which ``1.0a1 < 1.0 < 1.0.post1``, those after a plus: none comes first, words before numbers)."""
    text = ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    public, plus, local = text.partition("+")
    if not re.match(r"v?\d", public):
        raise ValueError(f"Invalid version: {text!r}")
    parts = [(1, int(p)) if p.isdigit() else ({"post": 2}.get(p, 0), {"post": 0, "dev": ""}.get(p, p)) for p in re.findall(r"\d+|[a-z]+", public.lstrip("v"))]
    return parts, [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in re.split(r"[._-]", local)] if plus else []


def _compare(a, b):
    """-1, 0 or 1."""
    (first, after), (second, behind) = _key(a), _key(b)
    for x, y in zip_longest(first, second, fillvalue=(1, 0)):
        if x != y:
            x, y = [(k, str(v)) if x[0] == y[0] == 0 else (k, v) for k, v in (x, y)]
            return -1 if x < y else 1
    return (after > behind) - (after < behind)


class TorchVersion(str):
    """A version that compares with strings and tuples of numbers as versions do, not letter by letter.

    Example::

        >>> from clnn.torch_version import TorchVersion
        >>> TorchVersion("1.10.0") > "1.9", TorchVersion("1.10.0") == (1, 10)
        (True, True)
    """

    def _order(self, other, test, plain):
        try:
            return test(_compare(self, other))
        except ValueError:
            return plain(self, other)

    def __gt__(self, other):
        return self._order(other, lambda c: c > 0, str.__gt__)

    def __lt__(self, other):
        return self._order(other, lambda c: c < 0, str.__lt__)

    def __ge__(self, other):
        return self._order(other, lambda c: c >= 0, str.__ge__)

    def __le__(self, other):
        return self._order(other, lambda c: c <= 0, str.__le__)

    def __eq__(self, other):
        if not isinstance(other, (str, tuple, list)):
            return NotImplemented
        return self._order(other, lambda c: c == 0, str.__eq__)

    __hash__ = str.__hash__


def __getattr__(name):
    if name == "__version__":
        from . import __version__ as own
        return TorchVersion(own)
    raise AttributeError(f"module 'clnn.torch_version' has no attribute {name!r}")
