"""Numbers that note what is done with them, so that what was worked out for tensors of one size holds for others.

A body that is called with a :class:`Number` in place of a size computes with it as with an int. Its trace writes down each step, and each comparison as a
condition under which the same steps are right again. Where a number has to be a plain one - as the key of a dictionary, in a text, as an index - it is
written down that it has to be this one.
"""
from __future__ import annotations

import functools
import gc
import operator
import re
import sys
from threading import Lock, get_ident
from types import CellType

tracing = None          # the Trace under way
_taken: list = []       # functions of :func:`memo` and dictionaries of :func:`kept`, which a trace goes without


class Refused(Exception):
    """What is traced cannot be done with other numbers."""


def memo(size, typed=False):
    """``functools.lru_cache`` for functions of sizes: a trace sees what they compute (decorator)."""
    def decorate(function):
        _taken.append(functools.lru_cache(size, typed)(function))
        return _taken[-1]
    return decorate


def kept() -> dict:
    """A dictionary, for a name of a module, of what was worked out for some sizes: in a trace there is an empty one, which stays empty."""
    _taken.append({})
    return _taken[-1]


class _Nothing(dict):
    def get(self, key, default=None):
        return default

    def __contains__(self, key):
        return False

    def __setitem__(self, key, value):
        pass


_nothing = _Nothing()


class Trace:
    """What became of some numbers: ``lines`` of Python that compute the same of others, or return None where something else would have to be done.

    ``names``: of other objects in these lines.
    """

    def __init__(self, values):
        self.lines, self.known, self.asked, self.names, self.called, self.products, self.thread = [], {}, set(), {}, {}, {}, get_ident()
        self.inputs = [Number(self, v, f"s{i}") for i, v in enumerate(values)]

    def step(self, text, value):
        """The number that ``text`` computes."""
        if self.known is None:                                  # it has ended
            return value
        got = self.known.get(text)
        if got is None:
            got = self.known[text] = Number(self, value, f"t{len(self.known)}")
            self.lines.append((got.name, text))
        return got

    def ask(self, text, answer):
        if self.asked is not None and text not in self.asked:
            self.asked.add(text)
            self.lines.append((None, text if answer else f"not ({text})"))
        return answer

    def named(self, x):
        """A name for an object."""
        name = self.called.get(id(x))
        if name is None:
            if x.__class__ not in _SAFE and not x.__class__.__module__.startswith(_PLAIN) and _holds(gc.get_referents(x)):
                raise Refused(f"a number within {x!r:.60}")
            name = self.called[id(x)] = f"c{len(self.names)}"
            self.names[name] = x
        return name

    def text(self, x):
        """Python for ``x``; what is neither a number nor made of numbers gets a name."""
        if type(x) is Number:
            return x.name
        c = x.__class__
        if c is tuple or c is list:
            inner = "".join([self.text(v) + ", " for v in x])
            return f"[{inner}]" if c is list else f"({inner})"
        if isinstance(x, tuple):
            return f"{self.named(getattr(c, '_make', c))}(({''.join([self.text(v) + ', ' for v in x])}))"
        if c is dict:
            return f"{{{''.join([f'{k!r}: {self.text(v)}, ' for k, v in x.items()])}}}"
        if c is int or c is bool or x is None or c is str or c is float and x - x == 0:
            return repr(x)
        return self.named(x)

    def function(self, body, asks=True):
        """``body``, the text of an expression, as a function of the inputs, which is None where the conditions do not hold; without ``asks`` they are known to."""
        lines, wanted = [f"    return {body}"], set(_names(body))
        for name, text in reversed(self.lines):
            if name is None and not asks:
                continue
            if name is None:
                lines.append(f"    if not ({text}): return None")
            elif name in wanted:
                lines.append(f"    {name} = {text}")
            else:
                continue
            wanted.update(_names(text))
        lines.append(f"def make({', '.join(n.name for n in self.inputs)}):")
        exec("\n".join(reversed(lines)), self.names)
        return self.names["make"]

    def expanded(self, body):
        """The text of an expression in the inputs alone, which two traces that compute the same have in common. None of one that is very long."""
        texts = {name: text for name, text in self.lines if name is not None}

        def expand(found):
            name = found.group()
            text = known.get(name)
            if text is None and name not in texts and name not in self.names:
                return name                                     # a word in a text
            if text is None:
                text = known[name] = str(id(self.names[name])) if name[0] == "c" else f"({_expandable(expand, texts[name])})"
                if len(text) > _LONG:
                    raise OverflowError
            return text
        known = {}
        try:
            return _expandable(expand, body)
        except OverflowError:
            return None

    def __enter__(self):
        global tracing
        if not _one_at_a_time.acquire(blocking=False):
            raise Refused("another thread traces")
        tracing, self.taken = self, []
        for at, name, cached in _bindings():
            if at.get(name) is not cached:
                continue
            at[name] = _nothing if cached.__class__ is dict else cached.__wrapped__
            self.taken.append((at, name, cached))
        return self

    def __exit__(self, *exc):
        global tracing
        tracing = None
        for at, name, cached in self.taken:
            at[name] = cached
        self.lines = self.known = self.asked = self.products = None         # numbers that something keeps need no more than their names
        _one_at_a_time.release()


def _holds(things):
    """Whether there are traced numbers among ``things`` and in containers of them: what a text only names would keep them."""
    return any([type(x) is Number or type(x) in _CONTAINERS and _holds(gc.get_referents(x)) for x in things])


_SAFE = frozenset((str, bytes, float, type, type(len)))
_PLAIN = tuple([f"{__package__.rpartition('.')[0]}.{part}." for part in ("core", "runtime")])     # devices, kernels, dtypes
_CONTAINERS = frozenset((tuple, list, dict, CellType))
_names = re.compile(r"\b[st]\d+\b").findall
_expandable = re.compile(r"\b[tc]\d+\b").sub
_LONG = 1 << 12
_found: dict = {}
_one_at_a_time = Lock()


def _bindings():
    """Where the names of memos are: (names of a module, name, function)."""
    now = len(sys.modules), len(_taken)
    if _found.get("for") != now:
        modules = [m for n, m in list(sys.modules.items()) if n.startswith(__package__.rpartition(".")[0]) and m is not None]
        own = set(map(id, _taken))
        _found["for"] = now
        _found["all"] = [(vars(m), name, value) for m in modules for name, value in list(vars(m).items()) if id(value) in own]
    return _found["all"]


class Number:
    """A number with the name of what computes it. Its class says that it is an int, or a float, so that it is taken for one."""

    __slots__ = ("trace", "value", "name")

    def __init__(self, trace, value, name):
        self.trace, self.value, self.name = trace, value, name

    @property
    def __class__(self):
        return self.value.__class__

    def fixed(self):
        """The plain number, from now on the only one that will do."""
        if self.name.startswith("s") and self.trace.known is not None:
            raise Refused(f"a size has to be {self.value}")
        self.trace.ask(f"{self.name} == {self.value!r}", True)
        return self.value

    def __bool__(self):
        return self.trace.ask(f"{self.name} != 0", self.value != 0)

    def __hash__(self):
        raise Refused("a number would be the key of what is kept for all calls")

    def __index__(self):
        return operator.index(self.fixed())

    def __int__(self):
        return int(self.fixed())

    def __float__(self):
        return float(self.fixed())

    def __repr__(self):
        return self.name if tracing is None else repr(self.fixed())

    def __format__(self, spec):
        return format(self.fixed(), spec)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def bit_length(self):
        return self.trace.step(f"{self.name}.bit_length()", self.value.bit_length())


def larger(x, least):
    """``max(x, least)`` without telling which one it is."""
    return x.trace.step(f"max({x.name}, {least})", max(x.value, least)) if type(x) is Number else max(x, least)


def index(x):
    """``operator.index`` for numbers that may be traced."""
    return x if type(x) is Number else operator.index(x)


def real(x):
    """``float`` for numbers that may be traced."""
    return x.trace.step(f"float({x.name})", float(x.value)) if type(x) is Number else float(x)


def plain_only(what):
    """Raise in a trace, before something is done that it must not do twice."""
    if tracing is not None and tracing.thread == get_ident():
        raise Refused(what)


def call(function, *args):
    """``function(*args)``, which is to be called for other numbers, too, where one of its arguments is traced."""
    if tracing is None or Number not in map(type, args):
        return function(*args)
    trace = tracing
    return trace.step(f"{trace.named(function)}({', '.join(map(trace.text, args))})", function(*map(plain, args)))


def computed(function):
    """For functions of numbers that search: a trace calls them again, and does not ask about each of their steps (decorator)."""
    return functools.wraps(function)(functools.partial(call, function))


def choice(function):
    """The same for functions that give one of few things: a trace asks whether that is the same (decorator)."""
    @functools.wraps(function)
    def chosen(*args):
        if tracing is None or Number not in map(type, args):
            return function(*args)
        value = function(*map(plain, args))
        tracing.ask(f"{tracing.named(function)}({', '.join(map(tracing.text, args))}) == {tracing.text(value)}", True)
        return value
    return chosen


def fixed(x):
    """``x`` as a plain number that decides what is done: others are another case."""
    return x.fixed() if type(x) is Number else x


def label(x):
    """What tells numbers apart: for a traced one what it is computed by, whatever it is now."""
    return x.name if type(x) is Number else x


def is_number(x):
    """Whether ``x``, which may claim to be an int, is a traced number."""
    return type(x) is Number


def plain(x):
    """The value of ``x`` as it is now, without saying that it has to be that."""
    return x.value if type(x) is Number else x


def _name(x):
    if type(x) is Number:
        return x.name, x.value
    if type(x) in (int, float, bool) and x == x and abs(x) != float("inf"):
        return (repr(x) if x >= 0 else f"({x!r})"), x
    return None, None


def _simple(sign, one, other, trace):
    """What ``one`` and a plain number ``other`` give, where that takes no step; else None."""
    if other == _NEUTRAL.get(sign):
        return one
    base, factor = trace.products.get(one.name, (None, None))
    if factor is not None and factor == other:
        return base if sign == "//" else 0 if sign == "%" else None
    return None


_NEUTRAL = {"+": 0, "-": 0, "*": 1, "//": 1}


def _binary(sign, function, swapped=False):
    def method(self, other):
        name, value = _name(other)
        if name is None:
            return NotImplemented
        if type(other) is int and type(self.value) is int and (not swapped or sign in "+*"):
            got = _simple(sign, self, other, self.trace)
            if got is not None:
                return got
            if sign == "*" and other > 0:
                got = self.trace.step(f"{self.name} * {name}", self.value * other)
                self.trace.products[got.name] = self, other
                return got
        if swapped:
            return self.trace.step(f"{name} {sign} {self.name}", function(value, self.value))
        return self.trace.step(f"{self.name} {sign} {name}", function(self.value, value))
    return method


def _comparison(sign, function):
    def method(self, other):
        name, value = _name(other)
        if name is None:
            return NotImplemented
        answer = function(self.value, value)
        return answer if name == self.name else self.trace.ask(f"{self.name} {sign} {name}", answer)
    return method


def _unary(text, function):
    return lambda self: self.trace.step(text.format(self.name), function(self.value))


for _word, _sign in dict(add="+", sub="-", mul="*", floordiv="//", mod="%", truediv="/", lshift="<<", rshift=">>", and_="&", or_="|", xor="^",
                         pow="**").items():
    _plainly = _word.rstrip("_")
    setattr(Number, f"__{_plainly}__", _binary(_sign, getattr(operator, _word)))
    setattr(Number, f"__r{_plainly}__", _binary(_sign, getattr(operator, _word), True))
for _word, _sign in dict(eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">=").items():
    setattr(Number, f"__{_word}__", _comparison(_sign, getattr(operator, _word)))
for _word, _text in dict(neg="-{}", invert="~{}", abs="abs({})").items():
    setattr(Number, f"__{_word}__", _unary(_text, getattr(operator, _word)))
