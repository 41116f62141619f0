"""The operator table: one ``Op`` entry per operator, found by name in ``REGISTRY``.

This floor only holds the data; ``clnn._tensor.declare`` has the four constructors that turn an entry into a function,
a Tensor method, an in-place form and the derived tests.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable

REGISTRY: dict[str, "Op"] = {}


@dataclass(eq=False, slots=True)
class Op:
    """All that is known about one operator."""

    name: str
    kind: str                                   # elementwise | view | kernel | composite
    fn: Callable                                # the public function
    params: tuple = ()                          # names of the function's parameters, in order
    vjp: dict = field(default_factory=dict)     # input name(s) -> Rule
    outputs: tuple = ("out",)                   # names of all outputs, hidden ones last
    aliases: tuple = ()
    inplace: bool = False
    method: bool = True
    dtypes: tuple = ()                          # dtypes that the first tensor may have
    complex: bool = False                       # whether complex tensors are taken, besides ``dtypes``; all others refuse them
    holomorphic: bool = True                    # False: the gradient rules spell out the complex case themselves
    numpy: Callable | None = None               # reference on NumPy arrays
    samples: Callable | None = None             # yields (args, kwargs) of NumPy arrays and plain values
    errors: tuple = ()                          # ((args, kwargs), exception, text) triples
    tolerance: dict = field(default_factory=dict)
    decompose: Callable | None = None           # the same operator from differentiable operators (for create_graph)
    autocast: str = ""                          # 'low': inputs in 16 bits under autocast (the other lists: _tensor/autocast.py)
    torch: str = ""                             # dotted name in torch, when it is not torch.<name>
    gradcheck: bool = True
    expr: Any = None
    refusal: str = ""                           # what to say of a dtype that is refused, where PyTorch has words of its own
    doc: str = ""                               # the documentation, which ``_tensor/explain.py`` completes
    example: tuple = ()                         # (statement, what a prompt shows for it)
    grad_name: str = ""

    def __repr__(self):
        return f"<Op {self.name} ({self.kind})>"


def register(op: Op) -> Op:
    """Enter ``op`` under its name and aliases; a name can be taken once."""
    for name in (op.name, *op.aliases):
        if name in REGISTRY:
            raise ValueError(f"operator {name!r} is already declared in the table")
        REGISTRY[name] = op
    op.grad_name = re.sub(r"[0-9][a-z]", lambda m: m.group().upper(), "".join(part[:1].upper() + part[1:] for part in op.name.split("_"))) + "Backward0"
    return op
