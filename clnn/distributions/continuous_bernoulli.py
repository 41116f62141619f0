"""The continuous Bernoulli distribution."""
import math

import clnn

from . import constraints
from ._binary import Binary, cross_entropy_of
from .exp_family import ExponentialFamily
from .utils import clamp_probs


class ContinuousBernoulli(Binary, ExponentialFamily):
    """Numbers between 0 and 1 with a density proportional to ``p^x (1 - p)^(1 - x)``.

    Near ``p = 1/2`` (inside ``lims``) the normaliser and moments come from Taylor series. Loaiza-Ganem & Cunningham, 2019.

    Example:
        >>> d = clnn.distributions.ContinuousBernoulli(probs=clnn.tensor(0.3))
        >>> d.log_prob(clnn.tensor(0.5)), d.mean
        (tensor(-0.0297), tensor(0.4302))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        self._start_binary(validate_args, probs, logits)
        if "probs" in self.__dict__:
            self.probs = clamp_probs(self.probs)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new._lims = self._lims
        return new

    def _outside(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _away(self):
        """The probabilities, with those near 1/2 replaced by the lower limit."""
        return clnn.where(self._outside(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self):
        p = self._away()
        low = clnn.where(p <= 0.5, p, 0.0)
        high = clnn.where(p >= 0.5, p, 1.0)
        value = clnn.log(clnn.abs(clnn.log1p(-p) - p.log())) - clnn.where(p <= 0.5, clnn.log1p(-2 * low), clnn.log(2 * high - 1))
        x = (self.probs - 0.5).pow(2)
        return clnn.where(self._outside(), value, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self):
        p, x = self._away(), self.probs - 0.5
        return clnn.where(self._outside(), p / (2 * p - 1) + 1 / (clnn.log1p(-p) - p.log()), 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def variance(self):
        p, x = self._away(), (self.probs - 0.5).pow(2)
        value = p * (p - 1) / (1 - 2 * p).pow(2) + 1 / (clnn.log1p(-p) - p.log()).pow(2)
        return clnn.where(self._outside(), value, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape=()):
        return self.icdf(self._uniform(sample_shape))

    def log_prob(self, value):
        logits, value = clnn.broadcast_tensors(self.logits, self._checked(value))
        return self._cont_bern_log_norm() - cross_entropy_of(logits, value)

    def cdf(self, value):
        value, p = self._checked(value), self._away()
        inside = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        return clnn.where(value <= 0, 0.0, clnn.where(value >= 1, 1.0, clnn.where(self._outside(), inside, value)))

    def icdf(self, value):
        p = self._away()
        at = (clnn.log1p(-p + value * (2 * p - 1)) - clnn.log1p(-p)) / (p.log() - clnn.log1p(-p))
        return clnn.where(self._outside(), at, value)

    def entropy(self):
        none = clnn.log1p(-self.probs)
        return self.mean * (none - self.probs.log()) - self._cont_bern_log_norm() - none

    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        apart = (x <= low) | (x > high)
        safe = clnn.where(apart, x, low)
        return clnn.where(apart, (safe.expm1() / safe).abs().log(), x / 2 + x ** 2 / 24 - x ** 4 / 2880)
