"""The inverse gamma distribution."""
import math

import clnn

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform


class InverseGamma(TransformedDistribution):
    """Reciprocals of gamma numbers of the given ``concentration`` and ``rate``.

    Example:
        >>> d = clnn.distributions.InverseGamma(3.0, 2.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.mean
        (tensor(-0.6137), tensor(1.))
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(base.rate.new_tensor(-1)), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mean = property(lambda self: clnn.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf))
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self):
        a = self.concentration
        return clnn.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
