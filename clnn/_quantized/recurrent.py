"""Cells of recurrent layers with quantised weights: their products round the input of each step, their states are floats."""
from __future__ import annotations

from ..graph.op import REGISTRY
from ..ops.recurrent import cell
from .products import dynamic


class CellParams:
    """The packed weights of a cell, of its input and of its state."""

    def __init__(self, packed_ih, packed_hh, reduce_range=False):
        self.packed_ih, self.packed_hh, self.reduce_range = packed_ih, packed_hh, reduce_range

    def input_part(self, x):
        """The input's part of the gates."""
        return dynamic(x, self.packed_ih, self.reduce_range)

    def state_part(self, h):
        """The state's part of the gates."""
        return dynamic(h, self.packed_hh, self.reduce_range)

    def moved(self, fn):
        """The same elsewhere."""
        self.packed_ih.moved(fn)
        self.packed_hh.moved(fn)
        return self


def make_quantized_cell_params_dynamic(w_ih, w_hh, bias_ih, bias_hh, reduce_range=False):
    """The packed weights of a cell."""
    return CellParams(w_ih, w_hh, reduce_range)


def make_quantized_cell_params_fp16(w_ih, w_hh):
    """The packed weights of a cell, rounded to float16."""
    return CellParams(w_ih, w_hh)


def quantized_lstm_cell_dynamic(input, hx, w_ih, w_hh, b_ih, b_hh):
    """One step of an LSTM: (h, c)."""
    return cell(dynamic(input, w_ih, True), dynamic(hx[0], w_hh, True), hx[1], "lstm")


def quantized_gru_cell_dynamic(input, hx, w_ih, w_hh, b_ih, b_hh):
    """One step of a GRU."""
    return cell(dynamic(input, w_ih, True), dynamic(hx, w_hh, True), hx, "gru")[0]


def quantized_rnn_tanh_cell_dynamic(input, hx, w_ih, w_hh, b_ih, b_hh):
    """One step of a recurrent layer with tanh."""
    return REGISTRY["tanh"].fn(dynamic(input, w_ih, True) + dynamic(hx, w_hh, True))


def quantized_rnn_relu_cell_dynamic(input, hx, w_ih, w_hh, b_ih, b_hh):
    """One step of a recurrent layer with ReLU."""
    return REGISTRY["relu"].fn(dynamic(input, w_ih, True) + dynamic(hx, w_hh, True))
