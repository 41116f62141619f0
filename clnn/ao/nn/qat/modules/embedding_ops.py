"""Embeddings that round their tables."""
from __future__ import annotations

import clnn
from clnn import nn

from .linear import checked, rounding

__all__ = ["Embedding", "EmbeddingBag"]


def _rounding(cls, qconfig, device, dtype):
    made = rounding(qconfig, device, dtype)
    if made.qscheme is not clnn.per_channel_affine_float_qparams:
        raise AssertionError(f"{cls.__name__} weights requires a qscheme of torch.per_channel_affine_float_qparams Got {made.qscheme}")
    return made


class Embedding(nn.Embedding):
    """``nn.Embedding`` whose table is rounded.

    Example::

        >>> layer = clnn.ao.nn.qat.Embedding(4, 3, qconfig=clnn.ao.quantization.default_embedding_qat_qconfig)
        >>> layer(clnn.tensor([0, 1])).shape
        clnn.Size([2, 3])
    """

    _FLOAT_MODULE = nn.Embedding

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, _weight=None,
                 device=None, dtype=None, qconfig=None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, device=device, dtype=dtype)
        self.qconfig = qconfig
        self.weight_fake_quant = _rounding(type(self), qconfig, device, dtype)

    def forward(self, input):
        return nn.functional.embedding(input, self.weight_fake_quant(self.weight), self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                                       self.sparse)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float one, with the same table."""
        checked(cls, mod, (cls._FLOAT_MODULE,))
        return cls(mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.sparse, mod.weight,
                   qconfig=mod.qconfig)

    def to_float(self):
        """The float layer, with the same table."""
        return nn.Embedding(self.num_embeddings, self.embedding_dim, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse,
                            self.weight.detach()).train(self.training)


class EmbeddingBag(nn.EmbeddingBag):
    """``nn.EmbeddingBag`` whose table is rounded.

    Example::

        >>> layer = clnn.ao.nn.qat.EmbeddingBag(4, 3, qconfig=clnn.ao.quantization.default_embedding_qat_qconfig)
        >>> layer(clnn.tensor([[0, 1]])).shape
        clnn.Size([1, 3])
    """

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False, _weight=None,
                 include_last_offset=False, padding_idx=None, qconfig=None, device=None, dtype=None):
        super().__init__(num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight, include_last_offset, padding_idx,
                         device=device, dtype=dtype)
        self.qconfig = qconfig
        self.weight_fake_quant = _rounding(type(self), qconfig, device, dtype)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return nn.functional.embedding_bag(input, self.weight_fake_quant(self.weight), offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                                           self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float one, with the same table."""
        checked(cls, mod, (cls._FLOAT_MODULE,))
        return cls(mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse, mod.weight,
                   mod.include_last_offset, mod.padding_idx, qconfig=mod.qconfig)

    def to_float(self):
        """The float layer, with the same table."""
        return nn.EmbeddingBag(self.num_embeddings, self.embedding_dim, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                               self.weight.detach(), self.include_last_offset, self.padding_idx).train(self.training)
