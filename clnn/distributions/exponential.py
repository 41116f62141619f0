"""The exponential distribution."""
import clnn

from . import constraints
from .distribution import Scalars
from .exp_family import ExponentialFamily


class Exponential(Scalars, ExponentialFamily):
    """Waiting times between events that happen at ``rate`` per unit of time.

    Example:
        >>> d = clnn.distributions.Exponential(2.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.mean
        (tensor(-1.3069), tensor(0.5000))
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        self._start(validate_args, rate=rate)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: clnn.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape=()):
        return self._noise(sample_shape, "exponential_") / self.rate

    def log_prob(self, value):
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value):
        return 1 - clnn.exp(-self.rate * self._checked(value))

    def icdf(self, value):
        return -clnn.log1p(-value) / self.rate

    def entropy(self):
        return 1 - self.rate.log()

    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -clnn.log(-x)
