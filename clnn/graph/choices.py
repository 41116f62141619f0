"""Whether a C expression with comparisons and choices (``a < b ? c : d``) means the same for vectors as for numbers.

A comparison of vectors gives -1 for true, so it may decide a choice or be all that there is. What a choice is between must be vectors, or one and a number
that is certain to become one of the same type.
"""
from __future__ import annotations

import re

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|\d+\.\d*(?:[eE][-+]?\d+)?f?|\d+|[<>=!]=|&&|\|\||[-+*/(),<>?:])")
_QUESTIONS = frozenset(("isnan", "isinf"))
_EITHER = frozenset(("fmax", "fmin"))           # functions of a vector and a number, too
_COMPARISONS = frozenset(("<", ">", "<=", ">=", "==", "!="))
VECTOR, MASK, NUMBER, INTEGER = "vector", "mask", "number", "integer"


class _Other(Exception):
    """It does not, or nobody can tell."""


def kind(text, names, functions):
    """What ``text`` over vectors called ``names``, with ``functions`` of vectors, gives: ``VECTOR``, of what it gives for numbers; ``MASK``, of -1 where it
    is true for numbers; None where it gives something else.
    """
    try:
        reader = _Reader(text, names, functions)
        found = reader.choice()
        return found if found in (VECTOR, MASK) and reader.at == len(reader.tokens) else None
    except _Other:
        return None


def _require(true):
    if not true:
        raise _Other


class _Reader:
    """Recursive descent; each method returns what kind of value the part is that it read."""

    def __init__(self, text, names, functions):
        self.names, self.functions, self.tokens, self.at, at = names, functions, [], 0, 0
        text = text.strip()
        while at < len(text):
            token = _TOKEN.match(text, at)
            _require(token)
            self.tokens.append(token.group(1))
            at = token.end()

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        _require(token and wanted in (None, token))
        self.at += 1
        return token

    def choice(self):
        kind = self.logical()
        if self.peek() != "?":
            return kind
        self.take()
        one = self.choice()
        self.take(":")
        both = {one, self.choice()}
        _require(kind == MASK and VECTOR in both and both <= {VECTOR, NUMBER})
        return VECTOR

    def logical(self):
        kind = self.comparison()
        while self.peek() in ("&&", "||"):
            self.take()
            _require(kind == self.comparison() == MASK)
        return kind

    def comparison(self):
        kind = self.arithmetic()
        if self.peek() not in _COMPARISONS:
            return kind
        if kind == MASK:
            self.take("!=")
            self.take("0")
            return MASK
        self.take()
        both = {kind, self.arithmetic()}
        _require(VECTOR in both and MASK not in both)
        return MASK

    def arithmetic(self):
        kind = self.operand()
        while self.peek() and self.peek() in "+-*/":
            self.take()
            both = {kind, self.operand()}
            _require(MASK not in both)
            kind = VECTOR if VECTOR in both else NUMBER if NUMBER in both else INTEGER
        return kind

    def operand(self):
        token = self.take()
        if token == "-":
            kind = self.operand()
            _require(kind != MASK)
            return kind
        if token == "(":
            return self._cast() if self.peek() == "ACC" and self.peek(1) == ")" else self._closed()
        if token[0].isdigit():
            return NUMBER if "." in token else INTEGER
        if token in self.names:
            return VECTOR
        _require(self.take() == "(")
        return self._call(token)

    def _closed(self):
        kind = self.choice()
        self.take(")")
        return kind

    def _cast(self):
        self.at += 2
        _require(self.operand() in (NUMBER, INTEGER))
        return NUMBER

    def _call(self, name):
        _require(name in self.functions or name in _QUESTIONS or name in _EITHER)
        kinds = {self.choice()}
        while self.peek() == ",":
            self.take()
            kinds.add(self.choice())
        self.take(")")
        _require(kinds == {VECTOR} or name in _EITHER and kinds == {VECTOR, NUMBER})
        return MASK if name in _QUESTIONS else VECTOR
