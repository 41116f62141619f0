"""The Laplace distribution."""
import math

import clnn

from . import constraints
from .distribution import Scalars


class Laplace(Scalars):
    """Numbers with the density ``exp(-|x - loc| / scale) / (2 scale)``.

    Example:
        >>> d = clnn.distributions.Laplace(0.0, 1.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.mean
        (tensor(-1.6931), tensor(0.))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._start(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: math.sqrt(2) * self.scale)

    def rsample(self, sample_shape=()):
        u = 2 * self._noise(sample_shape, "uniform_") - 1
        u = u.clamp(min=clnn.finfo(u.dtype).eps - 1)
        return self.loc - self.scale * u.sign() * clnn.log1p(-u.abs())

    def log_prob(self, value):
        return -(2 * self.scale).log() - (self._checked(value) - self.loc).abs() / self.scale

    def cdf(self, value):
        away = self._checked(value) - self.loc
        return 0.5 - 0.5 * away.sign() * clnn.expm1(-away.abs() / self.scale)

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * clnn.log1p(-2 * term.abs())

    def entropy(self):
        return 1 + (2 * self.scale).log()
