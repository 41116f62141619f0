"""Losses made of elementwise expressions and a reduction: lazy, so that a loss is one fused launch and its gradient another."""
from __future__ import annotations

import functools
import math

import numpy as np

from .._tensor.declare import composite, elementwise
from .._tensor.inplace import type_name
from .._tensor.refusals import constant
from ..core import dtype as dt
from ..core.warn import warn
from ..graph.op import REGISTRY
from .activation import _pair, logsigmoid
from .loss import _legacy, check_reduction
from .selection import cast, where


def _reduce(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    check_reduction(reduction)
    return loss


def _warn_sizes(input, target):
    if input.shape != target.shape:
        warn(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead to incorrect "
                      "results due to broadcasting. Please ensure they have the same size.")


def _together(name, input, target):
    """Both in their common dtype, in which a tensor without dimensions counts as much as any other."""
    common = dt.promote_types(input.dtype, target.dtype)
    if not common.is_floating_point:
        raise NotImplementedError(f'"{name}" not implemented for \'{type_name(common)}\'')
    return cast(input, common), cast(target, common)


def _stored(loss, dtype):
    """``loss`` in ``dtype``, in which PyTorch computes it in place; RuntimeError where that cannot hold it."""
    if loss.dtype.category > dtype.category:
        raise RuntimeError(f"result type {type_name(loss.dtype)} can't be cast to the desired output type {type_name(dtype)}")
    return cast(loss, dtype)


def _two(seed=0, shape=(4, 5)):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, shape), rng.normal(0, 1, shape)


def _loss(name, **fields):
    """Declare a loss of torch.nn.functional; samples default to a pair of tensors under each reduction."""
    samples = fields.pop("samples", None) or (lambda: [((*_two(),), {}), ((*_two(),), {"reduction": "sum"}), ((*_two(),), {"reduction": "none"})])
    whole = fields.pop("whole", False)          # in PyTorch a single operator, which grad_fn shows

    def decorate(body):
        shown = "".join(part.capitalize() for part in name.split("_")) + "Backward0"

        @functools.wraps(body)
        def loss(*args, **kwargs):
            result = body(*args, **kwargs)
            if result._grad_fn is not None:
                result._grad_fn.label = shown
            return result
        return composite(name, method=False, repeat="ready small", torch=f"nn.functional.{name}", samples=samples, **fields)(loss if whole else body)
    return decorate


_smooth_l1 = _pair("smooth_l1", "(fabs(input) < beta ? 0.5f * input * input / beta : fabs(input) - 0.5f * beta)",
                   "(fabs(input) < beta ? grad * input / beta : input > 0 ? grad : input < 0 ? -grad : grad * input)",
                   lambda x, beta: where(x.abs() < beta, 1.0 / beta, 0.0), ("beta",))
_huber = _pair("huber", "(fabs(input) <= delta ? 0.5f * input * input : delta * (fabs(input) - 0.5f * delta))",
               "(input > delta ? grad * delta : input < -delta ? -grad * delta : grad * input)",
               lambda x, delta: (x.abs() <= delta).to(x.dtype), ("delta",))


_squared = elementwise("_squared_difference", "input, other", "(input - other) * (input - other)", method=False, inplace=False, dtypes=dt.FLOATS,
                       numpy=lambda x, y: (x - y) ** 2, vjp=dict(
                           input=(lambda g, input, other: g * 2 * (input - other), "g * 2.0f * (input - other)"),
                           other=(lambda g, input, other: g * 2 * (other - input), "g * 2.0f * (other - input)")))


@_loss("mse_loss", splice=True, whole=True)
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """``(x - y)^2``, averaged, summed or as it is; ``weight`` multiplies the elements (the mean then divides by its sum).

    Example:
        >>> clnn.nn.functional.mse_loss(clnn.tensor([1., 3.]), clnn.tensor([1., 1.]))
        tensor(2.)
    """
    _warn_sizes(input, target)
    input, target = _together("mse_cpu", input, target)
    return _weighted(_squared(input, target), weight, _legacy(reduction, size_average, reduce))


def _weighted(loss, weight, reduction):
    if weight is None:
        return _reduce(loss, reduction)
    if weight.shape != loss.shape:
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduce(loss, reduction)


@_loss("l1_loss", splice=True, complex=True)
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """``|x - y|``."""
    _warn_sizes(input, target)
    if input.dtype is not target.dtype and dt.bool_ not in (input.dtype, target.dtype):
        common = dt.promote_types(input.dtype, target.dtype)                # also of a tensor without dimensions
        input, target = cast(input, common), cast(target, common)
    return _weighted((input - target).abs(), weight, _legacy(reduction, size_average, reduce))


@_loss("smooth_l1_loss", splice=True, whole=True)
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """``0.5 d^2 / beta`` where ``|d| < beta``, else ``|d| - 0.5 beta``, for ``d = x - y``."""
    _warn_sizes(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    input, target = _together("smooth_l1_cpu", input, target)
    d = input - target
    return _reduce(_smooth_l1(d, float(beta)) if beta else d.abs(), _legacy(reduction, size_average, reduce))


@_loss("huber_loss", splice=True, whole=True)
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """``0.5 d^2`` where ``|d| <= delta``, else ``delta (|d| - 0.5 delta)``, for ``d = x - y``."""
    _warn_sizes(input, target)
    if isinstance(delta, complex):
        raise TypeError(f"delta must be a float or int, got: {type(delta)}")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    x, y = _together("huber_cpu", input, target)
    loss = _stored(_huber(x - y, float(delta)), input.dtype)
    if weight is None or reduction != "mean":
        return _weighted(loss, weight, reduction)
    return _weighted(loss, weight, "none").mean()                       # over all elements, not by the sum of the weights as in mse_loss


# -- probabilities ------------------------------------------------------------------------------------------------------------------
def _bce_grad(g, input, target):
    return g * (input - target) / ((1 - input) * input).clamp_min(1e-12)


def _unit(name):
    """The test that all values of an operand lie in [0, 1]; NaN does not."""
    return dict(checked=f"!({name} >= 0 && {name} <= 1)", failure=(RuntimeError, f"all elements of {name} should be between 0 and 1"))


_bce = elementwise("_bce", "input, target", "(target - 1.0f) * fmax(log1p(-input), (ACC)-100) - target * fmax(log(input), (ACC)-100)", method=False,
                   inplace=False, gradcheck=False, dtypes=dt.FLOATS, **_unit("input"),
                   vjp=dict(input=_bce_grad, target=lambda g, input: g * ((1 - input).log().clamp_min(-100) - input.log().clamp_min(-100))))
_bce_target = elementwise("_bce_target", "target", "target", method=False, inplace=False, gradcheck=False, dtypes=dt.FLOATS,
                          vjp=dict(target=lambda g: g), **_unit("target"))
_bce_logits = elementwise("_bce_logits", "input, target", "(1 - target) * input + (input < 0 ? -input : (ACC)0) + log1p(exp(-fabs(input)))", method=False,
                          inplace=False, gradcheck=False, dtypes=dt.FLOATS,
                          vjp=dict(input=lambda g, input, target: g * (input.sigmoid() - target), target=lambda g, input: -g * input))
_bce.op.grad_name, _bce_logits.op.grad_name = "BinaryCrossEntropyBackward0", "BinaryCrossEntropyWithLogitsBackward0"


def _bce_samples():
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.05, 0.95, (4, 5)), rng.random((4, 5))
    return [((x, y), {}), ((x, y, rng.random((4, 5))), {"reduction": "sum"}), ((x, y), {"reduction": "none"})]


@_loss("binary_cross_entropy", splice=True, whole=True, samples=_bce_samples, errors=(
    ((np.full((2, 3), 0.5), np.zeros((3, 2))), {}, ValueError, "different to the input size"),))
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """``-w (y log x + (1 - y) log(1 - x))`` for probabilities x; the logarithms are not below -100.

    An x or y outside [0, 1] is reported as RuntimeError when values are next read."""
    if target.shape != input.shape:
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. Please "
                         "ensure they have the same size.")
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {type_name(target.dtype)} but expected {type_name(input.dtype)}")
    if weight is not None:
        constant("binary_cross_entropy", "weight", weight)
    loss = _bce(input, _bce_target(target))
    return _reduce(loss if weight is None else loss * weight, _legacy(reduction, size_average, reduce))


@_loss("binary_cross_entropy_with_logits", splice=True, whole=True, samples=lambda: [
    ((a, np.abs(np.tanh(b))), k) for a, b in [_two()] for k in ({}, {"reduction": "sum"}, {"pos_weight": np.linspace(0.5, 2, 5)})])
def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    """Binary cross-entropy of ``sigmoid(x)``, without overflow; ``pos_weight`` multiplies the positive term (recall against precision)."""
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{type_name(input.dtype)}'")
    if weight is not None or pos_weight is not None:
        constant("binary_cross_entropy_with_logits", "weight", weight)
        constant("binary_cross_entropy_with_logits", "pos_weight", pos_weight)
    if pos_weight is None:
        loss = _bce_logits(input, target)
    else:
        loss = (1 - target) * input - (1 + (pos_weight - 1) * target) * logsigmoid(input)
    loss = _stored(loss, target.dtype)
    return _reduce(loss if weight is None else loss * weight, _legacy(reduction, size_average, reduce))


_kl = elementwise("_kl", "input, target", "(target > 0 ? target * log(target) : target == 0 ? (ACC)0 : (ACC)NAN) - target * input", method=False,
                  inplace=False, gradcheck=False, dtypes=dt.FLOATS,
                  vjp=dict(input=lambda g, target: -g * target,
                           target=lambda g, input, target: where(target > 0, g * (target.log() - input + 1), math.nan)))     # also at 0, as in PyTorch


@_loss("kl_div", splice=True, samples=lambda: [((a, np.exp(b)), {"reduction": r}) for a, b in [_two()] for r in ("sum", "batchmean", "none")])
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """``y (log y - x)`` for log-probabilities x; with ``log_target`` y is a logarithm too. ``"batchmean"`` divides the sum by N."""
    reduction = _legacy(reduction, size_average, reduce)
    if reduction == "mean":
        warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the batch "
                      "size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
                      "release.")
    if not (input.dtype.is_floating_point and target.dtype.is_floating_point):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    loss = target.exp() * (target - input) if log_target else _kl(input, target)
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss.sum()
    return _reduce(loss, reduction)


@_loss("poisson_nll_loss", splice=True, samples=lambda: [((a, np.abs(b) * 3), k) for a, b in [_two()] for k in ({}, {"full": True})])
def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """``exp(x) - y x``, or ``x - y log(x + eps)`` with ``log_input=False``; ``full`` adds Stirling's term where ``y > 1``."""
    reduction = _legacy(reduction, size_average, reduce)
    check_reduction(reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + where(target <= 1, 0.0, stirling)
    return _reduce(loss, reduction)


@_loss("gaussian_nll_loss", samples=lambda: [((a, b, np.abs(a) + 0.1), k) for a, b in [_two()] for k in ({}, {"full": True})])
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """``(log v + (x - y)^2 / v) / 2`` with ``v = max(var, eps)``; ``full`` adds ``log(2 pi) / 2`` (Nix, Weigend, 1994)."""
    check_reduction(reduction)
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = input.detach() * 0 + var
    elif var._storage.device.kind != "meta" and bool(_some_negative(var)):
        raise ValueError("var has negative entry/entries")
    return _gaussian_nll(input, target, var, full, eps, reduction)


@composite("_some_negative", repeat="whole", method=False)
def _some_negative(input):
    return (input.detach() < 0).any()


@composite("_gaussian_nll", repeat="ready small", splice=True, method=False)
def _gaussian_nll(input, target, var, full, eps, reduction):
    if var.shape != input.shape:
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif not (tuple(input.shape[:-1]) == tuple(var.shape[:-1]) and var.shape[-1] == 1):
            if input.ndim != var.ndim or any(v not in (1, i) for v, i in zip(var.shape, input.shape)):
                raise ValueError("var is of incorrect size")
    d = input - target
    # the limit does not stop the gradient: a small variance can grow again
    v = var + (var.detach().clamp_min(eps) - var.detach())
    loss = 0.5 * (v.log() + d * d / v)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


# -- margins ------------------------------------------------------------------------------------------------------------------------
def _signs(shape=(4, 5)):
    return np.sign(np.random.default_rng(3).normal(0, 1, shape))


@_loss("hinge_embedding_loss", splice=True, samples=lambda: [((_two()[0], _signs()), {}), ((_two()[0], _signs()), {"margin": 0.5, "reduction": "sum"})])
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """x where ``y == 1``, ``max(0, margin - x)`` where ``y == -1``."""
    if reduction == "mean" and not input.dtype.is_floating_point and input.dtype is not dt.bool_:
        raise RuntimeError(f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {type_name(input.dtype)}")
    loss = where(target != 1, (margin - input).clamp_min(0), 0.0) + where(target != -1, input, 0.0)
    return _reduce(loss, _legacy(reduction, size_average, reduce))


@_loss("soft_margin_loss", splice=True, whole=True, samples=lambda: [((_two()[0], _signs()), {})])
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """``log(1 + exp(-y x))`` for y of 1 and -1."""
    constant("soft_margin_loss", "target", target)
    loss = _stored((-cast(target, dt.promote_types(target.dtype, input.dtype)) * input).exp().log1p(), input.dtype)
    return _reduce(loss, _legacy(reduction, size_average, reduce))


@_loss("margin_ranking_loss", splice=True, samples=lambda: [((*_two(), _signs()), {}), ((*_two(), _signs()), {"margin": 0.5})])
def margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """``max(0, -y (x1 - x2) + margin)``."""
    if input1.ndim != input2.ndim or input1.ndim != target.ndim:
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {input1.shape}, "
                           f"input2: {input2.shape}, target: {target.shape} ")
    return _reduce((-target * (input1 - input2) + margin).clamp_min(0), _legacy(reduction, size_average, reduce))


@_loss("cosine_embedding_loss", splice=True, samples=lambda: [((*_two(), _signs(shape=(4,))), {}), ((*_two(), _signs(shape=(4,))), {"margin": 0.2})])
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """``1 - cos(x1, x2)`` where ``y == 1``, ``max(0, cos(x1, x2) - margin)`` where ``y == -1``."""
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and {list(input2.shape)}.")
    dim = target.ndim
    cos = (input1 * input2).sum(dim) / (((input1 * input1).sum(dim) + 1e-12) * ((input2 * input2).sum(dim) + 1e-12)).sqrt()
    loss = where(target == 1, 1 - cos, 0.0) + where(target == -1, (cos - margin).clamp_min(0), 0.0)
    return _reduce(loss, _legacy(reduction, size_average, reduce))


@_loss("multi_margin_loss", whole=True, splice=True, samples=lambda: [((_two()[0][0], np.array(3)), {}), ((_two()[0], np.array([0, 3, 4, 1])), {}),
                                             ((_two()[0], np.array([0, 3, 4, 1])), {"p": 2, "margin": 0.5})])
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """``sum_{i != y} max(0, w[y] (margin - x_y + x_i))^p / C``."""
    reduction = _legacy(reduction, size_average, reduce)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    single = input.ndim < 2
    x, y = (input.reshape(1, -1), target.reshape(1)) if single else (input, target)
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    if not x._numel or x.ndim > 2:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    if y.ndim != 1 or y.shape[0] != x.shape[0]:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target "
                           f"size [{x.shape[0]}], but got {list(target.shape)}. Input has shape {list(input.shape)}.")
    if y.dtype is not dt.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(y.dtype)}")
    constant("multi_margin_loss", "weight", weight)
    index = y.reshape(-1, 1)
    z = (margin - x.gather(1, index) + x).clamp_min(0)
    z = z * z if p == 2 else z
    if weight is not None:
        z = z * weight[y].reshape(-1, 1)
    loss = where(_classes(x) == index, 0.0, z).sum(1) / x.shape[1]
    return _reduce(loss.reshape(target.shape), reduction)


def _classes(x):
    from .creation import arange
    return arange(x.shape[1], device=x.device).reshape(1, -1)


_LABELS = np.array([[0, 3, -1, 0, 0], [1, 2, 4, -1, 1], [-1, 0, 0, 0, 0], [0, 1, 2, 3, 4]])


@_loss("multilabel_margin_loss", whole=True, samples=lambda: [((_two()[0][0], _LABELS[0]), {}), ((_two()[0], _LABELS), {})])
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """``sum_{i no label, j label} max(0, 1 - (x_j - x_i)) / C``; the labels of a row end at the first -1."""
    reduction = _legacy(reduction, size_average, reduce)
    check_reduction(reduction)
    if 0 in input.shape[1 if input.ndim == 2 else 0:]:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    if input.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    single = input.ndim < 2
    x, y = (input.reshape(1, -1), target.reshape(1, -1)) if single else (input, target)
    valid = (y >= 0).to(dt.int64).cumprod(1)
    index = y * valid
    hits = (valid.unsqueeze(2) * (index.unsqueeze(2) == _classes(x).unsqueeze(1)).to(dt.int64)).sum(1)
    label = x.gather(1, index)
    z = (1 - label.unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    z = where((valid.unsqueeze(2) > 0) & (hits.unsqueeze(1) == 0), z, 0.0)
    loss = z.sum((1, 2)) / x.shape[1]
    if reduction == "mean" and not loss._numel:
        return loss.sum()
    return _reduce(loss.reshape(()) if single else loss, reduction)


@_loss("multilabel_soft_margin_loss", splice=True, samples=lambda: [((_two()[0], (_signs() + 1) / 2), {})])
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over the classes of ``-(y log sigmoid(x) + (1 - y) log sigmoid(-x))``."""
    if not input.shape:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    loss = _bce_logits(input, target)
    loss = (loss if weight is None else loss * weight).mean(input.ndim - 1)
    return _reduce(loss, _legacy(reduction, size_average, reduce))


# -- distances ----------------------------------------------------------------------------------------------------------------------
def _three():
    return (*_two(), _two(9)[0])


@_loss("triplet_margin_loss", splice=True, complex=True, samples=lambda: [(_three(), {}), (_three(), {"swap": True, "p": 1.0, "margin": 0.5})])
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    """``max(0, d(a, p) - d(a, n) + margin)``; with ``swap`` the smaller of ``d(a, n)`` and ``d(p, n)`` counts."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")

    def distance(a, b):
        return REGISTRY["pairwise_distance"].fn(a, b, p, eps)
    return triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=distance, margin=margin, swap=swap,
                                             reduction=_legacy(reduction, size_average, reduce))


@_loss("triplet_margin_with_distance_loss", complex=True, samples=lambda: [(_three(), {})])
def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """:func:`triplet_margin_loss` with any distance between rows (default: ``pairwise_distance``)."""
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
                           f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
    distance = distance_function or REGISTRY["pairwise_distance"].fn
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduce((near - far + margin).clamp_min(0), reduction)
