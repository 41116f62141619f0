"""Layers made of observable parts, in place of LSTMs and attention in models that are quantised after training; and what becomes of them."""
from __future__ import annotations

import copy

import clnn
from clnn import nn

from .quantized.modules.functional_modules import FloatFunctional

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]


def _parameter(t):
    return None if t is None else nn.Parameter(t.detach(), t.requires_grad)


def _observed(module, like):
    """``module`` with observers, in the mode of ``like``."""
    from ..quantization import prepare, prepare_qat
    module.qconfig = like.qconfig
    return prepare_qat(module.train(), inplace=True) if like.training else prepare(module.eval(), inplace=True)


class LSTMCell(nn.Module):
    """One step of an LSTM, of linear layers, sums and products that can be observed one by one.

    Example::

        >>> h, c = clnn.ao.nn.quantizable.LSTMCell(10, 20)(clnn.randn(3, 10))
        >>> h.shape
        clnn.Size([3, 20])
    """

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(self, input_dim, hidden_dim, bias=True, device=None, dtype=None, *, split_gates=False):
        super().__init__()
        if split_gates:
            raise NotImplementedError("quantizable.LSTMCell: split_gates=True, a linear layer for each gate, is not implemented")
        options = {"device": device, "dtype": dtype}
        self.input_size, self.hidden_size, self.bias, self.split_gates = input_dim, hidden_dim, bias, False
        self.igates, self.hgates = nn.Linear(input_dim, 4 * hidden_dim, bias=bias, **options), nn.Linear(hidden_dim, 4 * hidden_dim, bias=bias, **options)
        self.gates = FloatFunctional()
        self.input_gate, self.forget_gate, self.cell_gate, self.output_gate = nn.Sigmoid(), nn.Sigmoid(), nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate, self.fgate_cx_igate_cgate, self.ogate_cy = (FloatFunctional() for _ in range(4))

    def forward(self, x, hidden=None):
        hx, cx = self.initialize_hidden(x.shape[0], x.is_quantized, x.device) if hidden is None or None in (hidden[0], hidden[1]) else hidden
        i, f, g, o = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        i, f, g, o = self.input_gate(i), self.forget_gate(f), self.cell_gate(g), self.output_gate(o)
        cy = self.fgate_cx_igate_cgate.add(self.fgate_cx.mul(f, cx), self.igate_cgate.mul(i, g))
        return self.ogate_cy.mul(o, clnn.tanh(cy)), cy

    def initialize_hidden(self, batch_size, is_quantized=False, device=None):
        """(h, c) of zeros."""
        zero = clnn.zeros(batch_size, self.hidden_size, device=device)
        zero = clnn.quantize_per_tensor(zero, 1.0, 0, clnn.quint8) if is_quantized else zero
        return zero, zero.clone()

    def _get_name(self):
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi, wh, bi=None, bh=None, split_gates=False):
        """The cell with these weights (4 H, input), (4 H, H) and biases."""
        made = cls(wi.shape[1], wh.shape[1], bias=bi is not None, split_gates=split_gates)
        for layer, weight, bias in ((made.igates, wi, bi), (made.hgates, wh, bh)):
            layer.weight, layer.bias = _parameter(weight), _parameter(bias)
        return made

    @classmethod
    def from_float(cls, other, use_precomputed_fake_quant=False, split_gates=False):
        """The cell with the parameters of an ``nn.LSTMCell``."""
        made = cls.from_params(other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates)
        made.qconfig = made.igates.qconfig = made.hgates.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """One direction of one layer."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x, hidden=None):
        results = []
        for step in x.unbind(0):
            hidden = self.cell(step, hidden)
            results.append(hidden[0])
        return clnn.stack(results, 0), hidden


class _LSTMLayer(nn.Module):
    """One layer, of one or two directions."""

    def __init__(self, *cells):
        super().__init__()
        self.layer_fw = _LSTMSingleLayer(cells[0])
        if len(cells) > 1:
            self.layer_bw = _LSTMSingleLayer(cells[1])

    def forward(self, x, hidden):
        out, last = self.layer_fw(x, hidden[0])
        if len(hidden) == 1:
            return out, [last]
        back, first = self.layer_bw(x.flip(0), hidden[1])
        return clnn.cat([out, back.flip(0)], 2), [last, first]


class LSTM(nn.Module):
    """``nn.LSTM`` of cells that can be observed: what ``prepare`` puts in its place.

    Example::

        >>> out, (h, c) = clnn.ao.nn.quantizable.LSTM(10, 20, 2)(clnn.randn(5, 3, 10))
        >>> out.shape, h.shape
        (clnn.Size([5, 3, 20]), clnn.Size([2, 3, 20]))
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None, *,
                 split_gates=False):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers, self.bias, self.batch_first = input_size, hidden_size, num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.training = float(dropout), bidirectional, False
        count = 2 if bidirectional else 1
        options = {"device": device, "dtype": dtype, "split_gates": split_gates}
        self.layers = nn.ModuleList([
            _LSTMLayer(*[LSTMCell(input_size if n == 0 else hidden_size * count, hidden_size, bias, **options) for _ in range(count)]) for n in range(num_layers)])

    def forward(self, x, hidden=None):
        x = x.transpose(0, 1) if self.batch_first else x
        count = 2 if self.bidirectional else 1
        if hidden is None:
            zero = clnn.zeros(x.shape[1], self.hidden_size, device=x.device)
            zero = clnn.quantize_per_tensor(zero, 1.0, 0, clnn.quint8) if x.is_quantized else zero
            states = [[(zero, zero)] * count for _ in self.layers]
        else:
            pairs = list(zip(hidden[0].unbind(0), hidden[1].unbind(0)))
            states = [pairs[n * count:(n + 1) * count] for n in range(self.num_layers)]
        lasts = []
        for layer, state in zip(self.layers, states):
            x, last = layer(x, state)
            lasts += last
        h, c = (clnn.stack(list(parts)) for parts in zip(*lasts))
        return (x.transpose(0, 1) if self.batch_first else x), (h, c)

    def _get_name(self):
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other, qconfig=None, split_gates=False):
        """The observed layers of an ``nn.LSTM``."""
        made = cls(other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout, other.bidirectional,
                   split_gates=split_gates)
        for layer, names in zip([part for layer in made.layers for part in layer.children()], other._all_weights):
            values = {name.split("_l")[0]: getattr(other, name) for name in names}
            layer.cell = LSTMCell.from_params(*(values.get(name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))
        other.qconfig = getattr(other, "qconfig", qconfig)
        return _observed(made, other)

    @classmethod
    def from_observed(cls, other):
        """Refused: the quantised class is ``nn.quantized.LSTM``."""
        raise NotImplementedError("It looks like you are trying to convert a non-quantizable LSTM module. Please, see the examples on quantizable LSTMs.")


class MultiheadAttention(nn.MultiheadAttention):
    """``nn.MultiheadAttention`` of linear layers that can be observed: what ``prepare`` puts in its place. Between them attention is computed with floats.

    Example::

        >>> x = clnn.randn(5, 3, 8)
        >>> clnn.ao.nn.quantizable.MultiheadAttention(8, 2)(x, x, x)[0].shape
        clnn.Size([5, 3, 8])
    """

    _FLOAT_MODULE = nn.MultiheadAttention

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, batch_first=False, device=None,
                 dtype=None):
        from ..quantization.stubs import DeQuantStub, QuantStub
        super().__init__(embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device=device, dtype=dtype)
        options = {"device": device, "dtype": dtype}
        self.linear_Q, self.linear_K, self.linear_V, self.out_proj = (
            nn.Linear(size, embed_dim, bias=bias, **options) for size in (embed_dim, self.kdim, self.vdim, embed_dim))
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def _get_name(self):
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other):
        """The observed layers of an ``nn.MultiheadAttention``."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected type {cls._FLOAT_MODULE}, got {type(other)}")
        if other.bias_k is not None or other.add_zero_attn:
            raise NotImplementedError("quantizable.MultiheadAttention: add_bias_kv and add_zero_attn are not implemented")
        made = cls(other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None, False, False, other.kdim, other.vdim, other.batch_first)
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        weights = other.in_proj_weight.chunk(3) if other._qkv_same_embed_dim else (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = (None,) * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        for layer, weight, bias in zip((made.linear_Q, made.linear_K, made.linear_V), weights, biases):
            layer.weight, layer.bias = _parameter(weight), _parameter(bias)
        from ..quantization import prepare
        made.qconfig = other.qconfig
        return prepare(made.eval(), inplace=True)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        (length, batch, width), heads = query.shape, self.num_heads
        size = width // heads
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), float(size) ** -0.5)
        parts = [t.contiguous().view(-1, batch * heads, size).transpose(0, 1) for t in (q, self.linear_K(key), self.linear_V(value))]
        q, k, v = (stub(t) for stub, t in zip((self.dequant_q, self.dequant_k, self.dequant_v), parts))
        weights = self._masked(clnn.bmm(q, k.transpose(1, 2)), attn_mask, key_padding_mask, batch)
        weights = nn.functional.dropout(nn.functional.softmax(weights, -1), self.dropout, self.training)
        out = clnn.bmm(weights, v).transpose(0, 1).contiguous().view(length, batch, width)
        out = self.out_proj(self.quant_attn_output(out.transpose(0, 1) if self.batch_first else out))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return out, None
        weights = weights.view(batch, heads, length, k.shape[1])
        return out, weights.mean(1) if average_attn_weights else weights

    @staticmethod
    def _masked(scores, attn_mask, key_padding_mask, batch):
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask, float("-inf")) if attn_mask.dtype is clnn.bool else scores + attn_mask
        if key_padding_mask is not None:
            split = scores.view(batch, -1, *scores.shape[1:])
            scores = split.masked_fill(key_padding_mask[:, None, None], float("-inf")).view(scores.shape)
        return scores

    @classmethod
    def from_observed(cls, other):
        """Refused: the quantised class is ``nn.quantized.MultiheadAttention``."""
        raise NotImplementedError("It looks like you are trying to prepare an MHA module. Please, see the examples on quantizable MHAs.")


def _quantized(base):
    """The class of quantised layers of an observable one."""
    def from_observed(cls, other):
        from ..quantization.quantize import convert
        converted = convert(copy.deepcopy(other), inplace=True)
        converted.__class__ = cls
        for name in ("in_proj_weight", "in_proj_bias"):
            converted._parameters.pop(name, None)
        return converted

    def from_float(cls, *args, **kwargs):
        raise NotImplementedError(f"It looks like you are trying to convert a non-observed {cls.__name__} module. Please, see the examples on quantizable ones.")
    text = f"``nn.{base.__name__}`` whose linear layers compute with quantised tensors: what ``convert`` makes of ``clnn.ao.nn.quantizable.{base.__name__}``."
    return type(base.__name__, (base,), {"from_observed": classmethod(from_observed), "from_float": classmethod(from_float), "__doc__": text,
                                         "_get_name": lambda self: "Quantized" + base.__name__, "__module__": "clnn.ao.nn.quantized"})


QUANTIZED = {base.__name__: _quantized(base) for base in (LSTM, MultiheadAttention)}
