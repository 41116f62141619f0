"""Activation functions. Each smooth one is a pair: the function and its slope times the incoming gradient, both single expressions, so
that forward and backward are one fused launch each; the slope's own gradient is composed, which gives higher derivatives.
"""
from __future__ import annotations

import inspect
import math

import numpy as np

from .._tensor.declare import composite, elementwise, kernel
from .._tensor.elementwise import overwritten
from .._tensor.grad_mode import state
from .._tensor.inplace import apply_inplace, type_name
from .._tensor.override import method_of
from .._tensor.repeat import repeated_rule
from .._tensor.tensor import Tensor, edge
from ..core import dtype as dt
from ..core.limits import check_fits, finfo
from ..core.shape import wrap_dim
from ..graph.op import REGISTRY
from .selection import where

NUMBERS = tuple(d for d in dt.REAL if d is not dt.bool_)
_POINTS = np.array([[-30.0, -4.0, -3.1, -1.0, -0.51], [-0.2, 0.1, 0.6, 1.5, 2.9], [3.1, 4.0, 6.5, 21.0, 40.0]])


def rule(fn, *names):
    """``fn`` as a gradient rule whose parameters are called ``names``."""
    fn.__signature__ = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])
    return fn


def _pair(name, expr, slope, second=None, extra=(), saves="input", dtypes=dt.FLOATS, grad_name="", numpy=None):
    """Declare ``_name`` with parameters (input, *extra) and ``_name_backward`` (grad, saved, *extra).

    ``slope`` is the C text of the gradient (with ``grad`` in it), ``second`` a function of (input, *extra) giving the second derivative
    from differentiable operators (None: zero almost everywhere). ``saves`` is ``input`` or ``result``.
    """
    names = (saves, *extra)

    def again(g, grad, *rest):
        return g * 0 if second is None else g * grad * second(*rest)
    back = elementwise(
        f"_{name}_backward", ", ".join(("grad", *names)), slope, method=False, inplace=False, gradcheck=False, result=_first_dtype,
        vjp={"grad": rule(lambda g, *rest: back(g, *rest), "g", *names), saves: rule(again, "g", "grad", *names)})
    fn = elementwise(f"_{name}", ", ".join(("input", *extra)), expr, method=False, inplace=False, dtypes=dtypes, gradcheck=False,
                     result=_floats(name) if dtypes is dt.FLOATS else "promote", numpy=numpy,
                     vjp={"input": rule(lambda g, *rest: back(g, *rest), "g", *names)})
    fn.op.grad_name = grad_name or "".join(p.capitalize() for p in name.split("_")) + "Backward0"
    return fn


def _first_dtype(common, kinds):
    first = dt.ALL[kinds[0] // 3]
    return first, first


def _floats(name):
    """The rule of float tensors only; the parameters do not widen the result."""
    def call(common, kinds):
        first = dt.ALL[kinds[0] // 3]
        if first.category != dt.FLOAT:
            raise NotImplementedError(f'"{name}_cpu" not implemented for \'{type_name(first)}\': an activation takes float tensors')
        return first, first
    return call


def _apply(fn, input, inplace, *rest):
    """Call ``fn``; in place, the input's value of before is what backward sees (``clone`` shares memory until a write)."""
    if not inplace:
        return fn(input, *rest)
    if not rest and overwritten(fn.op.plain.swift, input, ()):
        return input
    before = input if fn is _relu else _kept(input)              # relu's gradient needs the result only
    r = fn(before, *rest)
    if r.__class__ is Tensor and r._grad_fn is not None and fn.op.name in _RENAMED:
        r._grad_fn.label = fn.op.grad_name[:-1] + "1"
    return apply_inplace(input, r, fn.op.name.lstrip("_"))


_RENAMED = frozenset(("_elu", "_leaky_relu", "_celu", "_threshold"))          # PyTorch has other entries for these in place


def _kept(input):
    """The value of ``input`` before it is written, with its history and no entry of its own in it."""
    if input.__class__ is not Tensor or input._grad_fn is None or not state.grad:
        return input.clone()
    at, kept = edge(input), input.detach().clone()
    (kept._grad_fn, kept._out_nr), kept._rg = at, True
    return kept


def _publish(name, fn, method=False, **fields):
    """Enter the public form of an activation and its in-place function ``name_``."""
    params = list(inspect.signature(fn).parameters)
    samples = fields.pop("samples", None) or (lambda: [((_POINTS,), {})])
    made = composite(name, method=method, torch=fields.pop("torch", f"nn.functional.{name}"), samples=samples, **fields)(fn)
    if "inplace" in params:
        inner = REGISTRY.get(f"_{name}")
        swift = inner.plain.swift if inner is not None and len(inner.params) == 1 else None

        def in_place(input, *args, **kwargs):
            if swift is not None and not args and not kwargs and overwritten(swift, input, ()):
                return input
            return made(input, *args, **kwargs, inplace=True)
        in_place.__name__ = name + "_"
        in_place.__doc__ = f"In-place form of :func:`{name}`."
        IN_PLACE[name + "_"] = in_place
        if method:
            setattr(Tensor, name + "_", method_of(in_place))
    return made


IN_PLACE = {}


# -- piecewise linear ---------------------------------------------------------------------------------------------------------------
# At NaN these gradients are those of PyTorch's vectors: its scalar code, which takes the last elements of a tensor, has others.
_relu = _pair("relu", "(input < 0 ? (ACC)0 : input)", "(result <= 0 ? (ACC)0 : grad)", saves="result", dtypes=NUMBERS,
              numpy=lambda x: np.maximum(x, 0))
_hardtanh = _pair("hardtanh", "(input < low ? low : input > high ? high : input)", "((input > low && input < high) ? grad : (ACC)0)",
                  extra=("low", "high"), dtypes=NUMBERS)
_leaky_relu = _pair("leaky_relu", "(input > 0 ? input : input * slope)", "(input > 0 ? grad : grad * slope)", extra=("slope",))
_hardsigmoid = _pair("hardsigmoid", "(input + 3.0f < 0 ? (ACC)0 : input + 3.0f > 6 ? (ACC)1 : (input + 3.0f) / 6.0f)",
                     "((input > -3 && input < 3) ? grad / 6.0f : (ACC)0)")
_hardswish = _pair("hardswish", "input * (input + 3.0f < 0 ? (ACC)0 : input + 3.0f > 6 ? (ACC)6 : input + 3.0f) / 6.0f",
                   "(input <= -3 ? (ACC)0 : input >= 3 ? grad : grad * (input / 3.0f + 0.5f))",
                   lambda x: ((x > -3) & (x < 3)).to(x.dtype) * (1 / 3))
_hardshrink = _pair("hardshrink", "((input >= -lambd && input <= lambd) ? (ACC)0 : input)",
                    "((input > lambd || input < -lambd) ? grad : (ACC)0)", extra=("lambd",))
_softshrink = _pair("softshrink", "(input > lambd ? input - lambd : input < -lambd ? input + lambd : input * 0)",
                    "((input > lambd || input < -lambd) ? grad : (ACC)0)", extra=("lambd",))
_threshold = _pair("threshold", "(input <= limit ? value : input)", "(input <= limit ? (ACC)0 : grad)", extra=("limit", "value"), dtypes=NUMBERS)


def relu(input, inplace=False):
    """``max(0, x)``.

    Example:
        >>> clnn.relu(clnn.tensor([-1., 2.]))
        tensor([0., 2.])
    """
    return _apply(_relu, input, inplace)


relu = _publish("relu", relu, thin=True, method=True, numpy=lambda x: np.maximum(x, 0))


def relu6(input, inplace=False):
    """``min(max(0, x), 6)``."""
    return _apply(_hardtanh, input, inplace, 0.0, 6.0) if input.dtype.is_floating_point else _apply(_hardtanh, input, inplace, 0, 6)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x limited to ``[min_val, max_val]``; the gradient is zero outside."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if not input.dtype.is_floating_point:
        min_val, max_val = int(min_val), int(max_val)
        if not input.dtype.is_signed and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    check_fits(min_val, input.dtype)
    check_fits(max_val, input.dtype)
    return _apply(_hardtanh, input, inplace, min_val, max_val)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where positive, else ``negative_slope * x``."""
    return _apply(_leaky_relu, input, inplace, negative_slope)


def hardsigmoid(input, inplace=False):
    """``min(max(x + 3, 0), 6) / 6``."""
    return _apply(_hardsigmoid, input, inplace)


def hardswish(input, inplace=False):
    """``x * min(max(x + 3, 0), 6) / 6``."""
    return _apply(_hardswish, input, inplace)


def hardshrink(input, lambd=0.5):
    """0 where ``|x| <= lambd``, else x."""
    return _hardshrink(input, lambd)


def softshrink(input, lambd=0.5):
    """0 where ``|x| <= lambd``, else x moved towards 0 by ``lambd``."""
    if input.dtype.is_floating_point and not 0 <= lambd <= finfo(input.dtype).max:
        raise RuntimeError(f"lambda must be in range [0, {finfo(input.dtype).max:g}] for input dtype {type_name(input.dtype)}, but found {lambd}")
    return _softshrink(input, lambd)


def threshold(input, threshold, value, inplace=False):
    """x where ``x > threshold``, else ``value``."""
    if not input.dtype.is_floating_point:
        threshold, value = int(threshold), int(value)
    check_fits(threshold, input.dtype)
    check_fits(value, input.dtype)
    return _apply(_threshold, input, inplace, threshold, value)


relu6 = _publish("relu6", relu6, thin=True, numpy=lambda x: np.clip(x, 0, 6))
hardtanh = _publish("hardtanh", hardtanh, thin=True, numpy=lambda x, a=-1.0, b=1.0: np.clip(x, a, b),
                    samples=lambda: [((_POINTS,), {}), ((_POINTS, -2.0, 0.5), {})])
leaky_relu = _publish("leaky_relu", leaky_relu, thin=True, numpy=lambda x, a=0.01: np.where(x > 0, x, a * x),
                      samples=lambda: [((_POINTS,), {}), ((_POINTS, 0.3), {})])
hardsigmoid = _publish("hardsigmoid", hardsigmoid, thin=True, numpy=lambda x: np.clip(x + 3, 0, 6) / 6)
hardswish = _publish("hardswish", hardswish, thin=True, numpy=lambda x: x * np.clip(x + 3, 0, 6) / 6)
hardshrink = _publish("hardshrink", hardshrink, thin=True, method=True, numpy=lambda x, a=0.5: np.where(np.abs(x) <= a, 0, x))
softshrink = _publish("softshrink", softshrink, thin=True, numpy=lambda x, a=0.5: np.sign(x) * np.maximum(np.abs(x) - a, 0))
threshold = _publish("threshold", threshold, thin=True, samples=lambda: [((_POINTS, 0.5, 9.0), {})], numpy=lambda x, t, v: np.where(x <= t, v, x))

# -- smooth -------------------------------------------------------------------------------------------------------------------------
_R2, _RPI, _K, _C = "0.70710678118654752f", "0.39894228040143267f", "0.79788456080286536f", "0.044715f"
_U = f"({_K} * (input + {_C} * input * input * input))"


def _gelu_tanh_second(x):
    k, c = math.sqrt(2 / math.pi), 0.044715
    t = (k * (x + c * x * x * x)).tanh()
    du, left = k * (1 + 3 * c * x * x), 1 - t * t
    return left * du + 0.5 * x * (left * (6 * k * c * x) - 2 * t * left * du * du)


def _silu_second(x):
    s = x.sigmoid()
    return s * (1 - s) * (2 + x * (1 - 2 * s))


def _mish_second(x):
    s, t = x.sigmoid(), softplus(x).tanh()
    first = (1 - t * t) * s
    return 2 * first + x * (first * (1 - s) - 2 * t * first * s)


def _softplus_second(x, beta, threshold):
    s = (x * beta).sigmoid()
    return where(x * beta < threshold, beta * s * (1 - s), 0.0)


def _elu_second(x, alpha, scale, input_scale):
    return where(x > 0, 0.0, (scale * alpha * input_scale * input_scale) * (x * input_scale).exp())


_SIG = "(1.0f / (1.0f + exp(-input)))"
_ME = "exp(input < 20 ? input : (ACC)20)"
_MN = f"({_ME} * ({_ME} + 2.0f))"
_MT = f"({_MN} / ({_MN} + 2.0f))"
_gelu = _pair("gelu", f"0.5f * input * (1.0f + erf(input * {_R2}))",
              f"grad * (0.5f * (1.0f + erf(input * {_R2})) + input * {_RPI} * exp(-0.5f * input * input))",
              lambda x: (2 - x * x) * (x * x * -0.5).exp() / math.sqrt(2 * math.pi))
_gelu_tanh = _pair("gelu_tanh", f"0.5f * input * (1.0f + tanh({_U}))",
                   f"grad * (0.5f * (1.0f + tanh({_U})) + 0.5f * input * (1.0f - tanh({_U}) * tanh({_U})) * {_K} * "
                   f"(1.0f + 3.0f * {_C} * input * input))", _gelu_tanh_second, grad_name="GeluBackward0")
_silu = _pair("silu", "input / (1.0f + exp(-input))", f"grad * {_SIG} * (1.0f + input * (1.0f - {_SIG}))", _silu_second)
_mish = _pair("mish", f"input * {_MT}",
              f"grad * ({_MT} + input * (input < 20 ? (4.0f * {_MN} + 4.0f) / (({_MN} + 2.0f) * ({_MN} + 2.0f)) : (ACC)0) * {_SIG})", _mish_second)
_softplus = _pair("softplus", "(input * beta > threshold ? input : log1p(exp(input * beta)) / beta)",
                  "(input * beta > threshold ? grad : grad / (1.0f + exp(-input * beta)))", _softplus_second, ("beta", "threshold"))
_logsigmoid = _pair("log_sigmoid", "(input < 0 ? input : (ACC)0) - log1p(exp(-fabs(input)))", "grad / (1.0f + exp(input))",
                    lambda x: -(x.sigmoid() * (1 - x.sigmoid())))
_ELU = ("(input <= 0 ? scale * alpha * expm1(input * input_scale) : scale * input)",
        "(input > 0 ? grad * scale : grad * scale * alpha * input_scale * exp(input * input_scale))", _elu_second, ("alpha", "scale", "input_scale"))
_elu, _celu = _pair("elu", *_ELU), _pair("celu", *_ELU)


def gelu(input, *, approximate="none"):
    """``x * Phi(x)`` with the normal distribution function Phi, or its ``"tanh"`` approximation (Hendrycks, Gimpel, 2016)."""
    if approximate == "none":
        return _gelu(input)
    if approximate == "tanh":
        return _gelu_tanh(input)
    raise RuntimeError("approximate argument must be either none or tanh.")


def silu(input, inplace=False):
    """``x * sigmoid(x)``, also called swish."""
    if input.dtype.is_complex:
        return input.mul_(input.sigmoid()) if inplace else input * input.sigmoid()
    return _apply(_silu, input, inplace)


def mish(input, inplace=False):
    """``x * tanh(softplus(x))`` (Misra, 2019)."""
    return _apply(_mish, input, inplace)


def softplus(input, beta=1.0, threshold=20.0):
    """``log(1 + exp(beta x)) / beta``; x itself where ``beta x > threshold``."""
    return _softplus(input, beta, threshold)


def logsigmoid(input):
    """``log(sigmoid(x))``, without overflow."""
    return _logsigmoid(input)


def elu(input, alpha=1.0, inplace=False):
    """x where positive, else ``alpha * (exp(x) - 1)``."""
    return _apply(_elu, input, inplace, alpha, 1.0, 1.0)


def celu(input, alpha=1.0, inplace=False):
    """x where positive, else ``alpha * (exp(x / alpha) - 1)``."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _apply(_celu, input, inplace, alpha, 1.0, 1.0 / alpha)


def selu(input, inplace=False):
    """``scale * elu(x, alpha)`` with the constants that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    return _apply(_elu, input, inplace, 1.6732632423543772, 1.0507009873554805, 1.0)


def tanhshrink(input):
    """``x - tanh(x)``."""
    return input - input.tanh()


def softsign(input):
    """``x / (1 + |x|)``."""
    return input / (input.abs() + 1)


def _np_softplus(x, b=1.0, t=20.0):
    return np.where(x * b > t, x, np.log1p(np.exp(np.minimum(x * b, t))) / b)


gelu = _publish("gelu", gelu, thin=True, samples=lambda: [((_POINTS,), {}), ((_POINTS,), {"approximate": "tanh"})])
silu = _publish("silu", silu, thin=True, complex=True, numpy=lambda x: x / (1 + np.exp(-x)))
mish = _publish("mish", mish, thin=True, numpy=lambda x: x * np.tanh(_np_softplus(x)))
softplus = _publish("softplus", softplus, thin=True, numpy=_np_softplus, samples=lambda: [((_POINTS,), {}), ((_POINTS, 2.0, 3.0), {})])
logsigmoid = _publish("logsigmoid", logsigmoid, thin=True, numpy=lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))))
elu = _publish("elu", elu, thin=True, numpy=lambda x, a=1.0: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0))),
               samples=lambda: [((_POINTS,), {}), ((_POINTS, 0.7), {})])
celu = _publish("celu", celu, thin=True, samples=lambda: [((_POINTS,), {}), ((_POINTS, 0.7), {})])
selu = _publish("selu", selu, thin=True, method=False)
tanhshrink = _publish("tanhshrink", tanhshrink, repeat="ready few", complex=True, numpy=lambda x: x - np.tanh(x))
softsign = _publish("softsign", softsign, repeat="ready few", complex=True, numpy=lambda x: x / (1 + np.abs(x)))

# -- with weights, noise or gates ---------------------------------------------------------------------------------------------------
_prelu = elementwise("_prelu", "input, weight", "(input > 0 ? input : input * weight)", method=False, inplace=False,
                     vjp=dict(input=lambda g, input, weight: where(input > 0, g, g * weight),
                              weight=lambda g, input: where(input > 0, 0.0, g * input)))
_prelu.op.grad_name = "PreluKernelBackward0"


@composite("prelu", repeat="ready few", samples=lambda: [((_POINTS, np.array([0.25])), {}), ((_POINTS, np.linspace(0.1, 0.5, 5)), {})], torch="nn.functional.prelu")
def prelu(input, weight):
    """x where positive, else ``weight * x``; ``weight`` holds one number or one per channel (dimension 1)."""
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {type_name(input.dtype)} and {type_name(weight.dtype)}")
    if weight._numel != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.ndim > 1:
            raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
        if weight.ndim != 1 or channels != weight._numel:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight._numel} and "
                               f"channel size = {channels}.")
        weight = weight.reshape((1, -1) + (1,) * (input.ndim - 2))
    elif weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    else:
        weight = weight.reshape((1,) * input.ndim)
    return _prelu(input, weight)


@composite("rrelu", method=False, torch="nn.functional.rrelu", samples=lambda: [((_POINTS,), {})])
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky ReLU whose slope is drawn per element from ``U(lower, upper)`` in training and is their mean otherwise."""
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, but got lower={lower} and upper={upper}")
    if not training:
        return _apply(_leaky_relu, input, inplace, (lower + upper) / 2)

    def noisy(x):
        from .random import slopes
        return x * slopes(x.detach(), lower, upper)
    noisy.op = rrelu.op
    return _apply(noisy, input, inplace)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """In-place form of :func:`clnn.nn.functional.rrelu`."""
    return rrelu(input, lower, upper, training, True)


IN_PLACE["rrelu_"] = rrelu_


def _halves(x, dim):
    half, index = x.shape[dim] // 2, (slice(None),) * dim
    return x[index + (slice(0, half),)], x[index + (slice(half, None),)]


def _gated(input, dim):
    a, b = _halves(_wide(input), dim)
    return (a * b.sigmoid()).to(input.dtype)


def _wide(t):
    """Numbers of 16 bits as PyTorch computes with them: rounded once, at the end."""
    return t.float() if t.dtype.is_floating_point and t.dtype.itemsize == 2 else t


@repeated_rule
def _glu_grad(g, input, dim):
    from .joining import cat
    a, b = _halves(input, dim)
    s = b.sigmoid()
    wide = _wide(s)
    return cat([g * s, ((1 - wide) * wide * _wide(a) * _wide(g)).to(input.dtype)], dim)


@kernel("_glu", method=False, decompose=_gated, vjp=dict(input=_glu_grad))
def _glu(input, dim):
    return _gated(input, dim)


_glu.op.grad_name = "GluBackward0"


@composite("glu", splice=True, repeat="ready small", method=False, torch="nn.functional.glu", samples=lambda: [((np.linspace(-2, 2, 24).reshape(4, 6),), {}),
                                                                           ((np.linspace(-2, 2, 24).reshape(4, 6), 0), {})])
def glu(input, dim=-1):
    """``a * sigmoid(b)`` for the two halves of the input along ``dim``."""
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = wrap_dim(dim, input.ndim)
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    return _glu(input, dim)
