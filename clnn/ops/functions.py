"""Elementwise functions of one operand: exponentials, roots, trigonometry, rounding, signs."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite, elementwise
from .._tensor.tensor import Tensor
from .._tensor.underived import UNDERIVED, underived
from ..core import dtype as dt
from ..core.shape import whole
from ..core.limits import finfo
from ..graph.op import REGISTRY
from .arithmetic import lasting
from .selection import where

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


def _nothing(g):
    """The gradient of what is constant between jumps: zeros, also where ``g`` is infinite."""
    return g.new_zeros(g.shape)


def _acosh_slope(input):
    """1 / sqrt(x^2 - 1), on the branch that the complex function takes."""
    return (input - 1).rsqrt() * (input + 1).rsqrt() if input.dtype.is_complex else (input * input - 1).rsqrt()


def _function(name, expr, vjp, ref=None, aliases=(), **kw):
    """A float function of one tensor; integer tensors become the default float dtype."""
    return elementwise(name, "input", expr, result="float", vjp=dict(input=vjp) if vjp else None, numpy=ref, aliases=aliases, **kw)


exp = _function("exp", "exp(input)", lambda g, result: g * result, np.exp, doc="e to the power of each element.", complex="c_exp(input)")
exp2 = _function("exp2", "exp2(input)", lambda g, result: g * result * math.log(2), np.exp2, complex="c_exp2(input)")
expm1 = _function("expm1", "expm1(input)", lambda g, result: g * (result + 1), np.expm1, complex="c_expm1(input)")
log = _function("log", "log(input)", lambda g, input: g / input, np.log, doc="Natural logarithm.", complex="c_log(input)")
log2 = _function("log2", "log2(input)", lambda g, input: g / (input * math.log(2)), np.log2, complex="c_log2(input)")
log10 = _function("log10", "log10(input)", lambda g, input: g / (input * math.log(10)), np.log10, complex="c_log10(input)")
log1p = _function("log1p", "log1p(input)", lambda g, input: g / (input + 1), np.log1p, complex="c_log1p(input)")
log1p.op.grad_name = "Log1PBackward0"
sqrt = _function("sqrt", "sqrt(input)", (lambda g, result: g / (2 * result), "g / (2 * result)"), np.sqrt, doc="Square root.", complex="c_sqrt(input)")
rsqrt = _function("rsqrt", "1.0f / sqrt(input)", lambda g, result: g * (-0.5 * result * result * result), lambda x: 1 / np.sqrt(x), complex="c_rsqrt(input)")
reciprocal = _function("reciprocal", "1.0f / input", lambda g, result: -g * result * result, np.reciprocal, complex="c_reciprocal(input)")
sin = _function("sin", "sin(input)", lambda g, input: g * input.cos(), np.sin, complex="c_sin(input)")
cos = _function("cos", "cos(input)", lambda g, input: -g * input.sin(), np.cos, complex="c_cos(input)")
tan = _function("tan", "tan(input)", lambda g, result: g * (1 + result * result), np.tan, complex="c_tan(input)")
asin = _function("asin", "asin(input)", lambda g, input: g * (1 - input * input).rsqrt(), np.arcsin, ("arcsin",), complex="c_asin(input)")
acos = _function("acos", "acos(input)", lambda g, input: -g * (1 - input * input).rsqrt(), np.arccos, ("arccos",), complex="c_acos(input)")
atan = _function("atan", "atan(input)", lambda g, input: g / (1 + input * input), np.arctan, ("arctan",), complex="c_atan(input)")
sinh = _function("sinh", "sinh(input)", lambda g, input: g * input.cosh(), np.sinh, complex="c_sinh(input)")
cosh = _function("cosh", "cosh(input)", lambda g, input: g * input.sinh(), np.cosh, complex="c_cosh(input)")
tanh = _function("tanh", "tanh(input)", (lambda g, result: g * (1 - result * result), "g * (1 - result * result)"), np.tanh, complex="c_tanh(input)")
asinh = _function("asinh", "asinh(input)", lambda g, input: g * (input * input + 1).rsqrt(), np.arcsinh, ("arcsinh",), complex="c_asinh(input)")
acosh = _function("acosh", "acosh(input)", lambda g, input: g * _acosh_slope(input), np.arccosh, ("arccosh",), complex="c_acosh(input)")
atanh = _function("atanh", "atanh(input)", lambda g, input: g / (1 - input * input), np.arctanh, ("arctanh",), complex="c_atanh(input)")
erf = _function("erf", "erf(input)", lambda g, input: g * (TWO_OVER_SQRT_PI * (-input * input).exp()))
erfc = _function("erfc", "erfc(input)", lambda g, input: g * (-TWO_OVER_SQRT_PI * (-input * input).exp()))
lgamma = _function("lgamma", "lgamma(input)", lambda g, input: g * input.digamma())
sigmoid = _function("sigmoid", "1.0f / (1.0f + exp(-input))", (lambda g, result: g * (result * (1 - result)), "g * (result * (1 - result))"),
                    lambda x: 1 / (1 + np.exp(-x)), ("expit",), doc="1 / (1 + exp(-x)).", complex="c_sigmoid(input)")
sinc = _function("sinc", "(input == 0 ? (ACC)1 : sin((ACC)3.14159265358979f * input) / ((ACC)3.14159265358979f * input))",
                 lambda g, input: g * where(input == 0, 0.0, ((math.pi * input).cos() - input.sinc()) / input), np.sinc, complex="c_sinc(input)")
digamma = _function("digamma", "clnn_digamma(input)", lambda g, input: g * _trigamma(input))
_trigamma = _function("_trigamma", "clnn_trigamma(input)", lambda g, input: g * _tetragamma(input), method=False, inplace=False)
_tetragamma = _function("_tetragamma", "clnn_tetragamma(input)", lambda g, input: g * _polygamma(3, input), method=False, inplace=False)
erfinv = _function("erfinv", "clnn_erfinv(input)", lambda g, input: g * (0.5 * math.sqrt(math.pi) * input.erfinv().square().exp()))
deg2rad = _function("deg2rad", "input * 0.017453292519943295f", lambda g: g * (math.pi / 180), np.deg2rad)
rad2deg = _function("rad2deg", "input * 57.29577951308232f", lambda g: g * (180 / math.pi), np.rad2deg)


def _logit_grad(g, input):
    return where((input >= 0) & (input <= 1), g / (input * (1 - input)), math.nan)


logit = composite("logit", thin=True, inplace=True)(lambda input, eps=None: _logit(
    input if eps is None else input.clamp(eps, 1 - eps) if eps <= 0.5 else where(input < eps, eps, input.clamp(max=1 - eps))))     # the ends are crossed
_logit = _function("_logit", "log(input / (1.0f - input))", _logit_grad, method=False, inplace=False)

# -- dtype kept -------------------------------------------------------------------------------------------------------------------
neg = elementwise("neg", "input", "-input", complex="-input", aliases=("negative",), vjp=dict(input=lambda g: -g), numpy=np.negative,
                  refusal="Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` "
                          "operator instead.", dtypes=tuple(d for d in dt.REAL if d is not dt.bool_))
positive = composite("positive", complex=True)(lambda input: input)
abs = elementwise("abs", "input", dict(bool="input", int="(input < 0 ? -input : input)", float="fabs(input)"), complex=("c_abs(input)", "real"),
                  aliases=("absolute",), vjp=dict(input=lambda g, input: g * input.sgn()), numpy=np.abs)
sign = elementwise("sign", "input", dict(bool="input", int="((input > 0) - (input < 0))", float="(isnan(input) ? (ACC)0 : (ACC)((input > 0) - (input < 0)))"),
                   vjp=dict(input=_nothing), numpy=lambda x: np.sign(np.where(x == x, x, 0).astype(x.dtype)))         # of NaN it is 0 in PyTorch


def _sgn_grad(g, input, result):
    """z / |z| moves only across its own direction."""
    size = input.abs()
    return where(size == 0, 0.0, (g - result * (g * result.conj()).real) / size)


_sgn = elementwise("_sgn", "input", "input", dtypes=dt.COMPLEXES, complex="c_sgn(input)", holomorphic=False, method=False, inplace=False, vjp=dict(input=_sgn_grad),
                   numpy=lambda x: np.where(x == 0, 0, x / np.abs(x)))
_sgn.op.grad_name = "SgnBackward0"


@composite("sgn", thin=True, complex=True, inplace=True, numpy=lambda x: np.where(x == 0, 0, x / np.abs(x)) if x.dtype.kind == "c" else np.sign(x))
def sgn(input):
    """The sign of real numbers; z / |z| of complex ones, and zero of zero."""
    return _sgn(input) if input.dtype.is_complex else sign(input)


def _rounding(name, fn, ref):
    return elementwise(name, "input", dict(bool="input", int="input", float=f"{fn}(input)"), vjp=dict(input=_nothing), numpy=ref)


floor = _rounding("floor", "floor", np.floor)
ceil = _rounding("ceil", "ceil", np.ceil)
trunc = _rounding("trunc", "trunc", np.trunc)
_round = elementwise("_round", "input", dict(bool="input", int="input", float="rint(input)"), vjp=dict(input=_nothing), method=False,
                     inplace=False)
fix = composite("fix", thin=True, inplace=True)(lambda input: trunc(input))
frac = elementwise("frac", "input", "input - trunc(input)", vjp=dict(input=lambda g: g), dtypes=dt.FLOATS)


@composite("round", thin=True, inplace=True, numpy=np.round)
def round(input, *, decimals=0):
    """To the nearest integer (ties to even), or to ``decimals`` places."""
    if decimals == 0:
        return _round(input)
    decimals = whole(decimals)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"round" with decimals not implemented for \'{dt.SPOKEN[input.dtype.name]}\'')
    scale = 10.0 ** decimals
    return lasting(_round(lasting(input * scale)) / scale)


# -- two operands -------------------------------------------------------------------------------------------------------------------
def _turn(g, input, other):
    square = input * input + other * other
    return where(square == 0, 0.0, g / square)                          # as in PyTorch, no gradient at the origin


atan2 = elementwise("atan2", "input, other", "atan2(input, other)", result="float", aliases=("arctan2",), numpy=np.arctan2,
                    vjp=dict(input=lambda g, input, other: _turn(g * other, input, other), other=lambda g, input, other: _turn(-g * input, input, other)))
hypot = elementwise("hypot", "input, other", "hypot(input, other)", result="float", numpy=np.hypot,
                    vjp=dict(input=lambda g, input, result: g * input / result, other=lambda g, other, result: g * other / result))
copysign = elementwise("copysign", "input, other", "copysign(input, other)", result="float", numpy=np.copysign,
                       vjp=dict(input=lambda g, input, result: g * where(input == 0, 0.0, result / input), other=_nothing))
_nextafter = elementwise("_nextafter", "input, other", "nextafter(input, other)", dtypes=(dt.float32, dt.float64), method=False, inplace=False,
                         vjp=dict(input=lambda g, input, other: where(input == other, 0.0, g), other=_nothing))
_nextafter.op.grad_name = "NextafterBackward0"


@composite("nextafter", thin=True, inplace=True, dtypes=dt.FLOATS, numpy=np.nextafter, gradcheck=False, samples=lambda: [
    ((np.array([1.0, 0.0, -2.0, 3.0]), np.array([2.0, -1.0, 5.0, 3.0])), {}), ((np.array([1.0, 0.0, -2.0]), np.array([-1.7])), {})])
def nextafter(input, other):
    if input.dtype is not other.dtype or input.dtype.itemsize != 2:
        return _nextafter(input, other)
    input, other = REGISTRY["broadcast_tensors"].fn(input.detach(), other.detach())
    bits = input.contiguous().view(dt.int16).to(dt.int32)           # 16 bits are computed in float: the steps are those of the bits instead
    bits = bits + ((input > 0) == (input < other)) * 2 - 1
    bits = where(input == 0, where(other < 0, -0x7FFF, 1), bits).to(dt.int16).view(input.dtype)
    return where(input == other, other, where(input.isnan() | other.isnan(), math.nan, bits))


def _one_dtype(common, kinds):
    """PyTorch's rule for what it promotes nothing of."""
    if kinds[0] // 3 != kinds[1] // 3:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return common, common


heaviside = elementwise("heaviside", "input, values", "(input == 0 ? values : (ACC)(input > 0))", gradcheck=False, result=_one_dtype,
                        vjp=underived("heaviside", "input", "values"),
                        numpy=lambda x, values: np.heaviside(np.where(x == x, x, np.array(-1).astype(x.dtype)), values))  # of NaN it is 0 in PyTorch
heaviside.op.grad_name = UNDERIVED
logaddexp = elementwise("logaddexp", "input, other", "(isinf(input) && input == other ? input : fmax(input, other) + log1p(exp(-fabs(input - other))))",
                        result="float", numpy=np.logaddexp, inplace=False, complex="c_logaddexp(input, other)",
                        vjp=dict(input=lambda g, input, other: g / (1 + (other - input).exp()), other=lambda g, input, other: g / (1 + (input - other).exp())))
logaddexp2 = elementwise("logaddexp2", "input, other", "(isinf(input) && input == other ? input : fmax(input, other) + log1p(exp2(-fabs(input - other))) / log((ACC)2))",
                         result="float", numpy=np.logaddexp2, inplace=False,
                         vjp=dict(input=lambda g, input, other: g / (1 + (other - input).exp2()), other=lambda g, input, other: g / (1 + (input - other).exp2())))


def _log(x):
    """Natural logarithm of a tensor or a number."""
    if isinstance(x, Tensor):
        return x.log()
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


xlogy = elementwise("xlogy", "input, other", "(isnan(other) ? other : input == 0 ? (ACC)0 : input * log(other))", result="float",
                    vjp=dict(input=lambda g, input, other: g * where((input == 0) & (other <= 0), 0.0, _log(other)),
                             other=lambda g, input, other: g * input / other))


def _polygamma(n, x):
    return REGISTRY["polygamma"].fn(n, x)


_nan_to_num = elementwise("_nan_to_num", "input, nan, posinf, neginf", "(isnan(input) ? nan : isinf(input) ? (input > 0 ? posinf : neginf) : input)",
                          dtypes=dt.FLOATS, method=False, inplace=False, vjp=dict(input=lambda g, input: where(input.isfinite(), g, 0.0)))
_nan_to_num.op.grad_name = "NanToNumBackward0"


@composite("nan_to_num", thin=True, complex=True, inplace=True, numpy=np.nan_to_num)
def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced by numbers; None means the largest finite value of the dtype."""
    if input.dtype.category < dt.FLOAT:
        return input.clone()
    if input.dtype.is_complex:
        from .complexes import complex_
        return complex_(*[nan_to_num(part, nan, posinf, neginf) for part in (input.real, input.imag)])
    limits = finfo(input.dtype)
    return _nan_to_num(input, float(nan or 0.0), float(limits.max) if posinf is None else float(posinf),
                       float(limits.min) if neginf is None else float(neginf))
