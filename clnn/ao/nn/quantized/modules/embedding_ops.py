"""Embeddings from tables whose rows are quantised."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn._quantized import functions as quantized

from .base import WeightedQuantizedModule, expect_kind, hidden_repr, quantize_weight, weight_rule

__all__ = ["EmbeddingPackedParams", "Embedding", "EmbeddingBag"]


class EmbeddingPackedParams(nn.Module):
    """The packed table of an embedding.

    Example::

        >>> clnn.ao.nn.quantized.modules.embedding_ops.EmbeddingPackedParams(2, 3).dtype
        clnn.quint8
    """

    _version = 1

    def __init__(self, num_embeddings, embedding_dim, dtype=clnn.quint8):
        super().__init__()
        if dtype is not clnn.quint8:
            raise NotImplementedError(f"Unsupported dtype on quantized embedding! Supports quint8. Got dtype: {dtype}")
        self.dtype = dtype
        ones = clnn.ones(num_embeddings)
        self.set_weight(clnn._empty_per_channel_affine_quantized([num_embeddings, embedding_dim], scales=ones, zero_points=ones, axis=0, dtype=dtype))

    def set_weight(self, weight):
        """Pack another table."""
        self._packed_weight = quantized.embedding_bag_prepack(weight)

    def _weight(self):
        return self._packed_weight.unpack()

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"], destination[prefix + "_packed_weight"] = self.dtype, self._weight()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def __repr__(self):
        return repr(self._weight())


class Embedding(WeightedQuantizedModule):
    """``nn.Embedding`` with a quantised table; its results are floats.

    Example::

        >>> nn.quantized.Embedding(10, 3)(clnn.tensor([1, 2])).shape
        clnn.Size([2, 3])
    """

    _version = 1
    _FLOAT_MODULE = nn.Embedding

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, _weight=None,
                 dtype=clnn.quint8):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self._packed_params.set_weight(_weight)

    def _packed(self):
        return self._packed_params._packed_weight

    def forward(self, indices):
        return quantized.embedding_byte(self._packed(), indices)

    def _get_name(self):
        return "QuantizedEmbedding"

    def __repr__(self):
        return hidden_repr(self, EmbeddingPackedParams)

    def extra_repr(self):
        return f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"

    def set_weight(self, w):
        """Pack another table."""
        self._packed_params.set_weight(w)

    def weight(self):
        """The quantised table."""
        return self._packed_params._weight()

    @classmethod
    def _like(cls, mod):
        return cls(mod.num_embeddings, mod.embedding_dim)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantised layer of a float one."""
        from ....quantization.qconfig import float_qparams_weight_only_qconfig
        if not hasattr(mod, "weight_fake_quant"):
            expect_kind(cls, mod, (cls._FLOAT_MODULE,))
            if not hasattr(mod, "qconfig"):
                raise AssertionError(f"{cls.__name__} input float module must have qconfig defined")
        rule = weight_rule(mod) if hasattr(mod, "weight_fake_quant") or mod.qconfig.weight is not None else float_qparams_weight_only_qconfig.weight()
        if rule.qscheme is not clnn.per_channel_affine_float_qparams:
            raise AssertionError(f"{cls.__name__} quantization is only supported with float_qparams_weight_only_qconfig.")
        if not use_precomputed_fake_quant:
            rule(mod.weight)
        made = cls._like(mod)
        made.set_weight(quantize_weight(mod.weight, rule))
        return made


class EmbeddingBag(Embedding):
    """``nn.EmbeddingBag`` with a quantised table, for sums.

    Example::

        >>> nn.quantized.EmbeddingBag(10, 3, include_last_offset=True)(clnn.tensor([1, 2, 5]), clnn.tensor([0, 2, 3])).shape
        clnn.Size([2, 3])
    """

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="sum", sparse=False, _weight=None,
                 include_last_offset=False, dtype=clnn.quint8):
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.pruned_weights, self.include_last_offset = mode, False, include_last_offset

    def forward(self, indices, offsets=None, per_sample_weights=None, compressed_indices_mapping=None):
        return quantized.embedding_bag_byte(self._packed(), indices, offsets, False, 0, self.pruned_weights, per_sample_weights, compressed_indices_mapping,
                                            self.include_last_offset)

    def _get_name(self):
        return "QuantizedEmbeddingBag"

    @classmethod
    def _like(cls, mod):
        return cls(mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse, None,
                   mod.include_last_offset)
