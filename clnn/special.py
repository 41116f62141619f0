"""PyTorch's ``special`` functions: names of clnn's operators, and functions composed of them. Gradients follow by themselves."""
from __future__ import annotations

import math

from .graph.op import REGISTRY

_NAMES = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma"}


def __getattr__(name):
    op = REGISTRY.get(f"special_{name}") or REGISTRY.get(_NAMES.get(name, name))
    if op is None or name.startswith("_"):
        raise AttributeError(f"module 'clnn.special' has no attribute {name!r}")
    return op.fn


def _where(condition, a, b):
    return REGISTRY["where"].fn(condition, a, b)


def entr(input):
    """``-x ln x``, 0 at 0 and -inf below."""
    inside = _where(input > 0, input, input * 0 + 1)
    value = _where(input > 0, -inside * inside.log(), input * 0)
    return _where(input < 0, input * 0 - math.inf, _where(input != input, input, value))


def xlog1py(input, other):
    """``input * log1p(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN)."""
    import clnn
    input = input if isinstance(input, clnn.Tensor) else clnn.full_like(other, input)
    other = other if isinstance(other, clnn.Tensor) else clnn.full_like(input, other)
    value = input * other.log1p()
    return _where((input == 0) & (other == other), value.new_zeros(()), value)


def ndtr(input):
    """The standard normal distribution function: half of ``erfc(-x / sqrt 2)``."""
    return (input * -math.sqrt(0.5)).erfc() * 0.5


def ndtri(input):
    """The inverse of :func:`ndtr`."""
    return (input * 2 - 1).erfinv() * math.sqrt(2)


def log_ndtr(input):
    """The logarithm of :func:`ndtr`; below -5 by the asymptotic series, as the function itself vanishes there."""
    far = input < -5
    near_x = _where(far, input * 0 - 1, input)
    far_x = _where(far, input, input * 0 - 5)
    near = _where(near_x < 1, ndtr(near_x).log(), (-ndtr(-near_x)).log1p())
    r = 1 / (far_x * far_x)
    series = -r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r)))
    return _where(far, -0.5 * far_x * far_x - (-far_x).log() - 0.5 * math.log(2 * math.pi) + series.log1p(), near)


def multigammaln(input, p):
    """The logarithm of the multivariate gamma function of dimension ``p``; all elements above ``(p - 1) / 2``."""
    total = 0.25 * p * (p - 1) * math.log(math.pi)
    for j in range(p):
        total = (input - j / 2).lgamma() + total
    return total


def _recurrence(input, n, second, step):
    """The polynomial number ``n`` of a family with a three-term recurrence."""
    if not isinstance(n, int):
        raise TypeError(f"the degree of a polynomial is an int, got {type(n).__name__}")
    before, now = input * 0 + 1, second(input)
    if n <= 0:
        return before * (n == 0)
    for k in range(1, n):
        before, now = now, step(input, k, now, before)
    return now


def chebyshev_polynomial_t(input, n):
    """Chebyshev polynomial of the first kind."""
    return _recurrence(input, n, lambda x: x, lambda x, k, a, b: 2 * x * a - b)


def chebyshev_polynomial_u(input, n):
    """Chebyshev polynomial of the second kind."""
    return _recurrence(input, n, lambda x: 2 * x, lambda x, k, a, b: 2 * x * a - b)


def chebyshev_polynomial_v(input, n):
    """Chebyshev polynomial of the third kind."""
    return _recurrence(input, n, lambda x: 2 * x - 1, lambda x, k, a, b: 2 * x * a - b)


def chebyshev_polynomial_w(input, n):
    """Chebyshev polynomial of the fourth kind."""
    return _recurrence(input, n, lambda x: 2 * x + 1, lambda x, k, a, b: 2 * x * a - b)


def hermite_polynomial_h(input, n):
    """Hermite polynomial of physics."""
    return _recurrence(input, n, lambda x: 2 * x, lambda x, k, a, b: 2 * x * a - 2 * k * b)


def hermite_polynomial_he(input, n):
    """Hermite polynomial of probability."""
    return _recurrence(input, n, lambda x: x, lambda x, k, a, b: x * a - k * b)


def laguerre_polynomial_l(input, n):
    """Laguerre polynomial."""
    return _recurrence(input, n, lambda x: 1 - x, lambda x, k, a, b: ((2 * k + 1 - x) * a - k * b) / (k + 1))


def legendre_polynomial_p(input, n):
    """Legendre polynomial."""
    return _recurrence(input, n, lambda x: x, lambda x, k, a, b: ((2 * k + 1) * x * a - k * b) / (k + 1))
