"""The gamma distribution."""
import clnn

from ..ops.gamma import standard_gamma
from . import constraints
from .distribution import Scalars
from .exp_family import ExponentialFamily


class Gamma(Scalars, ExponentialFamily):
    """Positive numbers with the density ``rate^a x^(a - 1) exp(-rate x) / Gamma(a)``, ``a`` being the ``concentration``.

    Example:
        >>> d = clnn.distributions.Gamma(2.0, 3.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.mean
        (tensor(-0.8028), tensor(0.6667))
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        self._start(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape=()):
        draws = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        value = draws / self.rate
        value.detach().clamp_(min=clnn.finfo(value.dtype).tiny)      # an underflow would leave the support
        return value

    def log_prob(self, value):
        value = self._checked(clnn.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device))
        a, rate = self.concentration, self.rate
        return clnn.xlogy(a, rate) + clnn.xlogy(a - 1, value) - rate * value - clnn.lgamma(a)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + clnn.lgamma(a) + (1 - a) * clnn.digamma(a)

    def cdf(self, value):
        return clnn.special.gammainc(self.concentration, self.rate * self._checked(value))

    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return clnn.lgamma(x + 1) + (x + 1) * clnn.log(-y.reciprocal())
