"""Noting what each node of a graph would give, as tensors without memory."""
from __future__ import annotations

from clnn.fx._by_operator import _without_memory
from clnn.fx.interpreter import Interpreter

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a module and writes a tensor without memory of each node's shape, strides and dtype into ``node.meta["val"]``.

    Example::

        >>> from clnn.fx.passes.fake_tensor_prop import FakeTensorProp
        >>> traced = clnn.fx.symbolic_trace(lambda x: x.t())
        >>> _ = FakeTensorProp(traced).propagate(clnn.ones(2, 3))
        >>> [tuple(n.meta["val"].shape) for n in traced.graph.nodes]
        [(2, 3), (3, 2), (3, 2)]
    """

    def __init__(self, module, mode=None):
        super().__init__(module)
        self._mode = mode

    def run_node(self, n):
        value = super().run_node(n)
        n.meta["val"] = _without_memory(value)
        return value

    def propagate(self, *args):
        """Run the module on these inputs."""
        return super().run(*args)

    def propagate_dont_convert_inputs(self, *args):
        """The same."""
        return super().run(*args)
