"""Orthogonal polynomials of any degree, one per element; ``clnn.special`` documents them."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import elementwise
from .._tensor.tensor import Tensor
from .selection import where


def _turn(x, k, a, b):
    return 2 * x * a - b


# By family: the polynomial of degree 1 and its slope; that of degree k + 1 from those of degrees k and k - 1; the factor of x in it.
_FAMILIES = dict(
    chebyshev_polynomial_t=(lambda x: x, 1, _turn, lambda k: 2), chebyshev_polynomial_u=(lambda x: 2 * x, 2, _turn, lambda k: 2),
    chebyshev_polynomial_v=(lambda x: 2 * x - 1, 2, _turn, lambda k: 2), chebyshev_polynomial_w=(lambda x: 2 * x + 1, 2, _turn, lambda k: 2),
    hermite_polynomial_h=(lambda x: 2 * x, 2, lambda x, k, a, b: 2 * x * a - 2 * k * b, lambda k: 2),
    hermite_polynomial_he=(lambda x: x, 1, lambda x, k, a, b: x * a - k * b, lambda k: 1),
    laguerre_polynomial_l=(lambda x: 1 - x, -1, lambda x, k, a, b: ((2 * k + 1 - x) * a - k * b) / (k + 1), lambda k: -1 / (k + 1)),
    legendre_polynomial_p=(lambda x: x, 1, lambda x, k, a, b: ((2 * k + 1) * x * a - k * b) / (k + 1), lambda k: (2 * k + 1) / (k + 1)))


def _slope(name, x, n):
    """The derivative by ``x``, of tensor operations: the recurrence carries it along."""
    if isinstance(n, Tensor):
        got = x * 0
        for k in sorted({k for k in n.flatten().tolist() if k >= 1}):
            got = where(n == k, _slope(name, x, k), got)
        return got
    first, steepness, step, factor = _FAMILIES[name]
    before, now = x * 0 + 1, first(x)
    slope_before, slope = x * 0, x * 0 + (steepness if n >= 1 else 0)
    for k in range(1, int(n)):
        slope_before, slope = slope, step(x, k, slope, slope_before) + factor(k) * now
        before, now = now, step(x, k, now, before)
    return slope


def _rule(name):
    return lambda g, input, n: g * _slope(name, input, n)


def _reference(name):
    """The recurrence on the host: of NaN and no small degree PyTorch gives what its memory held."""
    first, _, step, _ = _FAMILIES[name]

    def call(input, n):
        x, n = (np.asarray(a, np.float64) for a in np.broadcast_arrays(input, n))
        out = np.zeros(x.shape)
        for k in {int(k) for k in n.ravel() if 0 <= k < np.inf}:
            before, now = np.ones(x.shape), first(x) if k else np.ones(x.shape)
            for i in range(1, k):
                before, now = now, step(x, i, now, before)
            out = np.where(n == k, now, out)
        return out.astype(input.dtype if input.dtype.kind == "f" else np.float32)
    return call


def _samples():
    x = np.array([-1.0, -0.6, 0.0, 0.3, 1.0, 1.2])
    return [((x, np.array([0.0, 1.0, 2.0, 5.0, 3.0, 4.0])), {}), ((x[:, None], np.array([-1.0, 2.0, 7.0, 11.0])), {})]


for _name in _FAMILIES:
    elementwise("_" + _name, "input, n", f"clnn_{_name.replace('_polynomial', '')}(input, n)", result="float", method=False, inplace=False, gradcheck=False,
                numpy=_reference(_name), samples=_samples, vjp=dict(input=_rule(_name)), doc="Polynomial number ``n``.")
