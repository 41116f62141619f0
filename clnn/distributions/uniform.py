"""The continuous uniform distribution."""
import math

import clnn

from . import constraints
from .distribution import Scalars


class Uniform(Scalars):
    """Numbers from [low, high), all equally likely.

    Example:
        >>> d = clnn.distributions.Uniform(0.0, 2.0)
        >>> d.log_prob(clnn.tensor(1.5)), d.mean
        (tensor(-0.6931), tensor(1.))
    """

    has_rsample = True

    @property
    def arg_constraints(self):
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    def __init__(self, low, high, validate_args=None):
        self._start(validate_args, low=low, high=high)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape=()):
        return self.low + self._noise(sample_shape, "uniform_") * (self.high - self.low)

    def log_prob(self, value):
        value = self._checked(value)
        inside = (self.low <= value) & (value < self.high)
        return clnn.where(inside, 0.0, -math.inf) - clnn.log(self.high - self.low)

    def cdf(self, value):
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return clnn.log(self.high - self.low)
