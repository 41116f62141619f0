"""Functions of one or two numbers: exponentials, logarithms, trigonometry, rounding, signs."""
from ..._tensor.explain import explain

explain("exp", "``exp(x)``.", "clnn.exp(clnn.tensor([0., 1.]))", "tensor([1.0000, 2.7183])")
explain("exp2", "2 to the power of each element: ``2^x``.", "clnn.exp2(clnn.tensor([0., 3.]))", "tensor([1., 8.])")
explain("expm1", "``exp(x) - 1``, without the cancellation of that difference near 0.",
        "clnn.expm1(clnn.tensor([0., 1.]))", "tensor([0.0000, 1.7183])")
explain("log", "``ln(x)``: -inf at 0, NaN for real x < 0.", "clnn.log(clnn.tensor([1., 10.]))", "tensor([0.0000, 2.3026])")
explain("log2", "The logarithm to base 2: ``log2(x)``; -inf at 0, NaN for real x < 0.",
        "clnn.log2(clnn.tensor([1., 8.]))", "tensor([0., 3.])")
explain("log10", "The logarithm to base 10: ``log10(x)``; -inf at 0, NaN for real x < 0.",
        "clnn.log10(clnn.tensor([1., 1000.]))", "tensor([0., 3.])")
explain("log1p", "``ln(1 + x)``, exact near 0 too; -inf at -1, NaN for real x < -1.",
        "clnn.log1p(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.6931])")
explain("sqrt", "``x^(1/2)``: NaN for real x < 0.", "clnn.sqrt(clnn.tensor([4., 9.]))", "tensor([2., 3.])")
explain("rsqrt", "``1 / sqrt(x)``: inf at 0, NaN for real x < 0.",
        "clnn.rsqrt(clnn.tensor([4., 16.]))", "tensor([0.5000, 0.2500])")
explain("reciprocal", "``1 / x``; inf at 0.", "clnn.reciprocal(clnn.tensor([2., 4.]))", "tensor([0.5000, 0.2500])")
explain("sin", "The sine of angles in radians: ``sin(x)``.", "clnn.sin(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.8415])")
explain("cos", "The cosine of angles in radians: ``cos(x)``.", "clnn.cos(clnn.tensor([0., 1.]))", "tensor([1.0000, 0.5403])")
explain("tan", "The tangent of angles in radians: ``sin(x) / cos(x)``.",
        "clnn.tan(clnn.tensor([0., 1.]))", "tensor([0.0000, 1.5574])")
explain("asin", "The arc sine, in ``[-pi/2, pi/2]``; NaN for real |x| > 1.",
        "clnn.asin(clnn.tensor([0., 1.]))", "tensor([0.0000, 1.5708])")
explain("acos", "The arc cosine, in ``[0, pi]``; NaN for real |x| > 1.",
        "clnn.acos(clnn.tensor([0., 1.]))", "tensor([1.5708, 0.0000])")
explain("atan", "The arc tangent, in ``(-pi/2, pi/2)``.", "clnn.atan(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.7854])")
explain("sinh", "The hyperbolic sine: ``(exp(x) - exp(-x)) / 2``.",
        "clnn.sinh(clnn.tensor([0., 1.]))", "tensor([0.0000, 1.1752])")
explain("cosh", "The hyperbolic cosine: ``(exp(x) + exp(-x)) / 2``.",
        "clnn.cosh(clnn.tensor([0., 1.]))", "tensor([1.0000, 1.5431])")
explain("tanh", "The hyperbolic tangent: ``(exp(x) - exp(-x)) / (exp(x) + exp(-x))``, in [-1, 1].",
        "clnn.tanh(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.7616])")
explain("asinh", "The inverse of :func:`sinh`: ``ln(x + sqrt(x^2 + 1))``.",
        "clnn.asinh(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.8814])")
explain("acosh", "The inverse of :func:`cosh`: ``ln(x + sqrt(x^2 - 1))``; NaN for real x < 1.",
        "clnn.acosh(clnn.tensor([1., 2.]))", "tensor([0.0000, 1.3170])")
explain("atanh", "The inverse of :func:`tanh`: ``ln((1 + x) / (1 - x)) / 2``; +-inf at +-1, NaN for real |x| > 1.",
        "clnn.atanh(clnn.tensor([0., 0.5]))", "tensor([0.0000, 0.5493])")
explain("erf", "The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from 0 to x.",
        "clnn.erf(clnn.tensor([0., 1.]))", "tensor([0.0000, 0.8427])")
explain("erfc", "``1 - erf(x)``, without cancellation for large x.",
        "clnn.erfc(clnn.tensor([0., 1.]))", "tensor([1.0000, 0.1573])")
explain("erfinv", "The inverse of :func:`erf` on [-1, 1]; +-inf at the ends, NaN outside.",
        "clnn.erfinv(clnn.tensor([0., 0.5]))", "tensor([0.0000, 0.4769])")
explain("lgamma", "``ln |Gamma(x)|``: inf at 0 and the negative integers.",
        "clnn.lgamma(clnn.tensor([1., 5.]))", "tensor([0.0000, 3.1781])")
explain("digamma", "The derivative of :func:`lgamma`: ``Gamma'(x) / Gamma(x)``.",
        "clnn.digamma(clnn.tensor([1., 2.]))", "tensor([-0.5772,  0.4228])")
explain("sigmoid", "The logistic function, in [0, 1].", "clnn.sigmoid(clnn.tensor([0., 2.]))", "tensor([0.5000, 0.8808])")
explain("logit", "The inverse of :func:`sigmoid`: ``ln(x / (1 - x))``; NaN outside [0, 1]. With ``eps`` x is limited to ``[eps, 1 - eps]`` first.",
        "clnn.logit(clnn.tensor([0.5, 0.75]))", "tensor([0.0000, 1.0986])")
explain("sinc", "``sin(pi x) / (pi x)``, and 1 at 0.", "clnn.sinc(clnn.tensor([0., 0.5]))", "tensor([1.0000, 0.6366])")
explain("deg2rad", "Degrees as radians: ``x pi / 180``.", "clnn.deg2rad(clnn.tensor([90., 180.]))", "tensor([1.5708, 3.1416])")
explain("rad2deg", "Radians as degrees: ``x 180 / pi``.", "clnn.rad2deg(clnn.tensor([0., 3.1415927]))", "tensor([  0., 180.])")
explain("neg", "The negative: ``-x``.", "clnn.neg(clnn.tensor([1., -2.]))", "tensor([-1.,  2.])")
explain("positive", "The tensor itself: ``+x``.", "clnn.positive(clnn.tensor([1., -2.]))", "tensor([ 1., -2.])")
explain("abs", "The absolute value: ``|x|``, of complex numbers ``sqrt(re^2 + im^2)`` as a real number.",
        "clnn.abs(clnn.tensor([-1., 2.]))", "tensor([1., 2.])")
explain("sign", "-1, 0 or 1 by the sign of x; NaN stays NaN. Its gradient is zero.",
        "clnn.sign(clnn.tensor([-3., 0., 2.]))", "tensor([-1.,  0.,  1.])")
explain("sgn", "", "clnn.sgn(clnn.tensor([-3., 0., 2.]))", "tensor([-1.,  0.,  1.])")
explain("floor", "The largest integer that is not above x. Its gradient is zero.",
        "clnn.floor(clnn.tensor([-1.5, 1.5]))", "tensor([-2.,  1.])")
explain("ceil", "The smallest integer that is not below x. Its gradient is zero.",
        "clnn.ceil(clnn.tensor([-1.5, 1.5]))", "tensor([-1.,  2.])")
explain("trunc", "The integer part: x rounded towards 0. Its gradient is zero.",
        "clnn.trunc(clnn.tensor([-1.5, 1.5]))", "tensor([-1.,  1.])")
explain("fix", "The same as :func:`trunc`: x rounded towards 0.", "clnn.fix(clnn.tensor([-1.5, 1.5]))", "tensor([-1.,  1.])")
explain("frac", "The fractional part with the sign of x: ``x - trunc(x)``.",
        "clnn.frac(clnn.tensor([-1.5, 2.25]))", "tensor([-0.5000,  0.2500])")
explain("round", "``round(x 10^decimals) / 10^decimals``.", "clnn.round(clnn.tensor([0.5, 1.5, 2.7]))", "tensor([0., 2., 3.])")
explain("atan2", "The angle of the point (other, input) from the positive x-axis, in ``[-pi, pi]``: ``atan(input / other)`` in the right quadrant.",
        "clnn.atan2(clnn.tensor([1., -1.]), clnn.tensor([1., -1.]))", "tensor([ 0.7854, -2.3562])")
explain("hypot", "``sqrt(input^2 + other^2)``, without overflow on the way.",
        "clnn.hypot(clnn.tensor([3., 5.]), clnn.tensor([4., 12.]))", "tensor([ 5., 13.])")
explain("copysign", "``|input|`` with the sign of ``other``, of zeros too.",
        "clnn.copysign(clnn.tensor([1., -2.]), clnn.tensor([-1., 1.]))", "tensor([-1.,  2.])")
explain("nextafter", "The next number of the dtype after ``input`` in the direction of ``other``.",
        "clnn.nextafter(clnn.tensor([1.]), clnn.tensor([2.])) > 1", "tensor([True])")
explain("heaviside", "The step function: 0 for x < 0, 1 for x > 0, and ``values`` at 0.",
        "clnn.heaviside(clnn.tensor([-1., 0., 2.]), clnn.tensor([0.5, 0.5, 0.5]))", "tensor([0.0000, 0.5000, 1.0000])")
explain("logaddexp", "``ln(exp(input) + exp(other))``, without overflow.",
        "clnn.logaddexp(clnn.tensor([0., 100.]), clnn.tensor([0., 100.]))", "tensor([  0.6931, 100.6931])")
explain("logaddexp2", "``log2(2 ** input + 2 ** other)``, without overflow.",
        "clnn.logaddexp2(clnn.tensor([0., 100.]), clnn.tensor([0., 100.]))", "tensor([  1., 101.])")
explain("xlogy", "``input * ln(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN).",
        "clnn.xlogy(clnn.tensor([0., 2.]), clnn.tensor([0., 1.]))", "tensor([0., 0.])")
explain("nan_to_num", "", 'clnn.nan_to_num(clnn.tensor([1., float("nan")]))', "tensor([1., 0.])")
explain("complex", "", "clnn.complex(clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor([1.+3.j, 2.+4.j])")
explain("polar", "", "clnn.polar(clnn.tensor([1., 2.]), clnn.tensor([0., 0.]))", "tensor([1.+0.j, 2.+0.j])")
explain("real", "", "clnn.real(clnn.tensor([1 + 2j]))", "tensor([1.])")
explain("imag", "", "clnn.imag(clnn.tensor([1 + 2j]))", "tensor([2.])")
explain("conj", "``re - i im``.", "clnn.conj(clnn.tensor([1 + 2j]))", "tensor([1.-2.j])")
explain("conj_physical", "The complex conjugate ``re - i im``, computed at once; a real tensor itself.",
        "clnn.conj_physical(clnn.tensor([1 + 2j]))", "tensor([1.-2.j])")
explain("resolve_conj", "The tensor itself; what ``conj`` gave as a tensor of its own, which no longer counts as a conjugate.",
        "clnn.resolve_conj(clnn.tensor([1., 2.]))", "tensor([1., 2.])")
explain("resolve_neg", "The tensor itself; the imaginary part of a conjugate as a tensor of its own.",
        "clnn.resolve_neg(clnn.tensor([1., 2.]))", "tensor([1., 2.])")
explain("adjoint", "``out[..., i, j] = conj(input[..., j, i])``.",
        "clnn.adjoint(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor([[1., 3.],\n        [2., 4.]])")
explain("angle", "``atan2(im, re)`` of complex numbers.", "clnn.angle(clnn.tensor([1., -1.]))", "tensor([0.0000, 3.1416])")
explain("isreal", "", "clnn.isreal(clnn.tensor([1 + 2j, 3 + 0j]))", "tensor([False,  True])")
explain("view_as_complex", "", "clnn.view_as_complex(clnn.tensor([[1., 2.]]))", "tensor([1.+2.j])")
