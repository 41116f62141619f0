"""Connectionist temporal classification: the loss of unaligned label sequences."""
from __future__ import annotations

import struct

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.repeat import repeated
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from .creation import tensor
from .loss import check_reduction, require_float
from .selection import where

_LENGTHS = "length {value} of a sample: input_lengths go from 0 to the steps of log_probs, target_lengths from 0 to the labels of targets"


def _stride(device, acc, states):
    """(states at a time, elements of a line of states), see kernels/loss/ctc."""
    lanes = 64 // acc.itemsize if device.is_cpu else 1
    return lanes, states if lanes == 1 else (-(-states // lanes) + 2) * lanes


def _launch(x, labels, starts, input_lengths, label_lengths, alpha, loss, g, gx, states, blank, backward, zero):
    device, acc = x._storage.device, loss.dtype
    steps, n, classes = x.shape
    lanes, stride = _stride(device, acc, states)
    beta = empty((n * 2 * stride if backward else 0,), acc, device)
    label_lines, step_lines = (empty((n * stride if lanes > 1 else 0,), kind, device) for kind in (dt.int32, acc))
    if n:
        params = dict(T=x.dtype, BACKWARD=backward, ZERO=zero, W=lanes)
        run(device, "loss/ctc", params, (n,), (1,), x, labels, starts, input_lengths, label_lengths, alpha, loss, g, beta, gx, label_lines, step_lines, steps,
            n, classes, states, stride, blank, device.error_buffer, struct.pack("i", device.error_code("ctc_loss", _LENGTHS, RuntimeError)))


@kernel("_ctc_loss", method=False, repeat=True, outputs=("out", "alpha"), public=1, vjp=dict(
    log_probs=lambda g, log_probs, labels, starts, input_lengths, label_lengths, states, blank, zero_infinity, out, alpha:
        _ctc_backward(g, log_probs, labels, starts, input_lengths, label_lengths, states, blank, zero_infinity, out, alpha)))
def _ctc(log_probs, labels, starts, input_lengths, label_lengths, states, blank, zero_infinity):
    device, x, acc = log_probs._storage.device, log_probs.contiguous(), log_probs.dtype.acc_dtype
    alpha, loss = empty((x.shape[1], x.shape[0], _stride(device, acc, states)[1]), acc, device), empty((x.shape[1],), acc, device)
    none = empty((0,), x.dtype, device)
    _launch(x, labels, starts, input_lengths, label_lengths, alpha, loss, none, none, states, blank, 0, 0)
    return loss.to(x.dtype), alpha


@repeated
def _ctc_backward(g, log_probs, labels, starts, input_lengths, label_lengths, states, blank, zero_infinity, out, alpha):
    x = log_probs.contiguous()
    gx = empty(x.shape, x.dtype, x._storage.device)
    _launch(x, labels, starts, input_lengths, label_lengths, alpha, out.to(alpha.dtype).contiguous(), g.to(x.dtype).contiguous(), gx, states, blank, 1,
            int(zero_infinity))
    return gx


_ctc.op.grad_name = "CtcLossBackward0"


def _refuse(name, number):
    raise TypeError(f"ctc_loss(): {name} must be a tensor or a sequence of ints, but got {number!r}")


def _lengths(name, value, device, n):
    """(int64 tensor, list or None) of lengths given as a tensor, a number or a sequence."""
    if isinstance(value, Tensor):
        if value.dtype.category > dt.INT:
            raise RuntimeError(f"{name} must be integral")
        return value.detach().reshape(-1).to(device).to(dt.int64).contiguous(), None
    known = [int(v) for v in (value if isinstance(value, (tuple, list)) else [value] * n) if not isinstance(v, float) or _refuse(name, v)]
    return tensor(np.array(known, np.int64), device=device), known


def _samples():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (12, 3, 5))
    x = x - np.log(np.exp(x).sum(-1, keepdims=True))
    targets = rng.integers(1, 5, (3, 4))
    sizes = (np.array([12, 10, 9]), np.array([4, 2, 3]))
    return [((x, targets, *sizes), {}), ((x, targets, *sizes), {"reduction": "sum", "zero_infinity": True}),
            ((x, targets, *sizes), {"reduction": "none"}),
            ((np.tile(x, (2, 1, 4)) - np.log(4), rng.integers(1, 20, (3, 11)), np.array([24, 20, 24]), np.array([11, 9, 0])), {})]


@composite("ctc_loss", method=False, torch="nn.functional.ctc_loss", samples=_samples, gradcheck=False)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Minus the log-probability that ``log_probs`` reads as ``targets``, summed over all alignments (Graves et al., 2006).

    Args:
        log_probs: ``(T, N, C)`` or ``(T, C)``, log-probabilities of each step (``log_softmax``).
        targets: ``(N, S)`` padded, or the labels of all samples one after another; never the blank.
        input_lengths, target_lengths: ``(N)`` tensors or sequences.
        blank: the class of "no label".
        reduction: ``"mean"`` divides by the target lengths, then averages.
        zero_infinity: impossible alignments count as 0, with no gradient.

    Note: the gradient is the one for ``log_probs`` made by ``log_softmax`` (as in PyTorch), and cannot be differentiated again.
    """
    check_reduction(reduction)
    require_float("ctc_loss", log_probs)
    batched = log_probs.ndim == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    steps, n, classes = x.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    device = x.device
    t_in, known_in = _lengths("input_lengths", input_lengths, device, n)
    t_out, known_out = _lengths("target_lengths", target_lengths, device, n)
    if t_in._numel != n:
        raise RuntimeError("input_lengths must be of size batch_size")
    if t_out._numel != n:
        raise RuntimeError("target_lengths must be of size batch_size")
    if known_in is not None and known_in and max(known_in) > steps:
        raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {max(known_in)} (while checking arguments for "
                           "ctc_loss_allocate_outputs)")
    for name, known in (("input_lengths", known_in), ("target_lengths", known_out)):
        if known and min(known) < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {min(known)} (while checking arguments for ctc_loss_allocate_outputs)")
    labels = targets.detach().to(device).to(dt.int64)
    if known_out and labels.ndim == 2 and max(known_out) > labels.shape[1]:
        raise RuntimeError(f"Expected tensor to have size at least {max(known_out)} at dimension 1, but got size {labels.shape[1]} for argument "
                           "#2 'targets' (while checking arguments for ctc_loss_allocate_outputs)")
    if labels.ndim == 2:
        if labels.shape[0] != n:
            raise RuntimeError(f"Expected tensor to have size {n} at dimension 0, but got size {labels.shape[0]} for argument #2 'targets' (while checking "
                               "arguments for ctc_loss_allocate_outputs)")
        longest, starts = labels.shape[1], tensor(np.arange(n, dtype=np.int64) * labels.shape[1], device=device)
    else:
        known_out = t_out.tolist() if known_out is None else known_out
        longest = max(known_out, default=0)
        if sum(known_out) != labels._numel:
            raise RuntimeError(f"Expected tensor to have size {sum(known_out)} at dimension 0, but got size {labels._numel} for argument #2 'targets' (while "
                               "checking arguments for ctc_loss_allocate_outputs)")
        starts = t_out.cumsum(0) - t_out if batched else tensor(np.zeros(1, np.int64), device=device)
    loss = _ctc(x, labels.contiguous().reshape(-1), starts.contiguous(), t_in, t_out, 2 * longest + 1, int(blank), bool(zero_infinity))
    if zero_infinity:
        loss = where(loss == float("inf"), 0.0, loss)
    if reduction == "mean":
        return (loss / t_out.clamp_min(1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if batched else loss.squeeze(0)
