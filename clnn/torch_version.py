"""Versions as strings that compare as versions."""
from __future__ import annotations

import re
from itertools import zip_longest

from .version import __version__ as _own

__all__ = ["TorchVersion"]


def _key(value):
    """Numbers and words of a version in an order in which ``1.0a1 < 1.0 < 1.0.post1``, without what follows a plus."""
    text = ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    public = text.partition("+")[0].lstrip("vV")
    if not re.match(r"\d", public):
        raise ValueError(f"Invalid version: {text!r}")
    return [(1, int(p)) if p.isdigit() else ({"post": 2}.get(p, 0), 0 if p == "post" else p) for p in re.findall(r"\d+|[a-z]+", public)]


def _compare(a, b):
    """-1, 0 or 1."""
    for x, y in zip_longest(_key(a), _key(b), fillvalue=(1, 0)):
        if x != y:
            x, y = [(k, str(v)) if x[0] == y[0] == 0 else (k, v) for k, v in (x, y)]
            return -1 if x < y else 1
    return 0


class TorchVersion(str):
    """A version that compares with strings and tuples of numbers as versions do, not letter by letter.

    Example::

        >>> from clnn.torch_version import TorchVersion
        >>> TorchVersion("1.10.0") > "1.9", TorchVersion("1.10.0+cpu") == (1, 10)
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


__version__ = TorchVersion(_own)
