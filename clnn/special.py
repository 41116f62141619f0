"""PyTorch's ``special`` functions: names of clnn's operators, and functions composed of them. Gradients follow by themselves."""
from __future__ import annotations

import math

from ._tensor.tensor import Tensor
from .core import dtype as dt
from .graph.op import REGISTRY
from .ops.bessel import erfcx

_RENAMED = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma", "multigammaln": "mvlgamma", "gammainc": "igamma", "gammaincc": "igammac",
            "i1": "_i1", "modified_bessel_i0": "i0", "modified_bessel_i1": "_i1"}
for _name in ("bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma erf erfc erfinv exp2 expit expm1 gammainc gammaincc gammaln i0 i0e i1 i1e log1p "
              "log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln polygamma psi round "
              "scaled_modified_bessel_k0 scaled_modified_bessel_k1 sinc softmax spherical_bessel_j0 xlogy zeta").split():
    _old = _RENAMED.get(_name, _name)
    globals()[_name] = (REGISTRY.get(f"special_{_old}") or REGISTRY[_old]).fn


def _where(condition, a, b):
    return REGISTRY["where"].fn(condition, a, b)


def entr(input):
    """``-x ln x``, 0 at 0 and -inf below."""
    return REGISTRY["_entr"].fn(input)


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


def _float(x):
    """Integers in the default float dtype: their own arithmetic would wrap round."""
    return x.to(dt.float_default()) if isinstance(x, Tensor) and x.dtype.category < dt.FLOAT else x


def ndtri(input):
    """The inverse of :func:`ndtr`: by erfinv in the middle, in the tails by Newton's method on the logarithm."""
    input = _float(input)
    middle = (input * 2 - 1).erfinv() * math.sqrt(2)
    low = input < 0.5
    p = _where(low, input, 1 - input)
    inside = (p > 0) & (p < 0.1)
    log = _where(inside, p, 0.05).log()
    x = -(-2 * log - (-2 * log).log() - math.log(2 * math.pi)).sqrt()
    for _ in range(3):
        scaled = erfcx(x * -math.sqrt(0.5))                          # Newton's step is (log ndtr(x) - log p) ndtr(x) / density(x)
        x = x - ((scaled * 0.5).log() - 0.5 * x * x - log) * scaled * math.sqrt(math.pi / 2)
    return _where(inside, _where(low, x, -x), middle)


def log_ndtr(input):
    """The logarithm of :func:`ndtr`, also where the function itself underflows."""
    left = input < -1
    far, near = _where(left, input, -1.0), _where(left, -1.0, input)
    near = _where(near < 1, ndtr(near).log(), (-ndtr(-near)).log1p())
    return _where(left, (erfcx(far * -math.sqrt(0.5)) * 0.5).log() - 0.5 * far * far, near)


def _recurrence(input, n, second, step):
    """The polynomial number ``n`` of a family with a three-term recurrence."""
    if isinstance(n, Tensor):
        x = input if isinstance(input, Tensor) else n.new_full((), input, dtype=dt.float_default())
        values = (x if x.dtype.is_floating_point else x.to(dt.float_default())) + n * 0
        got = values * 0
        for k in sorted(set(n.flatten().tolist())):                 # one recurrence per degree that occurs
            got = _where(n == k, _recurrence(values, int(k), second, step), got)
        return got
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


def _shifted(fn, kind):
    def polynomial(input, n):
        return fn(2 * _float(input) - 1, n)
    polynomial.__name__, polynomial.__doc__ = f"shifted_chebyshev_polynomial_{kind}", f"Chebyshev polynomial {kind.upper()} of ``2 input - 1``."
    return polynomial


shifted_chebyshev_polynomial_t = _shifted(chebyshev_polynomial_t, "t")
shifted_chebyshev_polynomial_u = _shifted(chebyshev_polynomial_u, "u")
shifted_chebyshev_polynomial_v = _shifted(chebyshev_polynomial_v, "v")
shifted_chebyshev_polynomial_w = _shifted(chebyshev_polynomial_w, "w")
