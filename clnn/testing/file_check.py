"""``FileCheck``: what a text, such as the code of a graph, holds and in which order, as LLVM's tool of that name checks it."""
from __future__ import annotations

import re

_LINE = re.compile(r"CHECK(?:-(COUNT-EXACTLY-|COUNT-)(\d+)|-(NOT|NEXT|SAME|DAG|REGEX|SOURCE-HIGHLIGHTED))?: (.*)")


class FileCheck:
    """A list of checks, each for what comes after the text that the one before found; :meth:`run` makes them.

    Raises:
        RuntimeError: from ``run``, where a check fails; it shows the text that was searched.

    Example:
        >>> from clnn.testing import FileCheck
        >>> FileCheck().check("relu").check_not("tanh").check_next("add").run("x = relu(x)\\ny = add(x, x)")
        >>> FileCheck().check_count("x", 5, exactly=True).run("x = relu(x)\\ny = add(x, x)")
        Traceback (most recent call last):
        RuntimeError: Expected to find "x" but did not find it
    """

    def __init__(self):
        self._checks = []

    def _add(self, kind, text, count=1):
        self._checks.append((kind, text, count))
        return self

    def check(self, text):
        """``text`` follows."""
        return self._add("CHECK", text)

    def check_not(self, text):
        """``text`` does not occur before what the next check finds, or the end."""
        return self._add("CHECK-NOT", text)

    def check_next(self, text):
        """``text`` is on the next line."""
        return self._add("CHECK-NEXT", text)

    def check_same(self, text):
        """``text`` follows on the same line."""
        return self._add("CHECK-SAME", text)

    def check_dag(self, text):
        """``text`` follows; neighbouring checks of this kind may find theirs in any order."""
        return self._add("CHECK-DAG", text)

    def check_regex(self, text):
        """A match of a regular expression follows."""
        return self._add("CHECK-REGEX", text)

    def check_source_highlighted(self, text):
        """``text`` follows, with ``~`` below all of it and nothing else of its line."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", text)

    def check_count(self, text, count, exactly=False):
        """``text`` follows ``count`` times; ``exactly``: and not once more before what the next check finds."""
        if not (count or exactly):
            raise RuntimeError("Count == 0 && !exactly doesn't do anything")
        if count:
            self._add(f"CHECK-COUNT-{count}", text, count)
        return self.check_not(text) if exactly else self

    def run(self, text, test_file=None):
        """Make the checks in ``text``, or in what ``str`` gives of it. With two arguments the first holds more checks, as ``CHECK-NEXT: add`` in its lines."""
        if test_file is not None:
            self._read(str(text))
            text = test_file
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance ofFilecheck! Check for bad input.")
        text, end, absent, together = str(text), 0, [], None
        for kind, wanted, count in self._checks:
            if kind == "CHECK-NOT":
                absent.append(wanted)
                continue
            if kind != "CHECK-DAG" or absent:
                together = None
            since, start = end, len(text)
            for _ in range(count):
                found, last = _find(text, kind, wanted, end if together is None else together)
                start, end = min(start, found), last if together is None else max(end, last)
            if kind == "CHECK-DAG" and together is None:
                together = since
            _place(text, kind, wanted, since, (start, end))
            _without(text, absent, since, start)
            absent = []
        _without(text, absent, end, len(text))

    def _read(self, text):
        for many, count, kind, wanted in _LINE.findall(text):
            if many:
                self.check_count(wanted.strip(), int(count), many == "COUNT-EXACTLY-")
            else:
                self._add(f"CHECK-{kind}" if kind else "CHECK", wanted.strip())

    def __repr__(self):
        return "\n".join(["FileCheck checks:", *(f"\t{kind}: {wanted}" for kind, wanted, _ in self._checks)])


def _failed(what, text, kind, wanted):
    return RuntimeError(f"{what}\nSearched string:\n{text}\nFrom {kind}: {wanted}\n")


def _find(text, kind, wanted, begin):
    """Where ``wanted`` begins and ends."""
    regex = kind == "CHECK-REGEX"
    match = re.compile(wanted if regex else re.escape(wanted)).search(text, begin)
    if match is None:
        raise _failed(f'Expected to find {"regex " * regex}"{wanted}" but did not find it', text[begin:], kind, wanted)
    return match.span()


def _place(text, kind, wanted, since, found):
    """Check the line on which something was found."""
    start, end = found
    turns = text.count("\n", since, start)
    if kind == "CHECK-NEXT" and turns == 0:
        raise _failed('Expected to find "\\n" but did not find it', text, kind, wanted)
    if turns > {"CHECK-NEXT": 1, "CHECK-SAME": 0}.get(kind, turns):
        raise _failed('Expected to not find "\\n" but found it', text, kind, wanted)
    if kind == "CHECK-SOURCE-HIGHLIGHTED":
        line, _, rest = text[text.rfind("\n", 0, start) + 1:].partition("\n")
        at = start - text.rfind("\n", 0, start) - 1
        below = rest.partition("\n")[0].ljust(len(line) + 1)
        if below[at:at + end - start] != "~" * (end - start) or "~" in (below[at - 1:at], below[at + end - start]):
            raise RuntimeError(f'Expected to find "{wanted}"highlighted but it is not.\n{text}')


def _without(text, absent, begin, end):
    for wanted in absent:
        if wanted in text[begin:end]:
            raise _failed(f'Expected to not find "{wanted}" but found it', text, "CHECK-NOT", wanted)
