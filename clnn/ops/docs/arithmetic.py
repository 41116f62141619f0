"""Arithmetic, comparison, logic, bits and extremes."""
from ..._tensor.explain import explain

explain("add", "", "clnn.add(clnn.tensor([1., 2.]), clnn.tensor([10., 20.]), alpha=2)", "tensor([21., 42.])")
explain("sub", "", "clnn.sub(clnn.tensor([5., 7.]), clnn.tensor([1., 2.]))", "tensor([4., 5.])")
explain("rsub", "", "clnn.rsub(clnn.tensor([1., 2.]), clnn.tensor([5., 7.]))", "tensor([4., 5.])")
explain("mul", "``input * other``, with broadcasting and type promotion; ``and`` of booleans.",
        "clnn.mul(clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor([3., 8.])")
explain("div", "``input / other``, rounded to zero by ``'trunc'`` and down by ``'floor'``; without rounding, integers give floats.",
        'clnn.div(clnn.tensor([-7., 7.]), clnn.tensor([2., 2.]), rounding_mode="floor")', "tensor([-4.,  3.])")
explain("true_divide", "``input / other``; integers give the default float dtype, a division by zero inf or NaN.",
        "clnn.true_divide(clnn.tensor([1, 2]), clnn.tensor([2, 4]))", "tensor([0.5000, 0.5000])")
explain("floor_divide", "``floor(input / other)``.",
        "clnn.floor_divide(clnn.tensor([-7., 7.]), clnn.tensor([2., 2.]))", "tensor([-4.,  3.])")
explain("remainder", "", "clnn.remainder(clnn.tensor([-7., 7.]), clnn.tensor([3., 3.]))", "tensor([2., 1.])")
explain("fmod", "``input - other * trunc(input / other)``.",
        "clnn.fmod(clnn.tensor([-7., 7.]), clnn.tensor([3., 3.]))", "tensor([-1.,  1.])")
explain("pow", "``input ^ exponent``; integers to negative powers are refused.",
        "clnn.pow(clnn.tensor([1., 2., 3.]), 2)", "tensor([1., 4., 9.])")
explain("float_power", "``input ^ exponent`` in double precision, whatever the operands are.",
        "clnn.float_power(clnn.tensor([1, 2]), 2).tolist()", "[1.0, 4.0]")
explain("square", "The square of each element: ``x * x``.", "clnn.square(clnn.tensor([-2., 3.]))", "tensor([4., 9.])")
explain("addcmul", "", "clnn.addcmul(clnn.tensor([1., 1.]), clnn.tensor([2., 3.]), clnn.tensor([4., 5.]))", "tensor([ 9., 16.])")
explain("addcdiv", "", "clnn.addcdiv(clnn.tensor([1., 1.]), clnn.tensor([4., 6.]), clnn.tensor([2., 3.]))", "tensor([3., 3.])")
explain("lerp", "Linear interpolation from ``input`` (weight 0) to ``end`` (weight 1); ``weight`` is a number or a tensor.",
        "clnn.lerp(clnn.tensor([0., 10.]), clnn.tensor([10., 20.]), 0.5)", "tensor([ 5., 15.])")
explain("clamp", "``min(max(x, min), max)``; NaN stays NaN, and where ``min > max`` the result is ``max``.",
        "clnn.clamp(clnn.tensor([-1., 0.5, 2.]), 0, 1)", "tensor([0.0000, 0.5000, 1.0000])")
explain("clamp_min", "``max(x, min)``.", "clnn.clamp_min(clnn.tensor([-1., 2.]), 0)", "tensor([0., 2.])")
explain("clamp_max", "``min(x, max)``.", "clnn.clamp_max(clnn.tensor([-1., 2.]), 0)", "tensor([-1.,  0.])")
explain("maximum", "``max(input, other)``, element by element; equal elements share the gradient.",
        "clnn.maximum(clnn.tensor([1., 5.]), clnn.tensor([3., 2.]))", "tensor([3., 5.])")
explain("minimum", "``min(input, other)``, element by element; equal elements share the gradient.",
        "clnn.minimum(clnn.tensor([1., 5.]), clnn.tensor([3., 2.]))", "tensor([1., 2.])")
explain("fmax", "The larger element of each pair; where one is NaN, the other one (:func:`maximum` gives NaN).",
        'clnn.fmax(clnn.tensor([1., float("nan")]), clnn.tensor([3., 2.]))', "tensor([3., 2.])")
explain("fmin", "The smaller element of each pair; where one is NaN, the other one (:func:`minimum` gives NaN).",
        'clnn.fmin(clnn.tensor([1., float("nan")]), clnn.tensor([3., 2.]))', "tensor([1., 2.])")
explain("eq", "", "clnn.eq(clnn.tensor([1., 2.]), clnn.tensor([1., 3.]))", "tensor([ True, False])")
explain("ne", "", "clnn.ne(clnn.tensor([1., 2.]), clnn.tensor([1., 3.]))", "tensor([False,  True])")
explain("lt", "", "clnn.lt(clnn.tensor([1., 2.]), clnn.tensor([1., 3.]))", "tensor([False,  True])")
explain("le", "", "clnn.le(clnn.tensor([1., 4.]), clnn.tensor([1., 3.]))", "tensor([ True, False])")
explain("gt", "", "clnn.gt(clnn.tensor([1., 4.]), clnn.tensor([1., 3.]))", "tensor([False,  True])")
explain("ge", "", "clnn.ge(clnn.tensor([1., 2.]), clnn.tensor([1., 3.]))", "tensor([ True, False])")
explain("logical_and", "Whether both elements are true (not zero), as bool.",
        "clnn.logical_and(clnn.tensor([0., 2.]), clnn.tensor([1., 3.]))", "tensor([False,  True])")
explain("logical_or", "Whether one of the elements is true (not zero), as bool.",
        "clnn.logical_or(clnn.tensor([0., 0.]), clnn.tensor([0., 3.]))", "tensor([False,  True])")
explain("logical_xor", "Whether exactly one of the elements is true (not zero), as bool.",
        "clnn.logical_xor(clnn.tensor([1., 2.]), clnn.tensor([0., 3.]))", "tensor([ True, False])")
explain("logical_not", "Whether the element is zero, as bool.",
        "clnn.logical_not(clnn.tensor([0., 2.]))", "tensor([ True, False])")
explain("isnan", "Whether each element is NaN, as bool; of a complex number, whether one part is.",
        'clnn.isnan(clnn.tensor([1., float("nan")]))', "tensor([False,  True])")
explain("isinf", "Whether each element is infinite, of either sign, as bool.",
        'clnn.isinf(clnn.tensor([1., float("-inf")]))', "tensor([False,  True])")
explain("isfinite", "Whether each element is neither infinite nor NaN, as bool.",
        'clnn.isfinite(clnn.tensor([1., float("inf")]))', "tensor([ True, False])")
explain("isposinf", "Whether each element is ``+inf``, as bool.",
        'clnn.isposinf(clnn.tensor([float("inf"), float("-inf")]))', "tensor([ True, False])")
explain("isneginf", "Whether each element is ``-inf``, as bool.",
        'clnn.isneginf(clnn.tensor([float("inf"), float("-inf")]))', "tensor([False,  True])")
explain("signbit", "Whether the sign bit is set, as bool: True for negative numbers and for ``-0.0``.",
        "clnn.signbit(clnn.tensor([-0., 0., -2.]))", "tensor([ True, False,  True])")
explain("bitwise_and", "``input & other``: the bits that both integers have; ``and`` of booleans.",
        "clnn.bitwise_and(clnn.tensor([6, 5]), clnn.tensor([3, 3]))", "tensor([2, 1])")
explain("bitwise_or", "``input | other``: the bits that one of the integers has; ``or`` of booleans.",
        "clnn.bitwise_or(clnn.tensor([6, 5]), clnn.tensor([3, 3]))", "tensor([7, 7])")
explain("bitwise_xor", "``input ^ other``: the bits that exactly one of the integers has; ``!=`` of booleans.",
        "clnn.bitwise_xor(clnn.tensor([6, 5]), clnn.tensor([3, 3]))", "tensor([5, 6])")
explain("bitwise_left_shift", "``input << other``: integers times ``2 ** other``, without the bits that leave the dtype.",
        "clnn.bitwise_left_shift(clnn.tensor([1, 3]), clnn.tensor([2, 1]))", "tensor([4, 6])")
explain("bitwise_right_shift", "``input >> other``: ``floor(input / 2 ** other)`` of integers; the sign is kept.",
        "clnn.bitwise_right_shift(clnn.tensor([8, -8]), clnn.tensor([2, 1]))", "tensor([ 2, -4])")
explain("bitwise_not", "``~input``: all bits of an integer inverted, ``-x - 1``; ``not`` of booleans.",
        "clnn.bitwise_not(clnn.tensor([0, 5]))", "tensor([-1, -6])")
explain("gcd", "Greatest common divisor of integers, not negative; ``gcd(0, 0)`` is 0.",
        "clnn.gcd(clnn.tensor([12, 0]), clnn.tensor([18, 5]))", "tensor([6, 5])")
explain("lcm", "``|input * other| / gcd(input, other)``; 0 where one of them is 0.",
        "clnn.lcm(clnn.tensor([4, 0]), clnn.tensor([6, 5]))", "tensor([12,  0])")
explain("ldexp", "Scaling by a power of two, exact but for overflow and underflow.",
        "clnn.ldexp(clnn.tensor([1., 3.]), clnn.tensor([2, 3]))", "tensor([ 4., 24.])")
explain("frexp", "", "clnn.frexp(clnn.tensor([3., 8.])).exponent", "tensor([2, 4], dtype=clnn.int32)")
explain("where", "", "clnn.where(clnn.tensor([True, False]), clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor([1., 4.])")
explain("masked_fill", "", "clnn.masked_fill(clnn.tensor([1., 2.]), clnn.tensor([True, False]), 0.)", "tensor([0., 2.])")
explain("clone", "", "clnn.clone(clnn.tensor([1., 2.]))", "tensor([1., 2.])")
explain("fill", "", "clnn.fill(clnn.tensor([1., 2.]), 5)", "tensor([5., 5.])")
explain("isclose", "", "clnn.isclose(clnn.tensor([1., 2.]), clnn.tensor([1.000001, 2.1]))", "tensor([ True, False])")
explain("allclose", "", "clnn.allclose(clnn.tensor([1., 2.]), clnn.tensor([1.000001, 2.]))", "True")
explain("equal", "", "clnn.equal(clnn.tensor([1., 2.]), clnn.tensor([1., 2.]))", "True")
