"""What programs print of functions and modules that :mod:`clnn.jit` was given: their source, their arguments and their calls, in place of a compiler's."""
from __future__ import annotations

import inspect
import re
import textwrap
import typing

_PLAIN = {int: "int", float: "float", bool: "bool", str: "str", complex: "complex", type(None): "NoneType"}


def code_of(function):
    """The source of a function without its decorators; AttributeError where there is none."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise AttributeError(f"jit: there is no source of {function!r}") from None
    return text[re.search(r"^\s*(async )?def |lambda", text, re.MULTILINE).start():] if re.search(r"def |lambda", text) else text


def _kind(annotation):
    """The name of a type in a schema."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union and type(None) in parts:
        return _kind(next(p for p in parts if p is not type(None))) + "?"
    if origin is list:
        return _kind(parts[0]) + "[]"
    if origin is tuple:
        return f"({', '.join(map(_kind, parts))})"
    if origin is dict:
        return f"Dict({', '.join(map(_kind, parts))})"
    return "Tensor" if annotation is inspect.Parameter.empty or getattr(annotation, "__name__", "") == "Tensor" else getattr(annotation, "__name__", str(annotation))


def _default(value):
    return f'"{value}"' if isinstance(value, str) else repr(value)


def schema_of(function):
    """``f(Tensor x, int n=1) -> Tensor``: what is not annotated is a tensor."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:                                           # names that are not there at run time
        hints = {}
    args = [f"{_kind(hints.get(name, p.annotation))} {name}" + ("" if p.default is p.empty else f"={_default(p.default)}")
            for name, p in inspect.signature(function).parameters.items() if name != "self"]
    gives = _kind(hints.get("return", inspect.Parameter.empty))
    name = re.sub(r"\W", "_", function.__name__).strip("_") if function.__name__ != "<lambda>" else "_lambda"
    return f"{name}({', '.join(args)}) -> {f'({gives})' if gives[0] == '(' else gives}"


class Calls:
    """The graph of a function's calls, traced when it is asked for; printed as source where Python decides by values, which has no graph."""

    def __init__(self, function, code):
        self._function, self._code = function, code

    def _graph(self):
        from .fx import symbolic_trace
        return symbolic_trace(self._function).graph

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return getattr(self._graph(), name)

    def __str__(self):
        try:
            return str(self._graph())
        except Exception:
            return self._code()

    __repr__ = __str__
