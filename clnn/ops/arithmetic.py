"""Elementwise arithmetic, comparison and logic."""
from __future__ import annotations

import cmath
import math
import re

import numpy as np

from .._tensor.declare import composite, elementwise
from .._tensor.dispatch import broadcast
from .._tensor.grad_mode import state
from .._tensor.inplace import type_name
from .._tensor.multi import as_element
from .._tensor.refusals import spoken
from .._tensor.tensor import Tensor
from .._tensor.underived import UNDERIVED, underived
from ..core import dtype as dt
from ..core.limits import check_fits, check_operand

NOT_BOOL = tuple(d for d in dt.REAL if d is not dt.bool_)
INTEGRAL = (dt.bool_, *dt.INTS)


def whole_factor(name, value, *operands, error=True):
    """A factor of ``operands`` when all of these are integers: refused when it is none itself, or without ``error`` cut off; bool for bools."""
    if isinstance(value, complex) and not _common(operands).is_complex:
        if error:
            kind = "non-complex" if _common(operands).category == dt.FLOAT else "integral"
            raise RuntimeError(f"For {kind} input tensors, argument {name} must not be a {'complex' if kind[0] == 'n' else 'floating point'} number.")
        check_fits(value, _common(operands))
    if any(t.dtype.differentiable if isinstance(t, Tensor) else not isinstance(t, int) for t in operands):
        return value
    if isinstance(value, float):
        if error:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
        value = int(value)
    check_fits(value, _common(operands))
    if value == 1 or not all(isinstance(t, bool) or isinstance(t, Tensor) and t.dtype is dt.bool_ for t in operands):
        return value
    return bool(value)


def _common(operands):
    return dt.result_type(*[(t.dtype, 2 if t.shape else 1) if isinstance(t, Tensor) else (dt.scalar_dtype(t), 0) for t in operands])


def lasting(r):
    """``r``, a part of a composite that keeps nothing for backward in PyTorch: another pass may go through it."""
    if isinstance(r, Tensor) and r._grad_fn is not None:
        r._grad_fn.lasts = True
    return r


# -- sums and products ------------------------------------------------------------------------------------------------------------
_add = elementwise("_add", "input, other", dict(bool="(input | other)", int="input + other", float="input + other"), complex="input + other", numpy=np.add,
                   vjp=dict(input=lambda g: g, other=lambda g: g), method=False, inplace=False)
_sub = elementwise("_sub", "input, other", "input - other", complex="input - other", numpy=np.subtract, method=False, inplace=False,
                   vjp=dict(input=lambda g: g, other=lambda g: -g))
_add.op.grad_name, _sub.op.grad_name = "AddBackward0", "SubBackward0"
_fast_add, _fast_sub = _add.fast, _sub.fast
_add_scaled = elementwise("_add_scaled", "input, other, alpha", "fma(other, alpha, input)", dtypes=dt.FLOATS, method=False, inplace=False,
                          vjp=dict(input=lambda g: g, other=lambda g, alpha: g * alpha), doc="``input + alpha * other``, rounded once as in PyTorch.")
_sub_scaled = elementwise("_sub_scaled", "input, other, alpha", "fma(other, -alpha, input)", dtypes=dt.FLOATS, method=False, inplace=False,
                          vjp=dict(input=lambda g: g, other=lambda g, alpha: g * -alpha), doc="``input - alpha * other``, rounded once as in PyTorch.")
_add_scaled.op.grad_name, _sub_scaled.op.grad_name = "AddBackward0", "SubBackward0"


_ONE = 1                    # what factors are where none is given; True and 1.0 are no such thing


def _scaled(fn, name, input, other, alpha):
    """``fn``, one of the two above, of tensors of one float dtype and a number; None of others."""
    if isinstance(alpha, bool) and _common((input, other)) is not dt.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if not (isinstance(alpha, (float, int)) and isinstance(input, Tensor) and isinstance(other, Tensor)
            and input.dtype is other.dtype and input.dtype in dt.FLOATS):
        return None
    check_fits(alpha, input.dtype)
    if input.shape != other.shape:
        broadcast(name, input, other)                           # which names the operator where they do not fit
    if input.dtype.itemsize == 2:
        alpha = as_element(alpha, input.dtype)                  # as which PyTorch has it
    return fn(input, other, alpha)


@composite("add", thin="free", complex=True, inplace=_add, old="alpha", numpy=np.add)
def add(input, other, *, alpha=1):
    """``input + alpha * other``, with broadcasting and type promotion."""
    if alpha is not _ONE:
        r = _scaled(_add_scaled, "add", input, other, alpha)
        if r is not None:
            return r
        alpha = whole_factor("alpha", alpha, input, other)
        check_fits(alpha, _common((input, other)))
        other = lasting(other * alpha)
    return _fast_add(input, other)


@composite("sub", thin="free", complex=True, inplace=_sub, aliases=("subtract",), old="alpha", numpy=np.subtract)
def sub(input, other, *, alpha=1):
    """``input - alpha * other``, with broadcasting and type promotion."""
    bools = [isinstance(t, bool) or isinstance(t, Tensor) and t.dtype is dt.bool_ for t in (input, other)]
    if all(bools):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.")
    if any(bools):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
                           "use the `~` or `logical_not()` operator instead.")
    if alpha is not _ONE:
        r = _scaled(_sub_scaled, "sub", input, other, alpha)
        if r is not None:
            return r
        alpha = whole_factor("alpha", alpha, input, other)
        check_fits(alpha, _common((input, other)))
        other = lasting(other * alpha)
    return _fast_sub(input, other)


@composite("rsub", complex=True)
def rsub(input, other, alpha=1):
    """``other - alpha * input``."""
    return sub(other, input, alpha=alpha)


mul = elementwise("mul", "input, other", dict(bool="(input & other)", int="input * other", float="input * other"), complex="c_mul(input, other)",
                  numpy=np.multiply, aliases=("multiply",), vjp=dict(input=lambda g, other: g * other, other=lambda g, input: g * input),
                  doc="Product of two tensors, element by element.")
true_divide = elementwise("true_divide", "input, other", "input / other", complex="c_div(input, other)", result="float", numpy=np.true_divide,
                          vjp=dict(input=lambda g, other: g / other, other=lambda g, input, other: -g * (input / other / other)),
                          doc="Quotient of two tensors as floats.")
true_divide.op.grad_name = "DivBackward0"
_fast_div = true_divide.fast

_FLOOR = dict(bool="input", int="clnn_ifloor(input, other)",
              float="clnn_floor_divide(input, other)")
_BY_ZERO = dict(bool="(other == 0)", int="(other == 0)", float="0")
_STEPS = dict(input=lambda g: g.new_zeros(g.shape), other=lambda g: g.new_zeros(g.shape))       # rounded quotients are constant between jumps
floor_divide = elementwise("floor_divide", "input, other", _FLOOR, checked=_BY_ZERO, numpy=np.floor_divide, dtypes=NOT_BOOL,
                           gradcheck=False, vjp=underived("floor_divide", "input", "other"),
                           doc="Quotient rounded towards minus infinity. An integer division by zero raises at the next synchronisation.")
floor_divide.op.grad_name = UNDERIVED
_floor_divide = elementwise("_floor_divide", "input, other", _FLOOR, checked=_BY_ZERO, dtypes=NOT_BOOL, vjp=_STEPS, method=False, inplace=False)
_trunc_divide = elementwise("_trunc_divide", "input, other", dict(bool="input", int="clnn_idiv(input, other)", float="trunc(input / other)"),
                            checked=_BY_ZERO, vjp=_STEPS, method=False, inplace=False)
_floor_divide.op.grad_name = _trunc_divide.op.grad_name = "DivBackward2"
remainder = elementwise(
    "remainder", "input, other", dict(bool="0", int="clnn_imod(input, other)", float="clnn_remainder(input, other)"),
    checked=dict(bool="(other == 0)", int="(other == 0)", float="0"), numpy=np.remainder, dtypes=NOT_BOOL,
    vjp=dict(input=lambda g: g, other=lambda g, input, other: -g * _floor_divide(input, other)),
    doc="Remainder with the sign of the divisor: ``input - other * floor(input / other)``.")
fmod = elementwise("fmod", "input, other", dict(bool="0", int="clnn_irem(input, other)", float="clnn_fmod(input, other)"),
                   checked=dict(bool="(other == 0)", int="(other == 0)", float="0"), numpy=np.fmod, dtypes=NOT_BOOL,
                   vjp=dict(input=lambda g: g, other=lambda g, input, other: -g * _trunc_divide(input, other)),
                   doc="Remainder with the sign of the dividend.")


@composite("div", complex=True, aliases=("divide",), inplace=true_divide, numpy=np.true_divide)
def div(input, other, *, rounding_mode=None):
    """Quotient; ``rounding_mode`` is None (true division), ``'trunc'`` or ``'floor'``."""
    if rounding_mode is None:
        return _fast_div(input, other)
    if rounding_mode == "floor":
        return _floor_divide(input, other)
    if rounding_mode == "trunc":
        if isinstance(input, Tensor) and input.dtype.itemsize == 2 and input.dtype.is_floating_point:      # the quotient is rounded, too
            return _fast_div(input, other).trunc()
        return _trunc_divide(input, other)
    if rounding_mode.__class__ is not str:
        raise TypeError(f"div() received an invalid combination of arguments: argument 'rounding_mode' must be str, not {type(rounding_mode).__name__}")
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


def exponent_is_complex(exponent):
    return exponent.dtype.is_complex if isinstance(exponent, Tensor) else isinstance(exponent, complex)


def _pow_input(g, input, exponent):
    from .selection import where
    if isinstance(exponent, Tensor):
        return where(exponent == 0, 0.0, g * (exponent * pow(input, exponent - 1)))
    return g.new_zeros(g.shape) if exponent == 0 else g * (exponent * pow(input, exponent - 1))


def _pow_exponent(g, input, exponent, result):
    from .selection import where
    if not isinstance(input, Tensor):
        if isinstance(input, complex) or input < 0 and result.dtype.is_complex:
            return g * result * cmath.log(input)
        if input == 0:
            return g * where(exponent >= 0, 0.0, result * float("-inf"))
        return g * result * (math.log(input) if input > 0 else float("nan"))
    if exponent_is_complex(exponent):
        return g * where(input == 0, 0.0, result * input.log())
    return g * where((input == 0) & (exponent >= 0), 0.0, result * input.log())


_pow = elementwise("_pow", "input, exponent", dict(bool="(input | !exponent)", int="clnn_ipow(input, exponent)", float="pow(input, exponent)"),
                   complex="c_pow(input, exponent)", method=False, inplace=False, vjp=dict(input=_pow_input, exponent=_pow_exponent), numpy=np.power)
# A gradient that is differentiated again stays a function of the operand, down to its power of zero, so that programs may go on and get zeros at last.
_constant = elementwise("_pow_constant", "input", "1", complex="(ACC2)(1, 0)", method=False, inplace=False,
                        vjp=dict(input=lambda g, input: g * 0.0 if state.grad else g.new_zeros(g.shape)))
_itself = elementwise("_pow_itself", "input", "input", complex="input", method=False, inplace=False,
                      vjp=dict(input=lambda g, input: g * _constant(input) if state.grad else g))
_square = elementwise("_square", "input", "input * input", complex="c_mul(input, input)", method=False, inplace=False,
                      vjp=dict(input=lambda g, input: g * (2 * (_itself(input) if state.grad else input))))
_cube = elementwise("_cube", "input", "input * input * input", complex="c_cube(input)", method=False, inplace=False,
                    vjp=dict(input=lambda g, input: g * (3 * _square(input))))
# PyTorch multiplies in bfloat16 one factor after the other
_cube_stepwise = elementwise("_cube_stepwise", "input", "round_bfloat16(input * input) * input", method=False, inplace=False, dtypes=(dt.bfloat16,),
                             vjp=dict(input=lambda g, input: g * (3 * _square(input))))
# Unlike the functions of these names they keep their operand for the gradient: programs overwrite the result, as in x.pow_(-0.5).masked_fill_(...).
_root = elementwise("_pow_root", "input", "sqrt(input)", complex="c_sqrt(input)", result="float", method=False, inplace=False,
                    vjp=dict(input=lambda g, input: g * (0.5 * input.rsqrt())))
_inverse_root = elementwise("_pow_inverse_root", "input", "1.0f / sqrt(input)", complex="c_rsqrt(input)", result="float", method=False, inplace=False,
                            vjp=dict(input=lambda g, input: g * (-0.5 * input.rsqrt() / input)))
_inverse = elementwise("_pow_inverse", "input", "1.0f / input", complex="c_reciprocal(input)", result="float", method=False, inplace=False,
                       vjp=dict(input=lambda g, input: g * -(input * input).reciprocal()))
for _f in (_pow, _constant, _itself, _square, _cube, _cube_stepwise, _root, _inverse_root, _inverse):
    _f.op.grad_name = "PowBackward0"


_NUMBERS = (int, float, complex, np.number)                     # an array or a class of its own may answer ``== 2`` in its own way


@composite("pow", thin=True, complex=True, inplace=True, numpy=np.power)
def pow(input, exponent):
    """``input`` to the power of ``exponent`` (tensor or number)."""
    if isinstance(exponent, _NUMBERS) and isinstance(input, Tensor):
        if input.dtype is dt.bool_ and type(exponent) is int:
            input = input.to(dt.int64)
        if input.dtype is dt.bool_ and type(exponent) is bool:
            return input | (not exponent)
        if exponent == 2 and (type(exponent) is int or input.dtype.differentiable):
            return _square(input)
        if exponent == 3 and (type(exponent) is int or input.dtype.differentiable):
            return _cube(input) if input.dtype is not dt.bfloat16 else _cube_stepwise(input)
        if input.dtype.differentiable:
            if exponent == 0 and state.grad and input.requires_grad:
                return _constant(input)
            if exponent == 0.5:
                return _root(input)
            if exponent == 1:
                return _itself(input)
            if exponent == -1:
                return _inverse(input)
            if exponent == -0.5:
                return _inverse_root(input)
        elif isinstance(exponent, int) and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        check_operand(exponent, input.dtype)
    elif isinstance(input, _NUMBERS):
        return _pow(input, exponent).contiguous()
    return _pow(input, exponent)


@composite("float_power", repeat="few", complex=True)
def float_power(input, exponent):
    """``pow`` computed in float64 (float32 where the device lacks it)."""
    def wide(x):
        if not isinstance(x, Tensor):
            return x if isinstance(x, complex) else float(x)
        row = dt.float64 if x._storage.device.has_fp64 else dt.float32
        return x.to(dt.complex_of(row) if x.dtype.is_complex else row)
    return pow(wide(input), wide(exponent))


square = composite("square", thin=True, complex=True, inplace=True)(lambda input: pow(input, 2))


_addcmul = elementwise("_addcmul", "input, tensor1, tensor2, value", "fma(tensor1 * value, tensor2, input)", dtypes=dt.FLOATS, method=False, inplace=False,
                       vjp=dict(input=lambda g: g, tensor1=lambda g, tensor2, value: g * (tensor2 * value), tensor2=lambda g, tensor1, value: g * (tensor1 * value)),
                       doc="``input + value * tensor1 * tensor2`` of one float dtype, rounded twice as in PyTorch.")
_addcdiv = elementwise("_addcdiv", "input, tensor1, tensor2, value", "input + tensor1 * value / tensor2", dtypes=dt.FLOATS, method=False, inplace=False,
                       vjp=dict(input=lambda g: g, tensor1=lambda g, tensor2, value: g * (value / tensor2),
                                tensor2=lambda g, tensor1, tensor2, value: -g * (tensor1 * value / (tensor2 * tensor2))),
                       doc="``input + value * tensor1 / tensor2`` of one float dtype, rounded as in PyTorch.")
_addcmul.op.grad_name, _addcdiv.op.grad_name = "AddcmulBackward0", "AddcdivBackward0"


def _of_one_dtype(fn, name, value, *operands):
    """``fn``, one of the two above, of tensors of one float dtype and a number; None of others."""
    row = operands[0].dtype
    if not isinstance(value, (float, int)) or value.__class__ is bool or row not in dt.FLOATS or any([not isinstance(t, Tensor) or t.dtype is not row for t in operands]):
        return None
    if any([t.shape != operands[0].shape for t in operands]):
        broadcast(name, *operands)                              # which names the operator where they do not fit
    return fn(*operands, value)


@composite("addcmul", thin="free", complex=True, inplace=True, old="value", dtypes=(*NOT_BOOL, *dt.COMPLEXES))
def addcmul(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 * tensor2``."""
    r = _of_one_dtype(_addcmul, "addcmul", value, input, tensor1, tensor2)
    if r is not None:
        return r
    if tensor1.dtype is not input.dtype or tensor2.dtype is not input.dtype:
        tensor1, tensor2 = _alike(input, tensor1, tensor2)
        input = input.to(tensor1.dtype) if input.dtype is dt.bool_ else input
    if tensor1.dtype is dt.bool_:
        raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'")
    if value != 1:
        tensor1 = tensor1 * whole_factor("value", value, input, tensor1, tensor2, error=False)
    return _fast_add(input, tensor1 * tensor2)


def _alike(input, *factors):
    """The factors of a product in the dtype that it is computed in, which is the one of the result."""
    row = _common((input, *factors))
    return [f.to(row) for f in factors]


@composite("addcdiv", thin="free", complex=True, inplace=True, old="value")
def addcdiv(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 / tensor2``."""
    r = _of_one_dtype(_addcdiv, "addcdiv", value, input, tensor1, tensor2)
    if r is not None:
        return r
    if not (tensor1.dtype.differentiable or tensor2.dtype.differentiable):
        raise RuntimeError("Integer division with addcdiv is no longer supported; convert to a float dtype, or use (input + value * clnn.trunc(tensor1 / tensor2))")
    if isinstance(value, complex):
        check_fits(value, _common((input, tensor1, tensor2)))
    if tensor1.dtype is not input.dtype or tensor2.dtype is not input.dtype:
        tensor1, tensor2 = _alike(input, tensor1, tensor2)
    if value != 1:                                              # in this order, which rounds as PyTorch does
        tensor1 = tensor1 * value
    return _fast_add(input, _fast_div(tensor1, tensor2))


_lerp = elementwise(                                            # from the nearer end, so that a weight of 1 gives ``end`` to the bit
    "_lerp", "input, end, weight", "fma(fabs(weight) < 0.5f ? weight : weight - 1.0f, end - input, fabs(weight) < 0.5f ? input : end)",
    complex="((weight).x * (weight).x + (weight).y * (weight).y < 0.25f ? input + c_mul(weight, end - input) "
            ": end - c_mul(end - input, (ACC2)(1.0f, 0.0f) - weight))",
    method=False, inplace=False, dtypes=dt.FLOATS, vjp=dict(input=lambda g, weight: g * (1 - weight), end=lambda g, weight: g * weight,
                                                            weight=lambda g, input, end: g * (end - input)))
_lerp.op.grad_name = "LerpBackward0"


@composite("lerp", thin="free", complex=True, inplace=True)
def lerp(input, end, weight):
    """``input + weight * (end - input)``."""
    for t, what in ((end, "end"), (weight, "weight")):
        if isinstance(t, Tensor) and t.dtype is not input.dtype and not (what == "weight" and not t.shape):
            raise RuntimeError(f"expected dtype {spoken(input.dtype)} for `{what}` but got dtype {spoken(t.dtype)}")
    if isinstance(weight, complex):
        check_fits(weight, input.dtype)
    return _lerp(input, end, weight)


# -- extremes ---------------------------------------------------------------------------------------------------------------------
def _share(g, mine, theirs, worse):
    """Equal ones share the gradient; where one is NaN both get it, so that it is noticed."""
    from .selection import where
    return where(worse(mine, theirs), 0.0, where(mine == theirs, g * 0.5, g))


_MAX = dict(bool="(input | other)", int="(input > other ? input : other)", float="((input > other || isnan(input)) ? input : other)")
_MIN = dict(bool="(input & other)", int="(input < other ? input : other)", float="((input < other || isnan(input)) ? input : other)")
maximum = elementwise("maximum", "input, other", _MAX, numpy=np.maximum, inplace=False,
                      vjp=dict(input=lambda g, input, other: _share(g, input, other, lambda a, b: a < b),
                               other=lambda g, input, other: _share(g, other, input, lambda a, b: a < b)), doc="The larger element; NaN wins.")
minimum = elementwise("minimum", "input, other", _MIN, numpy=np.minimum, inplace=False,
                      vjp=dict(input=lambda g, input, other: _share(g, input, other, lambda a, b: a > b),
                               other=lambda g, input, other: _share(g, other, input, lambda a, b: a > b)), doc="The smaller element; NaN wins.")


def _passed(g, mask):
    """The gradient where ``mask``, else 0, whatever it is."""
    from .selection import where
    return where(mask, g, 0.0)


def _isnan(x):
    return x.isnan() if isinstance(x, Tensor) else x != x


fmax = elementwise("fmax", "input, other", dict(bool="(input | other)", int="(input > other ? input : other)", float="fmax(input, other)"),
                   numpy=np.fmax, inplace=False, vjp=dict(input=lambda g, input, other: _passed(g, (input >= other) | _isnan(other)),
                                                          other=lambda g, input, other: _passed(g, ~((input >= other) | _isnan(other)))))
fmin = elementwise("fmin", "input, other", dict(bool="(input & other)", int="(input < other ? input : other)", float="fmin(input, other)"),
                   numpy=np.fmin, inplace=False, vjp=dict(input=lambda g, input, other: _passed(g, (input <= other) | _isnan(other)),
                                                          other=lambda g, input, other: _passed(g, ~((input <= other) | _isnan(other)))))

def _limiting(name, params, vjp, **texts):
    """Operators that limit: with bounds that may be NaN, which PyTorch gives on, and with numbers that are none, in fewer steps."""
    number = elementwise(name + "_number", params, texts, method=False, inplace=False, vjp=vjp)
    checked = elementwise(name, params, {**texts, "float": texts["float_nan"]}, method=False, inplace=False, vjp=vjp)
    for fn in (number, checked):
        fn.op.grad_name = "ClampBackward1"
    return lambda input, *bounds: (number if all([b.__class__ is not Tensor and b == b for b in bounds]) else checked)(input, *bounds)


_clamp_min = _limiting("_clamp_min", "input, min", dict(input=lambda g, input, min: _passed(g, input >= min), min=lambda g, input, min: _passed(g, input < min)),
                       bool="(input | min)", int="(input < min ? min : input)", float="(min > input ? min : input)",
                       float_nan="(input < min || isnan(min) ? min : input)")
_clamp_max = _limiting("_clamp_max", "input, max", dict(input=lambda g, input, max: _passed(g, input <= max), max=lambda g, input, max: _passed(g, input > max)),
                       bool="(input & max)", int="(input > max ? max : input)", float="(max < input ? max : input)",
                       float_nan="(input > max || isnan(max) ? max : input)")
_clamp_both = _limiting("_clamp_both", "input, min, max", dict(input=lambda g, input, min, max: _passed(g, (input >= min) & (input <= max)),
                                                               min=lambda g, input, min, max: _passed(g, (input < min) & (min < max)),
                                                               max=lambda g, input, min, max: _passed(g, (input > max) | (max < min))),
                        bool="((input | min) & max)", int="(input < min ? (min < max ? min : max) : input > max ? max : input)",
                        float="(max < (min > input ? min : input) ? max : (min > input ? min : input))",
                        float_nan="(isnan(min) || isnan(max) ? (ACC)NAN : input < min ? (min < max ? min : max) : input > max ? max : input)")


def _low(input, min):
    check_operand(min, input.dtype)
    if isinstance(min, Tensor) and input.dtype is dt.bool_ is min.dtype:            # numbers are no bounds of bool in PyTorch, tensors are
        return input | min
    return _clamp_min(input, min)


def _high(input, max):
    check_operand(max, input.dtype)
    if isinstance(max, Tensor) and input.dtype is dt.bool_ is max.dtype:
        return input & max
    return _clamp_max(input, max)


@composite("clamp", thin=True, aliases=("clip",), inplace=True, numpy=np.clip)
def clamp(input, min=None, max=None):
    """Every element limited to ``[min, max]``; numbers or tensors, either may be None."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return _low(input, min)
    if min is None:
        return _high(input, max)
    if not isinstance(min, float) and not isinstance(max, float):           # one that is makes floats of integers
        check_operand(min, input.dtype)
        check_operand(max, input.dtype)
    return _clamp_both(input, min, max)


@composite("clamp_min", thin=True, inplace=True)
def clamp_min(input, min):
    """Every element at least ``min``."""
    return _low(input, min)


@composite("clamp_max", thin=True, inplace=True)
def clamp_max(input, max):
    """Every element at most ``max``."""
    return _high(input, max)


# -- comparison and logic -----------------------------------------------------------------------------------------------------------
def _compare(name, symbol, ref, aliases=(), complex=None):
    return elementwise(name, "input, other", f"(input {symbol} other)", complex=complex, result="compare", numpy=ref, aliases=aliases,
                       doc=f"``input {symbol} other``, element by element, as bool.")


_EQUAL = "((input).x == (other).x && (input).y == (other).y)"
eq = _compare("eq", "==", np.equal, complex=_EQUAL)
ne = _compare("ne", "!=", np.not_equal, ("not_equal",), "!" + _EQUAL)
lt = _compare("lt", "<", np.less, ("less",))
le = _compare("le", "<=", np.less_equal, ("less_equal",))
gt = _compare("gt", ">", np.greater, ("greater",))
ge = _compare("ge", ">=", np.greater_equal, ("greater_equal",))


def _logic(name, params, expr, ref, truths):
    complex = re.sub(r"(input|other) ([!=]=) 0", lambda m: f"!c_zero({m[1]})" if m[2] == "!=" else f"c_zero({m[1]})", expr)
    return elementwise(name, params, dict(bool=truths, int=expr, float=expr), complex=complex, result=lambda common, kinds: (common, dt.bool_), numpy=ref)


logical_and = _logic("logical_and", "input, other", "((input != 0) && (other != 0))", np.logical_and, "(input & other)")
logical_or = _logic("logical_or", "input, other", "((input != 0) || (other != 0))", np.logical_or, "(input | other)")
logical_xor = _logic("logical_xor", "input, other", "((input != 0) != (other != 0))", np.logical_xor, "(input ^ other)")
logical_not = _logic("logical_not", "input", "(input == 0)", np.logical_not, "(1 - input)")
_EITHER = "({0}((input).x) || {0}((input).y))".format
isnan = elementwise("isnan", "input", dict(bool="0", int="0", float="(isnan(input) != 0)"), complex=_EITHER("isnan"), result="compare", inplace=False, numpy=np.isnan)
isinf = elementwise("isinf", "input", dict(bool="0", int="0", float="(isinf(input) != 0)"), complex=_EITHER("isinf"), result="compare", inplace=False, numpy=np.isinf)
isfinite = elementwise("isfinite", "input", dict(bool="1", int="1", float="(isfinite(input) != 0)"), result="compare", inplace=False,
                       complex="(isfinite((input).x) && isfinite((input).y))", numpy=np.isfinite)
isposinf = elementwise("isposinf", "input", dict(bool="0", int="0", float="(isinf(input) && input > 0)"), result="compare", inplace=False)
isneginf = elementwise("isneginf", "input", dict(bool="0", int="0", float="(isinf(input) && input < 0)"), result="compare", inplace=False)
signbit = elementwise("signbit", "input", dict(bool="0", int="(input < 0)", float="(signbit(input) != 0)"), result="compare", inplace=False, numpy=np.signbit)


def _integral(common, kinds):
    if common.differentiable:
        raise NotImplementedError(f"bitwise operators are not implemented for '{type_name(common)}'; they take bool and integer tensors")
    return common, common


def _bitwise(name, symbol, ref, expr="(input {} other)"):
    return elementwise(name, "input, other", expr.format(symbol), result=_integral, dtypes=INTEGRAL, numpy=ref)


bitwise_and = _bitwise("bitwise_and", "&", np.bitwise_and)
bitwise_or = _bitwise("bitwise_or", "|", np.bitwise_or)
bitwise_xor = _bitwise("bitwise_xor", "^", np.bitwise_xor)
_TOO_FAR = "(other < 0 || other >= (ACC)(8 * sizeof(ACC)))"             # C leaves such shifts open: all bits leave
bitwise_left_shift = _bitwise("bitwise_left_shift", "<<", np.left_shift, f"({_TOO_FAR} ? (ACC)0 : (ACC)(input {{}} other))")
bitwise_right_shift = _bitwise("bitwise_right_shift", ">>", np.right_shift, f"(input {{}} ({_TOO_FAR} ? (ACC)(8 * sizeof(ACC) - 1) : other))")
bitwise_not = elementwise("bitwise_not", "input", dict(bool="(1 - input)", int="~input", float="input"), result=_integral, dtypes=INTEGRAL,
                          numpy=np.bitwise_not)

for _fn in (_add, _sub, remainder, fmod, eq, ne, lt, le, gt, ge, maximum, minimum, fmax, fmin):
    _fn.op.expr.elements = True                                 # PyTorch multiplies and divides by a number in float, but adds and compares it as an element
