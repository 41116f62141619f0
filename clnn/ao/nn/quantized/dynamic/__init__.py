"""Layers of floats with quantised weights, which round their inputs as they come."""
from .layers import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Linear
from .rnn import GRU, LSTM, GRUCell, LSTMCell, RNNCell

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "GRU", "GRUCell", "LSTM", "LSTMCell", "Linear", "RNNCell"]
