"""Student's t distribution."""
import math

import clnn

from ..ops.gamma import standard_gamma
from . import constraints
from .distribution import Scalars


class StudentT(Scalars):
    """A normal number divided by the root of an independent ``Chi2(df) / df``, stretched by ``scale`` and moved by ``loc``.

    Example:
        >>> d = clnn.distributions.StudentT(3.0)
        >>> d.log_prob(clnn.tensor(0.5)), d.mean
        (tensor(-1.1610), tensor(0.))
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._start(validate_args, df=df, loc=loc, scale=scale)

    mean = property(lambda self: clnn.where(self.df > 1, self.loc, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        safe = clnn.where(self.df > 2, self.df, 3.0)
        value = clnn.where(self.df > 2, self.scale.pow(2) * safe / (safe - 2), math.inf)
        return clnn.where(self.df > 1, value, math.nan)

    def rsample(self, sample_shape=()):
        noise = self._noise(sample_shape)                       # before the other draw, as in PyTorch
        chi2 = 2 * standard_gamma((0.5 * self.df).expand(self._extended_shape(sample_shape)))
        return self.loc + self.scale * noise * clnn.rsqrt(chi2 / self.df)

    def log_prob(self, value):
        y = (self._checked(value) - self.loc) / self.scale
        norm = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + clnn.lgamma(0.5 * self.df)
                - clnn.lgamma(0.5 * (self.df + 1.0)))
        return -0.5 * (self.df + 1.0) * clnn.log1p(y * y / self.df) - norm

    def entropy(self):
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = clnn.lgamma(half) + math.lgamma(0.5) - clnn.lgamma(more)
        return self.scale.log() + more * (clnn.digamma(more) - clnn.digamma(half)) + 0.5 * self.df.log() + beta
