"""Schemas of operators in PyTorch's notation, ``crop(Tensor pic, SymInt[] box, *, float scale=1.) -> Tensor``: read, and compared with calls."""
from __future__ import annotations

import ast
import re
from collections import namedtuple

import numpy as np

from ._tensor.tensor import Tensor

Argument = namedtuple("Argument", "name type default_value kwarg_only mutated")
MISSING = object()
_WORDS = frozenset("""Tensor int SymInt float SymFloat bool SymBool str Scalar complex ScalarType Device DeviceIndex Layout MemoryFormat Generator Stream
    Storage QScheme Any AnyEnumType Dict Future RRef Await number None t""".split())
_TYPE = re.compile(r"(?P<word>[A-Za-z_][\w.]*)(?P<more>(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\?|\[\d*\])*)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_DEFAULT = re.compile(r"None|True|False|-?\d|\[|\"|'")


def _wrong(what, text, at, width=1):
    return RuntimeError(f"{what}:\n{text}\n{' ' * at}{'~' * max(1, width)} <--- HERE\n")


def _check_type(part, text):
    """The end of the type that ``part`` begins with. Raises RuntimeError where there is none."""
    found, at = _TYPE.match(part), max(text.find(part), 0)
    if found is None:
        raise _wrong(f"expected ident but found '{part[:1] or ')'}' here", text, at)
    if found["word"] not in _WORDS and found["word"].partition(".")[0] != "__torch__":
        raise _wrong("\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full list, please see "
                     "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func ", text, at, len(found["word"]))
    return found.end()


def _argument(part, text, by_name):
    declared, equals, default = part.partition("=")
    declared, default, at = declared.strip(), default.strip(), max(text.find(part), 0)
    name = declared[_check_type(declared, text):].strip()
    if _NAME.fullmatch(name) is None:
        raise _wrong(f"expected ident but found '{name[:1] or ')'}' here", text, at + len(declared) - len(name))
    kind = declared[:len(declared) - len(name)].strip()
    word = _TYPE.match(kind)["word"]
    if equals and word in ("int", "float", "bool", "str", "SymInt", "Scalar") and _DEFAULT.match(default) is None:
        raise _wrong("\ninvalid numeric default value" if default else "expected number but found ')' here", text, at + len(part))
    if equals and kind == "Tensor" and default != "None":
        raise _wrong("expected None but found a default here", text, at + len(part))
    return Argument(name, kind, _literal(default) if equals else MISSING, by_name, "!" in kind)


class FunctionSchema:
    """Name, arguments and results of an operator. Raises RuntimeError where the text is none, or names a type that PyTorch has not."""

    def __init__(self, text):
        head, arrow, returns = text.rpartition("->")
        name, opened, inner = head.partition("(")
        name, inner = name.strip(), inner.rstrip()
        if not arrow or not opened or not inner.endswith(")"):
            raise RuntimeError(f"expected arrow but found 'eof' here:\n{text}" if opened else
                               f"Tried to parse a function schema but only the operator name was given: a schema looks like 'name(Tensor x, int n) -> Tensor', "
                               f"got {text!r}")
        if re.fullmatch(r"(?:[A-Za-z_]\w*::)?[A-Za-z_]\w*(?:\.\w+)?", name) is None:
            raise _wrong(f"expected ident but found '{name[:1] or '('}' here", text, 0)
        self.name, self.text = name, re.sub(r"(=-?\d+\.)0(?=[,)\s])", r"\1", text.strip())    # PyTorch writes 2.0 as "2."
        listed = returns.strip()
        self.returns = _split(listed.removeprefix("(").removesuffix(")") if listed.startswith("(") else returns)
        for r in self.returns:
            if r != "...":
                _check_type(r, text)
        self.arguments, by_name = [], False
        for part in _split(inner[:-1], text):
            if part == "*":
                by_name = True
            elif part != "...":
                self.arguments.append(_argument(part, text, by_name))
        late = [a for i, a in enumerate(self.arguments) if a.default_value is MISSING and not a.kwarg_only
                and any([b.default_value is not MISSING for b in self.arguments[:i]])]
        if late:
            raise RuntimeError(f"Non-default positional argument follows default argument. Parameter {late[0].name} in {text}")
        self.checks = {a.name: _check_of(a.type) for a in self.arguments}
        self.result = _check_of(_TYPE.match(self.returns[0]).group()) if len(self.returns) == 1 and self.returns[0] != "..." else None

    @property
    def is_mutable(self):
        return any(a.mutated for a in self.arguments)

    def bind(self, args, kwargs):
        """(positional values, values by name), with the defaults filled in. Raises RuntimeError when the call does not fit."""
        places = [a for a in self.arguments if not a.kwarg_only]
        given, most = len(args) + len(kwargs), len(self.arguments)
        if given > most:
            raise RuntimeError(f"{self.name}() expected at most {most} argument(s) but received {given} argument(s). Declaration: {self}")
        if len(args) > len(places):
            raise RuntimeError(f"{self.name}() takes {len(places)} positional argument(s) but {len(args)} was/were given.  Declaration: {self}")
        twice = [a.name for a in places[:len(args)] if a.name in kwargs]
        if twice:
            raise RuntimeError(f"Argument '{twice[0]}' specified both as positional and keyword argument. Schema: {self}")
        kwargs, out, named = dict(kwargs), [], {}
        for i, a in enumerate(self.arguments):
            value = args[i] if i < len(args) else kwargs.pop(a.name, MISSING)
            if value is not MISSING:
                value = self._fitting(i, a, value)
            elif a.default_value is MISSING:
                raise RuntimeError(f"{self.name}() is missing value for argument '{a.name}'. Declaration: {self}")
            else:
                value = a.default_value
            if a.kwarg_only:
                named[a.name] = value
            else:
                out.append(value)
        if kwargs:
            raise RuntimeError(f"Unknown keyword argument '{next(iter(kwargs))}' for operator '{self.name}'. Schema: {self}")
        return tuple(out), named

    def _fitting(self, place, argument, value):
        """The value as the operator gets it: a tensor of one element as the number that it stands for."""
        check = self.checks[argument.name]
        if check is None or check(value):
            return value
        if argument.type.partition("?")[0] in ("int", "float", "bool", "SymInt") and isinstance(value, Tensor) and value._numel == 1 \
                and (argument.type.startswith("float") or not value.dtype.is_floating_point) and not value.dtype.is_complex:
            return value.item()
        raise RuntimeError(f"{self.name}() Expected a value of type '{_long(argument.type)}' for argument '{argument.name}' but instead found type "
                           f"'{type(value).__name__}'.\nPosition: {place}\nValue: {value!r}\nDeclaration: {self}")

    def check_result(self, result):
        """Raise RuntimeError where what a kernel gave is not of the type of the one result that there is."""
        if self.result is not None and not self.result(result):
            raise RuntimeError(f"Unable to cast {result!r} to Tensor" if self.returns[0].startswith("Tensor") and not self.returns[0].endswith("]") else
                               f"Unable to cast Python instance of type {type(result)} to the type of the operator's result. Declaration: {self}")

    def __repr__(self):
        return self.text


def _long(kind):
    """A type as errors spell it: ``List[int]``, ``Optional[Tensor]``."""
    kind = re.sub(r"\([^()]*\)", "", kind).replace("SymInt", "int").replace("Scalar", "number") if not kind.startswith("ScalarType") else kind
    if kind.endswith("?"):
        return f"Optional[{_long(kind[:-1])}]"
    return f"List[{_long(kind[:kind.rindex('[')])}]" if kind.endswith("]") else kind


def _whole(v):
    return isinstance(v, (int, np.integer)) or hasattr(v, "__index__") and not isinstance(v, (Tensor, np.ndarray))


_CHECKS = dict(Tensor=lambda v: isinstance(v, Tensor) or hasattr(type(v), "__torch_function__"), int=_whole, SymInt=_whole,
               float=lambda v: isinstance(v, (float, np.floating)) or _whole(v), bool=lambda v: isinstance(v, (bool, np.bool_, int)),
               str=lambda v: isinstance(v, str), Scalar=lambda v: isinstance(v, (int, float, complex, np.number, np.bool_)) or _whole(v))


def _check_of(kind):
    """Whether a value is of a type; None where all are let through."""
    plain = re.sub(r"\([^()]*\)", "", kind)
    if plain.endswith("?"):
        inner = _check_of(plain[:-1])
        return inner and (lambda v: v is None or inner(v))
    if plain.endswith("]"):
        inner, length = _check_of(plain[:plain.rindex("[")]), plain[plain.rindex("[") + 1:-1]
        return inner and (lambda v: isinstance(v, (list, tuple)) and all(map(_item_of(inner, plain), v)) or bool(length) and inner(v))
    return _CHECKS.get(plain)


def _item_of(check, kind):
    """Lists of numbers may hold tensors of one element."""
    return check if kind.startswith("Tensor") else lambda v: check(v) or isinstance(v, Tensor) and v._numel == 1


def _split(text, whole=None):
    """Parts between commas that stand in no brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    parts = [*parts, text[start:].strip()]
    if whole is not None and parts[-1] == "" and len(parts) > 1:
        raise _wrong("expected ident but found ')' here", whole, len(whole.rpartition("->")[0].rstrip()) - 1)
    return [p for p in parts if p]


def _literal(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
