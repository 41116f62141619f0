"""Recurrent layers of floats with quantised weights: the input of all steps is rounded at once, the state at each step."""
from __future__ import annotations

import clnn
from clnn import nn
from clnn._quantized import functions as quantized
from clnn._quantized.recurrent import CellParams
from clnn.nn.modules import rnn as plain
from clnn.ops.recurrent import cell as step

from ..modules.base import quantize_weight

__all__ = ["LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"]


def _rule(mod):
    """What observes the weights of a layer."""
    from ....quantization.qconfig import default_dynamic_qconfig
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    rule = mod.qconfig.weight if mod.qconfig is not None and mod.qconfig.weight is not None else default_dynamic_qconfig.weight
    if rule().dtype not in (clnn.qint8, clnn.float16):
        raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {rule().dtype}")
    return rule


def pack_weight_bias(qweight, bias, dtype):
    """A weight and a bias in the form in which products take them."""
    return (quantized.linear_prepack if dtype is clnn.qint8 else quantized.linear_prepack_fp16)(qweight, bias)


def _packed(rule, weight, bias):
    observer = rule()
    if observer.dtype is clnn.float16:
        return pack_weight_bias(weight.float(), bias, clnn.float16)
    observer(weight)
    return pack_weight_bias(quantize_weight(weight, observer), bias, clnn.qint8)


class PackedParameter(nn.Module):
    """The packed weights of one cell, as the state of a module."""

    def __init__(self, param):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        self.param = state_dict.pop(prefix + "param")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        before = self.param.packed_ih.unpack()[0].device
        after = fn(clnn.zeros(0, device=before)).device
        if after != before:
            self.param.moved(lambda t: t.to(after))
        return self


class RNNBase(nn.Module):
    """Layers and directions, as of ``nn.RNNBase``, over packed weights."""

    _version = 2
    _FLOAT_MODULE = plain.RNNBase

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, dtype=clnn.qint8):
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers, self.bias = mode, input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.dtype = batch_first, float(dropout), bidirectional, dtype
        self.version, self.training, self.proj_size = 2, False, 0
        gates = 4 if mode == "LSTM" else 3
        cells = []
        for layer in range(num_layers):
            for _ in range(self._directions):
                size = input_size if layer == 0 else hidden_size * self._directions
                cells.append(PackedParameter(self._cell(*(
                    self._blank(gates * hidden_size, columns, dtype) for columns in (size, hidden_size)))))
        self._all_weight_values = nn.ModuleList(cells)

    @staticmethod
    def _blank(rows, columns, dtype):
        weight = clnn.randn(rows, columns).to(clnn.float32)
        weight = clnn.quantize_per_tensor(weight, 1.0, 0, clnn.qint8) if dtype is clnn.qint8 else weight
        return pack_weight_bias(weight, clnn.randn(rows).to(clnn.float32), dtype)

    def _cell(self, packed_ih, packed_hh):
        return CellParams(packed_ih, packed_hh, self.dtype is clnn.qint8 and (self.version or 1) > 1)

    _directions, extra_repr = plain.RNNBase._directions, plain.RNNBase.extra_repr
    forward, _forward_packed = plain.RNNBase.forward, plain.RNNBase._forward_packed
    _state_sizes, _check_state, _unpack_state = plain.RNNBase._state_sizes, plain.RNNBase._check_state, plain.RNNBase._unpack_state
    permute_hidden, _initial_state, _pack_state = plain.RNNBase.permute_hidden, plain.RNNBase._initial_state, plain.RNNBase._pack_state
    get_expected_hidden_size, check_hidden_size = plain.RNNBase.get_expected_hidden_size, plain.RNNBase.check_hidden_size

    def _forward_padded(self, input, hx):
        if input.dim() < 2:
            raise IndexError(f"Dimension out of range (expected to be in range of [-1, 0], but got {int(not self.batch_first)})")
        self.check_input(input, None)                                # without batches there is no form
        return plain.RNNBase._forward_padded(self, input, hx)

    def _get_name(self):
        return "DynamicQuantized" + type(self).__name__

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def check_input(self, input, batch_sizes):
        """Raise when the input's rows do not have ``input_size`` elements."""
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _step(self, cell):
        """A step of the loop over time, with the weights of ``cell``."""
        if self.mode == "LSTM":
            return lambda gates, state: step(gates, cell.state_part(state[0]), state[1], "lstm")
        return lambda gates, state: step(gates, cell.state_part(state[0]), state[0], "gru")[:1]

    def _run_layers(self, x, state, sizes, join):
        per_cell, finals = list(zip(*[part.unbind(0) for part in state])), []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self._directions):
                number = layer * self._directions + direction
                cell = self._all_weight_values[number].param
                gates = cell.input_part(x)
                run = plain._run_backward if direction else plain._run_forward
                steps, final = run(self._step(cell), list(gates.unbind(0) if sizes is None else gates.split(sizes)), per_cell[number], ())
                outputs.append(join(steps))
                finals.append(final)
            x = outputs[0] if len(outputs) == 1 else clnn.cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = nn.functional.dropout(x, self.dropout, True)
        return x, tuple(clnn.stack(parts) for parts in zip(*finals))

    # -- weights ----------------------------------------------------------------------------------------------------------------------
    def _weight_bias(self):
        found: dict = {"weight": {}, "bias": {}}
        for number, cell in enumerate(self._all_weight_values):
            suffix = f"_l{number // self._directions}" + "_reverse" * (number % self._directions)
            for part in ("ih", "hh"):
                found["weight"][f"weight_{part}{suffix}"], found["bias"][f"bias_{part}{suffix}"] = getattr(cell.param, "packed_" + part).unpack()
        return found

    def get_weight(self):
        """The quantised weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self):
        """The biases by name."""
        return self._weight_bias()["bias"]

    def set_weight_bias(self, weight_bias_dict):
        """Pack other weights and biases, given by name."""
        for number, cell in enumerate(self._all_weight_values):
            suffix = f"_l{number // self._directions}" + "_reverse" * (number % self._directions)
            cell.param = self._cell(*(pack_weight_bias(weight_bias_dict[f"weight_{part}{suffix}"], weight_bias_dict[f"bias_{part}{suffix}"], self.dtype)
                                      for part in ("ih", "hh")))

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the quantised weights of a float one."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        rule = _rule(mod)
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        made = cls(mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional, rule().dtype)
        for cell, names in zip(made._all_weight_values, mod._all_weights):
            values = {name.split("_l")[0]: getattr(mod, name) for name in names}
            cell.param = made._cell(*(_packed(rule, values[f"weight_{part}"], values[f"bias_{part}"]) for part in ("ih", "hh")))
        return made


class LSTM(RNNBase):
    """``nn.LSTM`` with quantised weights.

    Example::

        >>> out, (h, c) = nn.quantized.dynamic.LSTM(10, 20)(clnn.randn(5, 3, 10))
        >>> out.shape, c.shape
        (clnn.Size([5, 3, 20]), clnn.Size([1, 3, 20]))
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """``nn.GRU`` with quantised weights.

    Example::

        >>> out, h = nn.quantized.dynamic.GRU(10, 20)(clnn.randn(5, 3, 10))
        >>> out.shape, h.shape
        (clnn.Size([5, 3, 20]), clnn.Size([1, 3, 20]))
    """

    _FLOAT_MODULE = nn.GRU

    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(nn.Module):
    """One step of a recurrent layer, over packed weights."""

    _version = 1

    def __init__(self, input_size, hidden_size, bias=True, num_chunks=4, dtype=clnn.qint8):
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        rows = num_chunks * hidden_size
        self._packed_weight_ih, self._packed_weight_hh = (RNNBase._blank(rows, columns, dtype) for columns in (input_size, hidden_size))
        self.bias_ih, self.bias_hh = (packed.unpack()[1] for packed in (self._packed_weight_ih, self._packed_weight_hh))

    def _get_name(self):
        return "DynamicQuantized" + type(self).__name__

    extra_repr = plain.RNNCellBase.extra_repr

    def _state(self, input, hx, count):
        """The state of ``count`` parts, zeros where none is given."""
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)}, expected {self.input_size}")
        if hx is None:
            zero = clnn.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            return (zero, zero) if count == 2 else zero
        return hx

    def _stepped(self, function, input, hx):
        return function(input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh)

    def _weight_bias(self):
        pairs = [(part, *getattr(self, f"_packed_weight_{part}").unpack()) for part in ("ih", "hh")]
        return {"weight": {f"weight_{part}": w for part, w, _ in pairs}, "bias": {f"bias_{part}": b for part, _, b in pairs}}

    def get_weight(self):
        """The quantised weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self):
        """The biases by name."""
        return self._weight_bias()["bias"]

    def set_weight_bias(self, weight_bias_dict):
        """Pack other weights and biases, given by name."""
        for part in ("ih", "hh"):
            setattr(self, f"bias_{part}", weight_bias_dict[f"bias_{part}"])
            setattr(self, f"_packed_weight_{part}", pack_weight_bias(weight_bias_dict[f"weight_{part}"], weight_bias_dict[f"bias_{part}"], self.weight_dtype))

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for part in ("ih", "hh"):
            destination[f"{prefix}_packed_weight_{part}"] = getattr(self, f"_packed_weight_{part}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        for part in ("ih", "hh"):
            packed = state_dict.pop(f"{prefix}_packed_weight_{part}")
            setattr(self, f"_packed_weight_{part}", packed)
            setattr(self, f"bias_{part}", packed.unpack()[1])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The cell with the quantised weights of a float one."""
        if type(mod) not in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
            raise AssertionError("nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell and nn.RNNCell")
        rule = _rule(mod)
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        options = dict(nonlinearity=mod.nonlinearity) if type(mod) is nn.RNNCell else {}
        made = cls(mod.input_size, mod.hidden_size, bias=mod.bias, dtype=rule().dtype, **options)
        for part in ("ih", "hh"):
            bias = getattr(mod, f"bias_{part}").detach()
            setattr(made, f"bias_{part}", bias)
            setattr(made, f"_packed_weight_{part}", _packed(rule, getattr(mod, f"weight_{part}"), bias))
        return made


class RNNCell(RNNCellBase):
    """``nn.RNNCell`` with quantised weights.

    Example::

        >>> nn.quantized.dynamic.RNNCell(10, 20)(clnn.randn(3, 10)).shape
        clnn.Size([3, 20])
    """

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", dtype=clnn.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._stepped(getattr(quantized, f"quantized_rnn_{self.nonlinearity}_cell_dynamic"), input, self._state(input, hx, 1))


class LSTMCell(RNNCellBase):
    """``nn.LSTMCell`` with quantised weights.

    Example::

        >>> h, c = nn.quantized.dynamic.LSTMCell(10, 20)(clnn.randn(3, 10))
        >>> h.shape
        clnn.Size([3, 20])
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, num_chunks=4, **kwargs)

    def forward(self, input, hx=None):
        return self._stepped(quantized.quantized_lstm_cell_dynamic, input, self._state(input, hx, 2))


class GRUCell(RNNCellBase):
    """``nn.GRUCell`` with quantised weights.

    Example::

        >>> nn.quantized.dynamic.GRUCell(10, 20)(clnn.randn(3, 10)).shape
        clnn.Size([3, 20])
    """

    def __init__(self, input_size, hidden_size, bias=True, dtype=clnn.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def forward(self, input, hx=None):
        return self._stepped(quantized.quantized_gru_cell_dynamic, input, self._state(input, hx, 1))
