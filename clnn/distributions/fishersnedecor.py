"""The Fisher-Snedecor distribution."""
import math

import clnn

from ..ops.gamma import standard_gamma
from . import constraints
from .distribution import Scalars


class FisherSnedecor(Scalars):
    """The ratio of two independent chi-squared numbers, each divided by its degrees of freedom.

    Example:
        >>> d = clnn.distributions.FisherSnedecor(2.0, 4.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.mean
        (tensor(-1.2164), tensor(2.))
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self._start(validate_args, df1=df1, df2=df2)

    mean = property(lambda self: clnn.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan))

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return clnn.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self):
        df2 = clnn.where(self.df2 > 4, self.df2, math.nan)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        upper = 2 * standard_gamma((0.5 * self.df1).expand(shape)) / self.df1
        lower = 2 * standard_gamma((0.5 * self.df2).expand(shape)) / self.df2
        tiny = clnn.finfo(upper.dtype).tiny
        return (upper / lower.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value):
        value = self._checked(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        norm = clnn.lgamma(a + b) - clnn.lgamma(a) - clnn.lgamma(b)
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * clnn.log1p(ratio * value)
