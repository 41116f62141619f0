"""Names and helpers that passes over graphs share."""
from __future__ import annotations

from typing import Union

from clnn._tensor.tensor import Tensor
from clnn.fx.node import Node
from clnn.fx.passes.infra.partitioner import legalize_graph
from clnn.fx.passes.operator_support import get_node_target

__all__ = ["get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph"]

Tensors = Union[tuple, list]
TensorOrTensors = Union[Tensor, Tensors]
NodeList, NodeSet, Names = list, set, list
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k):
    """A short name for a function: its module's last parts and its own."""
    if isinstance(k, str):
        return k
    place = (getattr(k, "__module__", None) or "").replace("torch._ops", "torch.ops")
    return f"{place}.{k.__name__}"


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node is known to give one tensor: ``node.meta["type"]`` says so."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)
