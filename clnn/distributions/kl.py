"""Kullback-Leibler divergences ``KL(p || q) = E_p[log p - log q]`` of pairs of distributions in closed form."""
from __future__ import annotations

import functools
import math
import warnings

import clnn
from clnn._tensor.splice import spliced

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, _low_rank_distance
from .multivariate_normal import MultivariateNormal, squared_distance
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .wishart import Wishart
from .utils import euler_constant, sum_rightmost

_REGISTRY = _KL_REGISTRY = {}
_known = {}


def register_kl(type_p, type_q):
    """Decorator: the function gives the divergence of a pair of types, and of their subclasses unless a closer pair is known.

    Example:
        >>> @clnn.distributions.register_kl(clnn.distributions.Normal, clnn.distributions.Cauchy)
        ... def normal_cauchy(p, q):
        ...     return p.scale * 0
    """
    for t in (type_p, type_q):
        if not isinstance(t, type):                             # libraries have bases of their own
            raise TypeError(f"Expected type_p and type_q to be Distribution subclasses but got {t}")

    def decorate(fn):
        _REGISTRY[type_p, type_q] = fn
        _known.clear()
        return fn
    return decorate


def _closeness(pair, type_p, type_q):
    return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])


def _dispatch(type_p, type_q):
    """The rule of the closest registered pair: by the first type, or by the second; a warning when the two disagree."""
    matches = [pair for pair in _REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return None
    left = min(matches, key=lambda m: _closeness(m, type_p, type_q))
    right = min(matches, key=lambda m: _closeness(m, type_p, type_q)[::-1])
    if _REGISTRY[left] is not _REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
                      f"{right[1].__name__})", RuntimeWarning, stacklevel=3)
    return _REGISTRY[left]


def kl_divergence(p, q):
    """``KL(p || q)``, of shape ``batch_shape``.

    Raises:
        NotImplementedError: no rule is registered for the pair of types.

    Example:
        >>> N = clnn.distributions.Normal
        >>> clnn.distributions.kl_divergence(N(0.0, 1.0), N(1.0, 1.0))
        tensor(0.5000)
    """
    key = type(p), type(q)
    if key not in _known:
        _known[key] = _dispatch(*key)
    if _known[key] is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {key[0].__name__} and q type {key[1].__name__}")
    return _known[key](p, q)


def _infinite(p, q):
    like = next(v for v in (getattr(p, n, None) for n in ("loc", "rate", "low", "mean")) if isinstance(v, clnn.Tensor))
    return clnn.full_like(like, math.inf)


def _xlogx(x):
    return clnn.xlogy(x, x)


# -- pairs of one family ------------------------------------------------------------------------------------------------------------------
@register_kl(ExponentialFamily, ExponentialFamily)
def _family(p, q):
    """Nielsen & Nock, "Entropies and cross-entropies of exponential families", 2010: a Bregman divergence of the normalisers."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed using Bregman divergences")
    theta_p = [t.detach().requires_grad_() for t in p._natural_params]
    theta_q = q._natural_params
    with clnn.enable_grad():
        log_p = p._log_normalizer(*theta_p)
        gradients = clnn.autograd.grad(log_p.sum(), theta_p, create_graph=True)
    result = q._log_normalizer(*theta_q) - log_p
    for a, b, g in zip(theta_p, theta_q, gradients):
        result = result - sum_rightmost((b - a) * g, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    soft = clnn.nn.functional.softplus
    one = p.probs * (soft(-q.logits) - soft(-p.logits))
    one = clnn.where(q.probs == 0, math.inf, one)
    one = clnn.where(p.probs == 0, 0.0, one)
    none = (1 - p.probs) * (soft(q.logits) - soft(p.logits))
    none = clnn.where(q.probs == 1, math.inf, none)
    return one + clnn.where(p.probs == 1, 0.0, none)


@register_kl(Beta, Beta)
def _beta(p, q):
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    norm = (clnn.lgamma(q.concentration1) + clnn.lgamma(q.concentration0) + clnn.lgamma(total_p)
            - clnn.lgamma(p.concentration1) - clnn.lgamma(p.concentration0) - clnn.lgamma(total_q))
    return (norm + (p.concentration1 - q.concentration1) * clnn.digamma(p.concentration1)
            + (p.concentration0 - q.concentration0) * clnn.digamma(p.concentration0) + (total_q - total_p) * clnn.digamma(total_p))


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    value = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return clnn.where(p.total_count > q.total_count, math.inf, value)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t = clnn.where(q.probs == 0, math.inf, t)
    return clnn.where(p.probs == 0, 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return (p.mean * (p.logits - q.logits) + p._cont_bern_log_norm() + clnn.log1p(-p.probs) - q._cont_bern_log_norm() - clnn.log1p(-q.probs))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norm = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norm + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    return (q.concentration * (p.rate / q.rate).log() + clnn.lgamma(q.concentration) - clnn.lgamma(p.concentration)
            + (p.concentration - q.concentration) * clnn.digamma(p.concentration) + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, away = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - 1 + euler_constant * (ratio - 1) - away + clnn.exp(away + (1 + ratio).lgamma())


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - clnn.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * clnn.exp(-away / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p, q):
    return _between_normals(p.loc, p.scale, q.loc, q.scale)


@spliced
def _between_normals(loc, scale, other_loc, other_scale):
    ratio = (scale / other_scale).pow(2)
    return 0.5 * (ratio + ((loc - other_loc) / other_scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = p.scale / q.scale
    part = q.alpha / p.alpha
    return clnn.where(p.support.lower_bound < q.support.lower_bound, math.inf, q.alpha * ratio.log() - part.log() + part - 1)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    return clnn.where((q.low > p.low) | (q.high < p.high), math.inf, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    """Chyzak & Nielsen, 2019."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# -- multivariate normal distributions -----------------------------------------------------------------------------------------------------
def _same_events(p, q):
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ValueError("KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed")


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p, q):
    _same_events(p, q)
    n = p.event_shape[0]
    L, M = q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril
    batch = clnn.broadcast_shapes(L.shape[:-2], M.shape[:-2])
    inner = clnn.linalg.solve_triangular(L.expand(batch + (n, n)), M.expand(batch + (n, n)), upper=False).square().sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (inner + squared_distance(L, q.loc - p.loc) - n)


def _trace_solve(L, A):
    """``tr((L L^T)^-1 A A^T)``."""
    batch = clnn.broadcast_shapes(L.shape[:-2], A.shape[:-2])
    return clnn.linalg.solve_triangular(L.expand(batch + L.shape[-2:]), A.expand(batch + A.shape[-2:]), upper=False).square().sum((-2, -1))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p, q):
    return _to_low_rank(p, q, p._log_det(), clnn.cat([p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()], -1))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_low_rank(p, q):
    return _to_low_rank(p, q, 2 * p._half_log_det(), p._unbroadcasted_scale_tril)


def _to_low_rank(p, q, log_det, root):
    """KL to a low-rank normal of a normal with the covariance ``root root^T``."""
    _same_events(p, q)
    W, D = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    distance = _low_rank_distance(W, D, q.loc - p.loc, q._capacitance_tril)
    scaled = root / D.sqrt().unsqueeze(-1)
    inner = scaled.square().sum((-2, -1)) - _trace_solve(q._capacitance_tril, (W.mT / D.unsqueeze(-2)) @ root)
    return 0.5 * (q._log_det() - log_det + inner + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_full(p, q):
    _same_events(p, q)
    L = q._unbroadcasted_scale_tril
    inner = _trace_solve(L, p._unbroadcasted_cov_factor) + _trace_solve(L, p._unbroadcasted_cov_diag.sqrt().diag_embed())
    return q._half_log_det() + 0.5 * (inner + squared_distance(L, q.loc - p.loc) - p._log_det() - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p, q):
    n, a, b = p.event_shape[0], p.df, q.df
    psi = (a.unsqueeze(-1) / 2 - 0.5 * clnn.arange(n, dtype=a.dtype, device=a.device)).digamma().sum(-1)
    trace = _trace_solve(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril)
    return (b * (q._half_log_det() - p._half_log_det()) + a / 2 * (trace - n) + clnn.mvlgamma(b / 2, p=n) - clnn.mvlgamma(a / 2, p=n)
            + (a - b) / 2 * psi)


# -- pairs of different families --------------------------------------------------------------------------------------------------------------
def _gaussian_part(mean, variance, q):
    """``-E_p[log q]`` for a normal ``q``, which needs the moments of ``p`` only."""
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * (variance + (mean - q.loc).pow(2)) / q.scale.pow(2)


def _to_normal(p, q):
    return _gaussian_part(p.mean, p.variance, q) - p.entropy()


for _kind in (Beta, Exponential, Gamma, Gumbel, Laplace, Uniform, ContinuousBernoulli):
    register_kl(_kind, Normal)(functools.partial(_to_normal))


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    finite = _gaussian_part(p.mean, p.variance, q) - p.entropy()
    return clnn.where(p.alpha <= 2, math.inf, finite)


def _to_exponential(p, q):
    return q.rate * p.mean - q.rate.log() - p.entropy()


for _kind in (Beta, Gamma, ContinuousBernoulli):
    register_kl(_kind, Exponential)(functools.partial(_to_exponential))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    return clnn.where(p.low < 0, math.inf, _to_exponential(p, q))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p, q):
    return clnn.where(p.alpha <= 1, math.inf, _to_exponential(p, q))


def _to_gamma(p, q, mean_log):
    norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    return norm - (q.concentration - 1) * mean_log + q.rate * p.mean - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    return _to_gamma(p, q, p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    return _to_gamma(p, q, -euler_constant - p.rate.log())


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    return clnn.where(p.alpha <= 1, math.inf, _to_gamma(p, q, p.scale.log() + p.alpha.reciprocal()))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    mean_log = (_xlogx(p.high) - _xlogx(p.low)) / (p.high - p.low) - 1
    return clnn.where(p.low < 0, math.inf, _to_gamma(p, q, mean_log))


@register_kl(Beta, Uniform)
def _beta_uniform(p, q):
    value = -p.entropy() + (q.high - q.low).log()
    return clnn.where((q.low > 0) | (q.high < 1), math.inf, value)


register_kl(ContinuousBernoulli, Uniform)(_beta_uniform)


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    width = p.high - p.low
    log_x = (_xlogx(p.high) - _xlogx(p.low)) / width - 1
    log_rest = (_xlogx(1 - p.low) - _xlogx(1 - p.high)) / width - 1
    norm = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    value = -width.log() + norm - (q.concentration1 - 1) * log_x - (q.concentration0 - 1) * log_rest
    return clnn.where((p.high > 1) | (p.low < 0), math.inf, value)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    mean_log = (_xlogx(p.high) - _xlogx(p.low)) / (p.high - p.low) - 1
    value = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * mean_log
    return clnn.where(p.low < q.support.lower_bound, math.inf, value)


def _to_continuous_bernoulli(p, q):
    """``-H(p) - E[log q]`` where the logarithm of q's density is linear in the value."""
    return -p.entropy() - p.mean * q.logits - clnn.log1p(-q.probs) - q._cont_bern_log_norm()


register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p, q):
    return _to_continuous_bernoulli(p, q).masked_fill((p.high >= 1) | (p.low <= 0), math.inf)


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    a, b, m = p.concentration, p.rate * q.scale, q.loc / q.scale            # x / scale has the rate b; E[exp(-x / scale)] = (1 + 1 / b)^-a
    known = (a - 1) * a.digamma() - a.lgamma() - a + b.log() + a / b
    return known + (m - a * clnn.log1p(1 / b)).exp() - m


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    scale = q.scale * p.rate
    return scale.log() - 1 + scale.reciprocal() - q.loc / q.scale + clnn.exp(q.loc / q.scale) * scale / (scale + 1)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    ratio = p.scale / q.scale
    return ((p.loc - q.loc) / q.scale + clnn.exp((q.loc - p.loc) / q.scale + 0.5 * ratio.pow(2)) - ratio.log()
            - 0.5 * (1 + math.log(2 * math.pi)))


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    scale = q.scale / (p.high - p.low)
    high, low = (q.loc - p.high) / q.scale, (q.loc - p.low) / q.scale
    return scale.log() - 0.5 * (high + low) + scale * (low.exp() - high.exp())


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    away = p.loc - q.loc
    z = away / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * clnn.exp(-0.5 * z.pow(2)) + away * clnn.erf(math.sqrt(0.5) * z)
    return -p.scale.log() + (2 * q.scale).log() + mean / q.scale - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


for _p, _q in [(Beta, Pareto), (ContinuousBernoulli, Pareto), (Exponential, Beta), (Exponential, ContinuousBernoulli), (Exponential, Pareto),
               (Exponential, Uniform), (Gamma, Beta), (Gamma, ContinuousBernoulli), (Gamma, Pareto), (Gamma, Uniform), (Gumbel, Beta),
               (Gumbel, ContinuousBernoulli), (Gumbel, Exponential), (Gumbel, Gamma), (Gumbel, Pareto), (Gumbel, Uniform), (Laplace, Beta),
               (Laplace, ContinuousBernoulli), (Laplace, Exponential), (Laplace, Gamma), (Laplace, Pareto), (Laplace, Uniform), (Normal, Beta),
               (Normal, ContinuousBernoulli), (Normal, Exponential), (Normal, Gamma), (Normal, Pareto), (Normal, Uniform), (Pareto, Beta),
               (Pareto, ContinuousBernoulli), (Pareto, Uniform), (Poisson, Bernoulli), (Poisson, Binomial)]:
    register_kl(_p, _q)(_infinite)                                   # the support of p reaches outside that of q

__all__ = ["register_kl", "kl_divergence"]
