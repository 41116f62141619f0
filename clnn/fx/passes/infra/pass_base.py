"""What passes over graphs have in common."""
from __future__ import annotations

import abc
from collections import namedtuple

__all__ = ["PassBase", "PassResult"]


class PassResult(namedtuple("PassResult", "graph_module modified")):
    """What a pass gives: the graph module, and whether it was changed."""

    __slots__ = ()


class PassBase(abc.ABC):
    """A pass: :meth:`requires`, :meth:`call`, :meth:`ensures`.

    Example::

        >>> from clnn.fx.passes.infra.pass_base import PassBase, PassResult
        >>> class Count(PassBase):
        ...     def call(self, graph_module):
        ...         print(len(graph_module.graph.nodes))
        ...         return PassResult(graph_module, False)
        >>> Count()(clnn.fx.symbolic_trace(lambda x: x + 1)).modified
        3
        False
    """

    def __call__(self, graph_module):
        """Run the pass, between its two checks."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """What the pass does: gives a :class:`PassResult`, or None."""

    def requires(self, graph_module) -> None:
        """Raises what is wrong with a graph module before the pass."""

    def ensures(self, graph_module) -> None:
        """Raises what is wrong with it behind the pass."""
