"""The documentation of operators: what the entry says in words, its example, and what follows from the entry by itself.

A body's docstring (or ``doc=``) and ``example=`` of the entry come first. ``explain`` adds to them from a table, ``clnn/ops/docs``, which is filled before
the operators are declared: declarations stay as short as the mathematics, and the same text reaches the function, the method and every other name.
"""
from __future__ import annotations

from inspect import cleandoc

from ..core import dtype as dt

TEXTS: dict[str, tuple] = {}                # what waits for its operator: name -> (text, call, shown)
_KINDS = {frozenset(dt.REAL): "", frozenset(dt.FLOATS): "floats", frozenset(dt.INTS): "integers", frozenset((dt.bool_, *dt.INTS)): "integers and bool",
          frozenset(dt.REAL) - {dt.bool_}: "all real dtypes but bool", frozenset(): ""}


def explain(name: str, text: str, call: str, shown: str) -> None:
    """Document operator ``name``, which is declared later.

    Args:
        text: a paragraph: the summary, or what the entry's own summary leaves open (formula, domain, source). May be empty.
        call: statements of one line each; the last one is an expression.
        shown: what a Python prompt prints for it.
    """
    if name in TEXTS:
        raise ValueError(f"operator {name!r} is already explained")
    TEXTS[name] = text, call, shown


def _facts(op) -> str:
    """What nobody has to write: other names, the in-place form, dtypes, gradients."""
    parts = []
    if op.aliases:
        parts.append(f"Other names: {', '.join(op.aliases)}.")
    if op.inplace:
        parts.append(f"In place: ``Tensor.{op.name}_``.")
    kinds = frozenset(op.dtypes).difference(dt.COMPLEXES, dt.UNSIGNED)
    words = _KINDS.get(kinds)
    if words is None:
        words = ", ".join(d.name for d in dt.REAL if d in kinds)
    if words:
        parts.append(f"Takes {words}{', and complex numbers' if op.complex else ''}.")
    elif op.complex:
        parts.append("Takes complex numbers too.")
    if op.kind == "elementwise":
        rest = [n for i, n in enumerate(op.params) if i in op.differentiable]
        if not rest:
            parts.append("No gradient.")
        elif len(rest) < len(op.params):
            parts.append(f"Gradient to ``{'``, ``'.join(rest)}`` only.")
    return " ".join(parts)


def described(op, doc: str | None) -> str:
    """The whole documentation of ``op``, whose entry or body says ``doc``."""
    doc = (cleandoc(doc) if "\n" in doc else doc) if doc else ""
    text, call, shown = TEXTS.pop(op.name, ("", *(op.example or ("", ""))))
    if op.name[0] == "_" and not text:                          # a part of other operators
        return doc
    if text:
        head, gap, rest = doc.partition("\n\n")
        doc = f"{head}\n\n{text}{gap}{rest}" if head else text
    doc, gap, example = doc.partition("\n\nExample:")
    facts = _facts(op)
    if facts:
        doc += "\n\n" + facts
    if gap:
        return doc + gap + example
    if call:
        doc += "\n\nExample:\n    >>> " + call.replace("\n", "\n    >>> ") + "\n    " + shown.replace("\n", "\n    ")
    return doc
