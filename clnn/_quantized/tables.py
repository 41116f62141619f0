"""Tables of embeddings whose rows are quantised, each by a scale of its own; what is read from them are floats."""
from __future__ import annotations

from ..core import dtype as dt
from ..graph.op import REGISTRY
from .schemes import PerChannel
from .tensor import QTensor


class EmbeddingPackedParams:
    """A table (number, size) of which each row has a scale and a zero point."""

    def __init__(self, weight):
        if not isinstance(weight, QTensor) or not isinstance(weight.quantizer, PerChannel) or weight.quantizer.axis != 0:
            raise RuntimeError("Expect embedding_bag weights to be quantized using kPerChannelAffineFloatQParams")
        self.weight_ = weight

    def unpack(self):
        """The table."""
        return self.weight_

    def moved(self, fn):
        """The same elsewhere."""
        self.weight_ = fn(self.weight_)
        return self

    def rows(self, indices):
        """The rows that a vector numbers, as floats."""
        q, pick = self.weight_.quantizer, REGISTRY["index_select"].fn
        scales, zeros = (pick(t.to(dt.float32), 0, indices).reshape(-1, 1) for t in (q.scales, q.zero_points))
        return (pick(self.weight_.part, 0, indices).to(dt.float32) - zeros) * scales


embedding_bag_prepack = EmbeddingPackedParams


def embedding_bag_unpack(W_prepack):
    """The table."""
    return W_prepack.unpack()


def embedding_byte(weight, indices, pruned_weights=False):
    """Rows of a table."""
    return weight.rows(indices.reshape(-1)).reshape(*indices.shape, weight.weight_.shape[1])


def embedding_bag_byte(weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
                       compressed_indices_mapping=None, include_last_offset=False):
    """Sums of rows of a table."""
    if indices.ndim == 2:
        rows = weight.rows(indices.reshape(-1)).reshape(*indices.shape, -1)
        return (rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(-1)).sum(1)
    rows = weight.rows(indices)
    places = REGISTRY["embedding_bag"].fn
    numbers = indices.new_empty(0) if not indices.numel() else indices * 0 + indices.new_ones(indices.shape).cumsum(0) - 1
    return places(numbers, rows, offsets, mode="sum", per_sample_weights=per_sample_weights, include_last_offset=include_last_offset)
