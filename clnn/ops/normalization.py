"""Normalisation: layer, RMS, batch, group, instance and local response, and ``normalize``.

Layer and RMS normalisation are one launch over rows. The others take the moments of contiguous rows in one launch and leave the rest to a
lazy elementwise expression, which fuses with the activation that follows; backward likewise needs one pass for sums and one fused expression.
"""
from __future__ import annotations

import functools
import math

import numpy as np

from .._tensor import repeat
from .._tensor.declare import composite, elementwise, kernel
from .._tensor.dispatch import run
from .._tensor.formats import keeps_format, suggested
from .._tensor.grad_mode import state
from .._tensor.inplace import set_out
from .._tensor.refusals import constant
from .._tensor.repeat import repeated
from .._tensor.tensor import Tensor, empty, make_view
from .._tensor.writing import write
from ..core import dtype as dt
from ..core.shape import whole
from ..graph.op import REGISTRY
from ._channels import behind_relu, whole_channels
from .loss import require_float
from .softmax import aligned, largest, row_plan

PART = 256               # rows per partial sum of a weight gradient


def _first(common, kinds):
    """Computed in the accumulate type, stored in the dtype of the first operand."""
    first = dt.ALL[kinds[0] // 3]
    return first.acc_dtype, first


_affine = elementwise("_affine", "input, mean, rstd, weight, bias", "(input - mean) * (rstd * weight) + bias", result=_first, method=False,
                      inplace=False, gradcheck=False)

_normalised = elementwise("_normalised", "input, mean, scale, bias", "(input - mean) * scale + bias", result=_first, method=False, inplace=False,
                          gradcheck=False, vjp=dict(input=lambda g, scale: g * scale, mean=lambda g, scale: -g * scale,
                                                    scale=lambda g, input, mean: g * (input - mean), bias=lambda g: g))
_fixed = elementwise("_fixed", "input, mean, var, weight, bias, eps", "(input - mean) * (1.0f / sqrt(var + eps) * weight) + bias", result=_first, method=False,
                     inplace=False, gradcheck=False,
                     vjp=dict(input=lambda g, var, weight, eps: g * ((var + eps).rsqrt() * weight),
                              mean=lambda g, var, weight, eps: -g * ((var + eps).rsqrt() * weight),
                              var=lambda g, input, mean, var, weight, eps: g * (input - mean) * ((var + eps) ** -1.5 * weight * -0.5),
                              weight=lambda g, input, mean, var, eps: g * (input - mean) * (var + eps).rsqrt(), bias=lambda g: g))
_fixed.op.grad_name = "NativeBatchNormBackward0"
_norm_grad = elementwise("_norm_grad", "grad, input, mean, rstd, weight, sa, sb, inverse",
                         "rstd * (grad * weight - inverse * (sa + (input - mean) * (rstd * rstd * sb)))", result=_first, method=False, inplace=False,
                         gradcheck=False)


def _rows(path, device, params, n, rows, *args):
    same = params.get("W", params["T"]).acc == params["T"].acc    # vectors of one width
    lanes = 64 // params["T"].acc_dtype.itemsize
    shared = params.get("WEIGHT") or params.get("BIAS")           # operands of one row, which vectors of short rows would read beyond
    whole = aligned(device, n, args[0]) if path == "normalization/moments" else 1
    form, lanes, chunk, gs, ls = row_plan(device, rows, n, vector=same, lanes=lanes if same and (n >= lanes or not shared) else 0, whole=whole)
    split = next(i for i, a in enumerate(args) if a is None)      # None stands for (rows, n, chunk)
    run(device, path, dict(FORM=form, LANES=lanes, **params), gs, ls, *args[:split], rows, n, chunk, *args[split + 1:])


def _none(device, dtype):
    return empty((0,), dtype, device)


# -- layer and RMS normalisation ----------------------------------------------------------------------------------------------------
def _layer_decomposed(input, shape, weight, bias, eps, rms):
    dims = tuple(range(-len(shape), 0))
    wide = input.to(input.dtype.acc_dtype)
    if not rms:
        wide = wide - wide.mean(dims, keepdim=True)
    out = (wide * ((wide * wide).mean(dims, keepdim=True) + eps).rsqrt())
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).to(input.dtype)


@kernel("_layer_norm", method=False, repeat=True, outputs=("out", "mean", "rstd"), public=1, decompose=_layer_decomposed, vjp={
    "input, weight, bias": lambda g, input, shape, weight, bias, rms, mean, rstd, needs: _layer_backward(g, input, shape, weight, bias, rms, mean,
                                                                                                         rstd, needs)})
def _layer_norm(input, shape, weight, bias, eps, rms):
    device, acc = input._storage.device, input.dtype.acc_dtype
    n = math.prod(shape)
    rows = input._numel // n if n else 0
    out, mean, rstd = empty(input.shape, input.dtype, device), empty((0 if rms else rows,), acc, device), empty((rows,), acc, device)
    kind = weight.dtype if weight is not None else bias.dtype if bias is not None else input.dtype
    if rows:
        _rows("normalization/layer", device, dict(T=input.dtype, W=kind, WEIGHT=int(weight is not None), BIAS=int(bias is not None), RMS=int(rms)), n,
              rows, input.contiguous(), _dense(weight, device, kind), _dense(bias, device, kind), out, mean, rstd, None, input.dtype.number(eps))
    return out, mean, rstd


_layer_norm.op.grad_name = "NativeLayerNormBackward0"


def _dense(t, device, dtype):
    return _none(device, dtype) if t is None else t.to(dtype).contiguous()


@functools.partial(repeated, mode="whole")
def _layer_backward(g, input, shape, weight, bias, rms, mean, rstd, needs):
    device, rows = input._storage.device, rstd._numel
    n = math.prod(shape)
    g, x = g.to(input.dtype).contiguous(), input.contiguous()
    kind = weight.dtype if weight is not None else input.dtype
    sums = needs[1] or needs[2]
    part = PART if rows >= 16 * PART else PART // 8                # enough parts for all units, few to add up
    wide, deep = _team(device, input.dtype, rows)
    if wide < 32:
        part = max(1, rows)                                        # a second launch would take longer than it saves
    parts = -(-rows // part) or 1
    gx = empty(input.shape, input.dtype, device) if needs[0] else None
    dw, db = (empty((parts, n), rstd.dtype, device) for _ in range(2)) if sums else (None, None)
    params = dict(T=input.dtype, W=kind, WEIGHT=int(weight is not None), RMS=int(rms))
    together = needs[0] and sums and device.is_cpu and n >= 64 and kind.acc == input.dtype.acc and rows > 0
    if together:
        run(device, "normalization/layer_backward", dict(params, WEIGHTS=1, FORM="vector", LANES=1), (parts,), (1,), g, x, _dense(weight, device, kind),
            mean, rstd, gx, dw, db, rows, n, part)
    else:
        if needs[0] and rows:
            _rows("normalization/layer_backward", device, dict(params, WEIGHTS=0), n, rows, g, x, _dense(weight, device, kind), mean, rstd, gx, None)
        if sums:
            loop = device.loops
            gs, ls = ((-(-n // 64), parts), (1, 1)) if loop else ((n, parts * deep), (wide, deep)) if deep else ((n, parts), (64, 1))
            form = "loop" if loop else "group" if deep else "item"
            run(device, "normalization/layer_weight", dict(T=input.dtype, RMS=int(rms), FORM=form, WIDE=wide, DEEP=deep, AHEAD=4 if wide == 32 else 8), gs, ls,
                g, x, mean, rstd, dw, db, rows, n, part)
    if sums and wide == 32:
        dw, db = _gradients("layer", db, dw, None, None)[:2]
    return gx, dw.reshape(tuple(shape)) if needs[1] else None, db.reshape(tuple(shape)) if needs[2] else None


def _team(device, dtype, rows):
    """(columns of a group of a GPU, work-items of each, 0 on CPUs): as narrow as memory allows where so many work-items add all rows up themselves."""
    if device.is_cpu or device.max_work_group < 256:
        return 32, 0
    wide = max(4, 32 // dtype.itemsize)
    return (wide, 256 // wide) if rows <= 64 * (256 // wide) else (32, 8)


def _gradients(mode, a, b, rstd, weight, groups=1):
    """(gradient of the weight, of the bias, sums of a and of b with the weight) from partial sums (N, C): see kernels/normalization/gradients."""
    device, acc = a._storage.device, a.dtype
    n, channels = a.shape
    dw, db = empty((channels,), acc, device), empty((channels,), acc, device)
    sums = (0,) if mode == "layer" else (channels,) if mode == "batch" else (n, groups)
    sa, sb = empty(sums, acc, device), empty(sums, acc, device)
    kind = weight.dtype if weight is not None else acc
    lanes = 64 // acc.itemsize if device.is_cpu else 1
    items = -(-channels // lanes) + (-(-n * groups // lanes) if mode == "group" else 0)
    local = 1 if lanes > 1 else 16 if device.is_cpu else 32
    run(device, "normalization/gradients", dict(T=acc, X=kind, MODE=mode, WEIGHT=int(weight is not None), W=lanes), (items,), (local,),
        a, b, _none(device, acc) if rstd is None else rstd, _dense(weight, device, kind), dw, db, sa, sb, n, channels, groups)
    return dw, db, sa, sb


def _check_shape(name, input, shape, *parameters):
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not {type(shape).__name__}")
    shape = tuple(whole(s) for s in shape)
    if not shape:
        raise RuntimeError(f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                           f"normalized_shape = [] ({name})")
    for what, p in zip(("weight", "bias"), parameters):
        if p is not None and tuple(p.shape) != shape:
            raise RuntimeError(f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape {list(p.shape)} and "
                               f"normalized_shape = {list(shape)}")
    if tuple(input.shape[-len(shape):]) != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input of size"
                           f"{list(input.shape)}")
    require_float(name, input)
    return shape


def _one_kind(input, *parameters):
    """Refuse parameters of another dtype than ``input``, but float32 ones beside 16 bits."""
    kind = next((p.dtype for p in parameters if p is not None), input.dtype)
    if kind is input.dtype:
        other = next((p.dtype for p in parameters if p is not None and p.dtype is not kind), None)
        if other is not None:
            raise RuntimeError(f"expected scalar type {dt.SPOKEN[kind.name]} but found {dt.SPOKEN[other.name]}")
        return
    if any(p is not None and p.dtype is not dt.float32 for p in parameters):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if input.dtype.itemsize > 2:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _layer_samples():
    rng = np.random.default_rng(3)
    x = rng.normal(1, 2, (3, 4, 70))
    return [((x, (70,)), {}), ((x, (70,), rng.normal(1, 1, 70), rng.normal(0, 1, 70)), {}), ((x, (4, 70), rng.normal(1, 1, (4, 70))), {"eps": 1e-3}),
            ((x[:, :, :6], (6,), None, rng.normal(0, 1, 6)), {}), ((x.reshape(40, 21), (21,), rng.normal(1, 1, 21), rng.normal(0, 1, 21)), {})]


@composite("layer_norm", repeat=True, method=False, torch="nn.functional.layer_norm", samples=_layer_samples, errors=(
    ((np.zeros((2, 3)), (4,)), {}, RuntimeError, "Given normalized_shape"),))
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions, ``normalized_shape`` (Ba, Kiros, Hinton, 2016).

    Args:
        input: ``(*, *normalized_shape)``.
        weight, bias: of shape ``normalized_shape``, or None.
    """
    shape = _check_shape("layer_norm", input, normalized_shape, weight, bias)
    _one_kind(input, weight, bias)
    return _layer_norm(input, shape, weight, bias, eps, False)


@composite("rms_norm", complex=True, repeat=True, method=False, torch="nn.functional.rms_norm", samples=lambda: [s for s in (
    ((a[0], a[1], *a[2:3]), k) for a, k in _layer_samples()[:3])])
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last dimensions (Zhang, Sennrich, 2019); eps defaults to the dtype's epsilon."""
    shape = _check_shape("rms_norm", input.real if input.dtype.is_complex else input, normalized_shape, weight)
    if eps is None:
        eps = float(np.finfo(input.dtype.acc_dtype.np).eps)
    if input.dtype.is_complex:
        return _layer_decomposed(input, shape, weight, None, eps, True)
    return _layer_norm(input, shape, weight, None, eps, True)


# -- batch normalisation ------------------------------------------------------------------------------------------------------------
def _channels(t, rank):
    """A per-channel tensor as a view that broadcasts over (N, C, *); numbers pass."""
    if not isinstance(t, Tensor):
        return t
    ones = (1,) * (rank - 2)
    if t._rg and state.grad or t.__class__ is not Tensor or not repeat.on:          # modes are told of it, too
        return t.reshape((-1,) + ones)
    return make_view(t, (t.shape[0], *ones), (t._strides[0], *ones), t._offset)    # without history, which costs more than the view


def _batch_decomposed(input, weight, bias, running_mean, running_var, momentum, eps):
    dims = (0, *range(2, input.ndim))
    wide = input.to(input.dtype.acc_dtype)
    wide = wide - wide.mean(dims, keepdim=True)
    out = wide * ((wide * wide).mean(dims, keepdim=True) + eps).rsqrt()
    out = out if weight is None else out * _channels(weight, input.ndim)
    return (out if bias is None else out + _channels(bias, input.ndim)).to(input.dtype)


@kernel("_batch_norm", method=False, outputs=("out", "mean", "rstd"), public=1, decompose=_batch_decomposed, vjp={
    "input, weight, bias": lambda g, input, weight, mean, rstd, needs: (_batch_backward if input._numel > _FEW else _small_batch_backward)(
        g, input, weight, mean, rstd, needs)})
def _batch_norm(input, weight, bias, running_mean, running_var, momentum, eps):
    forward = _batch_forward if input._numel > _FEW else _small_batch_forward
    out, mean, rstd, *new = forward(input, weight, bias, running_mean, running_var, momentum, eps)
    if running_mean is not None:
        write(running_mean, new[0])
        write(running_var, new[1])
    return out, mean, rstd


def _batch_forward(input, weight, bias, old_mean, old_var, momentum, eps):
    """(result, mean, 1 / standard deviation, new running statistics or None)."""
    rank, x = input.ndim, input.contiguous()
    mean, rstd, *new = _batch_moments(x, old_mean, old_var, momentum, eps)
    one = 1.0 if weight is None else _channels(weight, rank)
    out = _affine(input if suggested(input) else x, _channels(mean, rank), _channels(rstd, rank), one, 0.0 if bias is None else _channels(bias, rank))
    return out, mean, rstd, *new


_small_batch_forward = repeated(_batch_forward, "whole")


@repeated
def _batch_moments(x, old_mean, old_var, momentum, eps):
    """(mean, 1 / standard deviation) per channel of the contiguous ``x``, and the running statistics moved towards them or None."""
    device, acc = x._storage.device, x.dtype.acc_dtype
    n_batch, channels = x.shape[0], x.shape[1]
    inner = x._numel // (n_batch * channels) if x._numel else 0
    mean, rstd = empty((channels,), acc, device), empty((channels,), acc, device)
    moves = old_mean is not None
    stats = old_mean.dtype if moves else acc
    old = [t.contiguous() if moves else _none(device, stats) for t in (old_mean, old_var)]
    new = [empty((channels,), stats, device) if moves else None for _ in range(2)]
    tail = (*old, *(t if moves else _none(device, stats) for t in new), n_batch, channels, inner, acc.number(eps), stats.number(momentum))
    plan = whole_channels(device, inner, x)
    if plan is not None:
        V, G, K = plan
        run(device, "normalization/channel", dict(T=x.dtype, R=stats, RUNNING=int(moves), V=V, G=G, K=K), (channels * G,), (G,), x, mean, rstd, *tail)
        return mean, rstd, *new
    if inner >= 8:
        rows = n_batch * channels
        part, m2 = empty((rows,), acc, device), empty((rows,), acc, device)
        _rows("normalization/moments", device, dict(T=x.dtype, RSTD=0), inner, rows, x, part, m2, None, x.dtype.number(0))
    elif inner == 1 and n_batch <= 2048:                          # few enough to be added one after the other
        part, m2 = x, mean
    else:                                                         # short rows: columns of (N * inner, C) instead
        flat = x if inner == 1 else x.reshape(n_batch, channels, inner).transpose(1, 2)
        dims = tuple(range(flat.ndim - 1))
        flat = flat.to(acc)
        part = flat.mean(dims)
        d = flat - part
        m2 = (d * d).sum(dims)
        n_batch, inner = 1, n_batch * inner
    lanes = 64 // acc.itemsize if device.is_cpu and part.dtype is acc else 1
    vectors = 4 if lanes > 1 and channels >= 8 * lanes * device.compute_units else 1
    params = dict(T=acc, X=part.dtype, R=stats, RUNNING=int(moves), ELEMENTS=int(part is x), W=lanes, NV=vectors, DEEP=1, WIDE=1)
    gs, ls = (-(-channels // (lanes * vectors)),), (1 if lanes > 1 else 16 if device.is_cpu else 32,)
    if not device.is_cpu and n_batch >= 16 and largest(device) >= 64:         # few channels leave most of a GPU idle
        deep = largest(device) // 32
        params.update(WIDE=32, DEEP=deep)
        gs, ls = (-(-channels // 32) * 32, deep), (32, deep)
    run(device, "normalization/combine", params, gs, ls, part, m2, mean, rstd, *tail[:4], n_batch, channels, inner, *tail[7:])
    return mean, rstd, *new


_batch_norm.op.grad_name = "NativeBatchNormBackward0"


def _row_sums(g, x, mean, divide, modulo):
    """(sum g, sum g (x - mean)) per (n, c), shape (N, C)."""
    device, acc = x._storage.device, x.dtype.acc_dtype
    shape = (x.shape[0], x.shape[1])
    rows = shape[0] * shape[1]
    a, b = empty(shape, acc, device), empty(shape, acc, device)
    _rows("normalization/sums", device, dict(T=x.dtype), x._numel // rows, rows, g, x, mean, a, b, None, divide, modulo)
    return a, b


@repeated
def _batch_sums(g, x, weight, mean, rstd, result=None):
    """What the gradients of a batch normalisation need, see ``_gradients``; ``result``: of the relu whose gradient ``g`` is."""
    device, channels = x._storage.device, x.shape[1]
    n = x._numel // (x.shape[0] * channels)
    operands = (g, x) if result is None else (g, x, result)
    plan = whole_channels(device, n, *operands)
    if plan is not None:
        V, G, _ = plan
        dw, db, sa, sb = (empty((channels,), mean.dtype, device) for _ in range(4))
        kind = weight.dtype if weight is not None else mean.dtype
        params = dict(T=x.dtype, X=kind, WEIGHT=int(weight is not None), RELU=len(operands) - 2, V=V, G=G)
        run(device, "normalization/channel_backward", params, (channels * G,), (G,), *operands, mean, rstd, _dense(weight, device, kind),
            dw, db, sa, sb, x.shape[0], channels, n)
        return dw, db, sa, sb
    if n < 8:                                                     # short rows: columns instead
        dims = (0, *range(2, x.ndim))
        a, b = g.to(mean.dtype).sum(dims), (g.to(mean.dtype) * (x - _channels(mean, x.ndim))).sum(dims)
        a, b = a.reshape(1, channels), b.reshape(1, channels)
    else:
        a, b = _row_sums(g, x, mean, 1, channels)
    return _gradients("batch", a, b, rstd, weight)


def _batch_backward(g, input, weight, mean, rstd, needs):
    rank = input.ndim
    g, x = g.to(input.dtype).contiguous(), input.contiguous()
    behind = behind_relu(g, x)
    dw, db, sa, sb = _batch_sums(g, x, weight, mean, rstd) if behind is None else _batch_sums(behind[0], x, weight, mean, rstd, behind[1])
    gx = None
    if needs[0]:
        w = 1.0 if weight is None else weight
        gx = _norm_grad(g, x, *(_channels(t, rank) for t in (mean, rstd, w, sa, sb)), input.shape[1] / x._numel)
    return gx, dw if needs[1] else None, db if needs[2] else None


_FEW = 1 << 15          # elements whose gradient is not worth fusing into what reads it
_small_batch_backward = repeated(_batch_backward, "whole")


def _bn_samples():
    rng = np.random.default_rng(4)
    x = rng.normal(1, 2, (4, 3, 5, 4))
    mean, var, w, b = rng.normal(0, 1, 3), rng.random(3) + 0.5, rng.normal(1, 1, 3), rng.normal(0, 1, 3)
    return [((x, mean, var), {}), ((x, mean, var, w, b), {}), ((x, None, None, w, b, True), {}), ((x, None, None, None, None, True), {"eps": 1e-2}),
            ((x[:, :, 0, 0], None, None, w, b, True), {}), ((rng.normal(1, 2, (6, 3, 3, 3)), None, None, w, b, True), {}),
            ((rng.normal(1, 2, (2, 20, 3, 3)), None, None, rng.normal(1, 1, 20), rng.normal(0, 1, 20), True), {})]


@composite("batch_norm", method=False, torch="nn.functional.batch_norm", samples=_bn_samples, errors=(
    ((np.zeros((1, 3)), None, None, None, None, True), {}, ValueError, "more than 1 value per channel"),))
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` with statistics per channel (dimension 1).

    In training they are those of the batch, and the running ones move by ``momentum`` towards them, in place; else the running ones are used, in
    one fused expression (Ioffe, Szegedy, 2015).
    """
    require_float("batch_norm", input)
    if eps <= 0 and training or eps < 0:
        raise ValueError(f"batch_norm eps must be {'positive during training' if training else 'non-negative'}, but got {eps}")
    channels = input.shape[1] if input.ndim > 1 else 0
    if not input._numel:                                          # nothing to add up: zeros reach weight and bias
        out = input.clone() if weight is None else input * _channels(weight, input.ndim)
        return out if bias is None else out + _channels(bias, input.ndim)
    for what, t in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if t is not None and t._numel != channels:
            raise RuntimeError(f"{what} should contain {channels} elements not {t._numel}")
    kind = weight if weight is not None else running_mean
    if kind is not None and kind.dtype is not input.dtype:
        _one_kind(input, weight, bias, running_mean, running_var)
    if running_mean is not None and running_mean._rg or running_var is not None and running_var._rg:
        constant("native_batch_norm", "running_mean", running_mean)
        constant("native_batch_norm", "running_var", running_var)
    if training:
        if input._numel <= channels:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        return _batch_norm(input, weight, bias, running_mean, running_var, 0.0 if momentum is None else momentum, eps)
    if running_mean is None or running_var is None:
        raise RuntimeError(f"{'running_mean' if running_mean is None else 'running_var'} must be defined in evaluation mode")
    input = input if input._dense or suggested(input) is not None else input.contiguous()            # results do not lie as a transposed operand does
    return _fixed_norm(input, running_mean, running_var, weight, bias, eps)


def _fixed_expression(input, mean, var, weight, bias, eps):
    """Normalisation with given statistics, in one expression: what depends on the channel alone is computed once per row of it."""
    weight, bias = 1.0 if weight is None else weight, 0.0 if bias is None else bias
    if input.ndim == 2 and len(input) >= 256:                      # channels are neighbours: their scales are worth a launch
        return _normalised(input, mean, (var + eps).rsqrt() * weight, bias)
    if input.ndim > 2:
        mean, var, weight, bias = [_channels(t, input.ndim) for t in (mean, var, weight, bias)]
    return _fixed(input, mean, var, weight, bias, eps)


def _fixed_backward(g, input, mean, var, weight, eps, needs):
    acc, dw, db = input.dtype.acc_dtype, None, None
    rstd = (var.to(acc) + eps).rsqrt()
    if needs[1] or needs[2]:
        dw, db, *_ = _batch_sums(g.to(input.dtype).contiguous(), input.contiguous(), weight, mean.to(acc).contiguous(), rstd.contiguous())
    gx = g * _channels(rstd if weight is None else rstd * weight, input.ndim) if needs[0] else None
    return gx, dw if needs[1] else None, db if needs[2] else None


_small_fixed_backward = repeated(_fixed_backward, "whole")


@kernel("_fixed_norm", method=False, decompose=_fixed_expression, vjp={
    "input, weight, bias": lambda g, input, mean, var, weight, eps, needs: (_fixed_backward if input._numel > _FEW else _small_fixed_backward)(
        g, input, mean, var, weight, eps, needs)})
def _tracked_fixed_norm(input, mean, var, weight, bias, eps):
    return _fixed_expression(input, mean, var, weight, bias, eps)


_tracked_fixed_norm.op.grad_name = "NativeBatchNormBackward0"


def _fixed_norm(input, mean, var, weight, bias, eps):
    """Normalisation with given statistics: one entry on the tape where these are constants."""
    wanted = [t is not None and t._rg for t in (input, weight, bias)] if state.grad else ()
    if True in wanted and not mean._rg and not var._rg:
        return _tracked_fixed_norm(input, mean, var, weight, bias, eps)
    return _fixed_expression(input, mean, var, weight, bias, eps)


# -- group and instance normalisation -----------------------------------------------------------------------------------------------
def _group_view(t, groups):
    """Per-channel numbers as (1, G, C / G, 1)."""
    return t.reshape(1, groups, -1, 1) if isinstance(t, Tensor) else t


def _group_decomposed(input, groups, weight, bias, eps):
    if not input._numel:
        return input * 1
    x = input.to(input.dtype.acc_dtype).reshape(input.shape[0], groups, input.shape[1] // groups, -1)
    x = x - x.mean((2, 3), keepdim=True)
    out = x * ((x * x).mean((2, 3), keepdim=True) + eps).rsqrt()
    out = out if weight is None else out * _group_view(weight, groups)
    return (out if bias is None else out + _group_view(bias, groups)).reshape(tuple(input.shape)).to(input.dtype)


@kernel("_group_norm", method=False, outputs=("out", "mean", "rstd"), public=1, decompose=_group_decomposed, vjp={
    "input, weight, bias": lambda g, input, groups, weight, mean, rstd, needs: _group_backward(g, input, groups, weight, mean, rstd, needs)})
@keeps_format(1)
def _group_norm(input, groups, weight, bias, eps):
    batch, channels = input.shape[0], input.shape[1]
    x = input.contiguous()
    mean, rstd = _group_moments(x, groups, eps)
    if not x._numel:
        return x.clone(), mean, rstd
    out = _affine(x.reshape(batch, groups, channels // groups, -1), mean, rstd, 1.0 if weight is None else _group_view(weight, groups),
                  0.0 if bias is None else _group_view(bias, groups))
    return out.reshape(tuple(input.shape)), mean, rstd


_group_norm.op.grad_name = "NativeGroupNormBackward0"


@repeated
def _group_moments(x, groups, eps):
    """(mean, 1 / standard deviation) per sample and group of the contiguous ``x``."""
    device, acc, rows = x._storage.device, x.dtype.acc_dtype, x.shape[0] * groups
    mean, rstd = empty((x.shape[0], groups, 1, 1), acc, device), empty((x.shape[0], groups, 1, 1), acc, device)
    if x._numel:
        _rows("normalization/moments", device, dict(T=x.dtype, RSTD=1), x._numel // rows, rows, x, mean, rstd, None, x.dtype.number(eps))
    return mean, rstd


def _group_backward(g, input, groups, weight, mean, rstd, needs):
    batch, channels = input.shape[0], input.shape[1]
    g, x = g.to(input.dtype).contiguous(), input.contiguous()
    if not x._numel:
        return g, *[x.new_zeros(channels) if n else None for n in needs[1:]]
    dw, db, sa, sb = _group_sums(g, x, weight, mean, rstd, groups)
    gx = None
    if needs[0]:
        w = 1.0 if weight is None else _group_view(weight, groups)
        shape = (batch, groups, channels // groups, -1)
        sa, sb = (t.reshape(batch, groups, 1, 1) for t in (sa, sb))
        gx = _norm_grad(g.reshape(shape), x.reshape(shape), mean, rstd, w, sa, sb, batch * groups / x._numel).reshape(tuple(input.shape))
    return gx, dw if needs[1] else None, db if needs[2] else None


@repeated
def _group_sums(g, x, weight, mean, rstd, groups):
    """What the gradients of a group normalisation need, see ``_gradients``."""
    if x._numel < 16 * x.shape[0] * x.shape[1]:                   # a work-item per row would cost more than its sum
        shape, rows = (x.shape[0], groups, x.shape[1] // groups, -1), tuple(x.shape[:2])
        a = g.to(mean.dtype).reshape(shape)
        a, b = [t.sum(-1).reshape(rows).contiguous() for t in (a, a * (x.reshape(shape) - mean))]
    else:
        a, b = _row_sums(g, x, mean, x.shape[1] // groups, mean._numel)
    return _gradients("group", a, b, rstd, weight, groups)


def _gn_samples():
    rng = np.random.default_rng(5)
    x, w, b = rng.normal(1, 2, (2, 6, 5, 4)), rng.normal(1, 1, 6), rng.normal(0, 1, 6)
    return [((x, 3), {}), ((x, 2, w, b), {}), ((x, 6, w), {"eps": 1e-2}), ((x[:, :, 0, 0], 2, w, b), {}),
            ((rng.normal(1, 2, (2, 20, 3, 3)), 5, rng.normal(1, 1, 20), rng.normal(0, 1, 20)), {})]


@composite("group_norm", repeat="small", splice=True, method=False, torch="nn.functional.group_norm", samples=_gn_samples, errors=(
    ((np.zeros((2, 5, 3)), 2), {}, RuntimeError, "divisible"),))
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` with statistics per sample and group of channels (Wu, He, 2018)."""
    require_float("group_norm", input)
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if input.shape[1] % num_groups:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(input.shape)} and "
                           f"num_groups={num_groups}")
    for what, t in (("weight", weight), ("bias", bias)):
        if t is not None and (t.ndim != 1 or t._numel != input.shape[1]):
            raise RuntimeError(f"Expected {what} to be a vector of size equal to the number of channels in input, but got {what} of shape "
                               f"{list(t.shape)} and input of shape {list(input.shape)}")
    if input.shape[0] * (input._numel // max(1, input.shape[0] * input.shape[1])) * input.shape[1] // num_groups <= 1 and input._numel:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    _one_kind(input, weight, bias)
    return _group_norm(input, whole(num_groups), weight, bias, eps)


@composite("instance_norm", method=False, torch="nn.functional.instance_norm", samples=lambda: [
    ((np.random.default_rng(6).normal(1, 2, (2, 3, 5, 4)),), {})])
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` with statistics per sample and channel (Ulyanov et al., 2016).

    Running statistics move by ``momentum`` towards the batch's average of the samples' ones; they are used with ``use_input_stats=False``.
    """
    require_float("instance_norm", input)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return _fixed_norm(input.contiguous(), running_mean, running_var, weight, bias, eps)
    spatial = input._numel // max(1, input.shape[0] * input.shape[1])
    if spatial == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    out = group_norm(input.contiguous(), input.shape[1], weight, bias, eps)          # in rows, as PyTorch's
    if running_mean is not None:
        x = input.detach().reshape(input.shape[0], input.shape[1], -1)
        mean = x.mean(2, keepdim=True)
        var = ((x - mean) * (x - mean)).sum(2) / (spatial - 1)
        _move(running_mean, mean.reshape(mean.shape[0], -1).mean(0), momentum)
        _move(running_var, var.mean(0), momentum)
    return out


def _move(running, now, momentum):
    write(running, ((1 - momentum) * running.detach() + momentum * now).to(running.dtype))


@composite("local_response_norm", splice=True, repeat="ready small", method=False, torch="nn.functional.local_response_norm", samples=lambda: [
    ((np.random.default_rng(7).normal(0, 1, (2, 6, 4, 4)), 3), {}), ((np.random.default_rng(7).normal(0, 1, (2, 6, 4)), 4), {})])
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """``x / (k + alpha * mean of x^2 over size neighbouring channels)^beta``."""
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.ndim} dimensions)".replace(" " * 25, " "))
    if input._numel == 0:
        return input
    squares = (input * input).reshape(input.shape[0], 1, input.shape[1], -1)
    padded = REGISTRY["pad"].fn(squares, (0, 0, size // 2, (size - 1) // 2))
    mean = REGISTRY["avg_pool2d"].fn(padded, (size, 1), stride=1).reshape(tuple(input.shape))
    return input / (mean * alpha + k) ** beta


@composite("normalize", splice=True, complex=True, method=False, repeat="ready small", torch="nn.functional.normalize", samples=lambda: [
    ((np.random.default_rng(8).normal(0, 1, (3, 5)),), {}), ((np.random.default_rng(8).normal(0, 1, (3, 5)), 1.0, 0), {})])
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """``x / max(|x|_p, eps)`` along ``dim``."""
    r = input / input.norm(p, dim, keepdim=True).clamp_min(eps)
    if out is not None:
        return set_out(out, r)
    return r
