"""Functions of the top-level namespace that are methods, layers or operators in another form."""
from __future__ import annotations

from ._tensor.tensor import Tensor
from ._tensor.wrapped import local
from .graph.op import REGISTRY
from .ops import dropout as _dropout
from .ops.activation import IN_PLACE

relu_, selu_, celu_, rrelu_, threshold_ = (IN_PLACE[name] for name in ("relu_", "selu_", "celu_", "rrelu_", "threshold_"))


def adjoint(input):
    """Matrices with their last two dimensions exchanged, and their complex elements conjugated.

    Example:
        >>> clnn.adjoint(clnn.tensor([[1.0, 2.0j]]))
        tensor([[1.-0.j],
                [0.-2.j]])
    """
    return input.adjoint()


def detach(input):
    """The same memory without history.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> clnn.detach(x).requires_grad
        False
    """
    return input.detach()


def detach_(input):
    """Take a tensor off the tape in place."""
    return input.detach_()


def zero_(input):
    """Overwrite with zeros.

    Example:
        >>> clnn.zero_(clnn.ones(2))
        tensor([0., 0.])
    """
    return input.zero_()


def renorm(input, p, dim, maxnorm, *, out=None):
    """Sub-tensors along ``dim`` scaled down to a p-norm of at most ``maxnorm``.

    Example:
        >>> clnn.renorm(clnn.tensor([[3.0, 4.0], [0.3, 0.4]]), p=2, dim=0, maxnorm=1)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    return input.renorm(p, dim, maxnorm, out=out)


def resize_as_(input, other):
    """Change the shape of ``input`` to that of ``other``.

    Example:
        >>> clnn.resize_as_(clnn.arange(6), clnn.ones(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return input.resize_as_(other)


def to_dlpack(input):
    """A DLPack capsule of what ``tensor.numpy()`` gives."""
    return input.__dlpack__()


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True):
    """``nn.functional.batch_norm`` in the order of arguments of the top-level function."""
    return REGISTRY["batch_norm"].fn(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=True):
    """``nn.functional.instance_norm`` in the order of arguments of the top-level function."""
    return REGISTRY["instance_norm"].fn(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """``nn.functional.embedding`` in the order of arguments of the top-level function; a ``padding_idx`` below 0 is none."""
    return REGISTRY["embedding"].fn(indices, weight, padding_idx if padding_idx >= 0 else None, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def dropout(input, p, train):
    """``nn.functional.dropout`` in the order of arguments of the top-level function."""
    return _dropout.dropout(input, p, train)


def dropout_(input, p, train):
    """In-place :func:`dropout`."""
    return _dropout.dropout(input, p, train, True)


def alpha_dropout(input, p, train):
    """``nn.functional.alpha_dropout`` in the order of arguments of the top-level function."""
    return _dropout.alpha_dropout(input, p, train)


def feature_dropout(input, p, train):
    """Dropout of whole channels.

    Example:
        >>> x = clnn.feature_dropout(clnn.ones(1, 4, 2), 0.5, True)
        >>> clnn.equal(x[..., 0], x[..., 1])
        True
    """
    return _dropout.feature_dropout(input, p, train)


def nuclear_norm(input, dim=None, keepdim=False):
    """The sum of the singular values.

    Example:
        >>> clnn.nuclear_norm(clnn.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(7.)
    """
    return input.norm("nuc", dim=dim, keepdim=keepdim) if dim is not None else input.norm("nuc")


def frobenius_norm(input, dim=None, keepdim=False):
    """The square root of the sum of squared absolute values.

    Example:
        >>> clnn.frobenius_norm(clnn.tensor([3.0, 4.0]))
        tensor(5.)
    """
    size = input.abs() if input.is_complex() else input
    return (size * size).sum(dim, keepdim).sqrt()


def feature_alpha_dropout(input, p, train):
    """``nn.functional.feature_alpha_dropout`` in the order of arguments of the top-level function."""
    return _dropout.feature_alpha_dropout(input, p, train)


def alpha_dropout_(input, p, train):
    """In-place :func:`alpha_dropout`."""
    return _dropout.alpha_dropout(input, p, train, True)


def feature_dropout_(input, p, train):
    """In-place :func:`feature_dropout`."""
    return _dropout.feature_dropout(input, p, train, True)


def feature_alpha_dropout_(input, p, train):
    """In-place :func:`feature_alpha_dropout`."""
    return _dropout.feature_alpha_dropout(input, p, train, True)


def as_strided_(input, size, stride, storage_offset=None):
    """Give ``input`` another shape, strides and offset on its memory."""
    return input.as_strided_(size, stride, storage_offset)


def _recurrent_function(mode, doc, cell=False):
    def layer(*args):
        from .nn.modules.rnn import run_cell, run_layer
        return (run_cell if cell else run_layer)(mode, *args)
    layer.__name__ = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}[mode] + "_cell" * cell
    layer.__doc__ = doc
    return layer


_LAYER = ("What :class:`clnn.nn.{}` computes: ``(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, or for packed "
          "sequences ``(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)``.")
_CELL = "What :class:`clnn.nn.{}` computes: ``(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)``."
lstm, gru = _recurrent_function("LSTM", _LAYER.format("LSTM")), _recurrent_function("GRU", _LAYER.format("GRU"))
rnn_tanh, rnn_relu = _recurrent_function("RNN_TANH", _LAYER.format("RNN")), _recurrent_function("RNN_RELU", _LAYER.format("RNN"))
lstm_cell, gru_cell = _recurrent_function("LSTM", _CELL.format("LSTMCell"), True), _recurrent_function("GRU", _CELL.format("GRUCell"), True)
rnn_tanh_cell = _recurrent_function("RNN_TANH", _CELL.format("RNNCell"), True)
rnn_relu_cell = _recurrent_function("RNN_RELU", _CELL.format("RNNCell"), True)


def cond(pred, true_fn, false_fn, operands=()):
    """``true_fn(*operands)`` if ``pred`` else ``false_fn(*operands)``.

    Example:
        >>> x = clnn.tensor([1.0, 2.0])
        >>> clnn.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
        tensor([2., 3.])
    """
    if isinstance(pred, Tensor) and pred._numel != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError("Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
                           f"{operands}.")
    if isinstance(pred, Tensor) and local.modes and local.modes[-1].composites:
        from .fx import _branches
        return _branches.record(local.modes[-1], pred, true_fn, false_fn, operands)
    return (true_fn if pred else false_fn)(*operands)


# The parameters of PyTorch's native losses: their ``reduction`` is a number, 0 (none), 1 (mean) or 2 (sum), and 0 where it is left out.
_LOSSES = dict(kl_div="input target reduction log_target", hinge_embedding_loss="input target margin reduction",
               binary_cross_entropy_with_logits="input target weight pos_weight reduction", margin_ranking_loss="input1 input2 target margin reduction",
               cosine_embedding_loss="input1 input2 target margin reduction", triplet_margin_loss="anchor positive negative margin p eps swap reduction",
               ctc_loss="log_probs targets input_lengths target_lengths blank reduction zero_infinity", poisson_nll_loss="input target log_input full eps reduction")


def _native_loss(name, order):
    def loss(*args, reduction=0, **kwargs):
        values = dict(zip(order, args), **kwargs)
        reduction = values.pop("reduction", reduction)
        values["reduction"] = reduction if isinstance(reduction, str) else ("none", "mean", "sum")[reduction]
        from .nn import functional
        return getattr(functional, name)(**values)
    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"What :func:`clnn.nn.functional.{name}` computes: ``({', '.join(order)})``, with a number for ``reduction``, 0 (none), 1 (mean) or 2 (sum)."
    return loss


globals().update({_name: _native_loss(_name, _order.split()) for _name, _order in _LOSSES.items()})
