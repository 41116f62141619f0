"""The generalised Pareto distribution."""
import clnn

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, scalar_shape


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold: ``loc + scale (u^-c - 1) / c`` of uniform ``u`` with ``c = concentration``; exponential for ``c = 0``, uniform for ``c = -1``.

    Pickands, "Statistical inference using extreme order statistics", 1975.

    Example:
        >>> d = clnn.distributions.GeneralizedPareto(0.0, 2.0, 0.25)
        >>> d.mean, d.cdf(clnn.tensor(2.0))
        (tensor(2.6667), tensor(0.5904))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(clnn.Size() if scalar_shape(loc, scale, concentration) else self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(GeneralizedPareto, _instance)
        for name in ("loc", "scale", "concentration"):
            setattr(new, name, getattr(self, name).expand(batch_shape))
        super(GeneralizedPareto, new).__init__(clnn.Size(batch_shape), validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _curved(self):
        """(whether the tail is exponential, a concentration to divide by)."""
        straight = self.concentration.abs() <= 1e-8
        return straight, clnn.where(straight, 1.0, self.concentration)

    def rsample(self, sample_shape=()):
        return self.icdf(clnn.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def icdf(self, value):
        straight, c = self._curved()
        log_rest = (-value).log1p()
        return self.loc + self.scale * clnn.where(straight, -log_rest, (-c * log_rest).expm1() / c)

    def log_survival_function(self, value):
        """Logarithm of the probability of more than ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        straight, c = self._curved()
        return clnn.where(straight, -z, -(c * z).log1p() / c)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        straight, c = self._curved()
        power = 1 / c + clnn.ones_like(z)
        return -self.scale.log() - clnn.where(straight, z, clnn.where(power == 0, power, power * (c * z).log1p()))

    def log_cdf(self, value):
        """Logarithm of the probability of at most ``value``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value):
        return self.log_cdf(value).exp()

    @property
    def mean(self):
        there = self.concentration < 1
        return clnn.where(there, self.loc + self.scale / (1 - clnn.where(there, self.concentration, 0.5)), clnn.nan)

    @property
    def variance(self):
        there = self.concentration < 0.5
        c = clnn.where(there, self.concentration, 0.25)
        return clnn.where(there, self.scale ** 2 / ((1 - c) ** 2 * (1 - 2 * c)), clnn.nan)

    mode = property(lambda self: self.loc)

    def entropy(self):
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        bounded = self.concentration < 0
        return constraints.interval(self.loc, clnn.where(bounded, self.loc - self.scale / clnn.where(bounded, self.concentration, -1.0), clnn.inf))
