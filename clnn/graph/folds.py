"""How the values of a reduction are folded."""
from __future__ import annotations

from ..core import dtype as dt
from . import codegen


class Reduction:
    """How values are folded: ``combine`` (C expression of ``a`` and ``b``), start value by compute dtype, ``finish`` (of ``a`` and ``c``).

    ``complex`` is the expression for complex numbers; without one they are refused.
    """

    __slots__ = ("name", "combine", "identity", "finish", "complex")

    def __init__(self, name, combine, identity, finish="a", complex=None):
        self.name, self.combine, self.identity, self.finish, self.complex = name, combine, identity, finish, complex

    def combined(self, acc, a, b):
        if acc in ("float2", "double2"):
            text = codegen._complex_names(self.complex, dt.complex64 if acc == "float2" else dt.complex128)
        else:
            text = self.combine[acc in ("float", "double")] if isinstance(self.combine, tuple) else self.combine
        return codegen._WORD.sub(lambda m: {"a": a, "b": b}.get(m.group(), m.group()), text)
