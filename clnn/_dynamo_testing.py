"""Backends that count and keep what they are given: ``torch._dynamo.testing``."""
from __future__ import annotations

from . import allclose
from ._tensor.tensor import Tensor
from .utils._pytree import tree_leaves


class CompileCounter:
    """A backend that counts graphs and the operators in them, and runs them as they are.

    Example:
        >>> from clnn._dynamo_testing import CompileCounter
        >>> counter = CompileCounter()
        >>> _ = clnn.compile(lambda x: x.sin() + 1, backend=counter)(clnn.ones(2))
        >>> counter.frame_count, counter.op_count
        (1, 2)
    """

    def __init__(self):
        self.clear()

    def __call__(self, gm, example_inputs):
        self.frame_count += 1
        self.op_count += sum(n.op.startswith("call") for n in gm.graph.nodes)
        return gm.forward

    def clear(self):
        """Start from 0."""
        self.frame_count, self.op_count = 0, 0


class CompileCounterWithBackend(CompileCounter):
    """The same, which also keeps the graphs."""

    def __init__(self, backend="eager"):
        super().__init__()
        self.backend, self.graphs = backend, []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        return super().__call__(gm, example_inputs)

    def clear(self):
        super().clear()
        self.graphs = []


class EagerAndRecordGraphs:
    """A backend that keeps the graphs, and runs them as they are."""

    def __init__(self):
        self.graphs, self.example_inputs = [], []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        self.example_inputs.append(example_inputs)
        return gm.forward


def same(a, b, tol=1e-4, equal_nan=False):
    """Whether two results are close."""
    mine, other = tree_leaves(a), tree_leaves(b)
    return len(mine) == len(other) and all(
        v.shape == w.shape and v.dtype is w.dtype and allclose(v, w, tol, tol, equal_nan) if isinstance(v, Tensor) and isinstance(w, Tensor) else v == w
        for v, w in zip(mine, other))
