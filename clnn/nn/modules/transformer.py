"""Transformer encoder and decoder. L or S sequence length, N batch, E = d_model; ``(N, L, E)`` with ``batch_first``."""
import copy
from functools import partial

import clnn
from clnn.core.warn import warn
from clnn.nn import functional as F
from clnn.nn import init

from ._chain import as_one, parted
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer", "TransformerDecoderLayer"]


def _get_activation_fn(activation):
    if activation in ("relu", "gelu"):
        return getattr(F, activation)
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _get_clones(module, n):
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _generate_square_subsequent_mask(sz, device=None, dtype=None):
    return clnn.triu(clnn.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_seq_len(src, batch_first):
    """L of ``(L, E)``, ``(L, N, E)`` or ``(N, L, E)``; None for nested tensors."""
    return None if src.is_nested else src.size(1 if batch_first and src.dim() != 2 else 0)


def _detect_is_causal_mask(mask, is_causal=None, size=None):
    """The hint, or whether the mask has the values of the causal one. Copies of PyTorch's layers ask; the layers here do not wait for the values."""
    if is_causal is not None or mask is None:
        return is_causal is True
    causal = _generate_square_subsequent_mask(mask.size(-2) if size is None else size, mask.device, mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _is_causal(mask, hint):
    """Whether a mask may be taken as the causal one. Only a hint counts: a look at the values would wait for the device."""
    return hint is True and mask is not None


def _no_packing(layer):
    """Why PyTorch has no form of an encoder layer for sequences of unequal length without padding; empty where it has one."""
    attention = getattr(layer, "self_attn", None)
    known = isinstance(layer, TransformerEncoderLayer)
    reasons = (("encoder_layer was not TransformerEncoderLayer", lambda: not known),
               ("encoder_layer.norm_first was True", lambda: layer.norm_first),
               ("encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)", lambda: not attention.batch_first),
               ("encoder_layer.self_attn._qkv_same_embed_dim was not True", lambda: not attention._qkv_same_embed_dim),
               ("encoder_layer.self_attn was passed bias=False", lambda: attention.in_proj_bias is None),
               ("encoder_layer.activation_relu_or_gelu was not True",
                lambda: layer.activation not in (F.relu, F.gelu) and not isinstance(layer.activation, (ReLU, GELU))),
               ("encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps", lambda: layer.norm1.eps != layer.norm2.eps),
               ("encoder_layer.self_attn.num_heads is odd", lambda: attention.num_heads % 2))
    return next((text for text, holds in reasons if holds()), "")


_BLOCKS = frozenset(("_sa_block", "_mha_block", "_ff_block"))     # methods that programs replace


class _Layer(Module):
    """Blocks and construction shared by both layers; ``_attentions`` names their attention. Subclasses in programs replace the blocks, by PyTorch's names."""

    _attentions = ()

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        factory = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            self.add_module(name, MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **factory))
        self.linear1 = Linear(d_model, dim_feedforward, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **factory)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            self.add_module(f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, **factory))
        for i in blocks:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False)[0])

    def _ff_block(self, x):
        last = self.dropout3 if len(self._attentions) == 2 else self.dropout2
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _whole(self, forward, inputs, *about):
        """``forward()``, as one entry of the tape unless a function of the program's takes part."""
        activation = self.__dict__.get("activation")            # not there if it is a layer
        own = activation not in (F.relu, F.gelu, None) or not _BLOCKS.isdisjoint(self.__dict__)
        return forward() if own else as_one(self, forward, inputs, activation, *about)

    def _residual(self, x, norm, block):
        """``x + block(norm(x))`` or ``norm(x + block(x))``."""
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))


@parted(settings="norm_first")
class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each with dropout, residual and layer normalisation.

    Args:
        d_model: size E of the rows.
        nhead: number of attention heads.
        dim_feedforward: width of the feed-forward block. Default: 2048.
        dropout: probability of dropout. Default: 0.1.
        activation: ``"relu"``, ``"gelu"`` or a function. Default: relu.
        layer_norm_eps: eps of the normalisations. Default: 1e-5.
        batch_first: tensors are ``(N, L, E)``. Default: ``False``.
        norm_first: normalise before each block instead of after it. Default: ``False``.
        bias: whether linear maps and normalisations have biases. Default: ``True``.

    Source: Vaswani et al., 2017 (arXiv:1706.03762).

    Example::

        >>> nn.TransformerEncoderLayer(d_model=16, nhead=4)(clnn.rand(10, 2, 16)).shape
        clnn.Size([10, 2, 16])
    """

    _attentions = ("self_attn",)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        return self._whole(partial(self._layer, src, src_mask, src_key_padding_mask, is_causal), (src, src_mask, src_key_padding_mask), is_causal)

    def _layer(self, src, src_mask, src_key_padding_mask, is_causal):
        x = self._residual(src, self.norm1, lambda y: self._sa_block(y, src_mask, src_key_padding_mask, is_causal=is_causal))
        return self._residual(x, self.norm2, self._ff_block)


@parted(settings="norm_first")
class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, and a feed-forward block; arguments as in :class:`TransformerEncoderLayer`.

    Example::

        >>> nn.TransformerDecoderLayer(16, 4)(clnn.rand(7, 2, 16), clnn.rand(10, 2, 16)).shape
        clnn.Size([7, 2, 16])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=False, memory_is_causal=False):
        tensors, causal = (tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask), (tgt_is_causal, memory_is_causal)
        return self._whole(partial(self._layer, *tensors, *causal), tensors, *causal)

    def _layer(self, tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal):
        x = self._residual(tgt, self.norm1, lambda y: self._sa_block(y, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._residual(x, self.norm2, lambda y: self._mha_block(y, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self._residual(x, self.norm3, self._ff_block)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout2(self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal,
                                                 need_weights=False)[0])


@parted(settings="num_layers use_nested_tensor mask_check training")
class TransformerEncoder(Module):
    """A stack of *num_layers* copies of an encoder layer, with a normalisation at the end if one is given.

    Args:
        enable_nested_tensor: for inference (evaluation mode, nothing requires gradients) with a padding mask and no other, the rows of padding come out
            as zeros, as in PyTorch, which then leaves them out of the computation. It does so for ``batch_first`` layers with relu or gelu, biases, an
            even number of heads and the normalisation last.
        mask_check: do that only where padding stands at the ends of all sequences.

    Example::

        >>> layer = nn.TransformerEncoderLayer(16, 4)
        >>> nn.TransformerEncoder(layer, num_layers=2)(clnn.rand(10, 2, 16)).shape
        clnn.Size([10, 2, 16])
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        why_not = _no_packing(encoder_layer) if enable_nested_tensor else ""
        if why_not:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}")
        self.use_nested_tensor = enable_nested_tensor and not why_not
        self.mask_check = mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        whole = src
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=_is_causal(mask, is_causal))
        if mask is None and src_key_padding_mask is not None and self.use_nested_tensor and self._leaves_padding_out(whole):
            src = src.masked_fill(self._padding(src_key_padding_mask).unsqueeze(-1), 0.0)
        return src if self.norm is None else self.norm(src)

    def _leaves_padding_out(self, src):
        """Whether PyTorch computes only the rows that are no padding: for inference, so that what it returns for padding is 0."""
        if src.dim() != 3 or self.layers[0].training or clnn.is_autocast_enabled("cpu") or clnn.is_autocast_enabled():
            return False
        return not clnn.is_grad_enabled() or not (src.requires_grad or any(p.requires_grad for p in self.layers[0].parameters()))

    def _padding(self, mask):
        """The places of padding, none where it is not at the ends of all sequences (``mask_check``)."""
        padding = mask if mask.dtype == clnn.bool else mask != 0
        if not self.mask_check:
            return padding
        return padding & (padding[:, 1:] | ~padding[:, :-1]).all()


@parted(settings="num_layers")
class TransformerDecoder(Module):
    """A stack of *num_layers* copies of a decoder layer, with a normalisation at the end if one is given.

    Example::

        >>> nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4), 2)(clnn.rand(7, 2, 16), clnn.rand(10, 2, 16)).shape
        clnn.Size([7, 2, 16])
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
                tgt_is_causal=None, memory_is_causal=False):
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=_is_causal(tgt_mask, tgt_is_causal),
                        memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder stacks.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as in
            :class:`TransformerEncoderLayer`; E is 512 and the number of heads 8 by default.
        num_encoder_layers, num_decoder_layers: layers of each stack. Default: 6.
        custom_encoder, custom_decoder: modules to use instead of the stacks.

    Shape:
        src ``(S, N, E)``, tgt ``(T, N, E)``, output like tgt.

    Source: Vaswani et al., 2017 (arXiv:1706.03762).

    Example::

        >>> nn.Transformer(16, 4, 1, 1, 32)(clnn.rand(10, 2, 16), clnn.rand(7, 2, 16)).shape
        clnn.Size([7, 2, 16])
    """

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1,
                 activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False, norm_first=False,
                 bias=True, device=None, dtype=None):
        super().__init__()
        factory = {"bias": bias, "device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **factory), num_encoder_layers,
                                              LayerNorm(d_model, eps=layer_norm_eps, **factory))
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **factory), num_decoder_layers,
                                              LayerNorm(d_model, eps=layer_norm_eps, **factory))
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self):
        for param in self.parameters():
            if param.dim() > 1:
                init.xavier_uniform_(param)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False):
        """Encode *src* and decode *tgt*; masks as in :meth:`MultiheadAttention.forward`."""
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The causal mask ``(sz, sz)``: minus infinity above the diagonal, else 0."""
        return _generate_square_subsequent_mask(sz, device, dtype)
