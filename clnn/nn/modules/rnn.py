"""Recurrent layers: RNN, LSTM, GRU and their cells.

T time steps, N batch, H hidden size. The input part of the gates is one matrix product over all steps; a step then adds the
hidden part. A packed sequence goes the same way with a batch that shrinks from step to step. What takes all steps at once is in ops/recurrent.py.
"""
import math
import numbers
import warnings

import clnn
from clnn.nn import functional as F
from clnn.nn import init
from clnn.nn.parameter import Parameter
from clnn.nn.utils.rnn import PackedSequence, apply_permutation  # noqa: F401

from ..._tensor.grad_mode import state as autocast_state
from ..._tensor.splice import Spliced
from ...ops.recurrent import _recurrent, cell
from ...ops.recurrent import packed as whole_packed
from ...ops.recurrent import step as whole_step
from ._chain import parted
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]


# -- one time step: (input part of the gates, state, hidden weight, hidden bias, projection) -> state; state[0] is the output ---
def _step_tanh(gates, state, w_hh, b_hh, w_hr=None):
    return ((gates + F.linear(state[0], w_hh, b_hh)).tanh(),)


def _step_relu(gates, state, w_hh, b_hh, w_hr=None):
    return ((gates + F.linear(state[0], w_hh, b_hh)).relu(),)


def _step_lstm(gates, state, w_hh, b_hh, w_hr=None):
    h, c = cell(gates, F.linear(state[0], w_hh, b_hh), state[1], "lstm")
    return (h if w_hr is None else F.linear(h, w_hr)), c


def _step_gru(gates, state, w_hh, b_hh, w_hr=None):
    return cell(gates, F.linear(state[0], w_hh, b_hh), state[0], "gru")[:1]


_FUSED = {_step_lstm: "lstm", _step_gru: "gru"}
_spliced = Spliced()
_SETTINGS = "num_layers bidirectional batch_first bias input_size hidden_size proj_size".split()
_STEPS = {"RNN_TANH": (_step_tanh, 1), "RNN_RELU": (_step_relu, 1), "LSTM": (_step_lstm, 4), "GRU": (_step_gru, 3)}


def _run_forward(step, gates, state, weights):
    """All steps in order of time; rows whose sequence ended keep their last state. Returns (outputs, final state)."""
    outputs, ended = [], []
    for gate in gates:
        rows, live = gate.shape[0], state[0].shape[0]
        if rows < live:
            ended.append([s[rows:] for s in state])
            state = tuple(s[:rows] for s in state)
        state = step(gate, state, *weights)
        outputs.append(state[0])
    if ended:
        state = tuple(clnn.cat([s, *[rest[k] for rest in reversed(ended)]]) for k, s in enumerate(state))
    return outputs, state


def _run_backward(step, gates, initial, weights):
    """All steps against time; a row joins with its initial state where its sequence begins (seen from the end)."""
    outputs, state = [], None
    for gate in reversed(gates):
        rows = gate.shape[0]
        if state is None:
            state = tuple(s[:rows] if rows < s.shape[0] else s for s in initial)
        elif rows > state[0].shape[0]:
            state = tuple(clnn.cat([s, full[s.shape[0]:rows]]) for s, full in zip(state, initial))
        state = step(gate, state, *weights)
        outputs.append(state[0])
    return outputs[::-1], state


def _refuse_projection(options):
    """For the layers other than LSTM: programs that choose a layer by name pass all of them the same options."""
    for name in options:
        if name == "proj_size":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        raise TypeError(f"__init__() got an unexpected keyword argument {name!r}")


class RNNBase(Module):
    """Weights, checks and the loop over layers and directions. Use :class:`RNN`, :class:`LSTM` or :class:`GRU`."""

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 proj_size=0, device=None, dtype=None):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout) if isinstance(dropout, numbers.Number) and not isinstance(dropout, bool) else dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:self._directions]:
                self._add_weights(layer, suffix, device, dtype)
        self.reset_parameters()

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    def _check_arguments(self, dropout):
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0 and self.num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                          f"greater than 1, but got dropout={dropout} and num_layers={self.num_layers}", stacklevel=4)
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(getattr(self, name)).__name__}")
        if self.mode not in _STEPS:
            raise ValueError("Unrecognized RNN mode: " + self.mode)
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.proj_size and self.mode != "LSTM":
            _refuse_projection({"proj_size": self.proj_size})

    def _add_weights(self, layer, suffix, device, dtype):
        gates = _STEPS[self.mode][1] * self.hidden_size
        out = self.proj_size or self.hidden_size
        shapes = {"weight_ih": (gates, self.input_size if layer == 0 else out * self._directions), "weight_hh": (gates, out)}
        if self.bias:
            shapes.update(bias_ih=(gates,), bias_hh=(gates,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for name, shape in shapes.items():
            names.append(f"{name}_l{layer}{suffix}")
            self.register_parameter(names[-1], Parameter(clnn.empty(shape, device=device, dtype=dtype)))
        self._all_weights.append(names)

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [self._weight(name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights):
        """What programs put in the place of the parameters, dropped weights say, serves until they assign again."""
        given = {name: w for name, w in zip(self._flat_weights_names, weights, strict=True) if w is not getattr(self, name, None)}
        self.__dict__["_given_weights"] = given

    def _weight(self, name, *otherwise):
        given = self.__dict__.get("_given_weights")
        return given[name] if given and name in given else getattr(self, name, *otherwise)

    @property
    def all_weights(self):
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Nothing to do: kept for code that calls it."""

    def reset_parameters(self):
        """Draw all weights from ``U(-k, k)`` with ``k = 1 / sqrt(hidden_size)``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, usual in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0),
                            ("bidirectional", False)):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)

    # -- checks of the call ---------------------------------------------------------------------------------------------
    def _state_sizes(self, batch):
        """Expected shapes of the parts of the state (h, and c for an LSTM)."""
        layers = self.num_layers * self._directions
        sizes = [(layers, batch, self.proj_size or self.hidden_size)]
        return sizes + [(layers, batch, self.hidden_size)] * (self.mode == "LSTM")

    def check_input(self, input, batch_sizes):
        """Raise when the input's rows do not have ``input_size`` elements."""
        row = self._flat_weights[0].dtype
        if input.dtype is not row and autocast_state.autocast is None:
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({row}). Convert input: input.to({row}), or convert model: "
                             f"model.to({input.dtype})")
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape that the hidden state has for such an input: ``(layers * directions, N, H)``."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self._state_sizes(batch)[0]

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise when a state has another shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise when the input or the state has another shape than the layers take."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        if self.mode != "LSTM":
            self.check_hidden_size(hidden, expected)
            return
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def _check_state(self, state, batch):
        for i, (part, size) in enumerate(zip(state, self._state_sizes(batch))):
            if tuple(part.shape) != size:
                which = f"hidden[{i}]" if self.mode == "LSTM" else "hidden"
                raise RuntimeError(f"Expected {which} size {size}, got {list(part.shape)}")

    def _unpack_state(self, hx, batched):
        """The state as a tuple of (layers, N, H) tensors, with a batch dimension added for unbatched input."""
        state = tuple(hx) if self.mode == "LSTM" else (hx,)
        dims = 3 if batched else 2
        if any(part.dim() != dims for part in state):
            kind = f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, "
            if self.mode == "LSTM":
                raise RuntimeError(f"{kind}hx and cx should also be {dims}-D but got ({state[0].dim()}-D, {state[1].dim()}-D) tensors")
            raise RuntimeError(f"{kind}hx should also be {dims}-D but got {hx.dim()}-D tensor")
        return state if batched else tuple(part.unsqueeze(1) for part in state)

    def permute_hidden(self, hx, permutation):
        """The state with its batch dimension reordered."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(part.index_select(1, permutation) for part in hx)
        return hx.index_select(1, permutation)

    # -- the call -------------------------------------------------------------------------------------------------------
    def forward(self, input, hx=None):
        """Run the layers.

        Args:
            input: ``(T, N, input_size)``, ``(N, T, input_size)`` with batch_first, ``(T, input_size)``, or a PackedSequence.
            hx: first state, zeros by default: ``(layers * directions, N, H)``, for an LSTM the pair (h, c).

        Returns:
            (outputs of the last layer for all steps, last state of every layer).
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        given = () if hx is None else tuple(hx) if self.mode == "LSTM" and isinstance(hx, (tuple, list)) else (hx,)
        if self.__class__ not in _LAYERS or not all(isinstance(t, clnn.Tensor) for t in (input, *given)):
            out, *state = self._forward_padded(input, hx)
        else:
            key = [self.__class__, self.mode, len(given), self.dropout and self.training, *[getattr(self, name) for name in _SETTINGS]]
            out, *state = _spliced.call(lambda: self._forward_padded(input, hx), [input, *given, *self._flat_weights], key)
        return out, self._pack_state(tuple(state))

    def _forward_padded(self, input, hx):
        """(outputs of the last layer, the parts of the last state) for sequences of one length."""
        if input.dim() not in (2, 3):
            word = " tensor" if type(self).__name__ == "RNN" else ""
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D{word} instead")
        batched = input.dim() == 3
        time_dim = 1 if self.batch_first and batched else 0
        x = input if batched else input.unsqueeze(1)
        x = x.transpose(0, 1) if time_dim else x
        self.check_input(x, None)
        if not x.shape[0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        state = self._initial_state(x, x.shape[1]) if hx is None else self._unpack_state(hx, batched)
        self._check_state(state, x.shape[1])
        out, state = self._run_layers(x, state, None, clnn.stack)
        if not batched:
            return out.squeeze(1), *[part.squeeze(1) for part in state]
        return (out.transpose(0, 1) if time_dim else out), *state

    def _forward_packed(self, packed, hx):
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        sizes = batch_sizes.tolist()
        self.check_input(data, batch_sizes)
        if hx is None:
            state = self._initial_state(data, sizes[0])
        else:
            state = self._unpack_state(self.permute_hidden(hx, sorted_indices), True)
        self._check_state(state, sizes[0])
        out, state = self._run_layers(data, state, sizes, clnn.cat)
        result = PackedSequence(out, batch_sizes, sorted_indices, unsorted_indices)
        return result, self.permute_hidden(self._pack_state(state), unsorted_indices)

    def _initial_state(self, x, batch):
        return tuple(clnn.zeros(size, dtype=x.dtype, device=x.device) for size in self._state_sizes(batch))

    def _pack_state(self, state):
        return state if self.mode == "LSTM" else state[0]

    def _run_layers(self, x, state, sizes, join):
        """Layers one on the other; *sizes* are the rows of each step (None: steps of equal size), *join* puts outputs together again."""
        step = _STEPS[self.mode][0]
        per_cell = list(zip(*[part.unbind(0) for part in state]))  # the state of each layer and direction
        finals = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self._directions):
                cell = layer * self._directions + direction
                w_ih, w_hh, b_ih, b_hh, w_hr = self._cell_weights(cell)
                if b_ih is not None and self.mode != "GRU":  # both biases once for all steps (a GRU scales its hidden one)
                    b_ih, b_hh = b_ih + b_hh, None
                gates = F.linear(x, w_ih, b_ih)
                found = None if w_hr is not None else self._fused(gates, per_cell[cell], w_hh, b_hh, bool(direction), sizes)
                if found is None:
                    run = _run_backward if direction else _run_forward
                    steps, final = run(step, list(gates.unbind(0) if sizes is None else gates.split(sizes)), per_cell[cell], (w_hh, b_hh, w_hr))
                    out = join(steps)
                else:
                    out, final = found
                outputs.append(out)
                finals.append(final)
            x = outputs[0] if len(outputs) == 1 else clnn.cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, True)
        policy, wide = autocast_state.autocast, state[0].dtype
        if policy is not None and policy.kind == "cpu" and self.mode == "GRU" and x.dtype is not wide:      # PyTorch adds the gates to the wider state
            x, finals = x.to(wide), [[part.to(wide) for part in parts] for parts in finals]
        return x, tuple(clnn.stack(parts) for parts in zip(*finals))

    def _fused(self, gates, state, w_hh, b_hh, reverse, sizes):
        """(outputs of all steps, final state) of one layer and direction, by the operator that runs all its steps; None where it has to go step by step."""
        mode = self.mode.lower().removeprefix("rnn_")
        if sizes is not None:
            found = whole_packed(gates, state[0], state[1] if mode == "lstm" else None, w_hh, b_hh, sizes, mode, reverse)
            return found and (found[0], found[1:] if mode == "lstm" else found[1:2])
        out, cell = _recurrent(gates, state[0], state[1] if mode == "lstm" else None, w_hh, b_hh, mode, reverse)
        last = out[0 if reverse else -1]
        return out, (last, cell) if mode == "lstm" else (last,)

    def _cell_weights(self, cell):
        """(w_ih, w_hh, b_ih, b_hh, w_hr) of a layer and direction, None for what it has not."""
        found = {name.split("_l")[0]: self._weight(name) for name in self._all_weights[cell]}
        return [found.get(name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")]


@parted("*", "mode dropout training " + " ".join(_SETTINGS))
class RNN(RNNBase):
    """``h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)``, in layers.

    Args:
        input_size: size of the input rows.
        hidden_size: size H of the state.
        num_layers: layers; each takes the outputs of the one before. Default: 1.
        nonlinearity: ``"tanh"`` or ``"relu"``. Default: ``"tanh"``.
        bias: whether the biases exist. Default: ``True``.
        batch_first: input and output are ``(N, T, *)`` instead of ``(T, N, *)``. Default: ``False``.
        dropout: probability of dropout on the outputs of all layers but the last. Default: 0.
        bidirectional: run a second set of weights against time; the outputs are joined to ``2 H``. Default: ``False``.

    Shape:
        see :meth:`forward`; parameters ``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``, ``..._reverse``, ``..._l1``.

    Example::

        >>> out, h = nn.RNN(10, 20, 2)(clnn.randn(5, 3, 10))
        >>> out.shape, h.shape
        (clnn.Size([5, 3, 20]), clnn.Size([2, 3, 20]))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None, **lstm):
        _refuse_projection(lstm)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         device=device, dtype=dtype)
        self.nonlinearity = nonlinearity


@parted("*", "mode dropout training " + " ".join(_SETTINGS))
class LSTM(RNNBase):
    """Long short-term memory: ``c' = f c + i g``, ``h' = o tanh(c')`` with gates i, f, o (sigmoid) and g (tanh) of x and h.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: as in :class:`RNN`.
        proj_size: map h to this size by a learned matrix after each step; 0 for none. Default: 0.

    Shape:
        returns ``output, (h, c)``; the rows of the weights are ordered i, f, g, o.

    Source: Hochreiter, Schmidhuber, Neural Computation 9(8), 1997.

    Example::

        >>> out, (h, c) = nn.LSTM(10, 20, batch_first=True)(clnn.randn(3, 5, 10))
        >>> out.shape, c.shape
        (clnn.Size([3, 5, 20]), clnn.Size([1, 3, 20]))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 proj_size=0, device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
                         device=device, dtype=dtype)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape that the cell state has for such an input."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)


@parted("*", "mode dropout training " + " ".join(_SETTINGS))
class GRU(RNNBase):
    """Gated recurrent unit: ``h' = (1 - z) n + z h`` with ``n = tanh(W_in x + b_in + r (W_hn h + b_hn))`` and gates r, z (sigmoid).

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: as in :class:`RNN`.

    Shape:
        see :meth:`forward`; the rows of the weights are ordered r, z, n.

    Source: Cho et al., 2014 (arXiv:1406.1078).

    Example::

        >>> out, h = nn.GRU(10, 20, bidirectional=True)(clnn.randn(5, 3, 10))
        >>> out.shape, h.shape
        (clnn.Size([5, 3, 40]), clnn.Size([2, 3, 20]))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
                 device=None, dtype=None, **lstm):
        _refuse_projection(lstm)
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device,
                         dtype=dtype)


_LAYERS = {RNN, LSTM, GRU}


class RNNCellBase(Module):
    """One step of a recurrent layer, for ``(N, input_size)`` or ``(input_size)`` inputs."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        for name, shape in (("weight_ih", (rows, input_size)), ("weight_hh", (rows, hidden_size)), ("bias_ih", (rows,)),
                            ("bias_hh", (rows,))):
            wanted = bias or name.startswith("weight")
            self.register_parameter(name, Parameter(clnn.empty(shape, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    reset_parameters = RNNBase.reset_parameters

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)

    def _step(self, step, input, state, parts):
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if state is None:
            zeros = clnn.zeros((*input.shape[:-1], self.hidden_size), dtype=input.dtype, device=input.device)
            state = (zeros,) * parts
        for i, part in enumerate(state):
            if part.dim() not in (1, 2):
                what = "hidden" if parts == 1 else f"hx[{i}]"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {part.dim()}D instead")
            if part.shape[-1] != self.hidden_size:
                raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {part.shape[-1]}, expected {self.hidden_size}")
            if part.shape[:-1] != input.shape[:-1]:
                raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {part.shape[0]}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}")
        mode = _FUSED.get(step)
        if mode is not None:
            got = whole_step(input, state[0], state[1] if parts == 2 else None, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, mode)
            if got is not None:
                return got
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        return _spliced.call(lambda: step(F.linear(input, weights[0], weights[2]), state, weights[1], weights[3]), [input, *state, *weights], (step,))


@parted("*", "nonlinearity input_size hidden_size")
class RNNCell(RNNCellBase):
    """``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`` (or relu); ``forward(input, hx=None)`` returns h'.

    Example::

        >>> nn.RNNCell(10, 20)(clnn.randn(3, 10)).shape
        clnn.Size([3, 20])
    """

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = _step_tanh if self.nonlinearity == "tanh" else _step_relu
        return self._step(step, input, None if hx is None else (hx,), 1)[0]


@parted("*", "input_size hidden_size")
class LSTMCell(RNNCellBase):
    """One step of :class:`LSTM`; ``forward(input, (h, c))`` returns the new (h, c).

    Example::

        >>> h, c = nn.LSTMCell(10, 20)(clnn.randn(3, 10))
        >>> h.shape
        clnn.Size([3, 20])
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        return self._step(_step_lstm, input, hx, 2)


@parted("*", "input_size hidden_size")
class GRUCell(RNNCellBase):
    """One step of :class:`GRU`; ``forward(input, hx=None)`` returns the new h.

    Example::

        >>> nn.GRUCell(10, 20)(clnn.randn(3, 10)).shape
        clnn.Size([3, 20])
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step(_step_gru, input, None if hx is None else (hx,), 1)[0]


def run_layer(mode, input, *rest):
    """The functions ``clnn.lstm`` and its like: a layer whose weights are arguments."""
    packed = not isinstance(rest[1], (tuple, list)) or mode == "LSTM" and not isinstance(rest[0], (tuple, list))
    (sizes, hx, params), (biases, layers, dropout, train, both) = ((rest[:3], rest[3:8]) if packed else ((None, *rest[:2]), rest[2:7]))
    gates = _STEPS[mode][1]
    hidden = params[0].shape[0] // gates
    projected = params[1].shape[1] if mode == "LSTM" and params[1].shape[1] != hidden else 0
    layer = RNNBase(mode, params[0].shape[1], hidden, layers, biases, not packed and rest[7], dropout, both, projected, device="meta")
    for name in layer._flat_weights_names:
        del layer._parameters[name]
    for name, weight in zip(layer._flat_weights_names, params):
        object.__setattr__(layer, name, weight)
    layer.train(train)
    out, state = layer(PackedSequence(input, sizes) if packed else input, tuple(hx) if mode == "LSTM" else hx)
    return (out.data if packed else out, *(state if mode == "LSTM" else (state,)))


def run_cell(mode, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """The functions ``clnn.lstm_cell`` and its like."""
    state = tuple(hx) if mode == "LSTM" else (hx,)
    state = _STEPS[mode][0](clnn.nn.functional.linear(input, w_ih, b_ih), state, w_hh, b_hh)
    return state if mode == "LSTM" else state[0]
