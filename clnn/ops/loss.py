"""Losses over classes: fused cross-entropy and negative log-likelihood. The elementwise losses are in ``criteria``."""
from __future__ import annotations

import struct

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.inplace import type_name
from .._tensor.refusals import constant
from .._tensor.repeat import repeated
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.warn import warn
from .selection import where
from .softmax import _log_softmax, aligned, largest, row_plan

_SINGLE = 16384          # up to here one launch adds up the positions


def check_reduction(reduction):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def require_float(name, t):
    if not t.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(t.dtype)}'; it takes float tensors")


def _geometry(input):
    """(positions, classes, inner) of logits (C), (N, C) or (N, C, *)."""
    n = input.shape[1] if input.ndim > 1 else input.shape[0]
    inner = 1
    for s in input.shape[2:]:
        inner *= s
    outer = input.shape[0] if input.ndim > 1 else 1
    return outer * inner, n, inner


def _reduced(part, used, reduction, dtype, weighted=False):
    """(loss, total weight) from the values per position."""
    device = part._storage.device
    if part._numel > _SINGLE or part._numel == 0:
        total = used.sum()
        loss = part.sum()
        return (loss / total if reduction == "mean" else loss).to(dtype), total
    out, total = empty((), dtype, device), empty((), part.dtype, device)
    if dtype.round_trip and device.is_cpu:
        params = dict(T=dtype, MEAN=int(reduction == "mean"), WEIGHT=int(weighted))
        run(device, "loss/steps", params, (1,), (1,), part, used, out, total, part._numel)
        return out, total
    form, lanes = "loop" if device.loops else "group", 64 if device.is_cpu or part._numel < 1024 else largest(device)
    gs, ls = ((1,), (1,)) if form == "loop" else ((lanes,), (lanes,))
    run(device, "loss/finish", dict(T=dtype, FORM=form, LANES=lanes, MEAN=int(reduction == "mean")), gs, ls, part, used, out, total, part._numel, 1)
    return out, total


def _code(device):
    return struct.pack("i", device.error_code("cross_entropy", "Target {value} is out of bounds.", IndexError))


def _unused(device, dtype):
    return empty((0,), dtype, device)


def _lanes(input, n, weight):
    """Of a vector; 0 where those of short rows would read beyond the weights."""
    lanes = 64 // input.dtype.acc_dtype.itemsize
    return lanes if n >= lanes or weight is None else 0


def _ce_decomposed(input, target, weight, ignore_index, smoothing, reduction):
    logp = _log_softmax(input, 1 if input.ndim > 1 else 0)
    loss = _nll(logp, target, weight, ignore_index, reduction)
    if not smoothing:
        return loss
    axis = 1 if input.ndim > 1 else 0
    n = input.shape[axis]
    scaled = logp if weight is None else logp * _per_class(weight, input.ndim)
    valid = target != ignore_index
    smooth = where(valid, -scaled.sum(axis), 0.0)
    if reduction != "none":
        smooth = smooth.sum()
    if reduction == "mean":
        ones = logp.new_zeros(logp.shape) - 1
        smooth = smooth / (valid.to(input.dtype).sum() if weight is None else _nll(ones, target, weight, ignore_index, "sum"))
    return loss * (1 - smoothing) + smooth * (smoothing / n)


def _per_class(weight, rank):
    return weight.reshape((1, -1) + (1,) * (rank - 2)) if rank > 1 else weight


@kernel("_cross_entropy", method=False, repeat=True, outputs=("out", "lse", "total"), public=1, decompose=_ce_decomposed, vjp=dict(
    input=lambda g, input, target, weight, ignore_index, smoothing, reduction, lse, total:
        _ce_backward(g, input, target, weight, ignore_index, smoothing, reduction, lse, total)))
def _cross_entropy(input, target, weight, ignore_index, smoothing, reduction):
    device = input._storage.device
    rows, n, inner = _geometry(input)
    acc = input.dtype.acc_dtype
    part, used, lse = (empty(target.shape, acc, device) for _ in range(3))
    if rows:
        x = input.contiguous()
        form, lanes, chunk, gs, ls = row_plan(device, rows, n, inner, lanes=_lanes(input, n, weight), whole=aligned(device, n, x))
        run(device, "loss/cross_entropy", dict(T=input.dtype, FORM=form, LANES=lanes, WEIGHT=int(weight is not None), SMOOTH=int(smoothing > 0)),
            gs, ls, x, target.contiguous(), weight if weight is not None else _unused(device, input.dtype), part, used, lse,
            rows, n, inner, chunk, ignore_index, input.dtype.number(smoothing), device.error_buffer, _code(device))
    if reduction == "none":
        return part.to(input.dtype), lse, None
    out, total = _reduced(part, used, reduction, input.dtype)
    return out, lse, total


_cross_entropy.op.grad_name = "NllLossBackward0"


@repeated
def _ce_backward(g, input, target, weight, ignore_index, smoothing, reduction, lse, total):
    device = input._storage.device
    rows, n, inner = _geometry(input)
    gx = empty(input.shape, input.dtype, device)
    if rows:
        x = input.contiguous()
        form, lanes, chunk, gs, ls = row_plan(device, rows, n, inner, lanes=_lanes(input, n, weight), whole=aligned(device, n, x))
        params = dict(T=input.dtype, FORM=form, LANES=lanes, WEIGHT=int(weight is not None), SMOOTH=int(smoothing > 0), REDUCTION=reduction)
        run(device, "loss/cross_entropy_backward", params, gs, ls, g.to(input.dtype).contiguous(),
            total if reduction == "mean" else _unused(device, lse.dtype), x, target.contiguous(),
            weight if weight is not None else _unused(device, input.dtype), lse, gx, rows, n, inner, chunk, ignore_index, input.dtype.number(smoothing))
    return gx


@kernel("_nll", method=False, repeat=True, outputs=("out", "total"), public=1, vjp=dict(
    input=lambda g, input, target, weight, ignore_index, reduction, total:
        _nll_backward(g, target, weight, ignore_index, reduction, total, input.shape)))
def _nll(input, target, weight, ignore_index, reduction):
    device = input._storage.device
    rows, n, inner = _geometry(input)
    acc = input.dtype.acc_dtype
    part, used = empty(target.shape, acc, device), empty(target.shape, acc, device)
    if rows:
        run(device, "loss/nll", dict(T=input.dtype, WEIGHT=int(weight is not None)), (rows,), (64,), input.contiguous(), target.contiguous(),
            weight if weight is not None else _unused(device, input.dtype), part, used, rows, n, inner, ignore_index, device.error_buffer,
            _code(device))
    if reduction == "none":
        return part.to(input.dtype), None
    return _reduced(part, used, reduction, input.dtype, weight is not None)


_nll.op.grad_name = "NllLossBackward0"


@kernel("_nll_backward", method=False, repeat=True, vjp=dict(
    grad=lambda g, target, weight, ignore_index, reduction: _nll(g, target, weight, ignore_index, reduction)))
def _nll_backward(grad, target, weight, ignore_index, reduction, total, shape):
    device, dtype = grad._storage.device, grad.dtype
    gx = empty(shape, dtype, device)
    rows, n, inner = _geometry(gx)
    if gx._numel:
        form, gs, chunk = "item", (gx._numel,), 1
        if device.is_cpu and inner == 1:
            form, chunk = "rows", max(1, min(65536 // n, -(-rows // (4 * device.compute_units))))
            gs = (-(-rows // chunk),)
        elif device.is_cpu:
            form, chunk = "plane", min(inner, 2048)              # targets that stay in cache while they are compared with each class
            gs = (rows // inner * -(-inner // chunk),)
        run(device, "loss/nll_backward", dict(T=dtype, WEIGHT=int(weight is not None), REDUCTION=reduction, FORM=form), gs, (1 if device.is_cpu else 64,),
            grad.contiguous(), total if reduction == "mean" else _unused(device, dtype.acc_dtype), target.contiguous(),
            weight if weight is not None else _unused(device, dtype), gx, rows, n, inner, chunk, ignore_index)
    return gx


def _check_batch(input, target):
    if input.ndim > 1 and (not target.shape or input.shape[0] != target.shape[0]):
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0] if target.shape else 1}).")
    if input.ndim < 3 and target.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported (got input: {list(input.shape)}, target: {list(target.shape)})")


def _check_classes(name, input, target, weight):
    """The class numbers, as many as there are rows of classes."""
    if input.ndim == 0:
        raise ValueError(f"{name}: expected an input with at least 1 dimension, got a 0-d tensor")
    _check_batch(input, target)
    if target.dtype not in (dt.int64, dt.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {type_name(target.dtype)} ({name}: expected scalar type Long: targets are class "
                           "numbers)")
    require_float(name, input)
    if input.ndim == 1 and target.ndim == 1:
        if target._numel != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target._numel}")
        target = target.reshape(())
    if tuple(target.shape) != tuple(input.shape[:1]) * (input.ndim > 1) + tuple(input.shape[2:]):
        size = [*input.shape[:1] * (input.ndim > 1), *input.shape[2:]]
        raise RuntimeError(f"Expected target size {size}, got {list(target.shape)} ({name}: size mismatch (got input: {list(input.shape)}, target: "
                           f"{list(target.shape)}); the target has the shape of the input without its class dimension)")
    n = input.shape[1] if input.ndim > 1 else input.shape[0]
    if weight is not None and (weight.ndim != 1 or weight._numel != n):
        raise RuntimeError(f"weight tensor should be defined either for all {n} classes or no classes but got weight tensor of shape: "
                           f"{list(weight.shape)}")
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input.dtype)} but found {type_name(weight.dtype)}")
    return target.to(dt.int64)


def _legacy(reduction, size_average, reduce):
    """The reduction that the old flags ask for."""
    if size_average is None and reduce is None:
        return reduction
    warn(f"size_average and reduce args will be deprecated, please use reduction='{'none' if reduce is False else 'sum' if size_average is False else 'mean'}' "
         "instead.")
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


_NLL = "nll_loss_forward", "nll_loss2d_forward"


def _same_device(name, *tensors):
    if len({t._home for t in tensors if isinstance(t, Tensor)}) < 2:
        return
    devices = {str(t.device) for t in tensors if isinstance(t, Tensor)}
    if len(devices) > 1:
        found = " and ".join(sorted(devices))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {found}! ({name})")


def _ce_samples():
    rng = np.random.default_rng(1)
    x, t = rng.normal(0, 2, (6, 5)), np.array([0, 4, 2, 2, 1, 3])
    return [((x, t), {}), ((x, t), {"reduction": "sum"}), ((x, t), {"ignore_index": 2, "label_smoothing": 0.1}),
            ((x, t, rng.random(5)), {"label_smoothing": 0.2}), ((rng.normal(0, 1, (2, 5, 3)), rng.integers(0, 5, (2, 3))), {"reduction": "none"}),
            ((rng.normal(0, 2, (2, 5, 35)), rng.integers(0, 5, (2, 35)), rng.random(5)), {"ignore_index": 2, "label_smoothing": 0.1}),
            ((x, np.abs(x)), {}), ((x[0], np.array(4)), {}),
            ((rng.normal(0, 2, (20, 19)), rng.integers(0, 19, 20), rng.random(19)), {"ignore_index": 3, "label_smoothing": 0.1})]


@composite("cross_entropy", repeat="small", splice=True, method=False, torch="nn.functional.cross_entropy", samples=_ce_samples, errors=(
    ((np.zeros((3, 4)), np.zeros(2, np.int64)), {}, ValueError, "batch_size"),
    ((np.zeros((3, 4)), np.array([0, 1, 4])), {}, IndexError, "out of bounds")))
def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """``-log softmax(x)[y]``, one fused launch per direction.

    Args:
        input: logits ``(C)``, ``(N, C)`` or ``(N, C, *)``.
        target: class numbers ``()``, ``(N)``, ``(N, *)``, or class probabilities of the shape of the input.
        weight: ``(C)``; the mean divides by the sum of the weights used.
        ignore_index: positions with this class do not count.
        label_smoothing: this share of the target goes to all classes evenly.

    Raises:
        IndexError: at the next synchronisation, if a class number is out of range.

    Example:
        >>> clnn.nn.functional.cross_entropy(clnn.zeros(1, 2), clnn.tensor([1]))
        tensor(0.6931)
    """
    reduction = _legacy(reduction, size_average, reduce)
    check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    _same_device("cross_entropy", input, target, weight)
    if input.shape == target.shape and input.ndim:
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    target = _check_classes("cross_entropy", input, target, weight)
    if weight is not None:
        constant(_NLL[input.ndim > 2], "weight", weight)
    in_steps = input.dtype.round_trip and input._storage.device.is_cpu             # each of which rounds, as PyTorch's do
    return (_ce_decomposed if in_steps else _cross_entropy)(input, target, weight if weight is None else weight.contiguous(), int(ignore_index),
                          float(label_smoothing), reduction)


def _soft_cross_entropy(input, target, weight, reduction, smoothing):
    if not target.dtype.is_floating_point:
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {type_name(target.dtype)}")
    require_float("cross_entropy", input)
    axis = 1 if input.ndim > 1 else 0
    n = input.shape[axis]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / n
    terms = _log_softmax(input, axis) * target
    if weight is not None:
        terms = terms * _per_class(weight, input.ndim)
    if reduction == "none":
        return -terms.sum(axis)
    total = -terms.sum()
    return total if reduction == "sum" else total / (input._numel // n)


def _nll_samples():
    rng = np.random.default_rng(2)
    x, t = rng.normal(-2, 1, (6, 5)), np.array([0, 4, 2, 2, 1, 3])
    return [((x, t), {}), ((x, t, rng.random(5)), {"ignore_index": 2}),
            ((rng.normal(0, 1, (2, 5, 3)), rng.integers(0, 5, (2, 3))), {"reduction": "none"}),
            ((rng.normal(0, 1, (2, 3, 7, 5)), rng.integers(0, 3, (2, 7, 5)), rng.random(3)), {"ignore_index": 1}),
            ((rng.normal(0, 1, (2, 3, 35)), rng.integers(0, 3, (2, 35))), {"reduction": "none"})]


@composite("nll_loss", repeat=True, splice=True, method=False, torch="nn.functional.nll_loss", samples=_nll_samples)
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """``-w[y] x[y]`` for log-probabilities x ``(N, C, *)`` and class numbers y ``(N, *)``; the mean divides by the weights used."""
    reduction = _legacy(reduction, size_average, reduce)
    check_reduction(reduction)
    _same_device("nll_loss", input, target, weight)
    target = _check_classes("nll_loss", input, target, weight)
    if weight is not None:
        constant(_NLL[input.ndim > 2], "weight", weight)
    return _nll(input, target, weight if weight is None else weight.contiguous(), int(ignore_index), reduction)
