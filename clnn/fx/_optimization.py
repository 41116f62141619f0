"""Changes of models for inference, which PyTorch keeps in ``fx.experimental.optimization``."""
from __future__ import annotations

import copy

from clnn import nn
from clnn.nn.utils.fusion import fuse_conv_bn_eval

from ._symbolic_trace import symbolic_trace
from .graph_module import GraphModule
from .interpreter import Transformer
from .node import Node

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

_PAIRS = ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d))


def matches_module_pattern(pattern, node, modules):
    """Whether ``node`` calls a module of the last type of ``pattern`` on what a module of the first gives."""
    found = (node.args[0] if node.args else None, node)
    return all(isinstance(n, Node) and n.op == "call_module" and type(modules.get(n.target)) is kind for kind, n in zip(pattern, found))


def replace_node_module(node, modules, new_module):
    """Let ``node`` call another module, which takes the old one's place."""
    owner, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[owner], name, new_module)


def fuse(model, inplace=False, no_trace=False):
    """``model``, in eval mode, with batch normalisations that follow a convolution alone taken into its weights.

    Example::

        >>> from clnn.fx._optimization import fuse
        >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()
        >>> [n.target for n in fuse(net).graph.nodes]
        ['input', '0', 'output']
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if not any(matches_module_pattern(pair, node, modules) for pair in _PAIRS) or len(node.args[0].users) > 1:
            continue
        norm = modules[node.target]
        if norm.track_running_stats:
            replace_node_module(node.args[0], modules, fuse_conv_bn_eval(modules[node.args[0].target], norm))
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    return GraphModule(traced, traced.graph)


def remove_dropout(model):
    """``model`` without its :class:`~clnn.nn.Dropout` modules.

    Example::

        >>> from clnn.fx._optimization import remove_dropout
        >>> [n.target for n in remove_dropout(nn.Sequential(nn.ReLU(), nn.Dropout())).graph.nodes]
        ['input', '0', 'output']
    """
    class Remover(Transformer):
        def call_module(self, target, args, kwargs):
            return args[0] if isinstance(self.submodules[target], nn.Dropout) else super().call_module(target, args, kwargs)
    return Remover(symbolic_trace(model)).transform()
