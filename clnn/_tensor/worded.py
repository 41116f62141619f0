"""What a call with wrong arguments is told: PyTorch's words, from the signature of the function. Read on the way out of a failed call only."""
from __future__ import annotations

import functools
import re
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core import native
from ..core.config import config
from ..core.dtype import dtype
from . import signatures
from .device import device
from .override import codes, overloaded, twin_codes
from .tensor import Tensor

_SPOKEN = dict(ints="tuple of ints", floats="tuple of floats", Tensors="tuple of Tensors")
_OWN = ("dtype", "device", "layout", "memory_format", "Generator")
_HERE = __file__.rpartition("_tensor")[0]
_LISTS = frozenset((list, tuple))
_MOST = 4096            # combinations of classes that are remembered per function
local = threading.local()
local.by_value = False
absent = type("absent", (), {})()           # stands for an argument that was not given


class Parameter(NamedTuple):
    kind: str               # without the length of a list
    length: str             # of a list that one integer stands for
    none: bool              # may be None
    name: str
    default: str | None
    by_name: bool           # only

    @property
    def word(self):
        return f"{config.spoken}.{self.kind}" if self.kind in _OWN else _SPOKEN.get(self.kind, self.kind)

    def __str__(self):
        return f"{self.word} {self.name}" + (f" = {self.default}" if self.default is not None else "")


_PARAMETER = re.compile(r"([A-Za-z_]+)(\d*)(\??) (\w+)(?:=(.*))?")


def _parsed(text):
    for word, long in signatures.SHORT.items():
        text = text.replace(word, long)
    found, by_name = [], False
    for part in re.split(r", (?=[A-Za-z*])", text.strip()) if text.strip() else ():
        if part == "*":
            by_name = True
            continue
        kind, length, none, name, default = _PARAMETER.fullmatch(part).groups()
        found.append(Parameter(kind, length, bool(none) or default in ("None", "[]"), name, default, by_name))
    return tuple(found)


@functools.cache
def _rows(text):
    rows = {}
    for line in text.strip().replace("\n    ", " ").split("\n"):
        names, _, forms = line.partition(": ")
        rows.update(dict.fromkeys(names.split(), tuple([_parsed(form) for form in re.split(r"\s*\|\s*", forms)])))
    return rows


@functools.cache
def forms(name, method):
    """The signatures of a function or method, () where they are not known."""
    if not method:
        return _rows(signatures.FUNCTIONS).get(name, ())
    own = _rows(signatures.METHODS).get(name)
    if own is None:
        own = _rows(signatures.FUNCTIONS).get(name.rstrip("_"), ())
        own = tuple([tuple([p for p in form if p.name not in ("input", "out")]) for form in own if form[0].name == "input"])
        if own and own[0] and own[0][0].name == "dtype" and own[0][0].kind != "dtype":
            return ()
    return own


def _text(form):
    parts = [str(p) for p in form]
    first = next((i for i, p in enumerate(form) if p.by_name), None)
    if first is not None:
        parts.insert(first, "*")
    return f"({', '.join(parts)})"


def said(value) -> str:
    """The name of a value's class as errors print it: classes of libraries written in C have a module's name."""
    cls = type(value)
    if cls.__module__.partition(".")[0] == "clnn":
        return f"{config.spoken}.{'_C.' * (cls.__name__ == 'Generator')}{cls.__name__}" if cls.__name__ in (*_OWN, "Size") else cls.__name__
    return cls.__name__ if cls.__flags__ & 1 << 9 or cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


# -- does a value fit? -----------------------------------------------------------------------------------------------------------------

def _scalar(value):
    local.by_value = local.by_value or isinstance(value, Tensor)
    return isinstance(value, Tensor) and value.dim() == 0 and not value.requires_grad


def _whole(value):
    if isinstance(value, Tensor):
        return _scalar(value) and not value.dtype.is_floating_point and not value.dtype.is_complex and value.element_size() > 0
    if isinstance(value, np.ndarray):
        local.by_value = True
        return not value.ndim and value.dtype.kind in "iu"
    return not isinstance(value, (bool, np.bool_)) and hasattr(type(value), "__index__")


def _number(value):
    return isinstance(value, (int, float, complex, np.number, np.bool_)) or _scalar(value) or _whole(value)


def _tensor(value):
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def _fits(p, value, name):
    """True, or False, or the place of the item that does not."""
    kind = p.kind
    if kind == "Tensor":
        return _tensor(value) or name.rstrip("_") in signatures.NUMBERS and p.name in ("input", "other") \
            and isinstance(value, (int, float, complex, np.number))
    if kind == "Number":
        return _number(value)
    if kind == "int":
        return _whole(value)
    if kind == "float":
        return not isinstance(value, complex) and _number(value)
    if kind == "bool":
        return isinstance(value, (bool, np.bool_))
    if kind == "str":
        return isinstance(value, (str, bytes))
    if kind in ("ints", "floats"):
        if isinstance(value, (tuple, list)):
            return not value or (_whole(value[0]) if kind == "ints" else _number(value[0])) or -1
        return p.length != "" and _whole(value)
    if kind == "Tensors":
        return isinstance(value, (tuple, list))
    if kind == "device":
        return isinstance(value, (str, int, device)) and not isinstance(value, bool)
    if kind == "object":
        return True
    return isinstance(value, dtype) or isinstance(value, type) and value in (float, int, bool, complex) if kind == "dtype" else type(value).__name__ == kind


# -- one signature ---------------------------------------------------------------------------------------------------------------------

def _too_many(name, form, given):
    most, least = sum([not p.by_name for p in form]), sum([p.default is None for p in form])
    if least != most:
        return f"{name}() takes from {least} to {most} positional arguments but {given} were given"
    return f"{name}() takes {most} positional argument{'s' * (most != 1)} but {given} {'was' if given == 1 else 'were'} given"


def _missing(name, form, at):
    lacking = [p.name for p in form[at:] if p.default is None]
    return f"{name}() missing {len(lacking)} required positional argument{'s' * (len(lacking) == 1)}: " + ", ".join([f'"{n}"' for n in lacking])


def _unlike(name, p, at, value, fits):
    place = "" if at is None else f" (position {at + 1})"
    if fits == -1 and at is not None:
        return f"{name}(): argument '{p.name}'{place} must be {p.word}, but found element of type {said(value[0])} at pos 0"
    return f"{name}(): argument '{p.name}'{place} must be {p.word}, not {said(value)}"


def _unpacked(name, form, args, kwargs):
    """What is wrong with later items of a list, of which the first one alone was looked at."""
    if len(args) > 1 and sum([not p.by_name for p in form]) == 1:
        args = (args,)                                          # numbers given one by one
    for p, value in [*zip(form, args), *[(p, kwargs[p.name]) for p in form if p.name in kwargs]]:
        if p.kind == "Tensors" and isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                if not _tensor(item):
                    return f"expected Tensor as element {i} in argument {[q.name for q in form].index(p.name)}, but got {said(item)}"
        if p.kind == "ints" and isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                if not _whole(item) and not isinstance(item, bool):
                    return f"{name}(): argument '{p.name}' failed to unpack the object at pos {i + 1} with error " \
                           f"\"type must be tuple of ints,but got {said(item)}\""
    return None


_NUMPY = dict(dim=("axis",), keepdim=("keepdims",), input=("x", "a", "x1"), other=("x2",))      # NumPy's names


def _named(p, kwargs):
    """The value that a parameter is given by name."""
    for n in (p.name, *_NUMPY.get(p.name, ())):
        if n in kwargs:
            return kwargs[n]
    return absent


def _against(name, form, args, kwargs):
    """What is wrong with a call for one signature; None if nothing is."""
    most = sum([not p.by_name for p in form])
    listed = most == 1 and form[0].kind == "ints"
    if len(args) > most and not (listed and _whole(args[0])):
        return _too_many(name, form, len(args))
    at, left = 0, len(kwargs)
    for i, p in enumerate(form):
        by_name = at >= len(args)
        if not by_name and p.by_name:
            return _too_many(name, form, len(args))
        value = _named(p, kwargs) if by_name else args[at]
        if value is absent:
            if p.default is None:
                return _missing(name, form, i)
        elif value is not None or not p.none:
            fits = _fits(p, value, name)
            if fits is not True:
                if listed and at == 0 and not by_name and _whole(args[0]):
                    at = len(args)
                    continue
                return _unlike(name, p, None if by_name else at, value, fits)
        at, left = at + (not by_name), left - (by_name and value is not absent)
    if left:
        names = [n for p in form for n in (p.name, *_NUMPY.get(p.name, ()))]
        wrong = next((k for k in kwargs if k not in names), None)
        return f"{name}() got an unexpected keyword argument '{wrong}'" if wrong is not None else \
            f"{name}() got multiple values for argument '{next(iter(kwargs))}'"
    return None


@functools.cache
def _before(form):
    """The forms of PyTorch 1.4 of a function with factors: these were in front of the operands that they scale."""
    factors = [p._replace(by_name=False, default=None) for p in form if p.kind == "Number" and p.default is not None]
    first, rest = [p for p in form if p.name == "input"], [p for p in form if not p.by_name and p.name != "input"]
    out = [p for p in form if p.name == "out"]
    if len(factors) == 1:
        return (*first, *factors, *rest, *out),
    return (factors[0], *first, factors[1], *rest, *out), (factors[0], *first, *rest, *out)


# -- all of them -----------------------------------------------------------------------------------------------------------------------

def _marked(parts, args, kwargs, name):
    """The classes of the arguments, those that do not fit between marks."""
    def mark(p, value, text):
        return text if p is not None and (value is None and p.none or _fits(p, value, name) is True) else f"!{text}!"
    by_name = {p.name: p for p in parts if p is not None}
    said_so = [mark(parts[i] if i < len(parts) else None, value, said(value)) for i, value in enumerate(args)]
    return f"({', '.join(said_so + [mark(by_name.get(k), v, f'{k}={said(v)}') for k, v in reversed(kwargs.items())])})"


def _why(name, form, args, kwargs):
    """The line below a signature with as many parts, the star among them, as there are arguments."""
    first = next((i for i, p in enumerate(form) if p.by_name), None)
    parts = list(form) if first is None else [*form[:first], None, *form[first:]]
    if len(args) + len(kwargs) != max(1, len(parts)):
        return ""
    names = {p.name for p in form}
    wrong = [k for k in reversed(kwargs) if k not in names]
    if wrong:
        return f"      didn't match because some of the keywords were incorrect: {', '.join(wrong)}\n"
    return f"      didn't match because some of the arguments have invalid types: {_marked(parts, args, kwargs, name)}\n"


def words(name, method, args, kwargs):
    """What is wrong with a call, None where nothing is, or where the signature is not known."""
    known = forms(name, method)
    if not known:
        return None
    if name in signatures.BY_POSITION:
        if any(p.default is None and p.name not in kwargs for p in known[0][len(args):]):
            return None                                         # Python says so
        args, kwargs = _in_order(known[0], args, kwargs)
    found = []
    for form in known:
        local.by_value = False                                  # of the form that fits alone
        found.append(_against(name, form, args, kwargs))
        if found[-1] is None:
            break
    if None in found:
        return _unpacked(name, known[found.index(None)], args, kwargs)
    old = name.rstrip("_") in signatures.OLD
    if old and any([_against(name, form, args, kwargs) is None for form in _before(known[0])]):
        return None
    if len(known) == 1 and not old:
        return found[0]
    given = len(args) + len(kwargs)
    plausible = [i for i, form in enumerate(known) if sum([p.default is None for p in form]) <= given <= len(form)]
    if len(plausible) == 1:
        return found[plausible[0]]
    got = ", ".join([*map(said, args), *[f"{k}={said(v)}" for k, v in reversed(kwargs.items())]]) + ", " * (not args and bool(kwargs))
    text = f"{name}() received an invalid combination of arguments - got ({got}), but expected "
    if len(known) == 1:
        return text + _text(known[0])
    return text + "one of:\n" + "".join([f" * {_text(form)}\n{_why(name, form, args, kwargs)}" for form in known])


def _in_order(form, args, kwargs):
    args, kwargs = list(args), dict(kwargs)
    for p in form[len(args):]:
        if not kwargs:
            break
        if p.name not in kwargs and p.default is None:
            break
        args.append(kwargs.pop(p.name, None if p.none else eval(p.default) if p.default else None))     # noqa: S307  (a literal of the table)
    return tuple(args), kwargs


def _called(name, method):
    """(the name that the program called, whether as a method), from the frames between it and here."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        code = frame.f_code
        if code.co_name == "inplace" and code.co_filename.endswith("declare.py"):
            return frame.f_locals.get("name", name) + "_", True
        if id(code) in codes or getattr(code, "co_qualname", "").startswith("Tensor."):         # Python 3.10 has no such names
            return name, True
        frame = frame.f_back
    return name, method


def is_functional() -> bool:
    """Whether the program called the function of ``nn.functional`` rather than its twin elsewhere. For rare calls: it looks at frames."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        if id(frame.f_code) in twin_codes:
            return True
        frame = frame.f_back
    return False


FAILED = RuntimeError, IndexError, ValueError
_ON_THE_WAY = frozenset([__file__.replace("worded", name) for name in "declare elementwise override shown repeat autocast worded inplace".split()]
                        + [str(Path(__file__).parent.parent / "ops" / "_factory.py")])


def misfit(name, args, kwargs):
    """While another error of a call is handled: raise TypeError where its arguments do not fit, which PyTorch looks at first. Only of calls that the program
    makes itself: functions of this package may hand on what is in no signature."""
    if name in signatures.WITH_INPLACE or is_functional():
        return
    if _by_program():
        refuse(name, args, kwargs)


def met(known, args, kwargs) -> bool:
    """Whether a call with arguments of these classes is among the ``known`` ones; the C form alone knows sooner than it could be told."""
    return False


met = native.form("met", met)


class Looked:
    """Looks at the types of a function's arguments where PyTorch's signature is known: once for each combination of classes that fits."""

    __slots__ = ("name", "aliases", "method", "outer", "fit", "other")

    def __init__(self, name, aliases, method, outer):
        self.name, self.aliases, self.method, self.outer, self.fit, self.other = name, aliases, method, outer, set(), set()

    def __call__(self, args, kwargs):
        if met(self.fit, args, kwargs):
            return
        kinds = [a.__class__ if a.__class__ not in _LISTS else (a.__class__, a[0].__class__ if a else None) for a in args]
        if kwargs:
            kinds += [*kwargs, *[v.__class__ for v in kwargs.values()]]
            if "out" in kwargs:
                out = kwargs["out"]
                kinds += [_called(self.name, self.method)[1], *([o.__class__ for o in out] if out.__class__ in _LISTS else ())]         # methods take none
        kinds = tuple(kinds)
        if kinds not in self.fit:
            self.look(kinds, args, kwargs)

    def look(self, kinds, args, kwargs):
        """Raise TypeError in PyTorch's words where calls like this do not fit, and the program makes it itself: functions of this package call each other with
        what is in no signature."""
        if kinds in self.other and not _by_program(self.outer):
            return
        local.by_value = False
        called, method = _called(self.name, self.method)
        said_so = words(called, method, args[1:] if method else args, kwargs)
        if said_so is None or any([words(name, method, args[1:] if method else args, kwargs) is None for name in self.aliases]):
            if not local.by_value and len(self.fit) < _MOST:        # the next tensor that stands for a number may have dimensions
                self.fit.add(kinds)
            return
        if overloaded((*args, *kwargs.values())):                   # who takes functions over is asked where the call fails
            return
        self.other.add(kinds)
        if _by_program(self.outer) and self.name not in signatures.WITH_INPLACE and not is_functional():
            raise TypeError(said_so)


def looked(name, body=None, method=False, outer=False, aliases=()):
    """What looks at the arguments of the function ``name``, None where its signature is not known. ``body``: has the name of the method, where that is another.
    ``outer``: who asks is the function itself, not what all operators have around them."""
    if body is not None and body.__name__.strip("_") == name.strip("_"):
        name = body.__name__
    return Looked(name, [a for a in aliases if forms(a, False)], method, outer) if forms(name, False) or forms(name, True) else None


def _by_program(further=0):
    frame = sys._getframe(3 + further)
    while frame is not None and frame.f_code.co_filename in _ON_THE_WAY:
        frame = frame.f_back
    return frame is None or not frame.f_code.co_filename.startswith(_HERE)


def refuse(name, args, kwargs=None, method=False):
    """Raise TypeError in PyTorch's words where the arguments of a call that failed do not fit the function's signature. ``method``: it is no function."""
    args = tuple([a for a in args if a is not absent])
    called, method = _called(name.lstrip("_"), method)
    if method and args and args[0] is not None and not _tensor(args[0]):
        raise TypeError(f"descriptor '{called}' for '_C.TensorBase' objects doesn't apply to a '{said(args[0])}' object") from None
    said_so = words(called, method, args[1:] if method else args, kwargs or {})
    if said_so is not None:
        raise TypeError(said_so) from None
