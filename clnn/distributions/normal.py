"""The normal distribution."""
import math

import clnn
from clnn._tensor.splice import spliced

from . import constraints
from .distribution import Scalars
from .exp_family import ExponentialFamily


@spliced
def _log_density(value, loc, scale):
    z = (value - loc) / scale
    return -0.5 * z * z - scale.log() - 0.5 * math.log(2 * math.pi)


class Normal(Scalars, ExponentialFamily):
    """Normal (Gaussian) numbers of mean ``loc`` and standard deviation ``scale``.

    Example:
        >>> clnn.distributions.Normal(0.0, 1.0)
        Normal(loc: 0.0, scale: 1.0)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._start(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.pow(2))

    def rsample(self, sample_shape=()):
        return self.loc + self._noise(sample_shape) * self.scale

    def log_prob(self, value):
        return _log_density(self._checked(value), self.loc, self.scale)

    def cdf(self, value):
        return 0.5 * (1 + clnn.erf((self._checked(value) - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value):
        return self.loc + self.scale * clnn.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * clnn.log(-math.pi / y)
