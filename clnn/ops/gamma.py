"""Incomplete and multivariate gamma functions, the zeta function, and gamma-distributed random numbers with gradients."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite, elementwise
from .._tensor.inplace import apply_inplace, mark, type_name
from .._tensor.interop import from_array, read
from .._tensor.tensor import Tensor
from .._tensor.underived import UNDERIVED, underived
from ..core import dtype as dt
from ..core.shape import whole
from ..core.limits import finfo
from ..graph.op import REGISTRY
from .functions import digamma, lgamma
from .random import _stream, by_rejection, in_sequence


def _density(g, input, other):
    """d igamma(input, other) / d other."""
    input, other = (t if isinstance(t, Tensor) else g.new_tensor(t) for t in (input, other))
    return ((input - 1) * other.log() - other - lgamma(input)).exp()


_gamma_grad = elementwise("_gamma_grad", "input, draw", "clnn_gamma_grad(input, draw)", result="float", method=False, inplace=False)
igamma = elementwise("igamma", "input, other", "clnn_igamma(input, other)", result="float", aliases=("special_gammainc",), gradcheck=False,
                     vjp=dict(input=lambda g, input, other: -g * _density(g, input, other) * _gamma_grad(input, other),
                              other=lambda g, input, other: g * _density(g, input, other)),
                     doc="Regularised lower incomplete gamma function: the integral of t^(input - 1) exp(-t) from 0 to other, over Gamma(input).")
igammac = elementwise("igammac", "input, other", "clnn_igammac(input, other)", result="float", aliases=("special_gammaincc",), gradcheck=False,
                      vjp=dict(input=lambda g, input, other: g * _density(g, input, other) * _gamma_grad(input, other),
                               other=lambda g, input, other: -g * _density(g, input, other)),
                      doc="``1 - igamma(input, other)`` without cancellation.")
zeta = elementwise("special_zeta", "input, other", "clnn_zeta(input, other)", result="float", method=False, inplace=False, gradcheck=False,
                   vjp=dict(other=lambda g, input, other: g * -input * zeta(input + 1, other)),
                   doc="Hurwitz' zeta function: the sum of (other + k)^-input over k = 0, 1, ...; input above 1. No gradient to ``input``.")


@composite("mvlgamma", repeat="ready small", inplace=True, samples=lambda: [((np.linspace(1.6, 7, 6).reshape(2, 3), p), {}) for p in (1, 3)])
def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function of dimension ``p``; all elements above ``(p - 1) / 2``."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    total = 0.25 * p * (p - 1) * math.log(math.pi)
    for j in range(p):
        total = (input - j / 2).lgamma() + total
    return total


@composite("polygamma", method=False)
def polygamma(n, input):
    """The n-th derivative of digamma: ``(-1)^(n + 1) n! zeta(n + 1, input)``."""
    if whole(n) < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n < 3:
        return digamma(input) if n == 0 else REGISTRY["_trigamma"].fn(input) if n == 1 else REGISTRY["_tetragamma"].fn(input)
    return (1 if n % 2 else -1) * math.factorial(n) * zeta(float(n + 1), input)


def _polygamma_method(self, n):
    """See :func:`clnn.polygamma`."""
    return polygamma(n, self)


def _polygamma_in_place(self, n):
    """In-place form of :func:`clnn.polygamma`."""
    since = mark()
    return apply_inplace(self, polygamma(n, self), "polygamma", since)


Tensor.polygamma, Tensor.polygamma_ = _polygamma_method, _polygamma_in_place


# -- random numbers -------------------------------------------------------------------------------------------------------------------------
_gamma_draw = elementwise("_gamma_draw", "seed, first, input", "clnn_gamma(seed, first, IDX, input)", method=False, inplace=False,
                          dtypes=dt.FLOATS, vjp=dict(input=lambda g, input, result: g * _gamma_grad(input, result)))
_gamma_draw.op.expr.longs = frozenset((0, 1))
_gamma_draw.op.grad_name = "StandardGammaBackward0"
_gamma_drawn = elementwise("_gamma_drawn", "input, draws", "draws", method=False, inplace=False, gradcheck=False, dtypes=dt.FLOATS,
                           vjp=dict(input=lambda g, input, result: g * _gamma_grad(input, result)), doc="Numbers that were drawn with the shapes ``input``.")
_gamma_drawn.op.grad_name = "StandardGammaBackward0"
_BLOCKS = 32                                                     # of random bits that one draw may use


@composite("_standard_gamma")
def standard_gamma(input, generator=None):
    """Gamma numbers of shape ``input`` and rate 1; gradients flow to the shape (implicit reparameterisation).

    Figurnov, Mohamed & Mnih, "Implicit Reparameterization Gradients", 2018.
    """
    if not input.dtype.is_floating_point or input.dtype.itemsize == 2 and input._storage.device.is_cpu:
        raise NotImplementedError(f'"gamma_cpu" not implemented for \'{type_name(input.dtype)}\'')
    if not input._dense:
        input = input.contiguous()
    device = input._storage.device
    drawn = None
    if in_sequence(input, generator):
        drawn = by_rejection("gamma" if input.dtype is dt.float64 else "gamma_float", generator, device, read(input.detach()))
    if drawn is None:
        return _gamma_draw(*_stream(generator, input._numel * _BLOCKS, 1), input)
    return _gamma_drawn(input, from_array(np.maximum(drawn, finfo(input.dtype).tiny), device, input.dtype))


_dirichlet_grad = elementwise("_dirichlet_grad", "x, alpha, total", "clnn_dirichlet_grad(x, alpha, total)", dtypes=dt.FLOATS, method=False, inplace=False,
                              gradcheck=False, vjp=underived("_dirichlet_grad", "x", "alpha", "total"),
                              doc="The derivative of beta numbers ``x`` of shapes ``alpha`` and ``total - alpha`` by ``alpha``, over ``1 - x``.")
_dirichlet_grad.op.grad_name = UNDERIVED


def _slopes(g, concentration, result):
    """Each number moves with its own concentration as a beta number does, and the others make room for it in proportion."""
    slope = _dirichlet_grad(result, concentration, concentration.sum(-1, True))
    return slope * (g - (result * g).sum(-1, True))


_shares = elementwise("_shares", "concentration, draws", "draws", method=False, inplace=False, gradcheck=False, dtypes=dt.FLOATS,
                      vjp=dict(concentration=_slopes), doc="Probability vectors that were drawn with the concentrations.")
_shares.op.grad_name = "_DirichletBackward"


def dirichlet(concentration):
    """Probability vectors along the last dimension with gradients to the concentrations (implicit reparameterisation)."""
    concentration = concentration.contiguous()
    return _shares(concentration, sample_dirichlet(concentration.detach()))


@composite("_sample_dirichlet", method=False)
def sample_dirichlet(input, generator=None):
    """Probability vectors along the last dimension, drawn from the Dirichlet distribution of the given concentrations."""
    device = input._storage.device
    if in_sequence(input, generator) and input.dtype.is_floating_point:
        draws = np.maximum(by_rejection("gamma", generator, device, read(input.detach())), finfo(dt.float64).tiny)
        shares, limits = draws / draws.sum(-1, keepdims=True), finfo(input.dtype)
        return from_array(np.clip(shares, limits.tiny, 1 - limits.eps / 2), device, input.dtype)
    draws = standard_gamma(input.detach(), generator)
    return draws / draws.sum(-1, True)
