"""The Cauchy distribution."""
import math

import clnn

from . import constraints
from .distribution import Scalars


class Cauchy(Scalars):
    """The ratio of two independent normal numbers, moved by ``loc`` and stretched by ``scale``; it has no mean.

    Example:
        >>> d = clnn.distributions.Cauchy(0.0, 1.0)
        >>> d.log_prob(clnn.tensor(0.0)), d.entropy()
        (tensor(-1.1447), tensor(2.5310))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._start(validate_args, loc=loc, scale=scale)

    mean = property(lambda self: clnn.full_like(self.loc, math.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: clnn.full_like(self.loc, math.inf))

    def rsample(self, sample_shape=()):
        return self.loc + self._noise(sample_shape, "cauchy_") * self.scale

    def log_prob(self, value):
        z = (self._checked(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - clnn.log1p(z * z)

    def cdf(self, value):
        return clnn.atan((self._checked(value) - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return clnn.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
