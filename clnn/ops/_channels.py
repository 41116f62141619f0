"""Batch normalisation on GPUs whose work-groups take a channel each, which saves launches: kernels/normalization/channel and channel_backward."""
from __future__ import annotations

from .._tensor.tensor import make, make_view
from ..graph.node import Node, Storage
from .softmax import aligned, largest

_OWN = 1 << 15          # elements of a channel up to which a group of a GPU reads them sooner than two launches do
_KEPT = 64              # numbers that a work-item keeps


def whole_channels(device, n, *tensors):
    """(elements of a vector, work-items of a group, vectors that each keeps or 0) where a group of a GPU takes a whole channel, in rows of ``n``; else None."""
    each = tensors[0]._numel // max(1, tensors[0].shape[1])
    if device.is_cpu or n < 8 or each > _OWN or largest(device) < 32:
        return None
    V = aligned(device, n, *tensors)
    G = min(largest(device), max(32, 1 << (each // V - 1).bit_length()))
    K = 1 << (-(-each // (V * G)) - 1).bit_length()
    return V, G, K if K * V * tensors[0].dtype.acc_dtype.itemsize <= 4 * _KEPT else 0


def behind_relu(g, x):
    """(gradient, result) of the relu that follows a normalisation, where ``g`` is what is still to be computed of them alone and GPUs take the sums on the way."""
    node, n = g._storage.node, x._numel // max(1, x.shape[0] * x.shape[1])
    if node is None or node.buf is not None or node.expr is None or node.expr.name != "_relu_backward" or not g._dense or node.shape != g.shape:
        return None
    if whole_channels(x._storage.device, n, x) is None:
        return None
    operands = []
    for ref in node.args:
        if ref.__class__ is not tuple or ref[1] is not x.dtype or tuple(ref[3]) != x._strides:
            return None
        source = ref[0].buf if isinstance(ref[0], Node) else ref[0]
        if source is None:                                      # pending itself
            return None
        base = make(Storage(node.device, source.size, source), g.shape, x.dtype, g._numel)
        operands.append(make_view(base, g.shape, x._strides, ref[2]))
    return operands
