"""Noting what each node of a graph gives."""
from __future__ import annotations

import traceback
from collections import namedtuple

from clnn import channels_last, channels_last_3d, contiguous_format
from clnn._tensor.tensor import Tensor
from clnn.fx.interpreter import Interpreter
from clnn.fx.node import map_aggregate

_ORDERS = (contiguous_format, channels_last, channels_last_3d)
TensorMetadata = namedtuple("TensorMetadata", "shape dtype requires_grad stride memory_format is_quantized qparams")


def describe(v):
    """What is noted of a tensor."""
    order = next((f for f in _ORDERS if v.is_contiguous(memory_format=f)), None)
    return TensorMetadata(v.shape, v.dtype, v.requires_grad, v.stride(), order, False, {})


class ShapeProp(Interpreter):
    """Runs a module and writes shape, dtype and strides of each node's value into ``node.meta["tensor_meta"]``, its type into ``node.meta["type"]``.

    Example::

        >>> from clnn.fx.passes.shape_prop import ShapeProp
        >>> traced = clnn.fx.symbolic_trace(lambda x: x.t())
        >>> _ = ShapeProp(traced).propagate(clnn.ones(2, 3))
        >>> [tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes]
        [(2, 3), (3, 2), (3, 2)]
    """

    def run_node(self, n):
        seen = []
        try:
            value = super().run_node(n)
        except Exception as exc:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from exc

        def note(v):
            if not isinstance(v, Tensor):
                return v
            seen.append(v)
            return describe(v)
        noted = map_aggregate(value, note)
        if seen:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(value)
        return value

    def propagate(self, *args):
        """Run the module on these inputs."""
        return super().run(*args)
