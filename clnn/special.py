"""PyTorch's ``special`` functions: names of clnn's operators, and functions composed of them. Gradients follow by themselves."""
from __future__ import annotations

import functools
import math

import numpy as np

from . import _airy
from ._tensor.declare import composite
from ._tensor.inplace import set_out
from ._tensor.interop import from_array, read
from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core.public import name_functions
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


def _with_out(fn):
    """``fn``, taking ``out=`` and refusing calls without a tensor."""
    @functools.wraps(fn)
    def call(*args, out=None, **kwargs):
        if all(isinstance(a, (int, float, complex)) for a in (*args, *kwargs.values())):
            raise TypeError(f"special_{fn.__name__}() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)}), "
                            "but expected at least one Tensor")
        r = fn(*args, **kwargs)
        return r if out is None else set_out(out, r, args)
    return call


@_with_out
def entr(input):
    """``-x ln x``, 0 at 0 and -inf below.

    Example:
        >>> clnn.special.entr(clnn.tensor([0.0, 0.5]))
        tensor([0.0000, 0.3466])
    """
    return REGISTRY["_entr"].fn(input)


@_with_out
def xlog1py(input, other):
    """``input * log1p(other)``, and 0 where ``input`` is 0 (unless ``other`` is NaN).

    Example:
        >>> clnn.special.xlog1py(clnn.tensor([0.0, 2.0]), clnn.tensor([-1.0, 1.0]))
        tensor([0.0000, 1.3863])
    """
    import clnn
    input = input if isinstance(input, clnn.Tensor) else clnn.full_like(other, input)
    other = other if isinstance(other, clnn.Tensor) else clnn.full_like(input, other)
    finite = _where((input == 0) & ((other <= -1) | other.isinf()), other.new_zeros(()), other)      # elsewhere the gradient is the logarithm, also at 0
    return input * finite.log1p()


@_with_out
def ndtr(input):
    """The standard normal distribution function: half of ``erfc(-x / sqrt 2)``.

    Example:
        >>> clnn.special.ndtr(clnn.tensor([0.0, 1.0]))
        tensor([0.5000, 0.8413])
    """
    return (input * -math.sqrt(0.5)).erfc() * 0.5


def _float(x):
    """Integers in the default float dtype: their own arithmetic would wrap round."""
    return x.to(dt.float_default()) if isinstance(x, Tensor) and x.dtype.category < dt.FLOAT else x


@_with_out
def ndtri(input):
    """The inverse of :func:`ndtr`: by erfinv in the middle, in the tails by Newton's method on the logarithm.

    Example:
        >>> clnn.special.ndtri(clnn.tensor([0.5, 0.975]))
        tensor([0.0000, 1.9600])
    """
    return _ndtri(_float(input))


@composite("_ndtri", repeat="ready small", splice=True, method=False)
def _ndtri(input):
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


@_with_out
def log_ndtr(input):
    """The logarithm of :func:`ndtr`, also where the function itself underflows.

    Example:
        >>> clnn.special.log_ndtr(clnn.tensor([-20.0, 0.0]))
        tensor([-203.9172,   -0.6931])
    """
    return _log_ndtr(input)


@composite("_log_ndtr", repeat="ready small", splice=True, method=False)
def _log_ndtr(input):
    left = input < -1
    far, near = _where(left, input, -1.0), _where(left, -1.0, input)
    near = _where(near < 1, ndtr(near).log(), (-ndtr(-near)).log1p())
    return _where(left, (erfcx(far * -math.sqrt(0.5)) * 0.5).log() - 0.5 * far * far, near)


@_with_out
def chebyshev_polynomial_t(x, n):
    """Chebyshev polynomial of the first kind: ``cos(n t)`` of ``x = cos t``.

    Example:
        >>> clnn.special.chebyshev_polynomial_t(clnn.tensor([0.0, 0.5]), 2)
        tensor([-1.0000, -0.5000])
    """
    return REGISTRY["_chebyshev_polynomial_t"].fn(x, n)


@_with_out
def chebyshev_polynomial_u(x, n):
    """Chebyshev polynomial of the second kind: ``sin((n + 1) t) / sin t`` of ``x = cos t``.

    Example:
        >>> clnn.special.chebyshev_polynomial_u(clnn.tensor([0.0, 0.5]), 2)
        tensor([-1.,  0.])
    """
    return REGISTRY["_chebyshev_polynomial_u"].fn(x, n)


@_with_out
def chebyshev_polynomial_v(x, n):
    """Chebyshev polynomial of the third kind: ``cos((n + 1/2) t) / cos(t / 2)`` of ``x = cos t``.

    Example:
        >>> clnn.special.chebyshev_polynomial_v(clnn.tensor([0.0, 0.5]), 2)
        tensor([-1., -1.])
    """
    return REGISTRY["_chebyshev_polynomial_v"].fn(x, n)


@_with_out
def chebyshev_polynomial_w(x, n):
    """Chebyshev polynomial of the fourth kind: ``sin((n + 1/2) t) / sin(t / 2)`` of ``x = cos t``.

    Example:
        >>> clnn.special.chebyshev_polynomial_w(clnn.tensor([0.0, 0.5]), 2)
        tensor([-1.,  1.])
    """
    return REGISTRY["_chebyshev_polynomial_w"].fn(x, n)


@_with_out
def hermite_polynomial_h(x, n):
    """Hermite polynomial of physics: ``(-1)^n exp(x^2)`` times the n-th derivative of ``exp(-x^2)``.

    Example:
        >>> clnn.special.hermite_polynomial_h(clnn.tensor([0.0, 0.5]), 2)
        tensor([-2., -1.])
    """
    return REGISTRY["_hermite_polynomial_h"].fn(x, n)


@_with_out
def hermite_polynomial_he(x, n):
    """Hermite polynomial of probability: ``(-1)^n exp(x^2 / 2)`` times the n-th derivative of ``exp(-x^2 / 2)``.

    Example:
        >>> clnn.special.hermite_polynomial_he(clnn.tensor([0.0, 0.5]), 2)
        tensor([-1.0000, -0.7500])
    """
    return REGISTRY["_hermite_polynomial_he"].fn(x, n)


@_with_out
def laguerre_polynomial_l(x, n):
    """Laguerre polynomial: ``exp(x) / n!`` times the n-th derivative of ``exp(-x) x^n``.

    Example:
        >>> clnn.special.laguerre_polynomial_l(clnn.tensor([0.0, 0.5]), 2)
        tensor([1.0000, 0.1250])
    """
    return REGISTRY["_laguerre_polynomial_l"].fn(x, n)


@_with_out
def legendre_polynomial_p(x, n):
    """Legendre polynomial: ``1 / (2^n n!)`` times the n-th derivative of ``(x^2 - 1)^n``.

    Example:
        >>> clnn.special.legendre_polynomial_p(clnn.tensor([0.0, 0.5]), 2)
        tensor([-0.5000, -0.1250])
    """
    return REGISTRY["_legendre_polynomial_p"].fn(x, n)


@_with_out
def airy_ai(x):
    """The Airy function Ai, which solves ``y'' = x y`` and vanishes to the right; computed on the host, without a gradient.

    Example:
        >>> clnn.special.airy_ai(clnn.tensor([0.0, 1.0, -2.0]))
        tensor([0.3550, 0.1353, 0.2274])
    """
    x = x.to(dt.float_default()) if x.dtype.category < dt.FLOAT else x
    if x.dtype.itemsize == 2 or x.dtype.is_complex:
        raise NotImplementedError(f"\"airy_ai\" not implemented for '{dt.SPOKEN[x.dtype.name]}'")
    return from_array(_airy.airy_ai(read(x.detach()).astype(np.float64)), x._storage.device, x.dtype)


def _shifted(fn, kind, shown):
    def polynomial(x, n):
        return fn(2 * _float(x) - 1, n)
    name = polynomial.__name__ = f"shifted_chebyshev_polynomial_{kind}"
    polynomial.__doc__ = (f"Chebyshev polynomial {kind.upper()} of ``2 x - 1``.\n\nExample:\n"
                          f"    >>> clnn.special.{name}(clnn.tensor([0.0, 0.5]), 2)\n    tensor({shown})")
    return _with_out(polynomial)


shifted_chebyshev_polynomial_t = _shifted(chebyshev_polynomial_t, "t", "[ 1., -1.]")
shifted_chebyshev_polynomial_u = _shifted(chebyshev_polynomial_u, "u", "[ 3., -1.]")
shifted_chebyshev_polynomial_v = _shifted(chebyshev_polynomial_v, "v", "[ 5., -1.]")
shifted_chebyshev_polynomial_w = _shifted(chebyshev_polynomial_w, "w", "[ 1., -1.]")
name_functions(globals(), __name__)
